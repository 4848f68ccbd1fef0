"""Claims: what is refused, how each form is read, when a verdict is void. Expected values are worked out in place."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkpub.record.errors import ClaimError
from sparkpub.record.store import Stored
from sparkpub.review.claims import ledger
from sparkpub.review.claims.ledger import Claim
from tests.building import a_record
from tests.review.claims.campaigns import a_dataset, a_review, verdict_on

METRIC = "output_throughput_tok_s"
TEN = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.7, 99.3, 100.0]
"""Mean 100, sample sd 0.626: 95 % interval of the mean 100 ± 2.262 × 0.626 / √10 = 99.55 … 100.45."""
BOTH = {("m", "native"): TEN, ("m", "container"): [value + 0.1 for value in TEN]}
"""Difference 0.1, standard error 0.626 × √(2/10) = 0.28, t(18) = 2.101: interval −0.49 … 0.69."""


def comparing(**fields: Any) -> dict[str, Any]:
    return {
        "metric": METRIC,
        "compare": "container / native",
        "scope": "each model",
    } | fields


GOOD = """\
- id: one
  says: It is so.
  source: {document: a report}
  about: data
  campaign: c
  expect: {holds: "runs = 60"}
  recorded: supported
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "claims.yaml"
    path.write_text(text)
    return path


def test_a_missing_file_is_no_claims(tmp_path: Path) -> None:
    assert ledger.read(tmp_path / "claims.yaml") == []


@pytest.mark.parametrize(
    ("replace", "by", "line", "words"),
    [
        ("says:", "sayss:", 2, "did you mean says?"),
        ("runs = 60", "__import__('os').system('id')", 6, "holds"),
        ('{holds: "runs = 60"}', "{}", 6, "exactly one of"),
        ('{holds: "runs = 60"}', "{spans: [3, 2]}", 6, "is turned round"),
        (
            '{holds: "runs = 60"}',
            '{holds: "runs = 60", direction: lower}',
            6,
            "exactly one of",
        ),
        ("recorded: supported", "recorded: proven", 7, "recorded"),
        ("about: data", "about: everything", 4, "about"),
        ("  expect", "  scope: every model\n  expect", 6, "scope"),
        ("id: one", "id: One Two", 1, "id"),
        ('  expect: {holds: "runs = 60"}\n', "", 1, "decided_by"),
    ],
)
def test_a_mistake_is_named_with_its_line(
    tmp_path: Path, replace: str, by: str, line: int, words: str
) -> None:
    path = written(tmp_path, GOOD.replace(replace, by))
    with pytest.raises(ClaimError) as caught:
        ledger.read(path)
    assert any(
        f"{path}:{line};" in problem and words in problem
        for problem in caught.value.lines()
    )


SENTENCES = [
    ("The container is lower.", "{direction: higher}", "that container is higher"),
    ("It is lower natively than in the container.", "{direction: higher}", None),
    ("It is higher natively than in the container.", "{direction: higher}", "higher"),
    ("A container never needs less.", "{direction: higher}", None),
    ("The container takes {low} to {high} GiB less.", "{difference: [2, 3]}", "less"),
    ("The container takes {low} to {high} GiB less.", "{difference: [-3, -2]}", None),
    ("It takes {high} to {low} GiB more.", "{difference: [2, 3]}", "turned round"),
    ("It takes {low} to {high} GiB.", "{difference: [-2, 3]}", "crosses zero"),
    ("It takes {low} to {high} GB more.", "{difference: [2, 3]}", "in GB, and"),
    (
        "They differ by more than {within} percent.",
        "{equivalent_within_percent: 1}",
        "within",
    ),
    (
        "They differ by less than {within} percent.",
        "{equivalent_within_percent: 1}",
        None,
    ),
    ("The p-value is at most {number}.", '{holds: "p_value > 0.05"}', "at most"),
    ("The p-value is not above {number}.", '{holds: "p_value <= 0.05"}', None),
    ("One model needs the least.", "{highest: k}", "tests the highest"),
]


@pytest.mark.parametrize(("says", "expect", "words"), SENTENCES)
def test_a_sentence_says_what_its_expectation_tests(
    tmp_path: Path, says: str, expect: str, words: str | None
) -> None:
    text = f"""\
- id: one
  says: "{says}"
  source: {{document: a report}}
  about: data
  campaign: c
  metric: peak_memory_gib
  compare: container / native
  expect: {expect}
  recorded: supported
"""
    path = written(tmp_path, text)
    if words is None:
        assert len(ledger.read(path)) == 1
        return
    with pytest.raises(ClaimError) as caught:
        ledger.read(path)
    assert any(words in line for line in caught.value.lines())


def test_all_mistakes_come_at_once(tmp_path: Path) -> None:
    twice = GOOD + GOOD.replace("about: data", "about: nothing")
    with pytest.raises(ClaimError) as caught:
        ledger.read(
            written(
                tmp_path,
                GOOD.replace("says:", "sayss:") + twice.replace("id: one", "id: two"),
            )
        )
    assert len(caught.value.lines()) >= 3


def test_an_id_stands_once(tmp_path: Path) -> None:
    with pytest.raises(
        ClaimError, match=r"'one' stands twice, .*:8; give each its own"
    ):
        ledger.read(written(tmp_path, GOOD + GOOD))


@pytest.mark.parametrize(
    ("margin", "verdict"),
    [
        (
            1.0,
            "supported",
        ),  # interval −0.49 … 0.69 % lies well within ±1 %: both one-sided t > 3.2
        (0.5, "undecided"),  # and across ±0.5 %
    ],
)
def test_equivalence_needs_the_test(margin: float, verdict: str) -> None:
    found = verdict_on(
        a_dataset(BOTH), **comparing(expect={"equivalent_within_percent": margin})
    )
    assert found.verdict == verdict


def test_equivalence_is_refuted_by_an_interval_beyond_the_margin() -> None:
    far = {("m", "native"): TEN, ("m", "container"): [value + 5 for value in TEN]}
    assert (
        verdict_on(
            a_dataset(far), **comparing(expect={"equivalent_within_percent": 1})
        ).verdict
        == "refuted"
    )


def test_three_runs_decide_nothing_however_clear_they_look() -> None:
    few = {
        ("m", "native"): TEN[:3],
        ("m", "container"): [value + 50 for value in TEN[:3]],
    }
    assert (
        verdict_on(a_dataset(few), **comparing(expect={"direction": "higher"})).verdict
        == "undecided"
    )


@pytest.mark.parametrize(
    ("expect", "verdict"),
    [
        ({"difference": [-1, 1]}, "supported"),
        ({"difference": [0, 1]}, "undecided"),
        ({"difference": [1, 2]}, "refuted"),
        ({"difference_percent": [-1, 1]}, "supported"),
        ({"ratio": [0.99, 1.01]}, "supported"),
        ({"ratio": [1.1, 1.2]}, "refuted"),
        ({"direction": "higher"}, "undecided"),
        (
            {"holds": "p_value > 0.05"},
            "undecided",
        ),  # a test that finds nothing shows nothing
        ({"holds": "n = 10"}, None),
    ],
)
def test_intervals_decide(expect: dict[str, Any], verdict: str | None) -> None:
    if verdict is None:  # n belongs to a sample, not to a comparison
        with pytest.raises(ClaimError, match="claim it"):
            verdict_on(a_dataset(BOTH), **comparing(expect=expect))
    else:
        assert (
            verdict_on(a_dataset(BOTH), **comparing(expect=expect)).verdict == verdict
        )


@pytest.mark.parametrize(
    ("condition", "verdict"),
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
        ("cv_percent < 5", "supported"),
        ("runs = 10", "supported"),
        ("failed = 0", "supported"),
        ("with_log >= 1", "refuted"),
        ("minutes_apart = 1", "supported"),
        ("hours = 0.15", "supported"),  # nine minutes
        ("trend_p > 0.05", "undecided"),
    ],
)
def test_conditions(condition: str, verdict: str) -> None:
    data = a_dataset({("m", "native"): TEN})
    assert (
        verdict_on(
            data, metric=METRIC, scope="each cell", expect={"holds": condition}
        ).verdict
        == verdict
    )


def test_trends_are_corrected_over_the_units_of_a_claim() -> None:
    """Five rising values: Mann-Kendall's exact two-sided p is 2 / 5! = 0.017; over four cells Holm makes it 0.067."""
    fields: dict[str, Any] = {
        "metric": METRIC,
        "scope": "each cell",
        "expect": {"holds": "trend_p > 0.05"},
    }
    rising: dict[tuple[str, str], list[float]] = {("m", "e"): [1.0, 2.0, 3.0, 4.0, 5.0]}
    assert verdict_on(a_dataset(rising), **fields).verdict == "refuted"
    steady = {(f"m{index}", "e"): [3.0, 1.0, 4.0, 2.0, 3.5] for index in range(3)}
    assert verdict_on(a_dataset(rising | steady), **fields).verdict == "undecided"


def test_figures_as_published_are_read_at_their_digits() -> None:
    data = a_dataset(
        {("m", "native"): TEN, ("k", "native"): [value + 0.456 for value in TEN]}
    )
    fields: dict[str, Any] = {"metric": METRIC, "scope": "each cell"}
    assert (
        verdict_on(data, **fields, expect={"published": {"k/native": 100.46}}).verdict
        == "supported"
    )
    assert (
        verdict_on(data, **fields, expect={"published": {"k/native": 100.45}}).verdict
        == "refuted"
    )
    assert (
        verdict_on(
            data, **fields, decimals=1, expect={"published": {"k/native": 100.5}}
        ).verdict
        == "supported"
    )
    with pytest.raises(ClaimError, match=r"no unit 'x/native'.*k/native"):
        verdict_on(data, **fields, expect={"published": {"x/native": 100.45}})


def test_a_published_span_is_the_smallest_and_largest_unit() -> None:
    data = a_dataset(
        {("m", "native"): TEN, ("k", "native"): [value + 5 for value in TEN]}
    )
    fields: dict[str, Any] = {"metric": METRIC, "scope": "each model", "decimals": 0}
    assert (
        verdict_on(data, **fields, expect={"spans": [100, 105]}).verdict == "supported"
    )
    assert verdict_on(data, **fields, expect={"spans": [100, 106]}).verdict == "refuted"


@pytest.mark.parametrize(
    ("shift", "verdict"), [(5.0, "supported"), (0.1, "undecided"), (-5.0, "refuted")]
)
def test_an_extreme_needs_intervals_apart(shift: float, verdict: str) -> None:
    data = a_dataset(
        {("m", "native"): TEN, ("k", "native"): [value + shift for value in TEN]}
    )
    found = verdict_on(data, metric=METRIC, scope="each model", expect={"highest": "k"})
    assert found.verdict == verdict
    assert [unit["verdict"] for unit in found.evidence["units"]] == [verdict]


@pytest.mark.parametrize(
    ("direction", "verdict"), [("lower", "supported"), ("higher", "refuted")]
)
def test_a_direction_is_a_side_of_zero(direction: str, verdict: str) -> None:
    """−5 with a half width of 0.6, as above."""
    less = {("m", "native"): TEN, ("m", "container"): [value - 5 for value in TEN]}
    found = verdict_on(a_dataset(less), **comparing(expect={"direction": direction}))
    assert found.verdict == verdict


def test_any_needs_one_and_each_needs_all() -> None:
    cells = {("m", "native"): TEN, ("k", "native"): [value + 50 for value in TEN]}
    fields: dict[str, Any] = {"metric": METRIC, "expect": {"holds": "mean > 120"}}
    assert (
        verdict_on(a_dataset(cells), scope="any model", **fields).verdict == "supported"
    )
    assert (
        verdict_on(a_dataset(cells), scope="each model", **fields).verdict == "refuted"
    )


def test_relations_of_two_metrics() -> None:
    """kv = 0.9 × (120 − peak): slope −0.9, intercept 108, zero at 120."""
    peaks = [70.0, 75.0, 80.0, 100.0]
    line = {("m", "native"): [0.9 * (120 - peak) for peak in peaks]}
    data = a_dataset(line, "kv_cache_gib", peak_memory_gib={("m", "native"): peaks})
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
    with pytest.raises(ClaimError, match="relates two metrics"):
        verdict_on(data, metric="kv_cache_gib", expect={"holds": "slope = -0.9"})


def test_values_are_shown_with_their_unit_and_counts_without_digits() -> None:
    mean = verdict_on(
        a_dataset({("m", "native"): TEN}),
        metric=METRIC,
        scope="each model",
        expect={"holds": "mean > 120"},
    )
    shown = "m: 100.00 tok/s (95 % interval 99.54 to 100.46 tok/s, n = 10)"
    assert shown in mean.text
    runs = verdict_on(a_dataset(BOTH), expect={"holds": "runs = 20"})
    assert runs.text == "Records, failed ones included: 20."


def test_runs_that_do_not_say_how_long_they_took_are_left_out() -> None:
    """10 and 20 seconds are 15 on average, whatever the other eight took."""
    data = a_dataset({("m", "native"): TEN})
    (campaign,) = data.campaigns.values()
    took = {1: 10.0, 2: 20.0}
    runs = []
    for run in campaign.runs:
        seconds = took.get(run.record.iteration)
        record = run.record.model_copy(update={"duration_seconds": seconds})
        runs.append(Stored(record, run.path))
    timed = replace(campaign, runs=tuple(runs))
    found = verdict_on(
        replace(data, campaigns={"c": timed}), expect={"holds": "duration_seconds = 15"}
    )
    assert found.verdict == "supported"


def test_a_published_figure_that_nobody_measured_is_undecided() -> None:
    found = verdict_on(
        a_dataset(BOTH),
        metric="gpu_clock_sm_mean_mhz",
        scope="each cell",
        expect={"published": {"m/native": 5}},
    )
    assert found.verdict == "undecided"


def test_a_metric_that_nobody_measured_is_undecided() -> None:
    found = verdict_on(
        a_dataset(BOTH), metric="gpu_clock_sm_mean_mhz", expect={"holds": "min > 1000"}
    )
    assert found.verdict == "undecided"
    assert "not available" in found.text


def test_a_workload_without_the_metric_is_no_unit() -> None:
    """Only workload `w` has the metric; a run of another workload must not make the claim undecided."""
    data = a_dataset(BOTH)
    (campaign,) = data.campaigns.values()
    other = a_record({"matmul_gflop_s": 1.0}, run_id="c-x", workload="x")
    runs = (*campaign.runs, Stored(other, Path("c/x.json")))
    more = replace(data, campaigns={"c": replace(campaign, runs=runs)})
    assert (
        verdict_on(more, **comparing(expect={"equivalent_within_percent": 1})).verdict
        == "supported"
    )


def test_a_hypothesis_says_what_would_decide_it() -> None:
    found = verdict_on(a_dataset(BOTH), decided_by="Another machine.")
    assert (found.verdict, "Another machine." in found.text) == ("hypothesis", True)


def test_a_campaign_that_is_not_there_is_undecided_and_therefore_loud() -> None:
    found = verdict_on(
        a_dataset(BOTH), campaign="elsewhere", expect={"holds": "runs = 1"}
    )
    assert (found.verdict, found.changed) == ("undecided", True)


def finding(check: str, severity: str = "error", **fields: Any) -> Any:
    base = {
        "campaign": "c",
        "cells": ("m/native/w",),
        "runs": (),
        "message": "so it is",
    }
    return SimpleNamespace(check=check, severity=severity, **(base | fields))


@pytest.mark.parametrize(
    ("about", "found", "verdict"),
    [
        ("world", finding("roofline"), "void"),
        ("data", finding("roofline"), "supported"),
        ("world", finding("roofline", "warning"), "undecided"),
        ("world", finding("identity", "warning"), "void"),
        ("world", finding("offered-load", "info"), "void"),
        ("world", finding("order-confound", "warning", cells=()), "void"),
        ("world", finding("roofline", campaign="another"), "undecided"),
        ("world", finding("roofline", cells=("k/native/w",)), "undecided"),
        ("world", finding("exit-status", runs=("out",)), "undecided"),
        ("world", finding("identity", runs=("c-native_m_w_0",)), "void"),
    ],
)
def test_doubts_void_what_is_said_about_the_world(
    about: str, found: Any, verdict: str
) -> None:
    data = a_dataset(BOTH)
    review = a_review(data, found, excluded={"out": "it did not happen"})
    result = verdict_on(
        data, review, **comparing(about=about, expect={"equivalent_within_percent": 1})
    )
    assert result.verdict == verdict
    assert (found.check in result.text) == (verdict == "void")


def test_excluded_runs_count_only_when_asked() -> None:
    data = a_dataset({("m", "native"): TEN})
    review = a_review(data, excluded={"c-native_m_w_0": "a double"})
    for include, runs in (("counted", 9), ("all", 10)):
        found = verdict_on(
            data, review, include=include, expect={"holds": f"runs = {runs}"}
        )
        assert found.verdict == "supported"


def test_text_and_json_carry_the_verdict_and_where_to_reread() -> None:
    found = verdict_on(a_dataset(BOTH), expect={"holds": "runs = 60"})
    text = ledger.as_text([found], lambda name: [f"posts/{name}.md:3"])
    assert "CHANGED: recorded as supported; reread posts/it.md:3" in text
    assert text.endswith("1 refuted")
    document = found.document()
    assert (document["verdict"], document["recorded"]) == ("refuted", "supported")
    assert document["evidence"]["units"][0]["value"] == 20


def test_a_margin_that_is_not_the_campaigns_says_why() -> None:
    data = a_dataset({("m", "native"): TEN, ("m", "container"): TEN})
    asked: dict[str, Any] = {
        "metric": METRIC,
        "compare": "container / native",
        "scope": "each model",
        "note": None,
    }
    assert (
        verdict_on(data, **asked, expect={"equivalent_within_percent": 1}).verdict
        == "supported"
    )
    with pytest.raises(
        ClaimError, match=r"its margin of 2 % is not the campaign's 1 %"
    ):
        verdict_on(data, **asked, expect={"equivalent_within_percent": 2})


def test_an_estimate_without_an_interval_decides_nothing_about_the_world() -> None:
    data = a_dataset({("m", "native"): TEN})
    asked: dict[str, Any] = {"metric": METRIC, "scope": "each cell"}
    for condition, of_these, of_the_world in (
        ("max > 101", "refuted", "undecided"),
        ("mean > 101", "refuted", "refuted"),
        ("runs = 11", "refuted", "refuted"),
    ):
        expect = {"holds": condition}
        assert verdict_on(data, **asked, expect=expect).verdict == of_these
        assert (
            verdict_on(data, **asked, expect=expect, about="world").verdict
            == of_the_world
        )


@pytest.mark.parametrize(
    ("says", "expect", "sentence"),
    [
        ("Within {within} %.", {"equivalent_within_percent": 0.5}, "Within 0.5 %."),
        ("{low} to {high}.", {"spans": [-44, -20]}, "20 to 44."),
        ("{low} to {high}.", {"ratio": [1.7, 2.7]}, "1.7 to 2.7."),
        ("Below {number}.", {"holds": "max < 45"}, "Below 45."),
        ("Above {number}.", {"holds": "mean > 1000.5"}, "Above 1,000.5."),
        (
            "{deepseek} and {a/b}.",
            {"published": {"deepseek": -3.5, "a/b": 2}},
            "3.5 and 2.",
        ),
    ],
)
def test_a_statement_takes_its_figures_from_what_is_tested(
    says: str, expect: dict[str, Any], sentence: str
) -> None:
    fields = {
        "id": "it",
        "says": says,
        "source": {"document": "d"},
        "about": "data",
        "campaign": "c",
    }
    assert (
        Claim.model_validate(
            fields | {"expect": expect, "recorded": "supported"}
        ).sentence
        == sentence
    )


def test_a_statement_names_no_figure_that_is_not_tested() -> None:
    fields = {
        "id": "it",
        "says": "Within {within} %.",
        "source": {"document": "d"},
        "about": "data",
        "campaign": "c",
    }
    with pytest.raises(
        ValueError, match=r"says names \{within\}, and its expectation has \{number\}"
    ):
        Claim.model_validate(
            fields | {"expect": {"holds": "runs = 1"}, "recorded": "supported"}
        )


def test_where_one_unit_is_enough_each_needs_more_than_it_would_alone() -> None:
    """Mean 100, 95 % interval 100 ± 0.448, so `mean > 99.5` holds for one cell. With four cells of which one is enough,
    t(9) at 1 - 0.05/8 is 3.11 in place of 2.262: 100 ± 0.616 reaches below 99.5."""
    fields: dict[str, Any] = {
        "metric": METRIC,
        "scope": "any cell",
        "expect": {"holds": "mean > 99.5"},
    }
    assert verdict_on(a_dataset({("m", "e"): TEN}), **fields).verdict == "supported"
    several = {
        (f"m{index}", "e"): [value - index for value in TEN] for index in range(4)
    }
    assert verdict_on(a_dataset(several), **fields).verdict == "undecided"
    assert (
        verdict_on(
            a_dataset(several), **fields | {"expect": {"holds": "mean > 99.3"}}
        ).verdict
        == "supported"
    )
    assert (
        verdict_on(
            a_dataset(several), **fields | {"expect": {"holds": "mean > 101"}}
        ).verdict
        == "refuted"
    )


def test_equivalence_of_any_is_corrected() -> None:
    """The difference is 0.1 with standard error 0.28 and 18 degrees of freedom: TOST within 0.6 % has
    t = (0.6 - 0.1) / 0.28 = 1.79 and p = 0.045, which is no longer below 0.05 when three models could show it."""
    fields: dict[str, Any] = {
        "metric": METRIC,
        "compare": "container / native",
        "scope": "any model",
    }
    expect = {"equivalent_within_percent": 0.6}
    assert verdict_on(a_dataset(BOTH), **fields, expect=expect).verdict == "supported"
    worse = {
        (f"k{n}", place): [v + (n if place == "container" else 0) for v in TEN]
        for n in (3, 4)
        for place in ("native", "container")
    }
    assert (
        verdict_on(a_dataset(BOTH | worse), **fields, expect=expect).verdict
        == "undecided"
    )
