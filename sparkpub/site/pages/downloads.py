"""Data and downloads: everything behind the figures, in forms that other programs read."""

from collections.abc import Mapping

from sparkpub.review import told
from sparkpub.review.tables import cells, comparisons, runs
from sparkpub.review.tables.column import Columns
from sparkpub.site.content import File
from sparkpub.site.pages import badge, templating
from sparkpub.site.publication import Publication

TABLES: Mapping[str, Columns] = {
    "runs": runs.COLUMNS,
    "cells": cells.COLUMNS,
    "comparisons": comparisons.COLUMNS,
}
"""The tables that a site publishes, with their columns."""
MOST_ROWS = 10_000
"""Of a table as CSV, some 5 MB; a longer one is published as Parquet alone."""


def contents(
    publication: Publication,
) -> dict[str, File]:
    """The download page and its files."""
    results = publication.results
    files: dict[str, bytes] = {}
    tables = {name: getattr(results, name) for name in TABLES}
    for name, table in tables.items():
        files[f"data/{name}.parquet"] = told.parquet(table)
    for name, table in tables.items():
        if len(table) <= MOST_ROWS:
            files[f"data/{name}.csv"] = told.csv(table)
    proofs = [
        f"{item.sha256}  {item.address}\n"
        for published in publication.evidence.values()
        for item in published
        if item.address
    ]
    files["data/SHA256SUMS"] = "".join(proofs).encode()
    page = templating.page("data", publication, files=files, proofs=len(proofs))
    files[badge.ADDRESS] = badge.of_site(publication)
    return {"data/index.md": page, **files}
