"""Which pairs of metrics are looked at closely: every pair that is one measurement, and few others."""

from itertools import combinations

import numpy as np
import pytest

from sparkpub.review.checks import dependence

CELLS = np.repeat(np.arange(6), 10)
MODELS = np.array(["a", "b", "c", "a", "b", "c"])[CELLS]
LEVELS = np.array([20.0, 55.0, 300.0, 21.0, 54.0, 310.0])[CELLS]


@pytest.mark.parametrize("seed", range(20))
def test_no_pair_that_is_one_measurement_is_left_out(seed: int) -> None:
    generator = np.random.default_rng(seed)
    rate = LEVELS * generator.normal(1, 0.01, len(CELLS))
    noise = generator.normal(0, 10.0 ** -(seed % 8), len(CELLS))
    columns = {
        "rate": rate,
        "line": 3 * rate - 7 + noise,
        "inverse": 1e4 / rate,
        "rounded": np.round(rate, 1),
        "cube": rate**3,
        "crossing zero": rate - 50,
        "another": LEVELS * generator.normal(1, 0.01, len(CELLS)),
        "missing": np.where(np.arange(len(CELLS)) % 7, 2 * rate, np.nan),
    }
    one = {
        pair
        for pair in combinations(columns, 2)
        if dependence._exact(columns[pair[0]], columns[pair[1]], CELLS, MODELS)
    }
    looked_at = set(dependence._alike(columns, CELLS))
    assert ("rate", "inverse") in one
    assert one <= looked_at
    assert ("rate", "another") not in looked_at


def test_one_metric_has_no_pair() -> None:
    assert list(dependence._alike({"rate": LEVELS}, CELLS)) == []
