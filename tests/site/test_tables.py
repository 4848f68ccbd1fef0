"""Tables of a site, campaign by campaign: compressed or not, they hold the same."""

import json

import pytest

from sparkpub.site import tables
from sparkpub.site.tables import SiteTables

SHARES = {
    "a": {"runs": [], "cells": [{"mean": 0.1}]},
    "b": {"runs": [{"run": "b1"}, {"run": "b2"}], "cells": []},
    "c": {"runs": [{"run": "c1", "value": None}], "cells": [{"mean": 1.0}]},
}


def made(*, compressed: bool) -> SiteTables:
    found = SiteTables(("runs", "cells"), compressed=compressed)
    for campaign, share in SHARES.items():
        found.put(campaign, share)
    return found


@pytest.mark.parametrize("compressed", [False, True])
def test_rows_come_back_by_campaign_and_as_one_list(compressed: bool) -> None:
    found = made(compressed=compressed)
    for campaign, share in SHARES.items():
        assert found.of(campaign) == share
    found.of("b")  # the order does not depend on who asked last
    whole = [*SHARES["b"]["runs"], *SHARES["c"]["runs"]]
    assert list(found.rows("runs")) == whole
    assert json.loads(b"".join(found.text("runs"))) == whole
    assert b"".join(found.text("cells")) == b'[{"mean":0.1},{"mean":1.0}]'


def test_no_rows_are_an_empty_list() -> None:
    assert b"".join(SiteTables(("runs",)).text("runs")) == b"[]"


def test_only_the_last_campaigns_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_OPEN", 2)
    found = made(compressed=True)
    first = found.of("a")
    found.of("b")
    assert found.of("a") is first
    found.of("c")  # b was asked for longest ago
    assert found.of("a") is first
    found.of("b")
    found.of("c")
    again = found.of("a")
    assert again is not first
    assert again == first
