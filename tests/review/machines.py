"""Campaigns of several machines, in memory."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparkpub.record.record import Machine
from sparkpub.record.store import Stored
from sparkpub.review.dataset import CampaignData
from tests.review.statistics.campaigns import Cells, a_campaign

TPUT = "output_throughput_tok_s"


def drawn(level: float, change: float, seed: int, rounds: int = 8) -> Cells:
    """A model on a machine of that level, whose container is `change` percent faster: noise of 0.3 %."""
    generator = np.random.default_rng(seed)
    sides = {"native": level, "container": level * (1 + change / 100)}
    return {
        ("m", name): {
            TPUT: (own * generator.normal(1, 0.003, rounds)).round(3).tolist()
        }
        for name, own in sides.items()
    }


def a_fleet(
    measured: Mapping[str, Cells], machines: str = "replicate", name: str = "c"
) -> CampaignData:
    """A campaign whose cells each machine (by id) measured as given: all of them at the same time."""
    runs: list[Stored] = []
    for machine, cells in measured.items():
        kind = Machine(id=machine, kind="dgx-spark")
        own = a_campaign(name, cells, published=True, machine=kind)
        for record in own.records:
            run = f"{record.run_id}-{machine}"
            named = record.model_copy(update={"run_id": run})
            runs.append(Stored(named, Path(f"{run}.json")))
    runs.sort(key=lambda run: run.record.started.value)
    every_cell: dict[tuple[str, str], Any] = {}
    for cells in measured.values():
        every_cell |= cells
    whole = a_campaign(name, every_cell)
    document = {**(whole.info.matrix or {}), "machines": machines}
    info = whole.info.model_copy(update={"matrix": document})
    return CampaignData(info, Path(name), tuple(runs))


def moved(
    campaign: CampaignData, machine: str, environment: str, iterations: Sequence[int]
) -> CampaignData:
    """The campaign with these iterations of an environment on another machine."""
    runs = []
    for run in campaign.runs:
        record = run.record
        if record.environment == environment and record.iteration in iterations:
            elsewhere = record.machine.model_copy(update={"id": machine})
            record = record.model_copy(update={"machine": elsewhere})
        runs.append(Stored(record, run.path))
    return CampaignData(campaign.info, campaign.folder, tuple(runs))
