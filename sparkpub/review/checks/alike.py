"""Whether runs that are pooled, and environments that are compared, differ in nothing that they must share.

What they must share is a table of facts (`FACTS`); what was measured while they ran must be alike (`CONDITIONS`); and
of several machines each measures whole blocks, else what differs may be the machine.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.evidence import Reread
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.plan import is_path
from sparkpub.review.checks.rules import columns
from sparkpub.review.checks.view import View, in_words, listed
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics.estimate import Floats

CHANCE_ERRORS = 4.0
"""Standard errors by which means may be apart: they are further in less than 1 of 10,000 by chance."""
MIXED, UNEQUAL = "mixed-machines", "unequal-environments"
CONDITION_RUNS = 3
"""Runs on each side below which means say nothing."""
ABSENT = "absent"
"""Stands for a name that a run lacks."""
Sides = Mapping[str, Collection[str]]
"""The values of each run of a cell, or of each environment of a model and workload."""


class Seen(NamedTuple):
    """A run, and what its evidence says of it today: a record may be older than a setting."""

    record: Record
    answer: Reread | None = None


Groups = Mapping[str, Sequence[Seen]]
"""Runs that must share something with those of the other groups, by what the group is called."""


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
    read: Callable[[Seen], object]
    """One value, or names with values; None is not known."""
    own: bool = False
    """Whether every machine has one of its own, which is not held against another machine's."""
    is_whole: bool = False
    """Whether all names of a run are known, so that one which it lacks differs, too."""
    of_build: bool = False
    """Whether it tells builds apart: imported environments are builds, and compared as such."""

    def of(self, run: Seen) -> Mapping[str, str] | None:
        """The names and values of a run; None where nothing is known."""
        has = self.read(run)
        if has is None:
            return None
        named = has if isinstance(has, Mapping) else {self.what: has}
        return {name: str(value) for name, value in named.items() if value is not None}

    def apart(self, groups: Groups) -> Iterator[tuple[str, Sides]]:
        """The names of which groups have no value in common, each with the values of every group that knows some.

        What may differ from run to run, such as a seed, differs between groups only where the runs of each agree.
        """
        known = [
            (run.record.machine.id if self.own else None, group, named)
            for group, runs in groups.items()
            for run in runs
            if (named := self.of(run)) is not None
        ]
        for rows in grouped(known, itemgetter(0)).values():
            every = [named for *_, named in rows]
            if all(named == every[0] for named in every):
                continue  # the usual case, and names can be many
            for name in sorted({*chain(*every)}):
                sides: dict[str, set[str]] = defaultdict(set)
                for _, group, named in rows:
                    if self.is_whole or name in named:
                        sides[group].add(named.get(name, ABSENT))
                steady = [has for has in sides.values() if self.pooled or len(has) == 1]
                pairs = combinations(steady, 2)
                if any(one.isdisjoint(other) for one, other in pairs):
                    yield name, sides


def _of_gpus(run: Seen, field: str) -> str | None:
    """What each GPU of a run has of a kind, in a row; None where none is known."""
    has = [getattr(gpu, field) for gpu in run.record.machine.gpus]
    return ", ".join(str(each) for each in has if each is not None) or None


def _system(run: Seen) -> object:
    machine = run.record.machine
    return {
        "driver": machine.driver,
        "CUDA driver": machine.cuda_driver,
        "kernel": machine.kernel,
        "governor of the processors": machine.governor,
        "power limit in W": _of_gpus(run, "power_limit_watt"),
    }


def _limits(run: Seen) -> object:
    """Limits that somebody set. Those of an environment are its own doing, and still not like for like."""
    machine, asked = run.record.machine, run.record.requested.environment
    return {
        "power mode": machine.power_mode or "not set",
        "locked clock": machine.clocks_locked_mhz or "none",
        "memory": asked.get("memory") or "unlimited",
        "processors": asked.get("cpuset") or "unlimited",
    }


def _engine(run: Seen) -> object:
    seen = run.record.observed
    return {"version": seen.engine_version, "KV cache format": seen.kv_cache_dtype}


def _weights(run: Seen) -> object:
    """Formats, and digests of files. What no engine said anything of is not the same as weights in full precision."""
    seen, files = run.record.observed, run.record.requested.architecture
    sums = {
        "config.json": files and files.config_sha256,
        "files": files and files.weights_sha256,
        "configuration that was loaded": seen.config_sha256,
    }
    return {
        "number format": seen.dtype,
        "quantization": seen.engine and (seen.quantization or "none"),
    } | {name: digest and digest[:8] for name, digest in sums.items()}


def _collector(run: Seen) -> object:
    known = run.record.reproducibility
    commit = known and known.sparkpub_commit
    version = known and known.sparkpub_version
    return f"{version} ({commit})" if commit else version


def _packages(run: Seen) -> object:
    """Packages but for sparkpub itself, whose version is a fact of its own."""
    known = run.record.reproducibility
    if known is None or not known.packages:
        return None
    return {name: has for name, has in known.packages.items() if name != "sparkpub"}


def _gates(run: Seen) -> object:
    """The limits that a run had to meet before it started."""
    gates = run.record.gates
    return {gate.name: f"{gate.wanted} {gate.unit}".strip() for gate in gates} or None


def _flags(run: Seen) -> object:
    """Flag to the word that follows it."""
    found = {}
    for flag, word in pairwise([*run.record.argv, "--"]):
        if flag.startswith("--"):
            given = "a path" if is_path(word) else word
            found[flag] = "given" if word.startswith("--") else given
    return found


_OWN_TO_A_RUN = re.compile(r"server|.*_sha256|graph_reuse|latency")
"""Settings that are no settings: which server answered, digests of what was generated, what came of a run, and the
delay of a page that a client measured before it."""


def _settings(run: Seen) -> object:
    """What the engine said of its settings, in the record or, where that is older, in its log."""
    shown = {} if run.answer is None else run.answer.observed.settings
    said = shown | run.record.observed.settings
    return {
        name: value for name, value in said.items() if not _OWN_TO_A_RUN.fullmatch(name)
    }


_STEERS = re.compile(
    r"(?!.*(?:_VERSION|_ARCH_LIST|_HOME|_PATH|_DEVICES)$)(?:CUDA|NCCL|TORCH|PYTORCH|TRTLLM|TLLM|VLLM|SGLANG|GGML|LLAMA|OMP|"
    r"MKL|OPENBLAS|MALLOC|FLASHINFER|TRITON|CUBLAS|CUDNN)_.*|LD_PRELOAD"
)
"""Names of variables that change what is computed; the others say what an image was built of, and where."""


def _steering(run: Seen) -> object:
    """Variables that steer an engine or a library and that the environment does not set itself: one that is left over
    on one side is a difference. Those that name places differ with every root file system."""
    known = run.record.reproducibility
    if known is None or not known.variables:
        return None
    spared = run.record.requested.environment.get("env") or {}
    return {
        name: value
        for name, value in known.variables.items()
        if _STEERS.fullmatch(name) and "/" not in value and name not in spared
    }


def _warnings(run: Seen) -> object:
    """What the engine warned of before it was measured: a kernel that fell back on one side is a difference that no
    setting shows. None where no log is the engine's own."""
    if run.answer is None or run.answer.observed.engine_version is None:
        return None
    return {each.text: "given" for each in run.answer.warnings if not each.measured}


FACTS = (
    Trait("GPU", "error", "error", lambda run: _of_gpus(run, "name")),
    Trait(
        "GPU of a machine", "error", "error", lambda run: _of_gpus(run, "id"), own=True
    ),
    Trait("engine", "error", "warning", _engine, of_build=True),
    Trait(
        "container image",
        "error",
        None,
        lambda run: run.record.container and run.record.container.image_id,
    ),
    Trait("system", "warning", "warning", _system, own=True),
    Trait("limits", "warning", "warning", _limits),
    Trait("weights", "error", "error", _weights, of_build=True),
    Trait("collector version", "info", "warning", _collector),
    Trait("software", "warning", "warning", _packages),
    Trait("gate", "warning", "warning", _gates),
    Trait("command line", None, "warning", _flags, is_whole=True),
    Trait("engine setting", "warning", "warning", _settings, own=True, of_build=True),
    Trait(
        "variable of the engine",
        "warning",
        "warning",
        _steering,
        own=True,
        is_whole=True,
    ),
    Trait(
        "warning of the engine",
        None,
        "warning",
        _warnings,
        is_whole=True,
        of_build=True,
    ),
)
"""What is asked of every run, in the order of its weight: where runs are pooled, and where they are compared."""


def differences(sessions: Sequence[Sequence[Record]]) -> list[str]:
    """The names of what several campaigns that repeat one another do not share, environment by environment: facts that
    would be an error within one of them, and versions of packages. What a campaign does not know is left out."""
    found: dict[str, None] = {}
    for environment in sorted({run.environment for runs in sessions for run in runs}):
        groups: Groups = {
            str(number): [Seen(run) for run in runs if run.environment == environment]
            for number, runs in enumerate(sessions)
        }
        for fact in FACTS:
            is_asked = fact.pooled == "error" or fact.what == "software"
            if is_asked and not fact.own and any(fact.apart(groups)):
                found[fact.what] = None
    return list(found)


# -- conditions --------------------------------------------------------------------------------------------------


class Condition(NamedTuple):
    """Something that was measured of each run and should be the same on average in environments: not apart by `least`
    or by a share of it, and by several standard errors."""

    what: str
    unit: str
    column: str
    """Its name in `columns`."""
    least: float = 0.0
    share: float = 0.0

    def is_unlike(self, one: Floats, other: Floats) -> bool:
        """Whether the runs of two environments differ in it."""
        if min(len(one), len(other)) < CONDITION_RUNS:
            return False
        errors = [has.std(ddof=1) / math.sqrt(len(has)) for has in (one, other)]
        least = self.least + self.share * one.mean()
        apart = abs(one.mean() - other.mean())
        return bool(apart > max(least, CHANCE_ERRORS * math.hypot(*errors)))


CONDITIONS = (
    # A warmer GPU boosts less.
    Condition("start temperature", "°C", "gpu_temp_start_celsius", least=5.0),
    # What arithmetic bounds follows the SM clock, and decoding that of the memory.
    Condition("SM clock under load", "MHz", "clock", share=0.02),
    Condition("memory clock under load", "MHz", "memory_clock", share=0.02),
)


# -- checks ------------------------------------------------------------------------------------------------------


SideBySide = Mapping[str, Sequence[Stored]]
"""Runs in groups: each run of a cell, or the environments of a model and workload."""
Differing = list[tuple[SideBySide, str, Sides]]
"""Where something differs, in what by name, and the values."""


def mixed_machines(view: View) -> Iterator[Finding]:
    """Runs that are pooled, compared or ranked although their machines or their software differ, one finding per
    cause."""
    parts: Differing = []
    for place in _compared(view):
        sides = {
            side: {run.record.machine.id for run in runs if run.record.machine.id}
            for side, runs in place.items()
        }
        first, *others = sides.values()
        whole = bool(others) or view.reviewed.replicated or len(first) < 2
        if not whole or any(other != first for other in others):
            parts.append((place, "machine", sides))
    yield from _told(view, MIXED, "error", "machine", parts)
    pooled = [{run.run_id: [run] for run in runs} for runs in view.counted.values()]
    yield from _unlike(view, MIXED, pooled)


def unequal_environments(view: View) -> Iterator[Finding]:
    """Comparisons that are not only between environments: what else differs, one finding per cause."""
    several = [place for place in _compared(view) if len(place) > 1]
    yield from _unlike(view, UNEQUAL, several)
    ids = [run.run_id for run in view.happened]
    for condition in CONDITIONS:
        of_run = dict(zip(ids, columns(view)[condition.column], strict=True))
        cases: Differing = []
        for place in several:
            told = {
                side: np.array([of_run[run.run_id] for run in runs])
                for side, runs in place.items()
            }
            known = {side: has[~np.isnan(has)] for side, has in told.items()}
            if any(
                condition.is_unlike(*two) for two in combinations(known.values(), 2)
            ):
                means = {
                    side: [f"{has.mean():.0f} {condition.unit} on average"]
                    for side, has in known.items()
                    if len(has)
                }
                cases.append((place, condition.what, means))
        yield from _told(view, UNEQUAL, "warning", condition.what, cases)


def _compared(view: View) -> list[SideBySide]:
    """The runs of each model and workload, by environment."""
    counted = {cell: runs for cell, runs in view.counted.items() if runs}
    alike = grouped(counted, lambda cell: (cell[0], cell[2])).values()
    return [{cell[1]: counted[cell] for cell in cells} for cells in alike]


def _unlike(view: View, check: str, places: Iterable[SideBySide]) -> Iterator[Finding]:
    """A finding for each fact in which the groups of places differ."""
    seen: list[tuple[SideBySide, Groups]] = []
    for place in places:
        groups = {
            side: [Seen(run.record, view.evidence.of(run).answer) for run in runs]
            for side, runs in place.items()
        }
        seen.append((place, groups))
    for fact in FACTS:
        severity = fact.pooled if check == MIXED else fact.compared
        if severity is None or (
            check == UNEQUAL and fact.of_build and view.campaign.published
        ):
            continue
        cases = [
            (place, name, sides)
            for place, groups in seen
            for name, sides in fact.apart(groups)
        ]
        yield from _told(view, check, severity, fact.what, cases)


def _told(
    view: View, check: str, severity: Severity, what: str, cases: Differing
) -> Iterator[Finding]:
    """What differs in places, with its values: of all that is pooled together, or of each side; nothing where nothing
    does."""
    cells: dict[Cell, None] = {}
    lines: dict[str, None] = {}
    for place, name, sides in cases:
        values = sorted(set().union(*sides.values()))
        if check == UNEQUAL or what == "machine":
            values = [
                f"{listed(sorted(has), 'values')} ({side})"
                for side, has in sides.items()
            ]
        line = listed(values, "values")
        lines[line if name == what else f"{name} {line}"] = None
        cells |= {place[side][0].record.cell: None for side in sides}
    if not cases:
        return
    first, *others = lines
    words = f"{what}: {first}" + f", and {len(others)} more differ" * bool(others)
    text, runs = f"More than the environment differs in {in_words(cells)}: {words}.", []
    if check == MIXED:
        text = (
            f"Runs of {in_words(cells)} are averaged although they differ in {words}."
        )
        runs = list(chain(*(view.counted[cell] for cell in cells)))
    yield view.finding(
        check, severity, text, cells=cells, runs=runs, what=what, values=[*lines]
    )


CHECKS = (
    Check(
        MIXED,
        "Same software and conditions in all runs of a cell, and whole blocks on each machine?",
        ("error", "warning", "info"),
        mixed_machines,
        remedy="Quarantine the runs that are not as planned, and re-run them; or name them apart.",
        imported="Name the runs apart by what differs when you import them, or leave some out (sparkpub quarantine).",
    ),
    Check(
        UNEQUAL,
        "Do compared environments differ in the environment only?",
        ("error", "warning"),
        unequal_environments,
        remedy="Make the environments alike, and re-run; or say of the comparison that it includes the difference.",
        imported="Name the environments by all that differs, and read the comparison as of all of it.",
    ),
)
