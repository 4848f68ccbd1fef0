"""Whether runs that are pooled or compared are of one machine, one software and one treatment."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from statistics import fmean, variance

from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.blocks import (
    Broken,
    broken_blocks,
    ranked_over_machines,
    several_machines,
    swept_over_machines,
)
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import SEVERITIES, Finding, Severity
from sparkpub.review.checks.ratios import resources
from sparkpub.review.checks.requested import flag_values, is_path
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.values import memory_gib
from sparkpub.review.checks.view import View, about_cells, ids, label, listed
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell

START_DIFFERENCE_CELSIUS = Threshold(
    "start difference celsius",
    5.0,
    "Maximum difference between the mean start temperatures of environments: a warmer GPU boosts less.",
)
CLOCK_DIFFERENCE_SHARE = Threshold(
    "clock difference share",
    0.02,
    "Maximum relative difference between the mean clocks of environments: compute-bound throughput follows the SM "
    "clock, and decoding that of the memory.",
)
PROCESSOR_DIFFERENCE_PERCENT = Threshold(
    "processor difference percent",
    25.0,
    "Maximum difference between the mean CPU loads of environments: more means that another program was running.",
)
SWAP_DIFFERENCE_GIB = Threshold(
    "swap difference gib",
    0.5,
    "Maximum difference in swap use between environments: more means that one of them waited for the disk.",
)
CONDITION_SD = Threshold(
    "condition standard errors",
    4.0,
    "Minimum distance of two means of a condition in standard errors: less than 1 in 10,000 by chance.",
)

CONDITION_RUNS = 3
"""Runs on each side below which means say nothing."""

Read = Callable[[Record], object]
ABSENT = "not given"


@dataclass(frozen=True)
class NamedFacts:
    """Facts that come by name, such as packages with their versions. A name that one side lacks is a difference only
    where `absence_counts`. `pooled` is that of a `SharedFact`; a name that only some runs of a cell have is a note."""

    what: str
    read: Callable[[Record], Mapping[str, str]]
    absence_counts: bool = False
    pooled: Severity | None = None


@dataclass(frozen=True)
class SharedFact:
    """Something that runs must share. `pooled` and `compared` say how bad it is where those of one cell, or those of
    environments that are compared, do not: an error where the figures are of two things, a warning where they are open
    to doubt, a note where a reader should know, None where it is by design."""

    name: str
    read: Read
    pooled: Severity | None
    compared: Severity | None
    own: bool = False
    """Whether every machine has one of its own, which whole blocks may differ in."""


def _gpus(record: Record) -> str | None:
    return ", ".join(gpu.name for gpu in record.machine.gpus) or None


def _gpu_ids(record: Record) -> str | None:
    return (
        ", ".join(gpu.id for gpu in record.machine.gpus if gpu.id is not None) or None
    )


def _power_limits(record: Record) -> str | None:
    limits = [
        f"{gpu.power_limit_watt:g} W"
        for gpu in record.machine.gpus
        if gpu.power_limit_watt is not None
    ]
    return ", ".join(limits) or None


def _firmware(record: Record) -> str | None:
    return (
        ", ".join(gpu.vbios for gpu in record.machine.gpus if gpu.vbios is not None)
        or record.machine.firmware
    )


def _memory(record: Record) -> int | None:
    total = memory_gib(record)
    return None if total is None else round(total)


def _collector(record: Record) -> str | None:
    known = record.reproducibility
    if known is None:
        return None
    return (
        f"{known.sparkpub_version} ({known.sparkpub_commit})"
        if known.sparkpub_commit
        else known.sparkpub_version
    )


def _modified(record: Record) -> str | None:
    known = record.reproducibility
    if known is None or known.sparkpub_clean is None:
        return None
    return "as committed" if known.sparkpub_clean else "modified"


def _image(record: Record) -> str | None:
    return None if record.container is None else record.container.image_id


def _quantization(record: Record) -> str | None:
    """None where no engine said anything, which is not the same as weights in full precision."""
    if record.observed.engine is None:
        return None
    return record.observed.quantization or "none"


def _limits(record: Record) -> str:
    """Limits of memory and processors that the environment sets: its own doing, and still not like for like."""
    given = {
        name: record.requested.environment.get(name) for name in ("memory", "cpuset")
    }
    limits = [
        f"{name} {value}"
        for name, value in given.items()
        if value not in (None, "unlimited")
    ]
    return ", ".join(limits) or "none"


MACHINE = SharedFact(
    "machine", lambda record: record.machine.id, "error", "error", own=True
)
FACTS = (
    MACHINE,
    SharedFact("GPU", _gpus, "error", "error"),
    SharedFact("GPU id", _gpu_ids, "error", "error", own=True),
    SharedFact("memory", _memory, "error", "error"),
    SharedFact(
        "engine version",
        lambda record: record.observed.engine_version,
        "error",
        "warning",
    ),
    SharedFact("container image", _image, "error", None),
    SharedFact(
        "driver", lambda record: record.machine.driver, "warning", "warning", own=True
    ),
    SharedFact(
        "CUDA driver",
        lambda record: record.machine.cuda_driver,
        "warning",
        "warning",
        own=True,
    ),
    SharedFact("firmware", _firmware, "warning", "warning", own=True),
    SharedFact(
        "kernel", lambda record: record.machine.kernel, "warning", "warning", own=True
    ),
    SharedFact(
        "number of processors",
        lambda record: record.machine.cpu_count,
        "warning",
        "warning",
        own=True,
    ),
    SharedFact(
        "power mode",
        lambda record: record.machine.power_mode or "not set",
        "warning",
        "warning",
    ),
    SharedFact("power limit", _power_limits, "warning", "warning", own=True),
    SharedFact(
        "locked clock",
        lambda record: record.machine.clocks_locked_mhz or "none",
        "warning",
        "warning",
    ),
    SharedFact("number format", lambda record: record.observed.dtype, "error", "error"),
    SharedFact("quantization", _quantization, "error", "error"),
    SharedFact(
        "KV cache format",
        lambda record: record.observed.kv_cache_dtype,
        "error",
        "warning",
    ),
    SharedFact("limits of memory and processors", _limits, "warning", "warning"),
    SharedFact("collector version", _collector, "info", "warning"),
    SharedFact("state of the collector's source", _modified, "info", "warning"),
)
"""What is asked of every run, in the order of its weight."""
_STEERS = re.compile(
    r"(?!.*(?:_VERSION|_ARCH_LIST|_HOME|_PATH|_DEVICES)$)(?:CUDA|NCCL|TORCH|PYTORCH|TRTLLM|TLLM|VLLM|SGLANG|GGML|LLAMA|OMP|"
    r"MKL|OPENBLAS|MALLOC|FLASHINFER|TRITON|CUBLAS|CUDNN)_.*|LD_PRELOAD"
)
"""Names of variables that change what is computed; the others say what an image was built of, and where."""
_OWN_TO_A_RUN = re.compile(r"server|.*_sha256")
"""Settings that are no settings: which server answered, and digests of what was generated."""


def mixed_machines(view: View) -> Iterator[Finding]:
    """Cells that pool runs of different machines, but for whole blocks, or of different software; one finding per
    fact. And models that are ranked, or workloads of a model, on different machines."""
    blocks = list(broken_blocks(view))
    for severity in SEVERITIES:
        alike = [block for block in blocks if block.severity == severity]
        if alike:
            yield _broken(view, alike)
    yield from _one_gpu_of_several(view)
    errors = [block for block in blocks if block.severity == "error"]
    broken = {cell for block in errors for cell in block.cells}
    for fact in FACTS:
        mixed = _mixed_cells(view, fact, broken)
        if mixed and fact.pooled is not None and fact is not MACHINE:
            values = sorted(set(chain.from_iterable(mixed.values())))
            yield _mixed(
                view, fact.name, fact.pooled, list(mixed), _and(values), values
            )
    for facts in NAMED:
        if facts.pooled is not None:
            yield from _mixed_names(view, facts, facts.pooled)
    models = swept_over_machines(view)
    if models:
        yield _swept(view, models)
    apart = ranked_over_machines(view)
    if apart:
        yield _ranked(view, apart)


def _one_gpu_of_several(view: View) -> Iterator[Finding]:
    """GPUs that stand under several machines: their runs are of one machine, and say nothing of another."""
    machines: dict[str, dict[str, None]] = defaultdict(dict)
    for run in view.happened:
        machine = run.record.machine
        for gpu in machine.gpus:
            if gpu.id is not None and machine.id is not None:
                machines[gpu.id][machine.id] = None
    for gpu_id, ids_of in machines.items():
        if len(ids_of) < 2:
            continue
        runs = [
            run
            for run in view.happened
            if any(gpu.id == gpu_id for gpu in run.record.machine.gpus)
        ]
        text = (
            f"GPU {gpu_id} is recorded as part of {len(ids_of)} machines ({_and(list(ids_of))}): its runs are of one "
            "machine, and do not repeat one another on another one."
        )
        yield view.finding(
            "mixed-machines",
            "error",
            text,
            cells=list(dict.fromkeys(label(run.record.cell) for run in runs)),
            runs=ids(runs),
            what="GPU of several machines",
        )


def _mixed_cells(
    view: View, fact: SharedFact, broken: Collection[Cell]
) -> dict[Cell, list[str]]:
    """Cells whose runs have several values of a fact; of what every machine has of its own, on one machine."""
    mixed = {}
    for cell, runs in view.counted.items():
        parts: list[Sequence[Stored]] = [runs]
        if fact.own and cell not in broken:
            parts = _by_machine(runs)
        several: set[str] = set()
        for part in parts:
            values = _distinct(part, fact.read)
            if len(values) > 1:
                several.update(values)
        if several:
            mixed[cell] = sorted(several)
    return mixed


def _mixed_names(
    view: View, facts: NamedFacts, severity: Severity
) -> Iterator[Finding]:
    """Facts by name in which runs of a cell differ, one finding for values and one for names that some runs lack.
    Runs of which nothing is known are left out."""
    values: dict[Cell, dict[str, set[str]]] = {}
    absences: dict[Cell, dict[str, set[str]]] = {}
    for cell, runs in view.counted.items():
        every = [facts.read(run.record) for run in runs]
        differing = _several_values([one for one in every if one])
        lacking = {name for name, found in differing.items() if ABSENT in found}
        if lacking:
            absences[cell] = {name: differing[name] for name in lacking}
        if differing.keys() - lacking:
            known = differing.keys() - lacking
            values[cell] = {name: differing[name] for name in known}
    if values:
        yield _mixed_by_name(view, facts.what, severity, values)
    if absences:
        yield _mixed_by_name(view, facts.what, "info", absences)


def _several_values(runs: Sequence[Mapping[str, str]]) -> dict[str, set[str]]:
    """Names that have several values in these runs; one that a run lacks has `ABSENT` among them."""
    names = {name for one in runs for name in one}
    found = {name: {one.get(name, ABSENT) for one in runs} for name in names}
    return {name: values for name, values in found.items() if len(values) > 1}


def _mixed_by_name(
    view: View,
    what: str,
    severity: Severity,
    mixed: Mapping[Cell, Mapping[str, set[str]]],
) -> Finding:
    together: dict[str, set[str]] = defaultdict(set)
    for of_cell in mixed.values():
        for name, values in of_cell.items():
            together[name] |= values
    sides = [
        f"{name} {_and(sorted(values))}" for name, values in sorted(together.items())
    ]
    words = sides[0]
    if len(sides) > 1:
        words += f", and {len(sides) - 1} more differ"
    return _mixed(view, what, severity, list(mixed), words, sides)


def _broken(view: View, blocks: Sequence[Broken]) -> Finding:
    """Machines that did not measure whole blocks, all of one severity."""
    cells = list(chain.from_iterable(block.cells for block in blocks))
    runs = _runs_of(view, cells)
    values = several_machines(runs)
    names = listed([label(cell) for cell in cells], "cells")
    text = f"Runs of {names} are pooled or compared although they differ in machine: {_and(values)}. {blocks[0].why}"
    if len(blocks) > 1:
        text += f" {len(blocks) - 1} more models or workloads are concerned."
    return view.finding(
        "mixed-machines",
        blocks[0].severity,
        text,
        **about_cells(cells),
        runs=ids(runs),
        what=MACHINE.name,
        values=values,
    )


def _runs_of(view: View, cells: Iterable[Cell]) -> list[Stored]:
    """The counted runs of some cells."""
    return list(chain.from_iterable(view.counted[cell] for cell in cells))


def _by_machine(runs: Sequence[Stored]) -> list[Sequence[Stored]]:
    """Runs by machine; those that name none together."""
    return list(grouped(runs, lambda run: run.record.machine.id).values())


def _mixed(
    view: View,
    what: str,
    severity: Severity,
    cells: Sequence[Cell],
    words: str,
    values: Sequence[str],
) -> Finding:
    names = [label(cell) for cell in cells]
    text = f"Runs of {listed(names, 'cells')} are pooled although they differ in {what}: {words}."
    return view.finding(
        "mixed-machines",
        severity,
        text,
        **about_cells(cells),
        runs=ids(_runs_of(view, cells)),
        what=what,
        values=list(values),
    )


def _swept(view: View, models: Sequence[str]) -> Finding:
    """The workloads of a model on different machines."""
    cells = [cell for cell, runs in view.counted.items() if cell[0] in models and runs]
    text = (
        f"The workloads of {listed(models, 'models')} ran on different machines: what differs between them may be the "
        "machine."
    )
    return view.finding(
        "mixed-machines",
        "warning",
        text,
        cells=[label(cell) for cell in cells],
        what="machine of a workload",
        values=several_machines(_runs_of(view, cells)),
    )


def _ranked(view: View, machines: Mapping[str, Sequence[str]]) -> Finding:
    """Models that only a ranking sets side by side, each on a machine of its own."""
    cells = [cell for cell, runs in view.counted.items() if runs]
    names = listed(list(machines), "models")
    text = (
        f"Models ran on different machines ({names}): a ranking of them includes the difference between the "
        "machines. To rank models, measure each of them on every machine (machines: replicate)."
    )
    return view.finding(
        "mixed-machines",
        "warning",
        text,
        cells=[label(cell) for cell in cells],
        what="machine of a model",
        values=sorted(set(chain.from_iterable(machines.values()))),
    )


def unequal_environments(view: View) -> Iterator[Finding]:
    """Comparisons that are not only between environments: what else differs, one finding per fact."""
    groups = _compared(view)
    for fact in FACTS:
        unequal: dict[tuple[str, str], list[str]] = {}
        cells: list[str] = []
        for group, places in groups.items():
            each = {cell: _distinct(runs, fact.read) for cell, runs in places.items()}
            known = [values for values in each.values() if values]
            if any(values != known[0] for values in known):
                unequal[group] = sorted({value for values in known for value in values})
                cells += [label(cell) for cell, values in each.items() if values]
        if unequal and fact.compared is not None:
            values = sorted({value for own in unequal.values() for value in own})
            yield _unequal(
                view,
                fact.name,
                fact.compared,
                list(unequal),
                cells,
                _and(values),
                values,
            )
    for facts in NAMED:
        yield from _named(view, groups, facts)
    yield from _conditions(view, groups)


def _compared(view: View) -> dict[tuple[str, str], dict[Cell, Sequence[Stored]]]:
    """(model, workload) to the cells of its environments, where there are several with runs."""
    groups: dict[tuple[str, str], dict[Cell, Sequence[Stored]]] = defaultdict(dict)
    for cell, runs in view.counted.items():
        if runs:
            groups[cell[0], cell[2]][cell] = runs
    return {group: cells for group, cells in groups.items() if len(cells) > 1}


def _unequal(
    view: View,
    what: str,
    severity: Severity,
    groups: Sequence[tuple[str, str]],
    cells: Sequence[str],
    words: str,
    values: Sequence[str],
) -> Finding:
    which = listed(["/".join(group) for group in groups], "comparisons")
    text = (
        f"The environments of {which} differ in more than the environment: {what} is {words}. The comparison includes "
        "that difference."
    )
    return view.finding(
        "unequal-environments",
        severity,
        text,
        cells=list(cells),
        what=what,
        values=list(values),
    )


def _named(
    view: View,
    groups: Mapping[tuple[str, str], Mapping[Cell, Sequence[Stored]]],
    facts: NamedFacts,
) -> Iterator[Finding]:
    """Names for which every run of one environment has one value, and every run of the other another one."""
    unequal: dict[str, list[str]] = {}
    concerned: dict[tuple[str, str], None] = {}
    cells: dict[str, None] = {}
    for group, places in groups.items():
        for one, other in combinations(places, 2):
            baseline = [facts.read(run.record) for run in places[one]]
            candidate = [facts.read(run.record) for run in places[other]]
            differing = _differing(baseline, candidate, facts.absence_counts)
            for name, (first, then) in differing:
                unequal[name] = [f"{first} ({one[1]})", f"{then} ({other[1]})"]
                concerned[group] = None
                cells |= {label(one): None, label(other): None}
    if not unequal:
        return
    name = min(unequal)
    others = f", and {len(unequal) - 1} more differ" if len(unequal) > 1 else ""
    words = f"{name} {_and(unequal[name])}{others}"
    values = [f"{name} {_and(sides)}" for name, sides in sorted(unequal.items())]
    yield _unequal(
        view, facts.what, "warning", list(concerned), list(cells), words, values
    )


def _differing(
    one: Sequence[Mapping[str, str]],
    other: Sequence[Mapping[str, str]],
    absence_counts: bool,
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Names with one value in all of `one` and another in all of `other`, with the two."""
    names = sorted({name for known in (*one, *other) for name in known})
    for name in names:
        first, then = _one_value(one, name), _one_value(other, name)
        absent = ABSENT in (first, then) and not absence_counts
        if first is not None and then is not None and first != then and not absent:
            yield name, (first, then)


def _one_value(facts: Sequence[Mapping[str, str]], name: str) -> str | None:
    """The value that all runs share; None where they differ."""
    values = {known.get(name, ABSENT) for known in facts}
    return values.pop() if len(values) == 1 else None


def _packages(record: Record) -> Mapping[str, str]:
    """Packages but for sparkpub itself, whose version is a fact of its own: see `_collector`."""
    known = record.reproducibility
    if known is None:
        return {}
    return {
        name: version for name, version in known.packages.items() if name != "sparkpub"
    }


def _variables(record: Record) -> Mapping[str, str]:
    """Environment variables that the environment does not set itself; those that name places differ with every root
    file system."""
    return {
        name: value
        for name, value in _inherited(record).items()
        if not _STEERS.fullmatch(name)
    }


def _steering(record: Record) -> Mapping[str, str]:
    """Those that steer an engine or a library: one that is left over on one side is a difference."""
    return {
        name: value
        for name, value in _inherited(record).items()
        if _STEERS.fullmatch(name)
    }


def _inherited(record: Record) -> Mapping[str, str]:
    known = record.reproducibility
    if known is None:
        return {}
    declared = record.requested.environment.get("env") or {}
    return {
        name: value
        for name, value in known.variables.items()
        if "/" not in value and name not in declared
    }


def _settings(record: Record) -> Mapping[str, str]:
    """What the engine said of its settings."""
    settings = record.observed.settings.items()
    return {
        name: value for name, value in settings if not _OWN_TO_A_RUN.fullmatch(name)
    }


def _flags(record: Record) -> Mapping[str, str]:
    """The command line."""
    given = flag_values(record.argv)
    return {
        flag: value or "given" for flag, value in given.items() if not is_path(value)
    }


NAMED = (
    NamedFacts("software", _packages, pooled="warning"),
    NamedFacts("command line", _flags, absence_counts=True),
    NamedFacts("engine setting", _settings),
    NamedFacts("environment variable", _variables),
    NamedFacts("variable of the engine", _steering, absence_counts=True),
)
"""What is compared name by name."""


@dataclass(frozen=True)
class MeasuredCondition:
    """Something that was read of each run and should be the same on average: apart from `least` on, in its unit, or
    from that share of the mean where `relative`."""

    name: str
    unit: str
    read: Callable[[View, Stored], float | None]
    least: Threshold
    relative: bool = False
    of_resources: bool = False
    """Whether it follows from the processors that an environment is given."""


def _start(_view: View, stored: Stored) -> float | None:
    return stored.record.value("gpu_temp_start_celsius")


def _clock(view: View, stored: Stored) -> float | None:
    samples = view.evidence.of(stored).samples
    if samples is None:
        return stored.record.value("gpu_clock_sm_mean_mhz")
    return samples.clock_under_load_mhz


def _memory_clock(view: View, stored: Stored) -> float | None:
    samples = view.evidence.of(stored).samples
    return None if samples is None else samples.memory_clock_under_load_mhz


def _processors(view: View, stored: Stored) -> float | None:
    samples = view.evidence.of(stored).samples
    return None if samples is None else samples.cpu_percent


def _swapped(view: View, stored: Stored) -> float | None:
    samples = view.evidence.of(stored).samples
    return None if samples is None else samples.swap_used_gib


CONDITIONS = (
    MeasuredCondition("start temperature", "°C", _start, START_DIFFERENCE_CELSIUS),
    MeasuredCondition(
        "SM clock under load", "MHz", _clock, CLOCK_DIFFERENCE_SHARE, relative=True
    ),
    MeasuredCondition(
        "memory clock under load",
        "MHz",
        _memory_clock,
        CLOCK_DIFFERENCE_SHARE,
        relative=True,
    ),
    MeasuredCondition(
        "processor load",
        "%",
        _processors,
        PROCESSOR_DIFFERENCE_PERCENT,
        of_resources=True,
    ),
    MeasuredCondition("swap in use", "GiB", _swapped, SWAP_DIFFERENCE_GIB),
)


def _conditions(
    view: View, groups: Mapping[tuple[str, str], Mapping[Cell, Sequence[Stored]]]
) -> Iterator[Finding]:
    """Conditions whose means lie apart between environments, one finding per condition."""
    for condition in CONDITIONS:
        unequal: dict[tuple[str, str], str] = {}
        cells: list[str] = []
        for group, places in groups.items():
            for one, other in combinations(places, 2):
                words = _apart(view, condition, one, other)
                if words is not None:
                    unequal[group] = words
                    cells += [label(one), label(other)]
        if unequal:
            words_of = list(unequal.values())
            yield _unequal(
                view,
                condition.name,
                "warning",
                list(unequal),
                cells,
                words_of[0],
                words_of,
            )


def _apart(
    view: View, condition: MeasuredCondition, one: Cell, other: Cell
) -> str | None:
    """The means of a condition in two cells, in words, where they lie apart and nobody wanted them to."""
    if condition.of_resources and resources(view, one) != resources(view, other):
        return None
    first, then = _read(view, condition, one), _read(view, condition, other)
    if min(len(first), len(then)) < CONDITION_RUNS:
        return None
    least = float(condition.least)
    if condition.relative:
        least *= fmean(first)
    if not _lie_apart(first, then, least):
        return None
    unit = f"{condition.unit} on average in"
    return f"{fmean(first):.0f} {unit} {one[1]} and {fmean(then):.0f} {unit} {other[1]}"


def _read(view: View, condition: MeasuredCondition, cell: Cell) -> list[float]:
    values = [condition.read(view, run) for run in view.counted[cell]]
    return [value for value in values if value is not None]


def _lie_apart(one: Sequence[float], other: Sequence[float], least: float) -> bool:
    """Whether two means differ by more than `least` and by several standard errors."""
    difference = abs(fmean(one) - fmean(other))
    error = math.sqrt(variance(one) / len(one) + variance(other) / len(other))
    return difference > least and difference > CONDITION_SD * error


def differences(sessions: Sequence[Sequence[Record]]) -> list[str]:
    """The names of what several campaigns that repeat one another do not share, environment by environment: facts that
    would be an error within one of them, and versions of packages. What a campaign does not know is left out."""
    environments = {record.environment for runs in sessions for record in runs}
    found: dict[str, None] = {}
    for environment in sorted(environments):
        parts = [
            [record for record in runs if record.environment == environment]
            for runs in sessions
        ]
        for fact in FACTS:
            each = [_known(runs, fact.read) for runs in parts]
            if fact.pooled == "error" and not fact.own and not _alike(each):
                found[fact.name] = None
        for facts in NAMED:
            shared = _shared_names([_pairs(runs, facts) for runs in parts])
            if facts.pooled is not None and not _alike(shared):
                found[facts.what] = None
    return list(found)


def _known(runs: Sequence[Record], read: Read) -> set[str]:
    values = {read(record) for record in runs}
    return {str(value) for value in values if value is not None}


def _pairs(runs: Sequence[Record], facts: NamedFacts) -> set[tuple[str, str]]:
    return {pair for record in runs for pair in facts.read(record).items()}


def _shared_names(sessions: Sequence[set[tuple[str, str]]]) -> list[set[str]]:
    """What each session has of the names that all of them have."""
    names = [{name for name, _ in pairs} for pairs in sessions if pairs]
    shared = set.intersection(*names) if names else set()
    return [
        {f"{name} {value}" for name, value in pairs if name in shared}
        for pairs in sessions
    ]


def _alike(sessions: Sequence[set[str]]) -> bool:
    """Whether those that know something know the same."""
    known = [values for values in sessions if values]
    return all(values == known[0] for values in known)


def _distinct(runs: Sequence[Stored], read: Read) -> list[str]:
    return sorted(
        {str(value) for stored in runs if (value := read(stored.record)) is not None}
    )


def _and(values: Sequence[str]) -> str:
    """Up to four values, else the first and the last of them."""
    if len(values) > 4:
        return f"{values[0]} to {values[-1]} ({len(values)} values)"
    return " and ".join(values)


CHECKS = (
    Check(
        "mixed-machines",
        "meaning",
        ("error", "warning", "info"),
        "Same software in all runs of a cell, and whole blocks on each machine?",
        mixed_machines,
        implies=frozenset({"unequal-environments"}),
    ),
    Check(
        "unequal-environments",
        "meaning",
        ("error", "warning"),
        "Do compared environments differ in the environment only?",
        unequal_environments,
        thresholds=(
            *dict.fromkeys(condition.least for condition in CONDITIONS),
            CONDITION_SD,
        ),
    ),
)
