"""One campaign on several machines: what is counted, compared within machines, and told of them."""

import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects

from sparkpub.review import told
from sparkpub.review.results import Results
from sparkpub.review.reviewed import ReviewedCampaign
from sparkpub.review.tables.column import TableRow, rows
from sparkpub.review.tables.comparisons import (
    Compared,
    compare,
    effects,
)
from tests.review.machines import a_fleet, drawn, moved
from tests.review.statistics.campaigns import a_dataset, unreviewed


def sides_of(reviewed: ReviewedCampaign) -> Compared:
    """The container against native, over all machines and within each."""
    table = reviewed.runs
    native, container = (
        table[table["environment"] == name] for name in ("native", "container")
    )
    found = compare(native, container, reviewed.campaign)
    assert found is not None
    return found


def compared(reviewed: ReviewedCampaign) -> TableRow:
    """The same over all machines."""
    return sides_of(reviewed)[0]


def replicated(first: float, second: float, level: float = 140) -> ReviewedCampaign:
    """Two machines of different speed; on one the container differs by `first` percent, on the other by `second`."""
    return ReviewedCampaign(
        a_fleet({"a": drawn(100, first, 8), "b": drawn(level, second, 9)})
    )


def test_machines_of_different_speed_with_a_common_effect() -> None:
    """The second machine is 40 % faster; on both the container is 5 % faster. The mean over machines, its interval
    and Q are those of statsmodels for the percentages within either machine."""
    reviewed = replicated(5, 5)
    found, within = compared(reviewed), sides_of(reviewed)[1]
    assert [row.machine for row in within] == ["a", "b"]
    parts = effects(pd.DataFrame(within))
    assert parts is not None
    shares = [100 / row.mean_baseline for row in within]
    errors = [share * row.error for share, row in zip(shares, within, strict=True)]
    assert parts.error.tolist() == errors
    model = combine_effects(parts.value, parts.error**2, method_re="dl")
    assert found.difference_percent == pytest.approx(model.mean_effect_re)
    half = stats.t.ppf(0.975, 1) * model.sd_eff_w_re_hksj
    assert found.difference_percent == pytest.approx(5, abs=0.5)
    assert found.ci95_ratio is not None
    assert 100 * (found.ci95_ratio[1] - 1) == pytest.approx(model.mean_effect_re + half)
    assert (found.machines, found.n_baseline, found.left_out) == (2, 16, 0)
    assert (found.analysis, found.verdict) == ("machines", "higher")
    # Pooled without regard to machines, the levels would drown the effect.
    assert found.mean_baseline == pytest.approx(120, rel=0.01)


def test_only_machines_that_ran_both_environments_are_compared() -> None:
    """Where none did, environments are confounded with machines. Where two of eight rounds lost their container to
    another machine, six rounds are left, and the two that ran elsewhere are not compared."""
    one = a_fleet({"a": drawn(100, 5, 1)})
    apart = moved(one, "b", "container", range(1, 9))
    found = compared(ReviewedCampaign(apart))
    assert (found.verdict, found.machines, found.p_value) == ("confounded", 2, None)
    assert "No machine ran both environments" in found.why
    found = compared(ReviewedCampaign(moved(one, "b", "container", (7, 8))))
    assert (found.machines, found.n_baseline, found.n_candidate) == (1, 6, 6)
    assert (found.left_out, found.analysis) == (4, "paired")


def test_a_cell_is_described_over_machines_and_varies_within_them() -> None:
    """Levels of 100 and 140 with noise of 0.3 %: not 17 %, which the levels alone would make it."""
    results = unreviewed(
        a_dataset(a_fleet({"a": drawn(100, 0, 1), "b": drawn(140, 0, 2)}))
    )
    (found,) = [row for row in results.cell_rows if row.environment == "native"]
    assert found.mean == pytest.approx(120, rel=0.01)
    assert found.cv_percent == pytest.approx(0.3, abs=0.15)
    # Student's t on one degree of freedom is 12.706, and the error of the mean of both 20.
    assert found.ci95 == pytest.approx((120 - 254.1, 120 + 254.1), rel=0.01)


# -- what stats tells ----------------------------------------------------------------------------------------------


def measured_by(*measured: float) -> Results:
    """A campaign whose machines found these differences, in percent."""
    cells = {
        name: drawn(100 + 20 * place, change, place)
        for place, (name, change) in enumerate(zip("abcde", measured, strict=False))
    }
    return unreviewed(a_dataset(a_fleet(cells)))


def test_stats_shows_each_machine_and_all_together() -> None:
    found = measured_by(5, 5, 5)
    measured, _ = found.over(list(found.campaigns))
    assert list(measured["machine"]) == ["a", "b", "c"]
    (row,) = rows(found.replications)
    (comparison,) = found.comparison_rows
    assert row.effect == pytest.approx(comparison.difference_percent)
    assert row.verdict == comparison.verdict == "higher"
    assert (row.machines, row.replication) == (3, "replicates")
    assert row.prediction95 is not None
    assert row.prediction95[0] < 5 < row.prediction95[1]
    assert row.campaigns == ("c",)
    (native,) = [cell for cell in found.cell_rows if cell.environment == "native"]
    assert native.machines == ("a", "b", "c")
    assert native.n_by_machine == (8, 8, 8)
    text = told.render(found, "text")
    assert "Over machines" in text


def test_machines_replicate_or_not_or_are_too_few() -> None:
    """Of 3 % and 8 % one degree of freedom reaches 12.7 × 2.5 % to either side."""
    (row,) = rows(measured_by(5, -5).replications)
    assert (row.verdicts, row.verdict) == (("higher", "lower"), "undecided")
    assert row.replication == "does not replicate"
    assert row.i2_percent > 99
    assert "they are higher and lower themselves" in row.why
    (row,) = rows(measured_by(3, 8).replications)
    assert (row.verdicts, row.replication) == (("higher", "higher"), "undecided")
    assert "Over 2 machines the mean is undecided" in row.why
