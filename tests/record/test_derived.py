"""Metrics that no record holds, worked out from those that it does."""

from typing import Any

import pytest

from sparkpub.record.derived import DERIVED, derived, values_of
from sparkpub.record.record import Observed, Phase, Record
from tests.building import a_record

ENERGY = {"gpu_energy_joule": 2048.0, "startup_seconds": 20.0}
SEEN = {"requests": 64, "output_tokens_mean": 128.0, "measured_seconds": 10.0}


def a_run(
    metrics: dict[str, float] | None = None,
    end: float = 30.2,
    **seen: Any,
) -> Record:
    """64 requests of 128 tokens in ten seconds, for 2,048 J."""
    phase = Phase(name="measure", start_seconds=20.0, end_seconds=end)
    return a_record(
        metrics or ENERGY, observed=Observed(**{**SEEN, **seen}), phases=(phase,)
    )


def test_tokens_and_energy_of_the_measured_phase_give_each_other() -> None:
    found = derived(a_run())
    # 8,192 tokens for 2,048 J are 4 tokens a joule; a million takes 250,000 J, 3,600 of which are a watt hour.
    assert found["output_tokens_per_joule"] == 4.0
    assert found["energy_per_million_tokens_wh"] == pytest.approx(250_000 / 3600)
    assert tuple(found) == DERIVED


def test_what_is_derived_is_asked_for_like_what_is_held() -> None:
    run = a_run()
    assert values_of(run) == ENERGY | derived(run)
    # A tool's own figure goes before ours.
    own = a_run(ENERGY | {"output_tokens_per_joule": 5.0})
    assert values_of(own)["output_tokens_per_joule"] == 5.0


@pytest.mark.parametrize(
    "run",
    [
        # A fifth more time than the requests took: a warm-up was measured with them.
        a_run(end=32.0),
        a_run().model_copy(update={"phases": ()}),
        a_run(measured_seconds=None),
        a_run(output_tokens_mean=None),
        a_run(output_tokens_mean=0.0),
        # The energy of a run without a start-up time is that of the whole run.
        a_run({"gpu_energy_joule": 2048.0}),
        a_run({"gpu_energy_joule": 0.0, "startup_seconds": 20.0}),
    ],
)
def test_nothing_is_derived_from_energy_that_was_spent_on_more_than_the_tokens(
    run: Record,
) -> None:
    assert derived(run) == {}
