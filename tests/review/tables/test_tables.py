"""The three tables: what a row says is what one cell, or one comparison, says alone."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import sparkpub
from sparkpub.review.checks import review
from sparkpub.review.claims.chosen import choose
from sparkpub.review.claims.quantities import Question, ask
from sparkpub.review.results import Results
from sparkpub.review.tables import cells, runs
from tests.review.statistics.campaigns import (
    Cells,
    a_campaign,
    a_dataset,
    unreviewed,
    written,
)

TPUT, PEAK, TEMPERATURE = (
    "output_throughput_tok_s",
    "peak_memory_gib",
    "gpu_temp_end_celsius",
)


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


def test_a_server_of_two_runs_counts_once_in_cells_and_questions() -> None:
    values = [101.0, 100.7, 99.1, 99.5, 102.2, 102.0, 98.1, 98.6, 100.3, 99.8]
    runs = {("m", "container"): {TPUT: values}}
    servers = {"container": "aabbccddee"}
    found = unreviewed(a_dataset(a_campaign("c", runs, servers=servers)))
    (cell,) = found.cell_rows
    pairs = np.array(values).reshape(5, 2).mean(axis=1)
    low, high = stats.t.interval(0.95, 4, pairs.mean(), stats.sem(pairs))
    assert cell.n_effective == 5
    assert cell.ci95 == pytest.approx((low, high), rel=1e-3)
    chosen = choose(found.campaigns["c"], include="all")
    assert ask("mean", Question(chosen, TPUT)).ci95 == pytest.approx(cell.ci95)


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
    written(a_campaign("c", SIZES), tmp_path)
    loaded = sparkpub.load(str(tmp_path), include="all")
    said = ["excluded", "counts"]
    pd.testing.assert_frame_equal(
        loaded.runs.drop(columns=said), results.runs.drop(columns=said)
    )
    pd.testing.assert_frame_equal(loaded.cells, results.cells)
