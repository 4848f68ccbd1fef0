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
from sparkpub.site.content import SiteOptions
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


def data_package(publication: Publication, files: Mapping[str, bytes]) -> bytes:
    """The tables among `files` as a Data Package (datapackage.org, version 2); its paths are those beside it."""
    options = publication.options
    campaigns = publication.campaigns
    descriptor: dict[str, Any] = {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": _NOT_A_NAME.sub("-", options.name.lower()).strip("-") or "benchmarks",
        "title": options.name,
        "description": "Runs, cells and comparisons: each table has a row per metric.",
    }
    if options.url:
        descriptor["homepage"] = options.url
    licences = {campaign.info.licence or "" for campaign in campaigns}
    if licences and all(map(_LICENCE_ID.fullmatch, licences)):
        descriptor["licenses"] = [{"name": name} for name in sorted(licences)]
    sources = [_source(campaign) for campaign in campaigns]
    if sources:
        descriptor["sources"] = sources
    descriptor["resources"] = [
        _resource(name, form, files[address])
        for form in _MEDIA_TYPES
        for name in TABLES
        if (address := f"data/{name}.{form}") in files
    ]
    return json.dumps(descriptor, indent=1, ensure_ascii=False).encode() + b"\n"


def _source(campaign: CampaignData) -> dict[str, str]:
    """Where a campaign comes from, as far as it says so."""
    origin = campaign.info.origin
    if origin is None:
        return {"title": f"Campaign {campaign.name}: {campaign.info.title}"}
    source = {"title": f"Campaign {campaign.name}: {origin.title}"}
    if origin.url is not None and origin.url.startswith("https://"):
        source["path"] = origin.url
    return source


def _resource(table: str, form: str, content: bytes) -> dict[str, Any]:
    """One table in one form. All forms of a table hold the same rows."""
    name = table
    if form != "csv":
        name = f"{table}-{form}"
    columns, key = TABLES[table]
    fields = [
        {
            "name": column,
            "type": _TYPES[about.kind],
            "description": about.meaning,
        }
        for column, about in columns.items()
    ]
    resource: dict[str, Any] = {
        "name": name,
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
    if form == "csv":
        # Of Parquet, frictionless 5.21 counts no bytes and then calls the count wrong.
        resource["bytes"] = len(content)
    return resource


def linked_data(publication: Publication, campaign: CampaignData, answer: str) -> str:
    """A campaign as a Dataset of schema.org, as JSON that can stand in a script element whatever names it holds."""
    options = publication.options
    models, environments, _ = campaign.axes
    runs = counted(len(campaign.runs), "run")
    about = f"{runs} of {listed(models)} in {listed(environments)}."
    document: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "name": campaign.info.title,
        "description": f"{about} {answer}".strip(),
        "identifier": campaign.name,
        "isAccessibleForFree": True,
        "variableMeasured": [
            {"@type": "PropertyValue", "name": metric.label, "unitText": metric.unit}
            for metric in publication.metrics(campaign)
        ],
    }
    times = sorted(record.started.value[:10] for record in campaign.records)
    if times:
        document["temporalCoverage"] = f"{times[0]}/{times[-1]}"
    if campaign.info.licence:
        document["license"] = {"@type": "CreativeWork", "name": campaign.info.licence}
    origin = campaign.info.origin
    if origin is not None:
        document["isBasedOn"] = {"@type": "CreativeWork", "name": origin.title}
        if origin.author is not None:
            author = {"@type": "Person", "name": origin.author}
            document["isBasedOn"]["author"] = author
        if origin.url is not None and origin.url.startswith("https://"):
            document["isBasedOn"]["url"] = origin.url
    if options.url:
        document["url"] = f"{options.url}campaigns/{campaign.name}/"
        document["distribution"] = _distribution(publication)
    catalogue = {"@type": "DataCatalog", "name": options.name}
    document["includedInDataCatalog"] = catalogue | _address(options)
    return _in_script(json.dumps(document, ensure_ascii=False, separators=(",", ":")))


def _address(options: SiteOptions) -> dict[str, str]:
    if not options.url:
        return {}
    return {"url": options.url}


def _distribution(publication: Publication) -> Sequence[Mapping[str, str]]:
    return [
        {
            "@type": "DataDownload",
            "contentUrl": publication.options.url + PARQUET,
            "encodingFormat": _MEDIA_TYPES["parquet"],
        }
    ]


def _in_script(text: str) -> str:
    """JSON without the signs that could end a script element or begin a comment in it."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def pandas_line(publication: Publication, campaign: CampaignData) -> str:
    """Python that loads the rows of a campaign from the site; from its folder where its address is not known."""
    url = publication.options.url
    wanted = f'filters=[("campaign", "==", "{campaign.name}")]'
    return f'pd.read_parquet("{url}{PARQUET}", {wanted})'
