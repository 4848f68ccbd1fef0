"""The 63 published runs: what their source documents print comes out, and what they do not say."""

import pytest

from sparkpub.review.checks import Review
from sparkpub.review.results import Results
from sparkpub.review.tables.column import TableRow

TPUT, PEAK, KV = "output_throughput_tok_s", "peak_memory_gib", "kv_cache_gib"


@pytest.fixture(scope="module")
def found(committed: Review) -> Results:
    return Results(committed, include="all", campaign="phase1")


def row(found: Results, model: str, metric: str) -> TableRow:
    (only,) = [
        item
        for item in found.comparison_rows
        if (item.model, item.metric) == (model, metric)
    ]
    return only


@pytest.mark.parametrize(
    ("model", "environment", "n", "peak", "kv", "throughput", "sigma"),
    [
        ("deepseek", "native", 10, 70.47, 44.31, 119.79, 0.55),
        ("deepseek", "container", 10, 101.30, 16.57, 119.40, 0.16),
        ("gpt120b", "native", 13, 71.72, 43.19, 120.26, 0.32),
        ("gpt120b", "container", 10, 93.43, 23.65, 120.41, 0.54),
        ("qwen72b", "native", 10, 70.03, 44.71, 119.33, 0.28),
        ("qwen72b", "container", 10, 90.02, 26.72, 119.51, 0.20),
    ],
)
def test_the_published_tables_reproduce(
    found: Results,
    model: str,
    environment: str,
    n: int,
    peak: float,
    kv: float,
    throughput: float,
    sigma: float,
) -> None:
    cells = [
        found.cell("phase1", (model, environment, "throughput"), name)
        for name in (PEAK, KV, TPUT)
    ]
    assert [cell.n for cell in cells if cell is not None] == [n] * 3
    assert [f"{cell.mean:.2f}" for cell in cells if cell is not None] == [
        f"{v:.2f}" for v in (peak, kv, throughput)
    ]
    assert cells[2] is not None
    assert f"{cells[2].sd_population:.2f}" == f"{sigma:.2f}"


@pytest.mark.parametrize(
    ("model", "overhead", "percent", "kv", "ratio"),
    [
        ("deepseek", 30.83, 44, -27.75, 2.7),
        ("gpt120b", 21.71, 30, -19.54, 1.8),
        ("qwen72b", 19.99, 29, -17.99, 1.7),
    ],
)
def test_overheads_and_ratios_reproduce(
    found: Results,
    model: str,
    overhead: float,
    percent: int,
    kv: float,
    ratio: float,
) -> None:
    memory, cache = row(found, model, PEAK), row(found, model, KV)
    assert (memory.baseline, memory.candidate) == ("native", "container")
    assert memory.difference == pytest.approx(overhead, abs=0.005)
    assert (memory.overhead_percent, memory.difference_percent) == pytest.approx(
        (percent, percent), abs=0.5
    )
    assert cache.difference == pytest.approx(kv, abs=0.005)
    assert cache.inverse_ratio == pytest.approx(ratio, abs=0.05)


@pytest.mark.parametrize(
    ("model", "difference"), [("deepseek", -0.39), ("gpt120b", 0.14), ("qwen72b", 0.18)]
)
def test_blocks_of_time_forbid_a_verdict_on_throughput(
    found: Results, model: str, difference: float
) -> None:
    """What these runs show stays: the published differences. What the environments differ by cannot be said."""
    throughput = row(found, model, TPUT)
    assert throughput.difference == pytest.approx(difference, abs=0.005)
    assert (throughput.verdict, throughput.equivalence_margin_percent) == (
        "confounded",
        1,
    )
    assert (throughput.p_value, throughput.equivalence_p) == (None, None)


def test_the_family_is_three_models_by_three_metrics(found: Results) -> None:
    """Request throughput restates output throughput and temperatures are states of the machine: nine tests are left."""
    assert (
        len([item for item in found.comparison_rows if item.family == "primary"]) == 9
    )
    assert {
        item.metric for item in found.comparison_rows if item.family == "primary"
    } == {
        TPUT,
        PEAK,
        KV,
    }
