"""The badge of a site: what shields.io is told."""

import json
from typing import Any

import pytest

from sparkpub.site.pages import badge
from tests.leaderboards import a_finding, runs_of
from tests.site.test_front_page import published


@pytest.mark.parametrize(
    ("severities", "message", "colour"),
    [
        (["info"], "no findings", "green"),
        (["warning", "warning"], "2 warnings", "orange"),
        (["error", "warning"], "1 error, 1 warning", "red"),
    ],
)
def test_a_badge_says_what_the_checks_found(
    severities: list[Any], message: str, colour: str
) -> None:
    findings = [a_finding("outlier", severity) for severity in severities]
    publication = published(*runs_of("m", [1.0, 2.0]), findings=findings)
    assert json.loads(badge.of_site(publication)) == {
        "schemaVersion": 1,
        "label": "2 runs checked",
        "message": message,
        "color": colour,
    }
