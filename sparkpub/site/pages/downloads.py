"""Data and downloads: everything behind the figures, in forms that other programs read."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from pydantic_core import to_json

from sparkpub.record.record import json_schema
from sparkpub.review import export, stats_told
from sparkpub.review.results import Results
from sparkpub.site.content import Content, packed, packed_pieces, unpacked
from sparkpub.site.pages import badge, metadata
from sparkpub.site.pages.templating import Templates
from sparkpub.site.publication import Publication

MOST_BYTES = 5_000_000
"""Of a table as CSV, which is left out beyond it, and of a JSON document as it is; a longer one is compressed. The
statistics of 10,000 runs would be 100 MB: as much as the usual hosts take in one file."""


def contents(
    publication: Publication,
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
    files: dict[str, bytes] = {}
    # Parquet takes some hundred bytes per run and is always there; CSV takes 10 kB.
    for name in metadata.TABLES:
        files[f"data/{name}.parquet"] = export.parquet(getattr(results, name))
    for name in metadata.TABLES:
        data = _csv(getattr(results, name))
        if data is not None:
            files[f"data/{name}.csv"] = data
    files[metadata.PACKAGE] = metadata.data_package(publication, files)
    files |= _statistics(results)
    for name, document in documents.items():
        text = to_json(document) + b"\n"
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
        proofs=sum(item.address is not None for item in proofs),
        options=publication.options,
    )
    shown = badge.badge(publication)
    files |= {badge.SVG: badge.svg(shown), badge.ENDPOINT: badge.endpoint(shown)}
    return {"data/index.md": page} | {
        address: Content(data=data) for address, data in files.items()
    }


def _csv(table: pd.DataFrame) -> bytes | None:
    """A table as CSV, or None where it is too long."""
    data = b""
    for piece in export.csv_pieces(table):
        data += piece
        if len(data) > MOST_BYTES:
            return None
    return data


def _statistics(found: Results) -> dict[str, bytes]:
    """The statistics as `sparkpub stats --json` has them, compressed row by row."""
    address = "data/statistics.json"
    data = packed_pieces(stats_told.json_pieces(found))
    text_size = int.from_bytes(data[-4:], "little")  # how gzip ends
    if text_size > MOST_BYTES:
        return {f"{address}.gz": data}
    return {address: unpacked(data)}
