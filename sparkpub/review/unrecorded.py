"""What the records of a campaign do not tell, so that no check can judge it: what to record next time."""

from collections.abc import Callable, Mapping

from sparkpub.record.record import Record
from sparkpub.record.text import counted
from sparkpub.review.dataset import CampaignData

_FACTS: Mapping[str, Callable[[Record], object]] = {
    "the log": lambda record: record.file("log"),
    "the telemetry": lambda record: record.file("telemetry"),
    "the machine": lambda record: record.machine.id,
    "the engine's version": lambda record: record.observed.engine_version,
    "when the measured phase began and ended": lambda record: record.phases,
    "the command line of the tool": lambda record: record.argv,
}
"""What is missing, and where a record has it."""


def unrecorded(campaign: CampaignData) -> list[str]:
    """Every fact that runs of a campaign lack, with how many do: `the log (63 of 63 runs)`."""
    records = campaign.records
    found = []
    for fact, read in _FACTS.items():
        lacking = sum(not read(record) for record in records)
        if lacking:
            found.append(f"{fact} ({lacking} of {counted(len(records), 'run')})")
    return found
