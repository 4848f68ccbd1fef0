"""The three tables: what a row says is what one cell, or one comparison, says alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import sparkpub
from sparkpub.record.record import Phase
from sparkpub.record.store import Stored, to_json
from sparkpub.review.checks import review
from sparkpub.review.claims.chosen import choose
from sparkpub.review.claims.quantities import Question, ask
from sparkpub.review.results import Results
from sparkpub.review.statistics.compare import compare
from sparkpub.review.statistics.describe import describe
from sparkpub.review.statistics.design import Sample
from sparkpub.review.tables import cells, comparisons, runs
from tests.leaderboards import dataset_of, runs_of
from tests.review.statistics.campaigns import Cells, a_campaign, a_dataset, unreviewed
from tests.review.statistics.samples import bootstrap

TPUT, PEAK, TEMPERATURE = (
    "output_throughput_tok_s",
    "peak_memory_gib",
    "gpu_temp_end_celsius",
)
PER_JOULE = "output_tokens_per_joule"


def drawn(seed: int, centre: float, n: int) -> list[float]:
    return list(np.random.default_rng(seed).normal(centre, 0.02 * centre, n).round(3))


SIZES: Cells = {
    ("m", "native"): {TPUT: drawn(1, 100, 6), PEAK: drawn(2, 70, 6)},
    ("m", "container"): {TPUT: drawn(3, 99, 6), PEAK: drawn(4, 95, 6)},
    ("k", "native"): {TPUT: drawn(5, 50, 1), PEAK: [8.0, 8.0, 8.0, 8.0]},
    ("k", "container"): {TPUT: drawn(6, 51, 3), TEMPERATURE: drawn(7, 60, 3)},
}


@pytest.fixture
def results() -> Results:
    """Cells of 6, 4, 3 runs and of one. No check has excluded a run."""
    return unreviewed(a_dataset(a_campaign("c", SIZES)))


def test_cells_of_any_size_are_described_as_each_is_alone(results: Results) -> None:
    rows = results.cells
    assert list(rows) == list(cells.COLUMNS)
    found = 0
    for (model, environment), metrics in SIZES.items():
        for metric, values in metrics.items():
            row = one(rows, model=model, environment=environment, metric=metric)
            alone = describe(values)
            assert row["n"] == len(values)
            for name in ("mean", "sd", "min", "p50", "p95", "n_effective"):
                assert same(row[name], getattr(alone, name)), name
            interval = alone.ci95 or (None, None)
            assert same(row["ci95_low"], interval[0])
            assert same(row["ci95_high"], interval[1])
            interval = bootstrap(values) or (None, None)
            assert same(row["ci95_bootstrap_low"], interval[0])
            assert len(row["runs"]) == len(values)
            found += 1
    assert len(rows) == found
    hot = one(rows, metric=TEMPERATURE)
    assert np.isnan(hot["cv_percent"])
    assert hot["sd"] > 0


def test_comparisons_are_those_of_each_pair_alone(results: Results) -> None:
    rows = results.comparisons
    assert list(rows) == list(comparisons.COLUMNS)
    assert [(row.model, row.metric) for row in rows.itertuples()] == [
        ("m", TPUT),
        ("m", PEAK),
        ("k", TPUT),
    ]
    row = one(rows, model="m", metric=PEAK)
    numbers = tuple(range(6))
    alone = compare(
        Sample(tuple(SIZES["m", "native"][PEAK]), numbers),
        Sample(tuple(SIZES["m", "container"][PEAK]), numbers),
        order="interleaved",
        margin_percent=2,
        direction="lower",
        unit="GiB",
    )
    for name in (
        "difference",
        "ratio",
        "p_value",
        "equivalence_p",
        "detectable_percent",
        "df",
    ):
        assert row[name] == pytest.approx(getattr(alone, name)), name
    assert alone.ci90_difference is not None
    assert row["ci90_difference_low"] == pytest.approx(alone.ci90_difference[0])
    assert (row["verdict"], row["better"]) == (alone.verdict, "baseline")
    alone_in_a_cell = one(rows, model="k", metric=TPUT)
    assert alone_in_a_cell["verdict"] == "undecided"
    assert alone_in_a_cell["n_baseline"] == 1


def test_a_server_of_two_runs_counts_once_in_cells_comparisons_and_questions() -> None:
    """Each server serves the last run of a round and the first of the next: six natively, five in the container."""
    values = {
        ("m", "native"): {TPUT: [100.1, 99.2, 99.4, 101.3, 101.1, 98.7, 98.9, 100.2, 100.6, 99.9]},
        ("m", "container"): {TPUT: [101.0, 100.7, 99.1, 99.5, 102.2, 102.0, 98.1, 98.6, 100.3, 99.8]},
    }  # fmt: skip
    campaign = a_campaign("c", values)
    served = []
    for stored in campaign.runs:
        record = stored.record
        turn = (
            record.iteration // 2
            if record.environment == "native"
            else (record.iteration + 1) // 2
        )
        settings = {"server": f"{record.environment}-{turn}"}
        told = record.observed.model_copy(update={"settings": settings})
        served.append(Stored(record.model_copy(update={"observed": told}), stored.path))
    found = unreviewed(a_dataset(replace(campaign, runs=tuple(served))))
    row = one(found.comparisons, metric=TPUT)
    assert (row["servers"], row["n_baseline"]) == (5, 10)
    assert "n = 5 servers a side" in row["why"]
    cell = one(found.cells, environment="container", metric=TPUT)
    pairs = np.array(values["m", "container"][TPUT]).reshape(5, 2).mean(axis=1)
    low, high = stats.t.interval(0.95, 4, pairs.mean(), stats.sem(pairs))
    assert cell["n_effective"] == 5
    assert cell["ci95_low"] == pytest.approx(low, rel=1e-3)
    assert cell["ci95_high"] == pytest.approx(high, rel=1e-3)
    container = choose(found.campaigns["c"], environment=("container",))
    asked = ask("mean", Question(container, TPUT))
    assert asked.ci95 == pytest.approx((cell["ci95_low"], cell["ci95_high"]))


def test_what_is_derived_is_compared_and_read_as_what_was_recorded() -> None:
    """64 answers of 128 tokens are 8,192, so that 2,048 J are 4 tokens a joule, and 4,096 J are 2."""
    run: dict[str, Any] = {
        "metric": "gpu_energy_joule",
        "metrics": {"startup_seconds": 20.0},
        "observed": {
            "requests": 64,
            "output_tokens_mean": 128.0,
            "measured_seconds": 10.0,
        },
        "phases": (Phase(name="measure", start_seconds=20.0, end_seconds=30.0),),
    }
    found = unreviewed(
        dataset_of(
            *runs_of("m", [2048.0] * 3, **run),
            *runs_of("m", [4096.0] * 3, environment="container", **run),
        )
    )
    row = one(found.comparisons, metric=PER_JOULE)
    assert (row["mean_baseline"], row["mean_candidate"]) == (4.0, 2.0)
    container = choose(found.campaigns["c"], environment=("container",))
    assert PER_JOULE in container.metrics
    assert container.rows(PER_JOULE)["value"].tolist() == [2.0, 2.0, 2.0]


def test_excluded_runs_are_in_the_table_and_in_no_figure() -> None:
    """The campaigns of these tests have no logs, for which the checks exclude every run."""
    counted = Results(review(a_dataset(a_campaign("c", SIZES))))
    assert len(counted.runs) == sum(
        len(values) for metrics in SIZES.values() for values in metrics.values()
    )
    assert list(counted.runs) == list(runs.COLUMNS)
    assert counted.runs["excluded"].notna().all()
    assert counted.cells.empty
    assert counted.comparisons.empty
    assert list(counted.cells) == list(cells.COLUMNS)


def test_a_notebook_gets_the_same_tables(tmp_path: Path, results: Results) -> None:
    campaign = a_campaign("c", SIZES)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "campaign.json").write_text(to_json(campaign.info))
    for record in campaign.records:
        (tmp_path / "c" / f"{record.stem}.json").write_text(to_json(record))
    loaded = sparkpub.load(str(tmp_path), include="all")
    said = ["excluded", "counts"]
    pd.testing.assert_frame_equal(
        loaded.runs.drop(columns=said), results.runs.drop(columns=said)
    )
    pd.testing.assert_frame_equal(loaded.cells, results.cells)


def one(rows: pd.DataFrame, **wanted: str) -> "pd.Series[float]":
    """The one row that has these values."""
    for name, value in wanted.items():
        rows = rows[rows[name] == value]
    assert len(rows) == 1
    return rows.iloc[0]


def same(found: float, expected: float | None) -> bool:
    """Whether a figure of a table is the one expected; NaN stands for None."""
    if expected is None:
        return bool(np.isnan(found))
    return found == pytest.approx(expected)
