"""What counts, what is taken together, and that a figure is worked out once."""

from pathlib import Path

import pytest

from sparkpub.record.errors import ClaimError
from sparkpub.record.record import MetricValue
from sparkpub.record.store import Stored
from sparkpub.review.claims.chosen import choose, split
from sparkpub.review.claims.quantities import Question, ask
from sparkpub.review.dataset import CampaignData
from sparkpub.review.reviewed import ReviewedCampaign
from sparkpub.review.tables.column import TableRow
from sparkpub.review.tables.comparisons import compare
from tests.building import a_record
from tests.review.statistics.campaigns import Cells, a_campaign

TPUT, PEAK = "output_throughput_tok_s", "peak_memory_gib"
NATIVE = ("m", "native", "w")
CELLS: Cells = {
    ("m", "native"): {TPUT: [100.0, 101.0, 99.0], PEAK: [70.0, 71.0, 72.0]},
    ("m", "vm"): {TPUT: [90.0, 91.0]},
    ("k", "native"): {TPUT: [10.0, 11.0, 12.0]},
    ("k", "vm"): {},
}


def with_runs(data: CampaignData, *records: object) -> CampaignData:
    """A campaign with further records at its end."""
    more = [Stored(record, Path(f"c/{record.run_id}.json")) for record in records]  # type: ignore[attr-defined,arg-type]
    return CampaignData(data.info, data.folder, (*data.runs, *more))


def a_twin(data: CampaignData, run: str, **changed: object) -> object:
    """A copy of a record under another run id."""
    (original,) = [record for record in data.records if record.run_id == run]
    return original.model_copy(update={"run_id": f"{run}-again", **changed})


@pytest.fixture
def campaign() -> CampaignData:
    return a_campaign("c", CELLS, order="random")


def against(reviewed: ReviewedCampaign, metric: str) -> TableRow | None:
    """A metric in the VM against native."""
    native, vm = (
        choose(reviewed, model=("m",), environment=(name,)) for name in ("native", "vm")
    )
    found = compare(native.rows(metric), vm.rows(metric), reviewed.campaign)
    return found and found[0]


def test_a_run_that_is_out_counts_nowhere_and_says_why(campaign: CampaignData) -> None:
    reviewed = ReviewedCampaign(campaign, {"c-native_m_w_01": "exit-status: failed"})
    assert [
        len(cells[NATIVE])
        for cells in (reviewed.recorded, reviewed.ran, reviewed.counted)
    ] == [3, 2, 2]
    assert reviewed.excluded == {"c-native_m_w_01": "exit-status: failed"}


def test_the_first_good_record_of_an_iteration_counts(campaign: CampaignData) -> None:
    data = with_runs(campaign, a_twin(campaign, "c-native_m_w_01"))
    reviewed = ReviewedCampaign(data)
    assert [
        len(cells[NATIVE])
        for cells in (reviewed.recorded, reviewed.ran, reviewed.counted)
    ] == [4, 4, 3]
    assert reviewed.excluded == {
        "c-native_m_w_01-again": "duplicate-iteration: c-native_m_w_01 counts for this iteration"
    }


def test_a_repeat_and_what_follows_a_bad_record_count(campaign: CampaignData) -> None:
    first = "c-native_m_w_01"
    data = with_runs(campaign, a_twin(campaign, first))
    reviewed = ReviewedCampaign(data, {first: "timeout"})
    assert list(reviewed.excluded) == [first]
    assert len(reviewed.counted[NATIVE]) == 3
    data = with_runs(campaign, a_twin(campaign, first, repeat_of=first))
    assert ReviewedCampaign(data).excluded == {}


def test_a_declared_cell_that_nobody_ran_is_there_and_empty() -> None:
    data = a_campaign("c", CELLS)
    reviewed = ReviewedCampaign(CampaignData(data.info, data.folder, data.runs[:1]))
    assert reviewed.recorded["k", "native", "w"] == ()
    assert choose(reviewed, model=("k",)).rows(TPUT).empty


def test_values_stand_in_order_of_time_over_several_cells(
    campaign: CampaignData,
) -> None:
    """Interleaved by iteration: native and vm of m in turn, k last of each round."""
    rows = choose(ReviewedCampaign(campaign), model=("m",)).rows(TPUT)
    assert rows["value"].tolist() == [100.0, 90.0, 101.0, 91.0, 99.0]
    assert rows["environment"].tolist() == [
        "native",
        "vm",
        "native",
        "vm",
        "native",
    ]


def test_include_chooses_the_runs(campaign: CampaignData) -> None:
    data = with_runs(campaign, a_twin(campaign, "c-native_m_w_01"))
    reviewed = ReviewedCampaign(data, {"c-native_m_w_02": "timeout"})
    for include, size in (("counted", 2), ("all", 4)):
        chosen = choose(
            reviewed,
            include,  # type: ignore[arg-type]
            model=("m",),
            environment=("native",),
        )
        assert len(chosen.records) == len(chosen.rows(TPUT)) == size


def test_a_metric_without_a_value_has_a_definition_and_no_description(
    campaign: CampaignData,
) -> None:
    absent = MetricValue(value=None, unit="GiB", source="log", reason="not printed")
    record = a_record({TPUT: 1}, run_id="x", model="m", environment="silent")
    data = with_runs(campaign, record.model_copy(update={"metrics": {PEAK: absent}}))
    silent = choose(ReviewedCampaign(data), environment=("silent",))
    assert silent.metrics == (PEAK,)
    asked = ask("mean", Question(silent, PEAK))
    assert asked.metric is not None
    assert (asked.metric.name, asked.value, asked.n) == (PEAK, None, (0,))


def test_an_unknown_name_is_refused_with_those_there_are(
    campaign: CampaignData,
) -> None:
    with pytest.raises(ClaimError, match="no environment 'container'") as error:
        choose(ReviewedCampaign(campaign), environment=("container",))
    assert error.value.remedy == "there are native, vm"


def test_parts_follow_the_matrix_and_leave_out_what_did_not_run(
    campaign: CampaignData,
) -> None:
    reviewed = ReviewedCampaign(campaign)
    assert [
        part.label
        for part in split(choose(reviewed), ("model", "environment", "workload"))
    ] == [
        "m/native",
        "m/vm",
        "k/native",
    ]
    assert [part.label for part in split(choose(reviewed), ())] == ["all runs"]
    everything_out = ReviewedCampaign(
        campaign, dict.fromkeys((record.run_id for record in campaign.records), "bad")
    )
    assert split(choose(everything_out), ("model",)) == []


def test_a_comparison_needs_values_on_both_sides(campaign: CampaignData) -> None:
    reviewed = ReviewedCampaign(campaign)
    assert against(reviewed, PEAK) is None
    found = against(reviewed, TPUT)
    assert found is not None
    assert (found.mean_baseline, found.mean_candidate) == (100.0, 90.5)


def test_what_the_matrix_does_not_declare_comes_last(campaign: CampaignData) -> None:
    """A model and an environment of which the matrix knows nothing, in the order in which they ran."""
    unknown_model = a_record({TPUT: 1}, run_id="x", model="z")
    unknown_environment = a_record({TPUT: 1}, run_id="y", model="m", environment="q")
    reviewed = ReviewedCampaign(with_runs(campaign, unknown_model, unknown_environment))
    labels = [part.label for part in split(choose(reviewed), ("model", "environment"))]
    assert labels == ["m/native", "m/vm", "k/native", "z/native", "m/q"]
