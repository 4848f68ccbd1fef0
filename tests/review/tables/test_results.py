"""What a campaign shows: families, pairs, repeats, criteria, and their forms on the way out."""

import numpy as np
import pytest

from sparkpub.record.errors import UsageError
from sparkpub.record.metrics import METRICS
from sparkpub.record.record import Origin
from sparkpub.review import told
from sparkpub.review.dataset import CampaignData
from sparkpub.review.results import Results
from sparkpub.review.reviewed import ReviewedCampaign
from sparkpub.review.tables.cells import family_of
from sparkpub.review.tables.column import rows
from tests.review.statistics.campaigns import Cells, a_campaign, a_dataset, unreviewed

TPUT, PEAK = "output_throughput_tok_s", "peak_memory_gib"
HEAT = "gpu_temp_end_celsius"


def noise(seed: int, centre: float, n: int = 6) -> list[float]:
    return list(np.random.default_rng(seed).normal(centre, 0.01 * centre, n).round(3))


CELLS: Cells = {
    ("m", "native"): {
        TPUT: noise(1, 100),
        PEAK: noise(2, 70),
        HEAT: noise(3, 60),
    },
    ("m", "container"): {
        TPUT: noise(4, 99),
        PEAK: noise(5, 95),
        HEAT: noise(6, 58),
    },
    ("m", "vm"): {TPUT: noise(7, 80)},
}


def test_environments_are_compared_with_the_baseline_and_primary_tests_corrected() -> (
    None
):
    """Where both measured. Three primary tests (two of throughput, one of memory) and one temperature, which is a state
    and secondary."""
    found = unreviewed(a_dataset(a_campaign("c", CELLS))).comparison_rows
    sides = [(row.baseline, row.candidate, row.metric) for row in found]
    both = [("native", "container", name) for name in (TPUT, PEAK, HEAT)]
    assert sides == [*both, ("native", "vm", TPUT)]
    assert (found[0].analysis, found[0].equivalence_margin_percent) == ("paired", 2)
    primary = [row for row in found if row.family == "primary"]
    (temperature,) = [row for row in found if row.family == "secondary"]
    smallest = min(primary, key=lambda row: row.p_value)
    assert len(primary) == 3
    assert smallest.p_adjusted == pytest.approx(min(1, 3 * smallest.p_value))
    assert temperature.metric == HEAT
    assert temperature.p_adjusted == temperature.p_value


@pytest.mark.parametrize(
    ("name", "present", "family"),
    [
        (TPUT, [], "primary"),
        # Restated where output throughput is there.
        ("request_throughput_req_s", [TPUT], "secondary"),
        ("request_throughput_req_s", [], "primary"),
        ("ttft_p99_ms", [], "primary"),
        ("ttft_mean_ms", [], "secondary"),
        ("gpu_power_mean_watt", [], "secondary"),
        ("gpu_memory_peak_gib", [], "primary"),
    ],
)
def test_which_metrics_are_tests_of_the_study(
    name: str, present: list[str], family: str
) -> None:
    values = {recorded: [1.0] for recorded in present or ["weights_gib"]}
    data = a_campaign("c", {("m", "native"): values}, matrix=False)
    assert family_of(METRICS[name], ReviewedCampaign(data)) == family


def test_a_matrix_that_names_its_primary_metrics_decides_itself() -> None:
    """Peak memory alone is named: throughput, primary by default, is exploratory, and corrected within that family."""
    data = a_campaign("c", CELLS)
    assert data.info.matrix is not None
    matrix = data.info.matrix | {"primary": [PEAK], "margin_reason": "the source's"}
    named = CampaignData(
        data.info.model_copy(update={"matrix": matrix}), data.folder, data.runs
    )
    found = unreviewed(a_dataset(named))
    assert {row.metric for row in found.comparison_rows if row.family == "primary"} == {
        PEAK
    }
    secondary = [row for row in found.comparison_rows if row.family == "secondary"]
    smallest = min(secondary, key=lambda row: row.p_value or 1)
    assert (len(secondary), smallest.metric) == (3, TPUT)
    assert smallest.p_adjusted == pytest.approx(3 * smallest.p_value)


@pytest.mark.parametrize(
    ("imported", "matrix", "declared"),
    [(False, True, True), (True, True, False), (False, False, False)],
)
def test_a_margin_chosen_after_the_runs_is_called_so(
    imported: bool, matrix: bool, declared: bool
) -> None:
    """The collector stores the matrix before the first run; for published runs somebody wrote it after them."""
    cells = {
        ("m", "native"): {TPUT: noise(1, 100)},
        ("m", "container"): {TPUT: noise(2, 100)},
    }
    origin = {"origin": Origin(title="a table")} if imported else {}
    (row,) = unreviewed(
        a_dataset(a_campaign("c", cells, matrix=matrix, **origin))
    ).comparison_rows
    assert row.margin_declared is declared


def test_without_a_matrix_native_is_what_others_are_compared_with() -> None:
    for names, baseline in ((("container", "native"), "native"), (("b", "a"), "b")):
        cells: Cells = {("m", name): {TPUT: [1.0]} for name in names}
        assert a_campaign("c", cells, matrix=False).baseline == baseline


def repeated(change: float, *, specification: str | None = None) -> Results:
    again = [round(value * change, 3) for value in noise(2, 100, 8)]
    first, second = (
        a_campaign(name, {("m", "native"): {TPUT: values}}, specification=what)
        for name, values, what in (
            ("first", noise(1, 100, 8), "a" * 64),
            ("second", again, specification),
        )
    )
    return unreviewed(a_dataset(first, second), campaign="second", against="first")


@pytest.mark.parametrize(
    ("change", "met", "specification", "same"),
    [
        (1.0, True, "a" * 64, True),
        (1.2, False, "b" * 64, False),
        (0.8, False, None, None),
        (1.05, None, None, None),
    ],
)
def test_a_campaign_repeats_another_within_five_percent_or_does_not(
    change: float, met: bool | None, specification: str | None, same: bool | None
) -> None:
    found = repeated(change, specification=specification)
    (row,) = rows(found.repeats)
    (judged,) = [
        item for item in rows(found.criteria) if item.criterion == "repeatability"
    ]
    about = row.campaign, row.against, row.equivalence_margin_percent
    assert about == ("second", "first", 5)
    assert (judged.met, row.same_specification) == (met, same)
    assert row.difference_percent == pytest.approx(100 * (change - 1), abs=1)


def test_what_is_asked_for_has_to_be_there_and_against_needs_one_campaign() -> None:
    data = a_dataset(*(a_campaign(name, CELLS) for name in "abc"))
    for asked, message in (
        ({"against": "a"}, "one campaign with another"),
        ({"campaign": "a", "against": "a"}, "one campaign with another"),
        ({"campaign": "x"}, "no campaign 'x'"),
        ({"campaign": "c", "against": "x"}, "no campaign 'x'"),
    ):
        with pytest.raises(UsageError, match=message):
            unreviewed(data, **asked)  # type: ignore[arg-type]
    found = rows(unreviewed(data, campaign="c", against="a").repeats)
    assert {row.campaign for row in found} == {"c"}


def test_criteria_are_judged_or_left_open() -> None:
    cells: Cells = {
        ("m", "native"): {
            TPUT: noise(1, 100),
            PEAK: [10.0, 20.0, 30.0, 40.0, 50.0, 60.0],
        },
        ("m", "container"): {
            TPUT: noise(2, 99)[:1],
            PEAK: [52.0, 12.0, 41.0, 28.0, 59.0, 22.0],
        },
    }
    found = {
        (item.criterion, item.cell, item.metric): item
        for item in rows(unreviewed(a_dataset(a_campaign("c", cells))).criteria)
    }
    assert found["variation", "m/native/w", TPUT].met is True
    assert found["variation", "m/native/w", PEAK].met is False
    assert found["variation", "m/container/w", TPUT].met is None
    assert found["power", "m/container/w", PEAK].met is False
    assert found["power", "m/container/w", TPUT].met is None
    assert found["repeatability", None, None].met is None
    completeness = found["completeness", None, None]
    assert (completeness.met, completeness.value) == (True, 100)
    data = a_campaign("c", {("m", "native"): {TPUT: noise(1, 100, 4)}})
    short = CampaignData(data.info, data.folder, data.runs[:3])
    *_, incomplete = rows(unreviewed(a_dataset(short)).criteria)
    assert (incomplete.met, incomplete.value) == (False, 75)
    assert incomplete.why == "3 of 4 planned runs are done"


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_runs_pass_through_every_form(n: int) -> None:
    cells = {
        key: {name: list(values[:n]) for name, values in metrics.items()}
        for key, metrics in CELLS.items()
    }
    found = unreviewed(a_dataset(*[a_campaign("c", cells)] if n else []))
    assert {row.verdict for row in found.comparison_rows} <= {"undecided"}
    for form in ("text", "markdown", "csv", "json"):
        assert told.render(found, form).endswith("\n")  # type: ignore[arg-type]


def test_percentiles_that_n_cannot_carry_are_marked_and_what_was_left_out_is_said() -> (
    None
):
    """P95 and P99 of six runs are in effect their maximum."""
    data = a_dataset(a_campaign("c", CELLS))
    text = told.render(unreviewed(data, {"c-native_m_w_01": "hot"}), "markdown")
    begin = "| c | m | vm | w | output_throughput_tok_s | tok/s | 6 |"
    (line,) = [line for line in text.splitlines() if line.startswith(begin)]
    assert line.count("*") == 2
    assert "- c-native_m_w_01: hot" in text
