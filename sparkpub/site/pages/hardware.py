"""The machines behind the figures, as the records describe them, and what the shipped catalogue knows of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from sparkpub.record import catalogue
from sparkpub.record.catalogue import CatalogueFile
from sparkpub.record.record import Record
from sparkpub.record.text import counted, number
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.setup import setup_of
from sparkpub.site.pages import reference
from sparkpub.site.pages.reference import plain

UNDESCRIBED = "A machine that its records do not describe"
WANTED = ("processor", "memory", "operating system", "kernel", "engine")
"""What a reader looks for, and is told of where no record has it."""
WANTED_OF_GPUS = ("driver", "CUDA")
LinkOf = Callable[[str], str]
"""From the source of a page to its address as a link of the page at hand."""


def machines(campaigns: Sequence[CampaignData], address: LinkOf) -> str:
    """A heading and a table for each kind of machine that has runs, in the order in which they ran."""
    records = [record for campaign in campaigns for record in campaign.records]
    of_kind = grouped(records, lambda record: setup_of(record).machine or UNDESCRIBED)
    parts = []
    for name, mine in of_kind.items():
        runs = Counter(record.campaign for record in mine)
        here = [campaign for campaign in campaigns if campaign.name in runs]
        told = []
        for place, campaign in enumerate(here, 1):
            count = str(counted(runs[campaign.name], "run"))
            if campaign.info.origin is not None:
                count += ", imported"
            told.append(f"{place}: {_link(campaign, address)} ({count})")
        rows = [("campaigns", "<br>".join(told))]
        ids = {record.machine.id for record in mine} - {None}
        if len(ids) > 1:
            text = f"{len(ids)}, told apart by a salted hash of their identity"
            rows.append(("machines", text))
        described = [(_described(record), record.campaign) for record in mine]
        names = [campaign.name for campaign in here]
        for field in described[0][0]:
            values = grouped(described, lambda item: item[0][field])  # noqa: B023 - asked here
            values.pop("", None)
            if values:
                rows.append((field, _values(values, names)))
        parts += [f"## {plain(name)}", reference.table(("what", "as recorded"), rows)]
        wanted = (*WANTED, *(WANTED_OF_GPUS if "GPU" in dict(rows) else ()))
        missing = [field for field in wanted if field not in dict(rows)]
        if missing:
            parts.append(f"Not recorded: {', '.join(missing)}.")
    return "\n\n".join(parts)


def _values(
    values: Mapping[str, Sequence[tuple[object, str]]], campaigns: Sequence[str]
) -> str:
    """One value alone; several with the campaigns of each, by number."""
    lines = []
    for text, items in values.items():
        places = sorted({campaigns.index(campaign) + 1 for _, campaign in items})
        noun = "campaign" if len(places) == 1 else "campaigns"
        lines.append(f"{plain(text)} ({noun} {', '.join(map(str, places))})")
    return "<br>".join(lines) if len(lines) > 1 else plain(next(iter(values)))


def _described(record: Record) -> dict[str, str]:
    """What a record says of its machine, field by field; "" where it does not."""
    machine, seen, box = record.machine, record.observed, record.container
    memory = _of(machine.memory_total_gib, "GiB", 1)
    described = {
        "GPU": _gpus(record),
        "processor": _listed(
            machine.cpu,
            machine.arch,
            machine.cpu_count and counted(machine.cpu_count, "CPU"),
        ),
        "memory": memory
        and _listed(memory, machine.unified_memory and "shared by processor and GPU"),
        "firmware": machine.firmware,
        "operating system": machine.os,
        "kernel": machine.kernel,
        "control groups": machine.cgroup,
        "driver": machine.driver,
        "CUDA": machine.cuda_driver,
        "power mode": machine.power_mode,
        "locked SM clock": _of(machine.clocks_locked_mhz, "MHz"),
        # What the run showed; which engine a tool measures is known without it, and is no reading.
        "engine": _spaced(seen.engine, seen.engine_version),
        "Python": record.reproducibility and record.reproducibility.python,
        "container engine": box
        and _listed(
            _spaced(box.engine, box.engine_version),
            _spaced(box.runtime, box.runtime_version),
            box.toolkit_version and f"NVIDIA container toolkit {box.toolkit_version}",
        ),
    }
    return {field: text or "" for field, text in described.items()}


def _gpus(record: Record) -> str:
    """`NVIDIA H200, 140.4 GiB, compute capability 9.0`, with the number of those that are alike."""
    alike = Counter(
        _listed(
            gpu.name,
            _of(gpu.memory_total_gib, "GiB", 1),
            gpu.compute_capability and f"compute capability {gpu.compute_capability}",
            _of(gpu.power_limit_watt, "W", before="power limit "),
            _of(gpu.clock_max_sm_mhz, "MHz", before="SM clock up to "),
            gpu.mig and "a MIG partition",
        )
        for gpu in record.machine.gpus
    )
    return "; ".join(
        text if count == 1 else f"{count} × {text}" for text, count in alike.items()
    )


def _of(value: float | None, unit: str, decimals: int = 0, before: str = "") -> str:
    return "" if value is None else f"{before}{number(value, decimals)} {unit}"


def _listed(*parts: object) -> str:
    return ", ".join(str(part) for part in parts if part)


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


def licences(campaigns: Iterable[CampaignData], address: LinkOf) -> str:
    """Where the data of each campaign come from, and their licence."""
    rows = []
    for campaign in campaigns:
        origin = "measured for this site"
        if campaign.info.origin is not None:
            origin = plain(campaign.info.origin.title)
        licence = plain(campaign.info.licence or "not stated")
        rows.append((_link(campaign, address), origin, licence))
    if not rows:
        return "There are no data yet."
    return reference.table(("campaign", "origin", "licence"), rows)


def _link(campaign: CampaignData, address: LinkOf) -> str:
    target = address(f"campaigns/{campaign.name}.md")
    return f"[{plain(campaign.info.title)}]({target})"
