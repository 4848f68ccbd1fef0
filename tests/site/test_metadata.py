"""What programs of other people are told of the data: a Data Package, a Dataset of schema.org, and a badge."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.campaign import Campaign
from sparkpub.record.record import Origin
from sparkpub.record.store import to_json
from sparkpub.review.checks import Finding
from sparkpub.review.dataset import load
from sparkpub.review.tables.runs import COLUMNS
from sparkpub.site.build import publish
from sparkpub.site.content import SiteOptions
from sparkpub.site.pages import badge, metadata
from sparkpub.site.publication import Publication
from tests.site.conftest import Built

HOSTILE = '</script><script>alert(1)</script> & "quoted" <!-- \u2028'


@pytest.fixture
def publication(data: Path, options: SiteOptions) -> Publication:
    return publish(load(data), options)


def redeclare(data: Path, **fields: Any) -> None:
    info = Campaign(**({"campaign": "c", "title": "A small campaign"} | fields))
    (data / "c" / "campaign.json").write_text(to_json(info), encoding="utf-8")


def linked(publication: Publication) -> dict[str, Any]:
    text = metadata.linked_data(publication, publication.campaigns[0], "The answer.")
    found: dict[str, Any] = json.loads(text)
    return found


# -- the Data Package --------------------------------------------------------------------------------------


def test_frictionless_finds_the_tables_as_they_are_described(
    built: Built, tmp_path: Path
) -> None:
    """Its own implementation reads the descriptor, the digest, and every row against the types of the columns."""
    tree = built.tree
    package = json.loads(tree[metadata.PACKAGE])
    paths = [item["path"] for item in package["resources"]]
    assert paths == [
        f"{table}.{form}"
        for form in ("csv", "parquet")
        for table in ("runs", "cells", "comparisons")
    ]
    for name in ("datapackage.json", *paths):
        (tmp_path / name).write_bytes(tree[f"data/{name}"])
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "frictionless",
            "validate",
            "datapackage.json",
            "--json",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    assert report["valid"], done.stdout
    task = report["tasks"][0]
    # 13 runs; the failed one has no metric, the other twelve have three.
    assert task["stats"]["rows"] == 36
    assert task["labels"] == list(COLUMNS)


@pytest.mark.parametrize(
    ("url", "told"), [("https://a.test/b", "https://a.test/b"), ("javascript:1", None)]
)
def test_the_origin_of_a_campaign_is_its_source(
    url: str, told: str | None, data: Path, options: SiteOptions
) -> None:
    redeclare(data, origin=Origin(title="Elsewhere", url=url))
    package = json.loads(metadata.data_package(publish(load(data), options), {}))
    (source,) = package["sources"]
    assert source["title"] == "Campaign c: Elsewhere"
    assert source.get("path") == told


# -- the Dataset -------------------------------------------------------------------------------------------


def test_a_campaign_is_a_dataset(publication: Publication) -> None:
    found = linked(publication)
    assert found["@type"] == "Dataset"
    assert found["name"] == "A small campaign"
    assert (
        found["description"]
        == "13 runs of m and n in native and container. The answer."
    )
    assert found["url"] == "https://site.test/x/campaigns/c/"
    assert found["temporalCoverage"] == "2026-01-01/2026-01-01"
    assert found["distribution"]["contentUrl"] == (
        "https://site.test/x/data/runs.parquet"
    )
    assert "license" not in found


def test_no_name_ends_the_script_element(data: Path, options: SiteOptions) -> None:
    redeclare(data, title=HOSTILE, licence=HOSTILE)
    publication = publish(load(data), options)
    text = metadata.linked_data(publication, publication.campaigns[0], HOSTILE)
    assert not set("<>&") & set(text)
    title = publication.campaigns[0].info.title
    assert json.loads(text)["name"] == title
    assert "</script>" in title


# -- the badge ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("severities", "message", "colour"),
    [
        (["info"], "no findings", "green"),
        (["warning", "warning"], "2 warnings", "orange"),
        (["error", "warning"], "1 error, 1 warning", "red"),
    ],
)
def test_a_badge_says_what_the_checks_found(
    severities: list[Any], message: str, colour: str, publication: Publication
) -> None:
    findings = tuple(
        Finding("outlier", severity, "c", None, None, "text", {})
        for severity in severities
    )
    review = replace(publication.review, findings=findings)
    assert json.loads(badge.of_site(replace(publication, review=review))) == {
        "schemaVersion": 1,
        "label": "13 runs checked",
        "message": message,
        "color": colour,
    }
