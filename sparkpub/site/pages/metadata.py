"""What the published data are, in words of standards: a Data Package of all tables, a Dataset of schema.org for each
campaign, and the line of pandas that loads its rows."""

import hashlib
import json
import re
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
_NOT_A_NAME = re.compile(r"[^a-z0-9]+")
_LICENCE_ID = re.compile(r"[A-Za-z0-9.+-]+")
"""An identifier of SPDX, such as CC-BY-4.0, and not a sentence."""


def _known(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of something, without what nobody said."""
    return {name: value for name, value in fields.items() if value}


def data_package(publication: Publication, files: Mapping[str, bytes]) -> bytes:
    """The tables among `files` as a Data Package (datapackage.org, version 2); its paths are those beside it."""
    options, campaigns = publication.options, publication.campaigns
    licences = sorted({campaign.info.licence or "" for campaign in campaigns})
    if not all(map(_LICENCE_ID.fullmatch, licences)):
        licences = []
    descriptor = _known(
        {
            "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
            "name": _NOT_A_NAME.sub("-", options.name.lower()).strip("-")
            or "benchmarks",
            "title": options.name,
            "description": "Runs, cells and comparisons: each table has a row per metric.",
            "homepage": options.url,
            "licenses": [{"name": name} for name in licences],
            "sources": list(map(_source, campaigns)),
            "resources": [
                _resource(name, form, files[address])
                for form in _MEDIA_TYPES
                for name in TABLES
                if (address := f"data/{name}.{form}") in files
            ],
        }
    )
    return json.dumps(descriptor, indent=1, ensure_ascii=False).encode() + b"\n"


def _source(campaign: CampaignData) -> dict[str, str]:
    """Where a campaign comes from, as far as it says so."""
    origin = campaign.info.origin
    title = campaign.info.title if origin is None else origin.title
    return _known(
        {"title": f"Campaign {campaign.name}: {title}", "path": _address_of(campaign)}
    )


def _address_of(campaign: CampaignData) -> str | None:
    """The address of where a campaign comes from."""
    url = campaign.info.origin and campaign.info.origin.url
    return url if url and url.startswith("https://") else None


def _resource(table: str, form: str, content: bytes) -> dict[str, Any]:
    """One table in one form. All forms of a table hold the same rows."""
    columns, key = TABLES[table]
    is_csv = form == "csv"
    fields = []
    for column, about in columns.items():
        kind = {"name": column, "type": _TYPES[about.kind]}
        fields.append({**kind, "description": about.meaning})
    resource: dict[str, Any] = {
        "name": table if is_csv else f"{table}-{form}",
        "path": f"{table}.{form}",
        "type": "table",
        "format": form,
        "mediatype": _MEDIA_TYPES[form],
        "encoding": "utf-8",
        "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "schema": {
            "fields": fields,
            "primaryKey": list(key),
            "missingValues": [""],
        },
    }
    if is_csv:
        # Of Parquet, frictionless 5.21 counts no bytes and then calls the count wrong.
        resource["bytes"] = len(content)
    return resource


def linked_data(publication: Publication, campaign: CampaignData, answer: str) -> str:
    """A campaign as a Dataset of schema.org, as JSON that can stand in a script element whatever names it holds."""
    options, info = publication.options, campaign.info
    models, environments, _ = campaign.axes
    runs = counted(len(campaign.runs), "run")
    about = f"{runs} of {listed(models)} in {listed(environments)}."
    days = sorted(record.started.value[:10] for record in campaign.records)
    origin = info.origin and {
        "@type": "CreativeWork",
        "name": info.origin.title,
        "author": info.origin.author
        and {"@type": "Person", "name": info.origin.author},
        "url": _address_of(campaign),
    }
    download = {
        "@type": "DataDownload",
        "contentUrl": options.url + PARQUET,
        "encodingFormat": _MEDIA_TYPES["parquet"],
    }
    catalogue = {"@type": "DataCatalog", "name": options.name, "url": options.url}
    document = _known(
        {
            "@context": "https://schema.org",
            "@type": "Dataset",
            "name": info.title,
            "description": f"{about} {answer}".strip(),
            "identifier": campaign.name,
            "isAccessibleForFree": True,
            "variableMeasured": [
                {"@type": "PropertyValue", "name": metric.label}
                | {"unitText": metric.unit}
                for metric in publication.metrics(campaign)
            ],
            "temporalCoverage": days and f"{days[0]}/{days[-1]}",
            "license": info.licence and {"@type": "CreativeWork", "name": info.licence},
            "isBasedOn": origin and _known(origin),
            "url": options.url and f"{options.url}campaigns/{campaign.name}/",
            "distribution": [download] if options.url else [],
            "includedInDataCatalog": _known(catalogue),
        }
    )
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    # Without the signs that could end the script element or begin a comment in it.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def pandas_line(publication: Publication, campaign: CampaignData) -> str:
    """Python that loads the rows of a campaign from the site; from its folder where its address is not known."""
    url = publication.options.url
    wanted = f'filters=[("campaign", "==", "{campaign.name}")]'
    return f'pd.read_parquet("{url}{PARQUET}", {wanted})'
