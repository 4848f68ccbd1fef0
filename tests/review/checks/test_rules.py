"""The table of rules itself: a name that nothing gives would be NaN for ever, and its rule asleep."""

import ast
from dataclasses import fields

import pytest

from sparkpub.record.load import Load
from sparkpub.record.metrics import METRICS
from sparkpub.record.record import Observed
from sparkpub.review.checks.rules import (
    BOOKKEEPING,
    FUNCTIONS,
    INCONSISTENT,
    OTHERS,
    POSSIBLE,
    THRESHOLDS,
    FiguresOfRuns,
    Rule,
    broken,
    define,
)

TABLE = [
    rule for kind in (*INCONSISTENT, *BOOKKEEPING, *POSSIBLE) for rule in kind.rules
]


def test_every_name_of_a_rule_is_given_by_something() -> None:
    defined = FiguresOfRuns([{"requests": 1.0}])
    define(defined)
    of_a_run = {"slack_ms", "share_computed", "limit_W", "limit_MHz", "GIB"}
    of_a_run |= {f"{place}_memory_total_gib" for place in ("gpu", "host")}
    asked = {f"asked_{field.name}" for field in fields(Load)}
    given = {*METRICS, *Observed.model_fields, *defined, *asked, *of_a_run}
    given |= {*OTHERS, *THRESHOLDS, *FUNCTIONS}
    for rule in TABLE:
        for expression in (rule.holds, rule.where, rule.share, rule.off):
            tree = ast.parse(expression, mode="eval")
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            assert names <= given, expression


@pytest.mark.parametrize(
    ("holds", "places"),
    [
        # Of 1 and 2, of 2 and 2, of 3 and 2, and of 2 beside nothing.
        ("one == two", [0, 2]),
        ("one != two", [1]),
        ("one <= two", [2]),
        ("one >= two", [0]),
        ("one - 1 > 0", [0]),
    ],
)
def test_what_is_not_known_breaks_no_rule(holds: str, places: list[int]) -> None:
    rows = [
        {"one": 1.0, "two": 2.0},
        {"one": 2.0, "two": 2.0},
        {"one": 3.0, "two": 2.0},
    ]
    found = broken(Rule(holds), FiguresOfRuns([*rows, {"one": 2.0}]))
    assert [place for place, _ in found] == places


def test_a_share_and_an_amount_are_allowed() -> None:
    figures = FiguresOfRuns([{"one": 100.0, "two": 111.0}])
    # A tenth of the larger one is 11.1; a twentieth 5.55, and 5.45 are missing.
    assert not list(broken(Rule("one == two", share="0.1"), figures))
    assert not list(broken(Rule("one == two", share="0.05", off="5.5"), figures))
    assert list(broken(Rule("one == two", share="0.05", off="5.4"), figures))
