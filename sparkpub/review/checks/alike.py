"""Whether runs that are pooled, and environments that are compared, differ in nothing that they must share.

What they must share is a table of facts (`FACTS`); what was measured while environments ran must be alike on average
(`CONDITIONS`); and of several machines each measures whole blocks, else what differs may be the machine.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, pairwise
from statistics import fmean, variance
from typing import NamedTuple

from sparkpub.record.record import Gpu, Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.evidence import Reread, while_measuring
from sparkpub.review.checks.finding import Finding, Severity, Threshold
from sparkpub.review.checks.plan import CHANCE_ERRORS, SLOWING, flag_values, is_path
from sparkpub.review.checks.view import View, about_cells, ids, label, listed
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell

START_DIFFERENCE_CELSIUS = Threshold(
    "start difference celsius",
    5.0,
    "Maximum difference between the mean start temperatures of environments: a warmer GPU boosts less.",
)
START_RANGE_CELSIUS = Threshold(
    "start range celsius",
    20.0,
    "Maximum difference between the start temperatures of a cell's runs: it was 12 at most in real campaigns.",
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
    "Maximum difference between the mean CPU loads of environments: more means another program.",
)
SWAP_DIFFERENCE_GIB = Threshold(
    "swap difference gib",
    0.5,
    "Maximum difference in swap use between environments: more means that one of them waited for the disk.",
)
MIXED, UNEQUAL = "mixed-machines", "unequal-environments"
CONDITION_RUNS = 3
"""Runs on each side below which means say nothing."""
ABSENT = "absent"
"""Stands for a name that a run lacks."""
_OF = " of machine "
"""Between the name of a fact and the machine that has one of its own: that of another has another name."""
MACHINE = "machine"
"""What explains other facts where it differs: whether machines measured the same is a question of its own."""
Named = Mapping[str, str]
"""Name to value: packages with their versions, or one thing under its own name."""
Within = tuple[str, ...]
"""A cell, or a model and a workload."""


class Seen(NamedTuple):
    """A run, and what its evidence says of it today: a record may be older than a setting."""

    record: Record
    answer: Reread | None = None


Groups = Mapping[str, Sequence[Seen]]
"""Runs that must share a fact with those of the other groups, by what the group is called."""


# -- facts -------------------------------------------------------------------------------------------------------


class Trait(NamedTuple):
    """Something that runs must share.

    `pooled` and `compared` say how bad it is where the runs of one cell, or those of environments that are compared, do
    not: an error where the figures are of two things, a warning where they are open to doubt, a note where a reader
    should know, None where it is by design.
    """

    what: str
    pooled: Severity | None
    compared: Severity | None
    read: Callable[[Record, Reread | None], object]
    """One value, or names with values; None where nothing is known."""
    own: bool = False
    """Whether every machine has one of its own, which is not held against another machine's."""
    follows: str = ""
    """The fact that explains this one: where both differ, the other is told."""
    absence_counts: bool = False
    """Whether a name that one side lacks is a difference between environments."""
    lacked: Severity | None = None
    """How bad it is where some runs of a cell lack a name."""

    def of(self, run: Seen) -> Named | None:
        """The names and values of a run; None where nothing is known."""
        has = self.read(*run)
        if has is None:
            return None
        named = has if isinstance(has, Mapping) else {self.what: str(has)}
        if self.own:
            machine = run.record.machine.id
            return {f"{name}{_OF}{machine}": value for name, value in named.items()}
        return named


def _of_gpus(read: Callable[[Gpu], str | None]) -> Callable[[Record, object], object]:
    """What each GPU of a run has of a kind, in a row; None where none is known."""

    def joined(record: Record, _: object) -> str | None:
        return ", ".join(filter(None, map(read, record.machine.gpus))) or None

    return joined


def _power_limit(gpu: Gpu) -> str | None:
    limit = gpu.power_limit_watt
    return None if limit is None else f"{limit:g} W"


def _quantization(record: Record, _: object) -> str | None:
    """None where no engine said anything, which is not the same as weights in full precision."""
    return record.observed.engine and (record.observed.quantization or "none")


def _limits(record: Record, _: object) -> str:
    """Limits of memory and processors that the environment sets: its own doing, and still not like for like."""
    asked = record.requested.environment
    limits = {name: asked.get(name) for name in ("memory", "cpuset")}
    set_here = [
        f"{name} {value}"
        for name, value in limits.items()
        if value not in (None, "unlimited")
    ]
    return ", ".join(set_here) or "none"


def _collector(record: Record, _: object) -> str | None:
    known = record.reproducibility
    if known is None:
        return None
    if known.sparkpub_commit is None:
        return known.sparkpub_version
    return f"{known.sparkpub_version} ({known.sparkpub_commit})"


def _model_files(record: Record, _: object) -> Named | None:
    """The configuration in the model's folder, and the list of its weight files, as digests in short."""
    known = record.requested.architecture
    if known is None:
        return None
    sums = {"config.json": known.config_sha256, "weights": known.weights_sha256}
    return {name: each[:8] for name, each in sums.items() if each is not None} or None


def _packages(record: Record, _: object) -> Named | None:
    """Packages but for sparkpub itself, whose version is a fact of its own."""
    known = record.reproducibility
    if known is None or not known.packages:
        return None
    return {name: has for name, has in known.packages.items() if name != "sparkpub"}


def _gates(record: Record, _: object) -> Named | None:
    """The limits that a run had to meet before it started."""
    gates = record.gates
    return {gate.name: f"{gate.wanted} {gate.unit}".strip() for gate in gates} or None


def _flags(record: Record, _: object) -> Named:
    given = flag_values(record.argv).items()
    return {flag: "a path" if is_path(has) else has or "given" for flag, has in given}


_OWN_TO_A_RUN = re.compile(r"server|.*_sha256|graph_reuse|latency")
"""Settings that are no settings: which server answered, digests of what was generated, what came of a run, and the
delay of a page that a client measured before it."""


def _settings(record: Record, answer: Reread | None) -> Named:
    """What the engine said of its settings. What whoever published a run declared of his recipe, and no evidence shows,
    is the environment itself, and no difference that comes on top."""
    shown = {} if answer is None else answer.observed.settings
    said = shown | record.observed.settings
    is_ours = record.plan.order != "as-published"
    return {
        name: value
        for name, value in said.items()
        if not _OWN_TO_A_RUN.fullmatch(name) and (is_ours or name in shown)
    }


_STEERS = re.compile(
    r"(?!.*(?:_VERSION|_ARCH_LIST|_HOME|_PATH|_DEVICES)$)(?:CUDA|NCCL|TORCH|PYTORCH|TRTLLM|TLLM|VLLM|SGLANG|GGML|LLAMA|OMP|"
    r"MKL|OPENBLAS|MALLOC|FLASHINFER|TRITON|CUBLAS|CUDNN)_.*|LD_PRELOAD"
)
"""Names of variables that change what is computed; the others say what an image was built of, and where."""


def _steering(record: Record, _: object) -> Named | None:
    """Variables that steer an engine or a library and that the environment does not set itself: one that is left over
    on one side is a difference. Those that name places differ with every root file system."""
    known = record.reproducibility
    if known is None or not known.variables:
        return None
    spared = {*(record.requested.environment.get("env") or {})}
    if record.plan.order != "as-published":
        spared |= SLOWING  # told by itself
    return {
        name: value
        for name, value in known.variables.items()
        if _STEERS.fullmatch(name) and "/" not in value and name not in spared
    }


def _warnings(_: Record, answer: Reread | None) -> Named | None:
    """What the engine warned of before it was measured: a kernel that fell back on one side is a difference that no
    setting shows. None where no log is the engine's own."""
    if answer is None or answer.observed.engine_version is None:
        return None
    texts = [warning.text for warning in answer.warnings if not warning.measured]
    return dict.fromkeys(texts, "given")


_SWITCHED = {True: "on", False: "off", None: None}
FACTS = (
    Trait("GPU", "error", "error", _of_gpus(lambda gpu: gpu.name), follows=MACHINE),
    Trait(
        "GPU id",
        "error",
        "error",
        _of_gpus(lambda gpu: gpu.id),
        own=True,
        follows="GPU",
    ),
    Trait(
        "engine version", "error", "warning", lambda run, _: run.observed.engine_version
    ),
    Trait(
        "container image",
        "error",
        None,
        lambda run, _: run.container and run.container.image_id,
    ),
    Trait("driver", "warning", "warning", lambda run, _: run.machine.driver, own=True),
    Trait(
        "CUDA driver",
        "warning",
        "warning",
        lambda run, _: run.machine.cuda_driver,
        own=True,
        follows="driver",
    ),
    Trait("kernel", "warning", "warning", lambda run, _: run.machine.kernel, own=True),
    Trait(
        "power mode",
        "warning",
        "warning",
        lambda run, _: run.machine.power_mode or "not set",
    ),
    Trait(
        "governor of the processors",
        "warning",
        "warning",
        lambda run, _: run.machine.governor,
        own=True,
    ),
    Trait("power limit", "warning", "warning", _of_gpus(_power_limit), own=True),
    Trait("MIG", "error", "error", _of_gpus(lambda gpu: _SWITCHED[gpu.mig]), own=True),
    Trait(
        "locked clock",
        "warning",
        "warning",
        lambda run, _: run.machine.clocks_locked_mhz or "none",
    ),
    Trait("number format", "error", "error", lambda run, _: run.observed.dtype),
    Trait("quantization", "error", "error", _quantization),
    Trait(
        "KV cache format",
        "error",
        "warning",
        lambda run, _: run.observed.kv_cache_dtype,
    ),
    Trait("limits of memory and processors", "warning", "warning", _limits),
    Trait("collector version", "info", "warning", _collector),
    Trait("files of the model", "error", "error", _model_files),
    Trait(
        "configuration that was loaded",
        "error",
        "error",
        lambda run, _: run.observed.config_sha256,
    ),
    Trait("software", "warning", "warning", _packages, lacked="info"),
    Trait("gate", "warning", "warning", _gates),
    Trait("command line", None, "warning", _flags, absence_counts=True),
    Trait("engine setting", "warning", "warning", _settings, own=True),
    Trait(
        "variable of the engine",
        "warning",
        "warning",
        _steering,
        own=True,
        absence_counts=True,
        lacked="warning",
    ),
    Trait("warning of the engine", None, "warning", _warnings, absence_counts=True),
)
"""What is asked of every run, in the order of its weight: where runs are pooled, and where they are compared."""
Sides = dict[str, set[str]]
"""The values of each run of a cell, or of each environment of a group."""


def apart(fact: Trait, groups: Groups, *, absence: bool = False) -> dict[str, Sides]:
    """The names of which groups have no value in common, each with the values of every group that knows some.

    What may differ from run to run, such as a seed, differs between groups only where the runs of each agree. Of a name
    that runs lack nothing is known, or with `absence` a value.
    """
    known = {
        group: [
            (named, f"{_OF}{run.record.machine.id}" if fact.own else "")
            for run in runs
            if (named := fact.of(run)) is not None
        ]
        for group, runs in groups.items()
    }
    every = [named for of_group in known.values() for named, _ in of_group]
    if all(one == other for one, other in pairwise(every)):
        return {}  # the usual case, and names can be many
    found: dict[str, Sides] = {}
    for name in sorted(set(chain(*every))):
        values = {
            group: {named.get(name, ABSENT) for named, of in runs if name.endswith(of)}
            for group, runs in known.items()
        }
        sides = {
            group: has
            for group, has in values.items()
            if has and (absence or ABSENT not in has) and (fact.pooled or len(has) == 1)
        }
        if any(one.isdisjoint(two) for one, two in combinations(sides.values(), 2)):
            found[name.partition(_OF)[0]] = sides
    return found


def differences(sessions: Sequence[Sequence[Record]]) -> list[str]:
    """The names of what several campaigns that repeat one another do not share, environment by environment: facts that
    would be an error within one of them, and versions of packages. What a campaign does not know is left out."""
    found: dict[str, None] = {}
    for environment in sorted({run.environment for runs in sessions for run in runs}):
        groups = {
            str(number): [Seen(run) for run in runs if run.environment == environment]
            for number, runs in enumerate(sessions)
        }
        for fact in FACTS:
            is_meant = fact.pooled == "error" or fact.what == "software"
            if is_meant and not fact.own and apart(fact, groups):
                found[fact.what] = None
    return list(found)


def _unlike(
    view: View,
    check: str,
    places: Mapping[Within, Mapping[str, Sequence[Stored]]],
    elsewhere: Collection[Within],
) -> Iterator[Finding]:
    """A finding for each fact in which the runs of a cell, or the environments of a model and workload, differ where no
    other fact explains it. `elsewhere` are those in which the machine differs, which is told by itself."""
    pooled = check == MIXED
    told: dict[str, Collection[Within]] = {MACHINE: elsewhere}
    seen = {
        place: {
            of: [Seen(run.record, view.evidence.of(run).answer) for run in runs]
            for of, runs in sides.items()
        }
        for place, sides in places.items()
    }
    for fact in FACTS:
        usual = fact.pooled if pooled else fact.compared
        absence = fact.lacked is not None if pooled else fact.absence_counts
        explained = told.get(fact.follows, ())
        found: dict[Severity, list[tuple[Within, str, Sides]]] = defaultdict(list)
        for place, groups in seen.items() if usual else ():
            if place in explained:
                continue
            for name, sides in apart(fact, groups, absence=absence).items():
                lacks = pooled and any(ABSENT in has for has in sides.values())
                if severity := fact.lacked if lacks else usual:
                    found[severity].append((place, name, sides))
        differ = {place for cases in found.values() for place, _, _ in cases}
        told[fact.what] = differ.union(explained)
        for severity, cases in found.items():
            yield _differing(view, check, severity, fact.what, cases)


def _differing(
    view: View,
    check: str,
    severity: Severity,
    what: str,
    cases: Iterable[tuple[Within, str, Sides]],
) -> Finding:
    """A fact that differs in places, with its values: of the runs of a cell together, else of each environment."""
    cells: dict[Cell, None] = {}
    lines: dict[str, None] = {}
    for (model, *place), name, sides in cases:
        values = [f"{few(sorted(has))} ({side})" for side, has in sides.items()]
        environments: Iterable[str] = sides
        if check == MIXED:
            values, environments = sorted(set().union(*sides.values())), place[:1]
        line = few(values)
        lines[line if name == what else f"{name} {line}"] = None
        for environment in environments:
            cells[model, environment, place[-1]] = None
    return _told(view, check, severity, cells, what, list(lines))


# -- conditions --------------------------------------------------------------------------------------------------


class Condition(NamedTuple):
    """Something that was measured of each run and should be the same on average in environments: apart from `least` on,
    in its unit, or of a clock in shares of the mean. `column` is that of the telemetry: its mean while the run was
    measured, or of a clock that under load. `metric` is that of the record, where there is no such column."""

    name: str
    unit: str
    least: Threshold
    column: str = ""
    metric: str = ""

    def of(self, view: View, runs: Iterable[Stored]) -> list[float]:
        """Its value in those runs of which it is known."""
        found: list[float | None] = []
        for run in runs:
            samples = view.evidence.of(run).samples
            if samples is None or not self.column:
                found.append(run.record.value(self.metric))
            elif self.unit == "MHz":
                found.append(samples.clock(self.column))
            else:
                values = while_measuring(run.record, samples, self.column)
                found.append(fmean(values) if values else None)
        return [value for value in found if value is not None]

    def parts(self, one: Sequence[float], other: Sequence[float]) -> bool:
        """Whether two means differ by more than may be, and by several standard errors."""
        if min(len(one), len(other)) < CONDITION_RUNS:
            return False
        least = self.least * (fmean(one) if self.unit == "MHz" else 1.0)
        error = math.sqrt(variance(one) / len(one) + variance(other) / len(other))
        return abs(fmean(one) - fmean(other)) > max(least, CHANCE_ERRORS * error)


START = Condition(
    "start temperature",
    "°C",
    START_DIFFERENCE_CELSIUS,
    metric="gpu_temp_start_celsius",
)
CONDITIONS = (
    START,
    Condition(
        "SM clock under load",
        "MHz",
        CLOCK_DIFFERENCE_SHARE,
        "gpu_clock_sm_mhz",
        "gpu_clock_sm_mean_mhz",
    ),
    Condition(
        "memory clock under load", "MHz", CLOCK_DIFFERENCE_SHARE, "gpu_clock_mem_mhz"
    ),
    Condition("processor load", "%", PROCESSOR_DIFFERENCE_PERCENT, "cpu_percent"),
    Condition("swap in use", "GiB", SWAP_DIFFERENCE_GIB, "swap_used_gib"),
)


def _started_apart(view: View) -> Iterator[Finding]:
    """Cells whose runs started further apart in temperature than repetitions of one measurement do."""
    ranges: dict[Cell, str] = {}
    for cell, runs in view.counted.items():
        for of_machine in grouped(runs, lambda run: run.record.machine.id).values():
            read = START.of(view, of_machine)
            if read and max(read) - min(read) > START_RANGE_CELSIUS:
                ranges[cell] = f"{min(read):.0f} to {max(read):.0f} °C"
    if ranges:
        yield _told(view, MIXED, "warning", ranges, START.name, list(ranges.values()))


def _unequal_condition(
    view: View, condition: Condition, compared: Iterable[Sequence[Cell]]
) -> Iterator[Finding]:
    """A condition whose means lie apart between environments."""
    words: list[str] = []
    cells: dict[Cell, None] = {}
    for pair in chain.from_iterable(combinations(sides, 2) for sides in compared):
        values = [condition.of(view, view.counted[cell]) for cell in pair]
        if condition.parts(*values):
            means = [
                f"{fmean(known):.0f} {condition.unit} on average in {cell[1]}"
                for known, cell in zip(values, pair, strict=True)
            ]
            words.append(" and ".join(means))
            cells |= dict.fromkeys(pair)
    if words:
        yield _told(view, UNEQUAL, "warning", cells, condition.name, words)


# -- machines ----------------------------------------------------------------------------------------------------


def machines_of(view: View, cells: Iterable[Cell]) -> tuple[str, ...]:
    """The machines that runs of cells name, in alphabetical order."""
    named = {
        run.record.machine.id or "" for cell in cells for run in view.counted[cell]
    }
    return tuple(sorted(named - {""}))


def _in_parts(view: View, cells: Sequence[Cell]) -> str:
    """Why what is compared in cells ran in parts on several machines; empty where each of them ran whole blocks."""
    if len(cells) == 1 and not view.reviewed.replicated:
        return "nobody planned to repeat it on each machine"
    for machine in machines_of(view, cells):
        there = [cell[1] for cell in cells if machine in machines_of(view, [cell])]
        if len(there) < len(cells):
            return f"on machine {machine} only {listed(there, 'environments')} ran"
    return ""


# -- checks ------------------------------------------------------------------------------------------------------


def _compared(view: View) -> dict[Within, list[Cell]]:
    """The cells with runs of each model and workload."""
    cells = [cell for cell, runs in view.counted.items() if runs]
    return grouped(cells, lambda cell: (cell[0], cell[2]))


def mixed_machines(view: View) -> Iterator[Finding]:
    """Runs that are pooled, compared or ranked although their machines or their software differ, one finding per
    cause."""
    parts: dict[Cell, str] = {}
    for cells in _compared(view).values():
        if len(machines_of(view, cells)) > 1 and (why := _in_parts(view, cells)):
            parts |= dict.fromkeys(cells, why)
    if parts:
        why = f"{few(machines_of(view, parts))} ({next(iter(parts.values()))})"
        yield _told(view, MIXED, "error", parts, MACHINE, [why])
    alone: dict[Within, dict[str, Sequence[Stored]]] = {
        cell: {run.run_id: [run] for run in runs} for cell, runs in view.counted.items()
    }
    yield from _unlike(view, MIXED, alone, parts)
    yield from _started_apart(view)


def unequal_environments(view: View) -> Iterator[Finding]:
    """Comparisons that are not only between environments: what else differs, one finding per cause."""
    groups = {
        group: cells for group, cells in _compared(view).items() if len(cells) > 1
    }
    elsewhere = [
        group
        for group, cells in groups.items()
        if len({machines_of(view, [cell]) for cell in cells}) > 1
    ]
    sides: dict[Within, dict[str, Sequence[Stored]]] = {
        group: {cell[1]: view.counted[cell] for cell in cells}
        for group, cells in groups.items()
    }
    yield from _unlike(view, UNEQUAL, sides, elsewhere)
    for condition in CONDITIONS:
        yield from _unequal_condition(view, condition, groups.values())


def few(values: Sequence[str]) -> str:
    """Up to four values, else the first and the last of them."""
    if len(values) > 4:
        return f"{values[0]} to {values[-1]} ({len(values)} values)"
    return " and ".join(values)


def _told(
    view: View,
    check: str,
    severity: Severity,
    cells: Iterable[Cell],
    what: str,
    lines: Sequence[str],
) -> Finding:
    evidence = about_cells(cells) | {"what": what, "values": list(lines)}
    words = lines[0] + (f", and {len(lines) - 1} more differ" if lines[1:] else "")
    if check == UNEQUAL:
        groups = dict.fromkeys(f"{model}/{workload}" for model, _, workload in cells)
        text = f"More than the environment differs in {listed(list(groups), 'comparisons')}: {what} {words}."
    else:
        names = listed([label(cell) for cell in cells], "cells")
        text = f"Runs of {names} are averaged although they differ in {what}: {words}."
        evidence["runs"] = [run for cell in cells for run in ids(view.counted[cell])]
    return view.finding(check, severity, text, **evidence)


CHECKS = (
    Check(
        MIXED,
        "meaning",
        ("error", "warning", "info"),
        "Same software and conditions in all runs of a cell, and whole blocks on each machine?",
        mixed_machines,
        thresholds=(START_RANGE_CELSIUS,),
        remedy="Quarantine the runs that are not as planned, and re-run them; or name them apart.",
        of_others="Name the runs apart when you import them, or leave some out (sparkpub quarantine).",
    ),
    Check(
        UNEQUAL,
        "meaning",
        ("error", "warning"),
        "Do compared environments differ in the environment only?",
        unequal_environments,
        thresholds=(
            *dict.fromkeys(condition.least for condition in CONDITIONS),
            CHANCE_ERRORS,
        ),
        remedy="Make the environments alike, and re-run; or say of the comparison that it includes the difference.",
        of_others="Name the environments by all that differs, and read the comparison as of all of it.",
    ),
)
