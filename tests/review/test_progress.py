"""What was measured again: which figures belong to one line, and which changes are beyond noise."""

import pytest
from scipy.stats import ttest_ind

from sparkpub.record.record import Record, Spread
from sparkpub.review.progress import (
    VersionLine,
    beyond_noise,
    is_beyond_noise,
    lines,
    mean_of,
)
from tests.leaderboards import TPUT, runs_of
from tests.review.test_leaderboard import measured

OLD = {"engine": "vLLM", "engine_version": "0.25"}
NEW = {"engine": "vLLM", "engine_version": "0.26"}


def test_of_many_lines_a_change_has_to_survive_holm() -> None:
    """Two lines, of which one has p = 0.03: alone it changed, beside another it has not (2 × 0.03 > 0.05)."""
    before = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0]
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


def test_another_machine_of_the_kind_is_told() -> None:
    records = [
        *runs_of("m", [100.0], observed=OLD),
        *runs_of("m", [120.0], campaign="d", observed=NEW),
    ]
    there = records[1].machine.model_copy(update={"id": "b" * 16})
    here = records[0].machine.model_copy(update={"id": "a" * 16})
    line = line_of(
        records[0].model_copy(update={"machine": here}),
        records[1].model_copy(update={"machine": there}),
    )
    assert line.differs.endswith("another machine")


def line_of(*records: Record) -> VersionLine:
    (line,) = lines(measured(*records))
    return line


def test_a_newer_version_is_a_point_of_the_line() -> None:
    line = line_of(
        *runs_of("m", [100.0, 101.0, 99.0, 100.0], observed=OLD),
        *runs_of("m", [120.0, 121.0, 119.0, 120.0], campaign="d", observed=NEW),
    )
    assert [point.speed.engine for point in line.points] == ["vLLM 0.25", "vLLM 0.26"]
    assert line.total.value == pytest.approx(20.0)
    assert is_beyond_noise(line.total)
    # As everywhere on the site: an interval of three would rest on the assumption of normality alone.
    few = line_of(
        *runs_of("m", [100.0, 101.0, 99.0], observed=OLD),
        *runs_of("m", [120.0], campaign="d", observed=NEW),
    )
    assert few.total.interval() is None


def test_of_a_single_run_the_repetitions_tell_the_noise() -> None:
    """Three of them are too few; of four with a deviation by n the one by n - 1 is √(4/3) times as large."""
    (record,) = runs_of("m", [100.0], observed=OLD)
    spread = Spread(repetitions=3, deviation=2.0, divisor="n")
    spread_out = record.model_copy(update={"spreads": {TPUT: spread}})
    line = line_of(spread_out, *runs_of("m", [101.0], campaign="d", observed=NEW))
    assert line.total.interval() is None  # nobody knows the noise of one value
    four = spread_out.model_copy(
        update={"spreads": {TPUT: spread.model_copy(update={"repetitions": 4})}}
    )
    (speed,) = measured(four)
    # 2 × √(4/3) / √4 = 1.155
    assert mean_of(speed, TPUT).error == pytest.approx(1.1547, abs=1e-4)


def test_another_load_or_recipe_is_no_point_of_the_line() -> None:
    found = measured(
        *runs_of("m", [100.0], observed=OLD),
        *runs_of("m", [100.0], campaign="d", observed=NEW | {"quantization": "fp8"}),
        *runs_of("n", [100.0], campaign="e", observed=NEW),
    )
    assert lines(found) == []
