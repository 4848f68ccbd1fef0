"""What was measured again: which figures belong to one line, and which changes are beyond noise."""

import pytest
from scipy.stats import ttest_ind

from sparkpub.record.record import Record
from sparkpub.review.progress import (
    VersionLine,
    beyond_noise,
    is_beyond_noise,
    lines,
)
from tests.leaderboards import runs_of
from tests.review.test_leaderboard import measured

OLD = {"engine": "vLLM", "engine_version": "0.25"}
NEW = {"engine": "vLLM", "engine_version": "0.26"}


def test_of_many_lines_a_change_has_to_survive_holm() -> None:
    """Two lines, of which one has p = 0.03: alone it changed, beside another it has not (2 × 0.03 > 0.05)."""
    before = [100.01, 101.02, 98.97, 100.03, 101.98, 98.02]
    lines_of = [
        line_of(
            *runs_of(model, before, observed=OLD),
            *runs_of(
                model, [value + 1.9 for value in before], campaign="d", observed=NEW
            ),
        )
        for model in ("m", "n")
    ]
    p = ttest_ind(before, [value + 1.9 for value in before], equal_var=False).pvalue
    assert 0.025 < p < 0.05
    assert beyond_noise(lines_of[:1]) == lines_of[:1]
    assert beyond_noise(lines_of) == []


def line_of(*records: Record) -> VersionLine:
    (line,) = lines(measured(*records))
    return line


def test_a_newer_version_is_a_point_of_the_line() -> None:
    line = line_of(
        *runs_of("m", [100.0, 101.0, 99.0, 100.0], observed=OLD),
        *runs_of("m", [120.0, 121.0, 119.0, 120.0], campaign="d", observed=NEW),
    )
    assert [point.engine for point in line.points] == ["vLLM 0.25", "vLLM 0.26"]
    assert line.total.value == pytest.approx(20.0)
    assert is_beyond_noise(line.total)
    # As everywhere on the site: an interval of three would rest on the assumption of normality alone.
    few = line_of(
        *runs_of("m", [100.0, 101.0, 99.0], observed=OLD),
        *runs_of("m", [120.0], campaign="d", observed=NEW),
    )
    assert few.total.interval() is None


def test_another_load_or_recipe_is_no_point_of_the_line() -> None:
    found = measured(
        *runs_of("m", [100.0], observed=OLD),
        *runs_of("m", [100.0], campaign="d", observed=NEW | {"quantization": "fp8"}),
        *runs_of("n", [100.0], campaign="e", observed=NEW),
    )
    assert lines(found) == []
