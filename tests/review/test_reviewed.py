"""What counts, what is taken together, and that a figure is worked out once."""

from pathlib import Path

import pytest

from sparkpub.record.store import Stored
from sparkpub.review.dataset import CampaignData
from sparkpub.review.reviewed import ReviewedCampaign
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


FIRST = "c-native_m_w_01"


@pytest.mark.parametrize(
    ("again", "out", "sizes", "excluded"),
    [
        (None, {FIRST: "exit-status: failed"}, [3, 2, 2], [FIRST]),
        # The first good record of an iteration counts, and a declared repeat of it.
        ({}, {}, [4, 4, 3], [f"{FIRST}-again"]),
        ({}, {FIRST: "timeout"}, [4, 3, 3], [FIRST]),
        ({"repeat_of": FIRST}, {}, [4, 4, 4], []),
    ],
)
def test_what_counts(
    campaign: CampaignData,
    again: dict[str, str] | None,
    out: dict[str, str],
    sizes: list[int],
    excluded: list[str],
) -> None:
    if again is not None:
        campaign = with_runs(campaign, a_twin(campaign, FIRST, **again))
    reviewed = ReviewedCampaign(campaign, out)
    by_cell = (reviewed.recorded, reviewed.ran, reviewed.counted)
    assert [len(cells[NATIVE]) for cells in by_cell] == sizes
    assert list(reviewed.excluded) == excluded
    twin = f"duplicate-iteration: {FIRST} counts for this iteration"
    assert {*reviewed.excluded.values()} <= {*out.values(), twin}
