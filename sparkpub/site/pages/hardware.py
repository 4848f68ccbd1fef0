"""The machines behind the figures, as the records describe them."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from sparkpub.record.record import Record
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.setup import setup_of
from sparkpub.site.pages import templating

UNDESCRIBED = "A machine that its records do not describe"
FACTS = {
    "GPU": "machine.gpus.name",
    "GPU memory (GiB)": "machine.gpus.memory_total_gib",
    "compute capability": "machine.gpus.compute_capability",
    "power limit (W)": "machine.gpus.power_limit_watt",
    "highest SM clock (MHz)": "machine.gpus.clock_max_sm_mhz",
    "processor": "machine.cpu",
    "CPUs": "machine.cpu_count",
    "architecture": "machine.arch",
    "memory (GiB)": "machine.memory_total_gib",
    "memory shared with the GPU": "machine.unified_memory",
    "firmware": "machine.firmware",
    "operating system": "machine.os",
    "kernel": "machine.kernel",
    "control groups": "machine.cgroup",
    "driver": "machine.driver",
    "CUDA": "machine.cuda_driver",
    "power mode": "machine.power_mode",
    "locked SM clock (MHz)": "machine.clocks_locked_mhz",
    "engine": "observed.engine observed.engine_version",
    "Python": "reproducibility.python",
    "container engine": "container.engine container.engine_version",
    "container runtime": "container.runtime container.runtime_version",
    "NVIDIA container toolkit": "container.toolkit_version",
}
"""What readers call a fact to where records have it, of an engine and its version to both. What the run showed: which
engine a tool measures is known without it, and is no reading."""
MACHINE = [
    label for label, path in FACTS.items() if re.fullmatch(r"machine\.\w+", path)
]
"""What is said to be missing where no record has it."""


def machines(campaigns: Sequence[CampaignData], address: Callable[[str], str]) -> str:
    """A heading and a table for each kind of machine that has runs, in the order in which they ran. `address` gives the
    way to a page."""
    records = [record for campaign in campaigns for record in campaign.records]
    by_kind = grouped(records, lambda record: setup_of(record).machine or UNDESCRIBED)
    found = [_machine(name, mine, campaigns) for name, mine in by_kind.items()]
    return templating.text("hardware.md.j2", machines=found, address=address).strip()


def _machine(
    name: str, records: Sequence[Record], campaigns: Sequence[CampaignData]
) -> dict[str, Any]:
    runs = Counter(record.campaign for record in records)
    facts = {}
    for label, paths in FACTS.items():
        told = dict.fromkeys(_told(record, paths) for record in records)
        facts[label] = list(filter(None, told))
    return {
        "name": name,
        "campaigns": [(one, runs[one.name]) for one in campaigns if runs[one.name]],
        "ids": len({record.machine.id for record in records} - {None}),
        "facts": facts,
        "missing": [label for label in MACHINE if not facts[label]],
    }


def _told(record: Record, paths: str) -> str:
    """What a record says under these paths; "" where it says nothing."""
    return " ".join(filter(None, (_value(record, path) for path in paths.split())))


def _value(item: object, path: str) -> str:
    """What stands under a path, of several alike once with their number: `2 × NVIDIA H200`."""
    name, _, rest = path.partition(".")
    value = getattr(item, name, None)
    if isinstance(value, tuple):
        found = Counter(_value(each, rest) for each in value)
        return "; ".join(
            f"{n} × {text}" if n > 1 else text for text, n in found.items() if text
        )
    if rest:
        return _value(value, rest)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.5g}" if isinstance(value, float) else str(value)
