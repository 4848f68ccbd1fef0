"""The table of rules itself: a name that nothing gives would be NaN for ever, and its rule asleep."""

import inspect
import re
from dataclasses import fields

import pytest

from sparkpub.record.load import Load
from sparkpub.record.metrics import METRICS
from sparkpub.record.record import Observed
from sparkpub.review.checks import CHECKS, conditions, rules, sensors
from sparkpub.review.checks.rules import (
    CALLED,
    DEFINED,
    FiguresOfRuns,
    Rule,
    Wrong,
    broken,
)


def test_every_name_of_a_rule_is_given_by_something() -> None:
    given = {*METRICS, *Observed.model_fields, *DEFINED, *CALLED}
    given |= {f"asked_{field.name}" for field in fields(Load)}
    given |= {f"{name}_operations" for name in METRICS}
    given |= {"deviation_tpot", "deviation_output_tokens", "True"}
    source = "".join(map(inspect.getsource, (rules, conditions, sensors)))
    asked = [one.cases for check in CHECKS.values() for one in check.asked]
    every = [
        rule
        for one in asked
        if isinstance(one, Wrong)
        for rule in one.asked
        if isinstance(rule, Rule)
    ]
    expressions = [part for rule in every for part in (rule.holds, *rule[2:])]
    for expression in (*DEFINED.values(), *expressions):
        for name in re.findall(r"\b[A-Za-z_]\w+", expression):
            assert name in given or f'"{name}"' in source, name


@pytest.mark.parametrize(
    ("holds", "places"),
    [
        # Of 1 and 2, of 2 and 2, of 3 and 2, and of 2 beside nothing.
        ("one == two", [0, 2]),
        ("one != two", [1]),
        ("one <= two", [2]),
        ("one >= two", [0]),
        ("one - 1 >= 1e-9", [0]),
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
