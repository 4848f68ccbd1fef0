"""Percentiles are interpolated between their neighbours."""

import numpy as np

from sparkpub.record.percentiles import quantiles


def test_a_quantile_lies_between_its_neighbours_by_its_distance() -> None:
    """Of 1, 2, 4 the quarter lies half way from 1 to 2, and 0.9 four fifths of the way from 2 to 4."""
    assert quantiles(np.array([4.0, 1.0, 2.0]), [0.25, 0.9]) == [1.5, 3.6]
