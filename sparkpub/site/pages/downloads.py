"""Data and downloads: everything behind the figures, in forms that other programs read."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import to_json

from sparkpub.record.record import json_schema
from sparkpub.review import export, stats_told
from sparkpub.review.results import Results
from sparkpub.site.content import Content, packed, packed_pieces, unpacked
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import badge, metadata
from sparkpub.site.pages.templating import Templates
from sparkpub.site.publication import Publication

MOST_BYTES = 5_000_000
"""Of a JSON document as it is; a longer one is compressed. The statistics of 10,000 runs would be 100 MB: as much as
the usual hosts take in one file."""


def contents(
    publication: Publication,
    library: Library,
    templates: Templates,
) -> Mapping[str, Content]:
    """The download page and its files."""
    results = publication.results
    dataset, review = results.dataset, results.review
    documents: dict[str, Any] = {
        "review": {
            "findings": [finding.document() for finding in review.findings],
            "runs": len(dataset.runs),
            "excluded": dict(review.excluded),
        },
        "claims": {"claims": [verdict.document() for verdict in publication.verdicts]},
        "record.schema": json_schema(),
    }
    # CSV and JSON take 5 and 12 kB per run, Parquet some hundred bytes.
    formats = ["parquet"] if publication.large else list(export.FORMATS)
    files: dict[str, bytes] = {}
    for form in formats:
        for name in metadata.TABLES:
            if form == "json" and name != "runs":
                continue  # statistics.json has their rows
            data = export.FORMATS[form](getattr(results, name))
            files[f"data/{name}.{form}"] = data
    files[metadata.PACKAGE] = metadata.data_package(publication, files)
    if publication.large:
        files |= _statistics(results)
    else:
        documents = {"statistics": stats_told.document(results)} | documents
    indent = None if publication.large else 1
    for name, document in documents.items():
        text = to_json(document, indent=indent) + b"\n"
        if len(text) > MOST_BYTES:
            files[f"data/{name}.json.gz"] = packed(text)
        else:
            files[f"data/{name}.json"] = text
    proofs = [item for files in publication.evidence.values() for item in files]
    files["data/SHA256SUMS"] = "".join(
        f"{item.sha256}  {item.address}\n" for item in proofs if item.address
    ).encode()
    page = templates.page(
        "data",
        files={address: len(data) for address, data in files.items()},
        campaigns=publication.campaigns,
        figures=[figure for figure in library.wanted.values() if figure.downloads],
        proofs=sum(item.address is not None for item in proofs),
        pictures=library.pictures,
        options=publication.options,
    )
    shown = badge.badge(publication)
    files |= {badge.SVG: badge.svg(shown), badge.ENDPOINT: badge.endpoint(shown)}
    return {"data/index.md": page} | {
        address: Content(data=data) for address, data in files.items()
    }


def _statistics(found: Results) -> dict[str, bytes]:
    """The statistics as `sparkpub stats --json` has them, of a large site: compressed row by row."""
    address = "data/statistics.json"
    data = packed_pieces(_pieces(found))
    text_size = int.from_bytes(data[-4:], "little")  # how gzip ends
    if text_size > MOST_BYTES:
        return {f"{address}.gz": data}
    return {address: unpacked(data)}


def _pieces(found: Results) -> Iterator[bytes]:
    """The document in pieces: as a whole it would take gigabytes."""
    yield to_json(stats_told.heading(found))[:-1]
    for name in stats_told.TABLES:
        yield b',"' + name.encode() + b'":['
        before = b""
        for row in stats_told.documents(found, name):
            yield before + to_json(row)
            before = b","
        yield b"]"
    yield b"}\n"
