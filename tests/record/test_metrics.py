"""What metrics.toml says of each metric, and what is made of it."""

import math

import pytest

from sparkpub.record.metrics import (
    DISTRIBUTIONS,
    METRICS,
    Metric,
    declared,
    mixed_units,
    ranked,
)

PEAK = METRICS["peak_memory_gib"]


def test_a_distribution_is_seven_metrics_of_which_median_and_p99_are_primary() -> None:
    ttft = [metric for metric in METRICS.values() if metric.distribution == "ttft"]
    assert [metric.summary for metric in ttft] == [
        "mean",
        "min",
        "p50",
        "p90",
        "p95",
        "p99",
        "max",
    ]
    assert [metric.summary for metric in ttft if metric.role == "primary"] == [
        "p50",
        "p99",
    ]
    assert {metric.role for metric in ttft} == {"primary", "secondary"}
    assert [metric.summary for metric in ttft if metric.headline is not None] == ["p50"]
    assert METRICS["ttft_p90_ms"].label == "Time to first token, P90"
    turns = ("ttft_first_turn", "ttft_later_turns")
    assert ("request_latency", "ttft", *turns, "tpot", "itl") == DISTRIBUTIONS


def test_what_is_computed_from_another_metric_is_derived_and_nothing_else_is() -> None:
    for metric in METRICS.values():
        assert (metric.role == "derived") is bool(metric.derived_from), metric.name
        assert set(metric.derived_from) <= set(METRICS), metric.name


def test_every_metric_in_gib_says_whose_memory_it_counts() -> None:
    assert [
        m.name for m in METRICS.values() if (m.unit == "GiB") is (m.memory_of is None)
    ] == []
    assert [m.name for m in METRICS.values() if m.memory_of == "host"] == [
        "system_peak_gib",
        "cgroup_peak_gib",
    ]


@pytest.mark.parametrize(
    ("one", "other", "hint"),
    [
        (100.0, 107.3742, " (GB was taken for GiB)"),
        (2.5, 2500.0, " (seconds were taken for milliseconds)"),
        (0.0, 5.0, ""),
    ],
)
def test_figures_that_a_mistaken_unit_sets_apart_say_so(
    one: float, other: float, hint: str
) -> None:
    """2**30 / 1e9 = 1.0737."""
    assert mixed_units(one, other) == mixed_units(other, one) == hint


@pytest.mark.parametrize(
    ("direction", "role", "headline"),
    [("higher", "primary", 0), ("neither", "state", None)],
)
def test_a_metric_of_ones_own_leads_where_a_way_is_better(
    direction: str, role: str, headline: int | None
) -> None:
    own = declared("images_s", "img/s", direction, "Images")  # type: ignore[arg-type]
    assert (own.role, own.headline, own.minimum) == (role, headline, -math.inf)
    assert ranked([PEAK, own])[0] is (own if headline == 0 else PEAK)


def test_values_for_a_reader() -> None:
    assert PEAK.format(70.4691) == "70.47 GiB"
    assert PEAK.format(1234.5, unit=False) == "1,234.50"
    assert PEAK.format(None) == "not available"
    assert Metric("score", "", "higher", "Score", "").format(0.5) == "0.50"
