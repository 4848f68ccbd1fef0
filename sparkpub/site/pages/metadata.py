"""What the published data are, in words of standards: a Data Package of all tables, a Dataset of schema.org for each
campaign, and the line of pandas that loads its rows."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sparkpub.record.text import counted, listed
from sparkpub.review.dataset import CampaignData
from sparkpub.review.tables import cells, comparisons, runs
from sparkpub.review.tables.cells import CELL
from sparkpub.review.tables.column import Columns
from sparkpub.site.publication import Publication

PACKAGE = "data/datapackage.json"
PARQUET = "data/runs.parquet"
TABLES: Mapping[str, tuple[Columns, Sequence[str]]] = {
    "runs": (runs.COLUMNS, ["run", "metric"]),
    "cells": (cells.COLUMNS, [*CELL, "metric"]),
    "comparisons": (
        comparisons.COLUMNS,
        ["campaign", "model", "workload", "metric", "baseline", "candidate", "machine"],
    ),
}
"""The tables that a site publishes: their columns, and those that tell rows apart."""
_TYPES = {
    "text": "string",
    "list": "string",
    "integer": "integer",
    "count": "integer",
    "number": "number",
    "boolean": "boolean",
    "answer": "boolean",
}
"""Kind of a column to its type in a Table Schema."""
_MEDIA_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


def data_package(publication: Publication, files: Mapping[str, bytes]) -> bytes:
    """The tables among `files` as a Data Package (datapackage.org, version 2); its paths are those beside it."""
    descriptor = {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "title": publication.options.name,
        "description": "Runs, cells and comparisons: each table has a row per metric.",
        "sources": [_source(campaign) for campaign in publication.campaigns],
        "resources": [
            _resource(name, form, files[address])
            for form in _MEDIA_TYPES
            for name in TABLES
            if (address := f"data/{name}.{form}") in files
        ],
    }
    return json.dumps(descriptor, indent=1, ensure_ascii=False).encode() + b"\n"


def _source(campaign: CampaignData) -> dict[str, str]:
    """Where a campaign comes from, as far as it says so."""
    origin, title = campaign.info.origin, campaign.info.title
    if origin is None:
        return {"title": f"Campaign {campaign.name}: {title}"}
    source = {"title": f"Campaign {campaign.name}: {origin.title}"}
    if origin.url and origin.url.startswith("https://"):
        source["path"] = origin.url
    return source


def _resource(table: str, form: str, content: bytes) -> dict[str, Any]:
    """One table in one form. All forms of a table hold the same rows."""
    columns, key = TABLES[table]
    fields = [
        {"name": name, "type": _TYPES[column.kind], "description": column.meaning}
        for name, column in columns.items()
    ]
    return {
        "name": f"{table}-{form}",
        "path": f"{table}.{form}",
        "type": "table",
        "format": form,
        "mediatype": _MEDIA_TYPES[form],
        "encoding": "utf-8",
        "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "schema": {"fields": fields, "primaryKey": list(key), "missingValues": [""]},
    }


def linked_data(publication: Publication, campaign: CampaignData, answer: str) -> str:
    """A campaign as a Dataset of schema.org, as JSON that can stand in a script element whatever names it holds."""
    url, info = publication.options.url, campaign.info
    models, environments, _ = campaign.axes
    runs = counted(len(campaign.runs), "run")
    about = f"{runs} of {listed(models)} in {listed(environments)}."
    document: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "name": info.title,
        "description": f"{about} {answer}".strip(),
        "identifier": campaign.name,
        "isAccessibleForFree": True,
    }
    days = sorted(record.started.value[:10] for record in campaign.records)
    if days:
        document["temporalCoverage"] = f"{days[0]}/{days[-1]}"
    if info.licence:
        document["license"] = {"@type": "CreativeWork", "name": info.licence}
    if url:
        document["url"] = f"{url}campaigns/{campaign.name}/"
        document["distribution"] = {
            "@type": "DataDownload",
            "contentUrl": url + PARQUET,
            "encodingFormat": _MEDIA_TYPES["parquet"],
        }
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    # Without the signs that could end the script element or begin a comment in it.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def pandas_line(publication: Publication, campaign: CampaignData) -> str:
    """Python that loads the rows of a campaign from the site; from its folder where its address is not known."""
    url = publication.options.url
    wanted = f'filters=[("campaign", "==", "{campaign.name}")]'
    return f'pd.read_parquet("{url}{PARQUET}", {wanted})'
