"""The machines behind the figures, as the records describe them, and what the shipped catalogue knows of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from sparkpub.record import catalogue
from sparkpub.record.catalogue import CatalogueFile
from sparkpub.record.record import Gpu, Record
from sparkpub.record.text import counted, number
from sparkpub.review.dataset import CampaignData
from sparkpub.review.setup import setup_of
from sparkpub.site.pages import reference
from sparkpub.site.pages.reference import plain

UNDESCRIBED = "A machine that its records do not describe"
LinkOf = Callable[[str], str]
"""From the source of a page to its address as a link of the page at hand."""


def machines(campaigns: Sequence[CampaignData], address: LinkOf) -> str:
    """A heading and a table for each kind of machine that has runs, in the order in which they ran."""
    records: dict[str, list[Record]] = {}
    for campaign in campaigns:
        for record in campaign.records:
            name = setup_of(record).machine or UNDESCRIBED
            records.setdefault(name, []).append(record)
    parts = []
    for name, of_machine in records.items():
        ran = {record.campaign for record in of_machine}
        here = [campaign for campaign in campaigns if campaign.name in ran]
        numbers = {campaign.name: place for place, campaign in enumerate(here, 1)}
        rows = [
            ("campaigns", _campaigns(here, of_machine, address)),
            *_count_of_machines(of_machine),
            *_recorded(of_machine, numbers),
        ]
        parts.append(
            f"## {plain(name)}\n\n{reference.table(('what', 'as recorded'), rows)}"
        )
        missing = _not_recorded(of_machine)
        if missing:
            parts.append(f"Not recorded: {', '.join(missing)}.")
    return "\n\n".join(parts)


def catalogued(kind: CatalogueFile, records: Iterable[Record]) -> str:
    """The facts of the catalogue about the models or the machines of these runs; a sentence where it has none."""
    known = catalogue.models() if kind == "models" else catalogue.machines()
    names = dict.fromkeys(_key(kind, record) for record in records)
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


def _key(kind: CatalogueFile, record: Record) -> str:
    if kind == "models":
        return record.requested.model_id
    return record.machine.kind or ""


def _link(campaign: CampaignData, address: LinkOf) -> str:
    target = address(f"campaigns/{campaign.name}.md")
    return f"[{plain(campaign.info.title)}]({target})"


def _campaigns(
    campaigns: Iterable[CampaignData], records: Iterable[Record], address: LinkOf
) -> str:
    """The campaigns that ran on a machine, numbered, with how many runs they have there."""
    runs = Counter(record.campaign for record in records)
    parts = []
    for place, campaign in enumerate(campaigns, 1):
        count = counted(runs[campaign.name], "run")
        imported = "" if campaign.info.origin is None else ", imported"
        parts.append(f"{place}: {_link(campaign, address)} ({count}{imported})")
    return "<br>".join(parts)


def _count_of_machines(records: Iterable[Record]) -> list[tuple[str, str]]:
    """How many machines of the kind there are, where their ids tell them apart."""
    ids = {record.machine.id for record in records} - {None}
    if len(ids) < 2:
        return []
    return [("machines", f"{len(ids)}, told apart by a salted hash of their identity")]


def _recorded(
    records: Sequence[Record], numbers: Mapping[str, int]
) -> list[tuple[str, str]]:
    """What the records say, field by field; where campaigns differ, each value with the numbers of its campaigns."""
    rows = []
    for name, read in _FIELDS.items():
        campaigns: dict[str, dict[str, None]] = {}
        for record in records:
            text = read(record)
            if text:
                campaigns.setdefault(text, {})[record.campaign] = None
        if campaigns:
            rows.append((name, _values(campaigns, numbers)))
    return rows


def _values(campaigns: Mapping[str, Iterable[str]], numbers: Mapping[str, int]) -> str:
    """One value alone; several with the campaigns of each, by number."""
    if len(campaigns) == 1:
        return plain(next(iter(campaigns)))
    lines = []
    for text, names in campaigns.items():
        places = sorted(numbers[name] for name in names)
        noun = "campaign" if len(places) == 1 else "campaigns"
        lines.append(f"{plain(text)} ({noun} {', '.join(map(str, places))})")
    return "<br>".join(lines)


def _not_recorded(records: Sequence[Record]) -> list[str]:
    """The fields that a reader would look for and that no record has."""
    wanted = ["processor", "memory", "operating system", "kernel", "engine"]
    if any(record.machine.gpus for record in records):
        wanted += ["driver", "CUDA"]
    return [
        name for name in wanted if not any(_FIELDS[name](record) for record in records)
    ]


# -- the fields --------------------------------------------------------------------------------------------


def _gpus(record: Record) -> str:
    """`NVIDIA H200, 140.4 GiB, compute capability 9.0`, with the number of those that are alike."""
    alike: dict[str, int] = {}
    for gpu in record.machine.gpus:
        text = _gpu(gpu)
        alike[text] = alike.get(text, 0) + 1
    parts = []
    for text, count in alike.items():
        parts.append(text if count == 1 else f"{count} × {text}")
    return "; ".join(parts)


def _gpu(gpu: Gpu) -> str:
    parts = [gpu.name]
    if gpu.memory_total_gib is not None:
        parts.append(f"{number(gpu.memory_total_gib, 1)} GiB")
    if gpu.compute_capability is not None:
        parts.append(f"compute capability {gpu.compute_capability}")
    if gpu.power_limit_watt is not None:
        parts.append(f"power limit {number(gpu.power_limit_watt, 0)} W")
    if gpu.clock_max_sm_mhz is not None:
        parts.append(f"SM clock up to {number(gpu.clock_max_sm_mhz, 0)} MHz")
    if gpu.mig:
        parts.append("a MIG partition")
    return ", ".join(parts)


def _memory(record: Record) -> str:
    total = record.machine.memory_total_gib
    if total is None:
        return ""
    text = f"{number(total, 1)} GiB"
    if record.machine.unified_memory:
        text += ", shared by processor and GPU"
    return text


def _processor(record: Record) -> str:
    machine = record.machine
    parts = [machine.cpu, machine.arch]
    if machine.cpu_count is not None:
        parts.append(counted(machine.cpu_count, "CPU"))
    return ", ".join(part for part in parts if part)


def _locked_clock(record: Record) -> str:
    clock = record.machine.clocks_locked_mhz
    if clock is None:
        return ""
    return f"{number(clock, 0)} MHz"


def _engine(record: Record) -> str:
    """What the run showed; which engine a tool measures is known without it, and is no reading."""
    parts = (record.observed.engine, record.observed.engine_version)
    return " ".join(part for part in parts if part)


def _python(record: Record) -> str:
    if record.reproducibility is None:
        return ""
    return record.reproducibility.python or ""


def _container_engine(record: Record) -> str:
    container = record.container
    if container is None:
        return ""
    parts = [f"{container.engine} {container.engine_version or ''}".strip()]
    if container.runtime is not None:
        parts.append(f"{container.runtime} {container.runtime_version or ''}".strip())
    if container.toolkit_version is not None:
        parts.append(f"NVIDIA container toolkit {container.toolkit_version}")
    return ", ".join(parts)


_FIELDS: Mapping[str, Callable[[Record], str]] = {
    "GPU": _gpus,
    "processor": _processor,
    "memory": _memory,
    "firmware": lambda record: record.machine.firmware or "",
    "operating system": lambda record: record.machine.os or "",
    "kernel": lambda record: record.machine.kernel or "",
    "control groups": lambda record: record.machine.cgroup or "",
    "driver": lambda record: record.machine.driver or "",
    "CUDA": lambda record: record.machine.cuda_driver or "",
    "power mode": lambda record: record.machine.power_mode or "",
    "locked SM clock": _locked_clock,
    "engine": _engine,
    "Python": _python,
    "container engine": _container_engine,
}
"""What a reader may want to know of a machine, and where a record says it; "" where it does not."""
