"""Claims over several campaigns, over rounds, and over cells together. Expected values are worked out in place."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sparkpub.record.errors import ClaimError
from sparkpub.record.store import Stored
from sparkpub.review.claims.ledger import Verdict
from sparkpub.review.dataset import CampaignData, Dataset
from tests.review.claims.campaigns import a_dataset, together, verdict_on

METRIC = "output_throughput_tok_s"
NATIVE = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.7, 99.3, 100.0]
OTHER = [99.6, 100.1, 100.9, 99.2, 100.4, 99.9, 100.6, 99.4, 100.3, 99.7]


def session(name: str, change: float) -> Dataset:
    """A campaign whose container is `change` percent faster."""
    container = [value * (1 + change / 100) for value in OTHER]
    return a_dataset(
        {("m", "native"): NATIVE, ("m", "container"): container}, name=name
    )


def asked(data: Dataset, **fields: Any) -> Verdict:
    usual = {
        "about": "world",
        "metric": METRIC,
        "compare": "container / native",
        "scope": "each model",
        "repeated_in": ["d"],
    }
    return verdict_on(data, **(usual | fields))


def percent(change: float) -> float:
    """What one session finds: the means of OTHER and NATIVE differ by a little themselves."""
    return 100 * (np.mean(OTHER) * (1 + change / 100) / np.mean(NATIVE) - 1)


def test_a_claim_over_two_sessions_is_decided_between_them() -> None:
    """Both sessions know their difference to ±0.5 %, and lie 2 % apart: over both it is anything."""
    data = together(session("c", 0.0), session("d", 2.0))
    alone = asked(data, expect={"equivalent_within_percent": 1}, repeated_in=[])
    assert alone.verdict == "undecided"
    assert "of one machine on one day" in alone.text
    both = asked(data, expect={"equivalent_within_percent": 1})
    assert both.verdict == "undecided"
    (unit,) = both.evidence["units"]
    first, second = percent(0.0), percent(2.0)
    # Both errors are small beside the 2 %, so that the sessions weigh the same but for one part in a thousand.
    assert unit["value"] == pytest.approx((first + second) / 2, rel=1e-3)
    half = stats.t.ppf(0.975, 1) * abs(first - second) / 2
    mean = (first + second) / 2
    assert unit["ci95"] == pytest.approx([mean - half, mean + half], rel=1e-3)
    assert unit["n"] == (10, 10, 10, 10)
    assert "2 sessions: n = 10 and 10; n = 10 and 10" in both.text
    assert "for sessions like these" in both.text


def test_a_session_with_one_run_on_each_side_leaves_a_claim_open() -> None:
    one = {("m", "native"): NATIVE[:1], ("m", "container"): OTHER[:1]}
    data = together(session("c", 5.0), a_dataset(one, name="d"))
    found = asked(data, expect={"direction": "higher"})
    assert found.verdict == "undecided"
    (unit,) = found.evidence["units"]
    assert (unit["ci95"], unit["n"]) == (None, (10, 10, 1, 1))


def test_sessions_that_agree_support_a_claim_about_the_world() -> None:
    data = together(session("c", 5.0), session("d", 5.1))
    found = asked(data, expect={"difference_percent": [2, 8]})
    assert found.verdict == "supported"
    assert asked(data, expect={"direction": "higher"}).verdict == "supported"
    assert asked(data, expect={"direction": "lower"}).verdict == "refuted"


def test_equivalence_over_sessions_uses_the_test_between_them() -> None:
    """Three sessions: TOST with two degrees of freedom over their differences (SciPy)."""
    changes = [0.1, -0.1, 0.05]
    data = together(*(session(n, c) for n, c in zip("cde", changes, strict=True)))
    found = asked(data, expect={"equivalent_within_percent": 2}, repeated_in=["d", "e"])
    values = [percent(change) for change in changes]
    # Each session's own standard error is larger than their spread, and counts in its place.
    errors = []
    for change in changes:
        container = [value * (1 + change / 100) for value in OTHER]
        test = stats.ttest_ind(container, NATIVE, equal_var=False)
        difference = np.mean(container) - np.mean(NATIVE)
        errors.append(difference / test.statistic)
    error = math.sqrt(np.mean(np.square(errors)) / 3)
    p = stats.t.sf((2 - abs(np.mean(values))) / error, 2)
    assert found.verdict == ("supported" if p < 0.05 else "undecided")
    assert f"p = {p:.3f}"[:-1] in found.text


def test_a_mean_over_sessions_counts_each_once() -> None:
    data = together(session("c", 0.0), session("d", 0.0))
    found = asked(
        data,
        expect={"holds": "mean > 90"},
        compare=None,
        scope="each environment",
        environments=["native"],
    )
    (unit,) = found.evidence["units"]
    assert unit["value"] == pytest.approx(np.mean(NATIVE))
    # Equal means: the interval is that of the error within, with one degree of freedom between.
    half = stats.t.ppf(0.975, 1) * stats.sem(NATIVE) / math.sqrt(2)
    low, high = unit["ci95"]
    assert (high - low) / 2 == pytest.approx(half, rel=0.25)  # n counts as effective n
    assert found.verdict == "supported"


def test_one_of_several_units_needs_the_wider_interval_between_sessions() -> None:
    """Two units of which one may hold: 97.5 % in place of 95 %, with one degree of freedom 25.5 in place of 12.7."""
    cells = {
        (model, environment): [value * factor for value in NATIVE]
        for model in ("k", "m")
        for environment, factor in (("native", 1.0), ("container", 1.05))
    }
    shifted = {
        place: [value * (1.004 if place[1] == "container" else 1.0) for value in values]
        for place, values in cells.items()
    }
    data = together(a_dataset(cells), a_dataset(shifted, name="d"))
    first, second = 5.0, 5.42
    mean, half = (first + second) / 2, abs(first - second) / 2
    bound = mean - half * (stats.t.ppf(0.975, 1) + stats.t.ppf(0.9875, 1)) / 2
    wanted = {"difference_percent": [round(bound, 3), 50]}
    one = asked(data, expect=wanted, scope="any model")
    assert one.verdict == "undecided"
    each = asked(data, expect=wanted, scope="each model")
    assert each.verdict == "supported"


def test_a_repeat_that_is_not_there_leaves_the_claim_open() -> None:
    found = asked(session("c", 0.0), expect={"direction": "higher"})
    assert found.verdict == "undecided"
    assert "campaign d is not among these data" in found.text


def test_a_repeat_of_fewer_models_is_named() -> None:
    more = {
        (model, environment): NATIVE
        for model in ("m", "k")
        for environment in ("native", "container")
    }
    data = together(a_dataset(more), session("d", 0.0))
    with pytest.raises(ClaimError, match="d did not repeat k"):
        asked(data, expect={"direction": "higher"})


def test_units_are_those_of_the_same_cells_whatever_they_are_called() -> None:
    """A campaign with a second workload names the workload in its units; a repeat of the first one does not."""
    first = session("c", 0.0).campaigns["c"]
    others = []
    for run in first.runs:
        fields = {"workload": "v", "run_id": f"{run.record.run_id}v"}
        others.append(Stored(run.record.model_copy(update=fields), run.path))
    runs = (*first.runs, *others)
    more = Dataset(Path(), {"c": CampaignData(first.info, first.folder, runs)})
    found = asked(
        together(more, session("d", 0.0)),
        expect={"direction": "higher"},
        workloads=["w"],
    )
    (unit,) = found.evidence["units"]
    assert unit["unit"] == "m/w"
    assert len(unit["n"]) == 4


def test_a_trend_is_of_one_campaign() -> None:
    data = together(session("c", 0.0), session("d", 0.0))
    with pytest.raises(ClaimError, match="trend_p is not combined over campaigns"):
        asked(
            data,
            expect={"holds": "trend_p > 0.05"},
            compare=None,
            scope="each environment",
        )


def test_a_claim_over_rounds_says_how_many_rounds_it_rests_on() -> None:
    """Ten runs natively and seven in the container make seven complete rounds."""
    cells = {("m", "native"): NATIVE, ("m", "container"): OTHER[:7]}
    data = a_dataset(cells, order="interleaved")
    found = asked(data, expect={"direction": "higher"}, repeated_in=[])
    (unit,) = found.evidence["units"]
    assert unit["n"] == (7,)
    assert "7 rounds)" in found.text
    unpaired = asked(a_dataset(cells), expect={"direction": "higher"}, repeated_in=[])
    assert unpaired.evidence["units"][0]["n"] == (10, 7)


def test_an_effect_over_all_cells_is_pooled() -> None:
    """Three models at very different levels, each container 0.5 tok/s faster, lost in the noise of any one."""
    cells = {}
    generator = np.random.default_rng(7)
    for model, level in (("a", 100.0), ("b", 700.0), ("c", 40.0)):
        for environment, more in (("native", 0.0), ("container", 0.5)):
            noise = generator.normal(level + more, 0.4, 10)
            cells[model, environment] = [round(float(value), 3) for value in noise]
    data = a_dataset(cells, order="interleaved")
    expect = {"holds": "pooled_difference > 0"}
    found = asked(data, expect=expect, scope="pooled", repeated_in=[], about="data")
    (unit,) = found.evidence["units"]
    assert unit["value"] == pytest.approx(0.5, abs=0.4)
    low, high = unit["ci95"]
    assert 0 < low < 0.5 < high
    assert found.verdict == "supported"
    alone = asked(data, expect=expect, scope="pooled", models=["a"], repeated_in=[])
    assert alone.verdict == "undecided"
