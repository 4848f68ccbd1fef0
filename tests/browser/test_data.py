"""Data that others can use, from the site as it is served."""

import json
from typing import Any

import pandas as pd
import pytest

from tests.browser.campaign import NAME
from tests.browser.conftest import Host


@pytest.mark.parametrize("name", ["phase1", NAME])
def test_a_campaign_says_what_it_is_and_how_to_load_it(site: Host, name: str) -> None:
    visit = site.open(f"campaigns/{name}/")
    visit.page.wait_for_load_state("networkidle")
    assert visit.errors == [], "the policy forbids a block of data"
    block = visit.page.locator('script[type="application/ld+json"]')
    dataset = json.loads(block.text_content())
    assert dataset["@type"] == "Dataset"
    assert dataset["url"] == f"{site.address}campaigns/{name}/"
    lines = visit.page.locator("#use-these-data ~ .sp-cite").first.text_content()
    names: dict[str, Any] = {}
    exec(lines, names)
    rows = names["rows"]
    everything = pd.read_parquet(dataset["distribution"][1]["contentUrl"])
    expected = everything[everything["campaign"] == name]
    assert len(rows) == len(expected) > 0
    assert set(rows["campaign"]) == {name}
