"""Claims over several campaigns, over rounds, and over cells together. Expected values are worked out in place."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from sparkpub.record.errors import ClaimError
from sparkpub.review.claims.ledger import Verdict
from sparkpub.review.dataset import Dataset
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
    assert "2 sessions: 10 and 10 runs; 10 and 10 runs" in both.text
    assert "sessions like these, of 1 machine on 1 day" in both.text


def test_a_repeat_that_is_not_there_or_of_fewer_models_is_named() -> None:
    found = asked(session("c", 0.0), expect={"direction": "higher"})
    assert found.verdict == "undecided"
    assert "campaign d is not among these data" in found.text
    more = {
        (model, environment): NATIVE
        for model in ("m", "k")
        for environment in ("native", "container")
    }
    data = together(a_dataset(more), session("d", 0.0))
    with pytest.raises(ClaimError, match="d did not repeat k"):
        asked(data, expect={"direction": "higher"})


def test_a_trend_is_of_one_campaign() -> None:
    data = together(session("c", 0.0), session("d", 0.0))
    trend = {"holds": "trend_p > 0.05"}
    with pytest.raises(ClaimError, match="trend_p is not combined over campaigns"):
        asked(data, expect=trend, compare=None, scope="each environment")


def test_an_effect_over_all_cells_is_pooled() -> None:
    """Three models at very different levels, each container about 0.5 tok/s faster, lost in the noise of any one."""
    cells = {}
    generator = np.random.default_rng(7)
    for model, level in (("a", 100.0), ("b", 700.0), ("c", 40.0)):
        for environment, more in (("native", 0.0), ("container", 0.5)):
            noise = generator.normal(level + more, 0.4, 10)
            cells[model, environment] = noise.round(3).tolist()
    fields = {"scope": "pooled", "repeated_in": [], "about": "data"}
    fields["expect"] = {"holds": "pooled_difference > 0"}
    data = a_dataset(cells, order="interleaved")
    found = asked(data, **fields)
    (unit,) = found.evidence["units"]
    low, high = unit["ci95"]
    assert 0 < low < 0.5 < high
    assert found.verdict == "supported"
    assert asked(data, models=["a"], **fields).verdict == "undecided"
    none = {("a", "container"): [], ("b", "native"): [], ("c", "native"): []}
    apart = a_dataset(cells | none, order="interleaved")
    assert asked(apart, **fields).verdict == "undecided"
