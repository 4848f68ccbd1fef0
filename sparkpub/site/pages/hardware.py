"""The machines behind the figures, as the records describe them, and what the shipped catalogue knows of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from sparkpub.record import catalogue
from sparkpub.record.catalogue import CatalogueFile
from sparkpub.record.record import Record
from sparkpub.record.text import counted
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.setup import setup_of
from sparkpub.site.pages import reference
from sparkpub.site.pages.reference import plain

UNDESCRIBED = "A machine that its records do not describe"
GPU = {
    "name": "GPU",
    "memory_total_gib": "GPU memory (GiB)",
    "compute_capability": "compute capability",
    "power_limit_watt": "power limit (W)",
    "clock_max_sm_mhz": "highest SM clock (MHz)",
}
MACHINE = {
    "cpu": "processor",
    "cpu_count": "CPUs",
    "arch": "architecture",
    "memory_total_gib": "memory (GiB)",
    "unified_memory": "memory shared with the GPU",
    "firmware": "firmware",
    "os": "operating system",
    "kernel": "kernel",
    "cgroup": "control groups",
    "driver": "driver",
    "cuda_driver": "CUDA",
    "power_mode": "power mode",
    "clocks_locked_mhz": "locked SM clock (MHz)",
}
"""Field of a record to what readers call it."""
LinkOf = Callable[[str], str]
"""From the source of a page to its address as a link of the page at hand."""


def machines(campaigns: Sequence[CampaignData], address: LinkOf) -> str:
    """A heading and a table for each kind of machine that has runs, in the order in which they ran."""
    records = [record for campaign in campaigns for record in campaign.records]
    of_kind = grouped(records, lambda record: setup_of(record).machine or UNDESCRIBED)
    parts = []
    for name, mine in of_kind.items():
        runs = Counter(record.campaign for record in mine)
        links = [
            _link(campaign, address, runs[campaign.name])
            for campaign in campaigns
            if campaign.name in runs
        ]
        rows = [("campaigns", "<br>".join(links))]
        ids = {record.machine.id for record in mine} - {None}
        if len(ids) > 1:
            rows.append(("machines", f"{len(ids)}, told apart by a salted hash"))
        described = [_described(record) for record in mine]
        for field in described[0]:
            values = dict.fromkeys(told[field] for told in described)
            known = [plain(value) for value in values if value]
            if known:
                rows.append((field, "<br>".join(known)))
        parts += [f"## {plain(name)}", reference.table(("what", "as recorded"), rows)]
        missing = [name for name in MACHINE.values() if name not in dict(rows)]
        if missing:
            parts.append(f"Not recorded: {', '.join(missing)}.")
    return "\n\n".join(parts) or "No run yet."


def _described(record: Record) -> dict[str, str]:
    """What a record says of its machine, field by field; "" where it does not."""
    machine, seen, box = record.machine, record.observed, record.container
    found = {}
    for name, label in GPU.items():
        values = Counter(_text(getattr(gpu, name)) for gpu in machine.gpus)
        told = [
            f"{n} × {text}" if n > 1 else text for text, n in values.items() if text
        ]
        found[label] = "; ".join(told)
    for name, label in MACHINE.items():
        found[label] = _text(getattr(machine, name))
    # What the run showed; which engine a tool measures is known without it, and is no reading.
    found["engine"] = _spaced(seen.engine, seen.engine_version)
    made = record.reproducibility
    found["Python"] = _text(made and made.python)
    engine, toolkit = "", ""
    if box is not None:
        names = (
            _spaced(box.engine, box.engine_version),
            _spaced(box.runtime, box.runtime_version),
        )
        engine, toolkit = ", ".join(filter(None, names)), _text(box.toolkit_version)
    return found | {"container engine": engine, "NVIDIA container toolkit": toolkit}


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.5g}" if isinstance(value, float) else str(value)


def _spaced(*parts: str | None) -> str:
    return " ".join(part for part in parts if part)


def catalogued(kind: CatalogueFile, records: Iterable[Record]) -> str:
    """The facts of the catalogue about the models or the machines of these runs; a sentence where it has none."""
    known = catalogue.models() if kind == "models" else catalogue.machines()
    names = dict.fromkeys(
        record.requested.model_id if kind == "models" else record.machine.kind or ""
        for record in records
    )
    entries = [
        reference.entry_of_catalogue(kind, name) for name in names if name in known
    ]
    return "\n\n".join(entries) or f"It has none of the {kind} on this site."


def _link(campaign: CampaignData, address: LinkOf, runs: int) -> str:
    imported = ", imported" if campaign.info.origin is not None else ""
    target = address(f"campaigns/{campaign.name}.md")
    return (
        f"[{plain(campaign.info.title)}]({target}) ({counted(runs, 'run')}{imported})"
    )
