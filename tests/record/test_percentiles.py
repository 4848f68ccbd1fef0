"""Percentiles are NumPy's, to the last bit: recorded figures were worked out by its own function."""

import numpy as np
import pytest

from sparkpub.record.percentiles import quantiles

SHARES = (0.0, 0.025, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 1.0)


@pytest.mark.parametrize("n", [*range(1, 42), 100, 101, 2000])
def test_quantiles_are_those_of_numpy(n: int) -> None:
    values = np.random.default_rng(n).gamma(2.0, 10.0, n)
    before = values.copy()
    for drawn in (values, values.round(), -values):
        assert quantiles(drawn, SHARES) == np.quantile(drawn, SHARES).tolist()
        percents = (50, 95, 99)
        expected = np.percentile(drawn, percents).tolist()
        assert quantiles(drawn, [percent / 100 for percent in percents]) == expected
    assert (values == before).all()


def test_a_quantile_lies_between_its_neighbours_by_its_distance() -> None:
    """Of 1, 2, 4 the quarter lies half way from 1 to 2, and 0.9 four fifths of the way from 2 to 4."""
    assert quantiles(np.array([4.0, 1.0, 2.0]), [0.25, 0.9]) == [1.5, 3.6]
