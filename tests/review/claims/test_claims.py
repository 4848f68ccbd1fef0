"""Claims: what is refused, how each form is read, when a verdict is void. Expected values are worked out in place."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkpub.record.errors import ClaimError
from sparkpub.record.store import Stored
from sparkpub.review.claims import ledger
from tests.building import a_record
from tests.leaderboards import reviewed
from tests.review.claims.campaigns import a_dataset, verdict_on

METRIC = "output_throughput_tok_s"
TEN = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.7, 99.3, 100.0]
"""Mean 100, sample sd 0.626: 95 % interval of the mean 100 ± 2.262 × 0.626 / √10 = 99.55 … 100.45."""
KEY = ("m", "native")
ONE = {KEY: TEN}
BOTH = {("m", "native"): TEN, ("m", "container"): [value + 0.1 for value in TEN]}
"""Difference 0.1, standard error 0.626 × √(2/10) = 0.28, t(18) = 2.101: interval −0.49 … 0.69."""


def comparing(**fields: Any) -> dict[str, Any]:
    sides = {"metric": METRIC, "compare": "container / native", "scope": "each model"}
    return sides | fields


def of_cells(**fields: Any) -> dict[str, Any]:
    return {"metric": METRIC, "scope": "each cell"} | fields


GOOD = """\
- id: one
  source: {document: a report}
  about: data
  campaign: c
  expect: {holds: "runs = 60"}
  recorded: supported
"""
HYPOTHESIS = '  expect: {holds: "runs = 60"}\n', "  decided_by: A run.\n"


@pytest.mark.parametrize(
    ("replace", "by", "line", "words"),
    [
        ("source:", "soruce:", 2, "did you mean source?"),
        ("  about", "  says: It is so.\n  about", 1, "made from expect: remove says:"),
        (*HYPOTHESIS, 1, "a hypothesis has says:"),
        ("runs = 60", "__import__('os').system('id')", 5, "holds"),
        ('{holds: "runs = 60"}', "{}", 5, "exactly one of"),
        ('{holds: "runs = 60"}', "{spans: [3, 2]}", 5, "is turned round"),
        ("  expect", "  scope: every model\n  expect", 5, "scope"),
        ('  expect: {holds: "runs = 60"}\n', "", 1, "decided_by"),
    ],
)
def test_a_mistake_is_named_with_its_line(
    tmp_path: Path, replace: str, by: str, line: int, words: str
) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(GOOD.replace(replace, by))
    with pytest.raises(ClaimError) as caught:
        ledger.read(path)
    told = caught.value.lines()
    assert any(f"{path}:{line};" in one and words in one for one in told)


# ---- each form: supported, refuted, undecided ----------------------------------------------------------------


def compared(by: float, first: int = 10) -> dict[Any, Any]:
    """Runs natively, and as many in a container that are all higher by the same."""
    higher = [value + by for value in TEN[:first]]
    return {("m", "native"): TEN[:first], ("m", "container"): higher}


CELL = of_cells()
MODELS = {"metric": METRIC, "scope": "each model"}
ANY_MODEL, ANY_CELL = comparing(scope="any model"), of_cells(scope="any cell")
SEVERAL = {(f"m{index}", "e"): [value - index for value in TEN] for index in range(4)}
WORSE = {
    (f"k{n}", side): values for n in (3, 4) for (_, side), values in compared(n).items()
}
TWO = {**ONE, ("k", "native"): [value + 5.456 for value in TEN]}
"""Means of 100 and 105.456."""
NEAR = {**ONE, ("k", "native"): BOTH["m", "container"]}
CASES: list[tuple[dict[Any, Any], dict[str, Any], list[tuple[Any, str]]]] = [
    (
        BOTH,
        comparing(),
        [
            # The interval lies well within ±1 %: both one-sided t are above 3.2. It lies across ±0.5 %.
            ({"equivalent_within_percent": 1.0}, "supported"),
            ({"equivalent_within_percent": 0.5}, "undecided"),
            ({"difference": [-1, 1]}, "supported"),
            ({"difference": [0, 1]}, "undecided"),
            ({"difference": [1, 2]}, "refuted"),
            ({"difference_percent": [-1, 1]}, "supported"),
            ({"ratio": [1.1, 1.2]}, "refuted"),
            ({"direction": "higher"}, "undecided"),
            # A test that finds nothing shows nothing.
            ("p_value > 0.05", "undecided"),
        ],
    ),
    (compared(5), comparing(), [({"equivalent_within_percent": 1}, "refuted")]),
    (
        compared(-5),
        comparing(),
        [({"direction": "lower"}, "supported"), ({"direction": "higher"}, "refuted")],
    ),
    (compared(-5, 3), comparing(), [({"direction": "lower"}, "undecided")]),
    (
        ONE,
        CELL,
        [
            ("mean = 100.0", "supported"),
            ("mean = 100.1", "refuted"),
            ("mean < 101", "supported"),  # the interval ends at 100.45
            ("mean < 100.2", "undecided"),
            ("mean < 99", "refuted"),
            ("max <= 101", "supported"),
            ("max < 101", "refuted"),
            ("sd_population < 0.6", "supported"),  # 0.626 × √(9/10) = 0.594
            ("sd < 0.6", "refuted"),
            ("runs = 10", "supported"),
            ("with_log >= 1", "refuted"),
            ("minutes_apart = 1", "supported"),
            ("hours = 0.15", "supported"),  # nine minutes
            ("trend_p > 0.05", "undecided"),
        ],
    ),
    (
        TWO,
        CELL,
        [
            ({"published": {"k/native": 105.46}}, "supported"),
            ({"published": {"k/native": 105.45}}, "refuted"),
            ({"spans": [100, 105.46]}, "supported"),
            ({"spans": [100, 106]}, "refuted"),
        ],
    ),
    (TWO, of_cells(decimals=0), [({"spans": [100, 105]}, "supported")]),
    (
        TWO,
        MODELS,
        [
            ({"highest": "k"}, "supported"),
            ({"lowest": "k"}, "refuted"),
            ("mean > 102", "refuted"),
        ],
    ),
    (TWO, {**MODELS, "scope": "any model"}, [("mean > 102", "supported")]),
    (NEAR, MODELS, [({"highest": "k"}, "undecided")]),
    # 100 ± 0.448; with four cells of which one is enough, t(9) at 1 − 0.05/8 is 3.11: 100 ± 0.616.
    (ONE, ANY_CELL, [("mean > 99.5", "supported")]),
    (SEVERAL, ANY_CELL, [("mean > 99.5", "undecided"), ("mean > 99.3", "supported")]),
    # TOST within 0.6 %: t = (0.6 − 0.1) / 0.28 = 1.79, p = 0.045; of three models p is three times that.
    (BOTH, ANY_MODEL, [({"equivalent_within_percent": 0.6}, "supported")]),
    ({**BOTH, **WORSE}, ANY_MODEL, [({"equivalent_within_percent": 0.6}, "undecided")]),
    # Beyond these runs an estimate without an interval decides nothing.
    (
        ONE,
        of_cells(about="world"),
        [
            ("max > 101", "undecided"),
            ("mean > 101", "refuted"),
            ("runs = 11", "refuted"),
        ],
    ),
]


@pytest.mark.parametrize(("cells", "fields", "expected"), CASES)
def test_a_claim_is_supported_refuted_or_undecided(
    cells: dict[Any, Any], fields: dict[str, Any], expected: list[tuple[Any, str]]
) -> None:
    data = a_dataset(cells)
    for asked, verdict in expected:
        expect = {"holds": asked} if isinstance(asked, str) else asked
        found = verdict_on(data, **fields, expect=expect)
        assert found.verdict == verdict, (expect, found.text)


@pytest.mark.parametrize(
    ("fields", "expect", "words"),
    [
        (comparing(), {"holds": "n = 10"}, "n needs no comparison, claim it"),
        (CELL, {"holds": "average < 1"}, "no statistic 'average'"),
        (CELL, {"holds": "slope = -0.9"}, "relates two metrics"),
        (CELL, {"published": {"x/native": 1}}, r"no unit 'x/native'.*m/native"),
        (
            comparing(note=None),
            {"equivalent_within_percent": 2},
            "margin of 2 % is not the campaign's 1 %",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused(
    fields: dict[str, Any], expect: dict[str, Any], words: str
) -> None:
    with pytest.raises(ClaimError, match=words):
        verdict_on(a_dataset(BOTH), **fields, expect=expect)


def test_trends_are_corrected_over_the_units_of_a_claim() -> None:
    """Five rising values: Mann-Kendall's exact two-sided p is 2 / 5! = 0.017; over four cells Holm makes it 0.067."""
    fields = of_cells(expect={"holds": "trend_p > 0.05"})
    rising: dict[tuple[str, str], list[float]] = {("m", "e"): [1.0, 2.0, 3.0, 4.0, 5.0]}
    assert verdict_on(a_dataset(rising), **fields).verdict == "refuted"
    steady = {(f"m{index}", "e"): [3.0, 1.0, 4.0, 2.0, 3.5] for index in range(3)}
    assert verdict_on(a_dataset(rising | steady), **fields).verdict == "undecided"


def test_relations_of_two_metrics() -> None:
    """kv = 0.9 × (120 − peak): slope −0.9, intercept 108, zero at 120; a level line has no zero."""
    peaks = [70.0, 75.0, 80.0, 100.0]
    line = {KEY: [0.9 * (120 - peak) for peak in peaks]}
    data = a_dataset(line, "kv_cache_gib", peak_memory_gib={KEY: peaks})
    fields: dict[str, Any] = {"metric": "kv_cache_gib", "against": "peak_memory_gib"}
    for condition, shown in (
        ("slope = -0.9000", ": −0.9000 (n = 4)."),
        ("intercept = 108.00", ": 108.00 GiB (n = 4)."),
        ("zero_at = 120.0", ": 120.00 GiB (n = 4)."),
        ("r_squared > 0.999999", ": 1.0000000 (n = 4)."),
    ):
        found = verdict_on(data, **fields, expect={"holds": condition})
        assert found.verdict == "supported"
        assert found.text.endswith(shown)
    level = a_dataset({KEY: [1.0] * 4}, "kv_cache_gib", peak_memory_gib={KEY: peaks})
    found = verdict_on(level, **fields, expect={"holds": "zero_at = 1"})
    assert found.text.endswith("reaches zero: not available.")


# ---- what is shown, what is missing -------------------------------------------------------------------------


def test_values_are_shown_with_their_unit_and_counts_without_digits() -> None:
    expect = {"holds": "mean > 120"}
    mean = verdict_on(a_dataset(ONE), **of_cells(expect=expect))
    shown = "m/native: 100.00 tok/s (95 % interval 99.54 to 100.46 tok/s, n = 10)"
    assert shown in mean.text
    runs = verdict_on(a_dataset(BOTH), expect={"holds": "runs = 20"})
    assert runs.text == "Records, failed ones included: 20."


def test_a_workload_without_the_metric_is_no_unit() -> None:
    """Only workload `w` has the metric; a run of another workload must not make the claim undecided."""
    data = a_dataset(BOTH)
    (campaign,) = data.campaigns.values()
    other = a_record({"matmul_gflop_s": 1.0}, run_id="c-x", workload="x")
    runs = (*campaign.runs, Stored(other, Path("c/x.json")))
    more = replace(data, campaigns={"c": replace(campaign, runs=runs)})
    found = verdict_on(more, **comparing(expect={"equivalent_within_percent": 1}))
    assert found.verdict == "supported"


def test_excluded_runs_count_only_when_asked() -> None:
    review = reviewed(a_dataset(ONE), out={"c-native_m_w_01": "a double"})
    for include, runs in (("counted", 9), ("all", 10)):
        expect = {"holds": f"runs = {runs}"}
        found = verdict_on(review.dataset, review, include=include, expect=expect)
        assert found.verdict == "supported"


@pytest.mark.parametrize(
    ("about", "check", "changed", "verdict"),
    [
        ("world", "roofline", {}, "void"),
        ("data", "roofline", {}, "supported"),
        ("world", "roofline", {"severity": "warning"}, "undecided"),
        ("world", "identity", {"severity": "warning"}, "void"),
        ("world", "offered-load", {"severity": "info"}, "void"),
        ("world", "roofline", {"cells": ()}, "void"),
        ("world", "roofline", {"cells": ("k/native/w",)}, "undecided"),
        ("world", "roofline", {"runs": ("out",)}, "undecided"),
        ("world", "roofline", {"runs": ("c-native_m_w_01",)}, "void"),
    ],
)
def test_doubts_void_what_is_said_about_the_world(
    about: str, check: str, changed: dict[str, Any], verdict: str
) -> None:
    usual = {"campaign": "c", "cells": ("m/native/w",), "runs": (), "message": "so"}
    found = SimpleNamespace(check=check, **{"severity": "error", **usual, **changed})
    data = a_dataset(BOTH)
    review = reviewed(data, findings=[found], out={"out": "it did not happen"})
    fields = comparing(about=about, expect={"equivalent_within_percent": 1})
    result = verdict_on(data, review, **fields)
    assert result.verdict == verdict
    assert (check in result.text) == (verdict == "void")
