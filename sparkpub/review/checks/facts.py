"""What runs must share to be pooled or compared: machine, software, settings. How to read it, and where runs differ."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, pairwise
from typing import NamedTuple

from sparkpub.record.record import Gpu, Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.evidence import Reread
from sparkpub.review.checks.finding import Severity
from sparkpub.review.checks.requested import SLOWING, flag_values, is_path
from sparkpub.review.grouping import grouped

ABSENT = "absent"
"""Stands for a name that a run lacks."""
Named = Mapping[str, str]
"""Name to value: packages with their versions, or one thing under its own name."""


class Seen(NamedTuple):
    """A run, and what its evidence says of it today: a record may be older than a setting."""

    record: Record
    answer: Reread | None = None


Groups = Mapping[str, Sequence[Seen]]
"""Runs that must share a fact with those of the other groups, by what the group is called."""


@dataclass(frozen=True)
class Common:
    """Something that runs must share.

    `pooled` and `compared` say how bad it is where the runs of one cell, or those of environments that are compared, do
    not: an error where the figures are of two things, a warning where they are open to doubt, a note where a reader
    should know, None where it is by design.
    """

    what: str
    pooled: Severity | None
    compared: Severity | None
    read: Callable[[Seen], Named | None]
    """None where nothing is known."""
    own: bool = False
    """Whether every machine has one of its own, so that it is asked of each machine by itself."""
    follows: str | None = None
    """The fact that explains this one: where both differ, the other is told."""
    absence_counts: bool = False
    """Whether a name that one side lacks is a difference between environments."""
    lacked: Severity | None = None
    """How bad it is where some runs of a cell lack a name."""


def _one(
    what: str,
    pooled: Severity | None,
    compared: Severity | None,
    read: Callable[[Record], object],
    *,
    own: bool = False,
    follows: str | None = None,
) -> Common:
    """A fact of one value, which a run may not know."""

    def named(seen: Seen) -> Named | None:
        value = read(seen.record)
        return None if value is None else {what: str(value)}

    return Common(what, pooled, compared, named, own, follows)


def _of_gpus(read: Callable[[Gpu], str | None]) -> Callable[[Record], str | None]:
    """What each GPU of a run has of a kind, in a row; None where none is known."""

    def joined(record: Record) -> str | None:
        known = [read(gpu) for gpu in record.machine.gpus]
        return ", ".join(each for each in known if each is not None) or None

    return joined


def _power_limit(gpu: Gpu) -> str | None:
    return None if gpu.power_limit_watt is None else f"{gpu.power_limit_watt:g} W"


def _on(switched: bool | None) -> str | None:
    if switched is None:
        return None
    return "on" if switched else "off"


def _collector(record: Record) -> str | None:
    known = record.reproducibility
    if known is None:
        return None
    if known.sparkpub_commit is None:
        return known.sparkpub_version
    return f"{known.sparkpub_version} ({known.sparkpub_commit})"


def _image(record: Record) -> str | None:
    return None if record.container is None else record.container.image_id


def _quantization(record: Record) -> str | None:
    """None where no engine said anything, which is not the same as weights in full precision."""
    if record.observed.engine is None:
        return None
    return record.observed.quantization or "none"


def _limits(record: Record) -> str:
    """Limits of memory and processors that the environment sets: its own doing, and still not like for like."""
    limits = []
    for name in ("memory", "cpuset"):
        value = record.requested.environment.get(name)
        if value not in (None, "unlimited"):
            limits.append(f"{name} {value}")
    return ", ".join(limits) or "none"


_STEERS = re.compile(
    r"(?!.*(?:_VERSION|_ARCH_LIST|_HOME|_PATH|_DEVICES)$)(?:CUDA|NCCL|TORCH|PYTORCH|TRTLLM|TLLM|VLLM|SGLANG|GGML|LLAMA|OMP|"
    r"MKL|OPENBLAS|MALLOC|FLASHINFER|TRITON|CUBLAS|CUDNN)_.*|LD_PRELOAD"
)
"""Names of variables that change what is computed; the others say what an image was built of, and where."""
_OWN_TO_A_RUN = re.compile(r"server|.*_sha256|graph_reuse|latency")
"""Settings that are no settings: which server answered, digests of what was generated, what came of a run, and the
delay of a page that a client measured before it."""


def _model_files(seen: Seen) -> Named | None:
    """The configuration in the model's folder, and the list of its weight files, as digests in short."""
    known = seen.record.requested.architecture
    if known is None:
        return None
    sums = {"config.json": known.config_sha256, "weights": known.weights_sha256}
    return {name: each[:8] for name, each in sums.items() if each is not None} or None


def _packages(seen: Seen) -> Named | None:
    """Packages but for sparkpub itself, whose version is a fact of its own: see `_collector`."""
    known = seen.record.reproducibility
    if known is None or not known.packages:
        return None
    return {name: has for name, has in known.packages.items() if name != "sparkpub"}


def _inherited(record: Record) -> Named | None:
    """Environment variables that the environment does not set itself; those that name places differ with every root
    file system."""
    known = record.reproducibility
    if known is None or not known.variables:
        return None
    declared = record.requested.environment.get("env") or {}
    return {
        name: value
        for name, value in known.variables.items()
        if "/" not in value and name not in declared
    }


def _steering(seen: Seen) -> Named | None:
    """Those that steer an engine or a library: one that is left over on one side is a difference."""
    given = _inherited(seen.record)
    if given is None:
        return None
    told = SLOWING if seen.record.plan.order != "as-published" else ()
    return {
        name: has
        for name, has in given.items()
        if _STEERS.fullmatch(name) and name not in told
    }


def _settings(seen: Seen) -> Named:
    """What the engine said of its settings."""
    today = {} if seen.answer is None else seen.answer.observed.settings
    said = (today | seen.record.observed.settings).items()
    return {name: value for name, value in said if not _OWN_TO_A_RUN.fullmatch(name)}


def _said_settings(seen: Seen) -> Named:
    """Those that the evidence shows. What whoever published a run declared of his recipe beside it is the environment
    itself, and no difference that comes on top."""
    settings = _settings(seen)
    if seen.record.plan.order != "as-published":
        return settings
    shown = {} if seen.answer is None else seen.answer.observed.settings
    return {name: value for name, value in settings.items() if name in shown}


def _flags(seen: Seen) -> Named:
    given = flag_values(seen.record.argv).items()
    return {
        flag: "a path" if is_path(value) else value or "given" for flag, value in given
    }


def _warnings(seen: Seen) -> Named | None:
    """What the engine warned of before it was measured: a kernel that fell back on one side is a difference that no
    setting shows. None where no log is the engine's own."""
    answer = seen.answer
    if answer is None or answer.observed.engine_version is None:
        return None
    texts = [warning.text for warning in answer.warnings if not warning.measured]
    return dict.fromkeys(texts, "given")


def _gates(seen: Seen) -> Named | None:
    """The limits that a run had to meet before it started."""
    gates = seen.record.gates
    return {gate.name: f"{gate.wanted} {gate.unit}".strip() for gate in gates} or None


MACHINE = "machine"
"""Whether machines measured the same is a question of its own, see `machines`; what follows from it is told there."""
SHARED = (
    _one("GPU", "error", "error", _of_gpus(lambda gpu: gpu.name), follows=MACHINE),
    _one("GPU id", "error", "error", _of_gpus(lambda gpu: gpu.id), own=True, follows="GPU"),
    _one("engine version", "error", "warning", lambda record: record.observed.engine_version),
    _one("container image", "error", None, _image),
    _one("driver", "warning", "warning", lambda record: record.machine.driver, own=True),
    _one("CUDA driver", "warning", "warning", lambda record: record.machine.cuda_driver, own=True, follows="driver"),
    _one("kernel", "warning", "warning", lambda record: record.machine.kernel, own=True),
    _one("power mode", "warning", "warning", lambda record: record.machine.power_mode or "not set"),
    _one("governor of the processors", "warning", "warning", lambda record: record.machine.governor, own=True),
    _one("power limit", "warning", "warning", _of_gpus(_power_limit), own=True),
    _one("MIG", "error", "error", _of_gpus(lambda gpu: _on(gpu.mig)), own=True),
    _one("locked clock", "warning", "warning", lambda record: record.machine.clocks_locked_mhz or "none"),
    _one("number format", "error", "error", lambda record: record.observed.dtype),
    _one("quantization", "error", "error", _quantization),
    _one("KV cache format", "error", "warning", lambda record: record.observed.kv_cache_dtype),
    _one("limits of memory and processors", "warning", "warning", _limits),
    _one("collector version", "info", "warning", _collector),
)  # fmt: skip
"""Facts of one value, in the order of their weight: where they are pooled, and where they are compared."""
SOFTWARE = Common("software", "warning", "warning", _packages, lacked="info")
NAMED = (
    Common("files of the model", "error", "error", _model_files),
    SOFTWARE,
    Common("gate", "warning", "warning", _gates),
    Common("command line", None, "warning", _flags, absence_counts=True),
    Common("engine setting", "warning", None, _settings, own=True),
    Common("engine setting", None, "warning", _said_settings, own=True),
    Common(
        "variable of the engine",
        "warning",
        "warning",
        _steering,
        own=True,
        absence_counts=True,
        lacked="warning",
    ),
    Common("warning of the engine", None, "warning", _warnings, absence_counts=True),
)
"""Facts of several names."""
FACTS = (*SHARED, *NAMED)
"""What is asked of every run."""


def machines_of(runs: Iterable[Stored]) -> tuple[str, ...]:
    """The machines that runs name, in alphabetical order."""
    return tuple(
        sorted({run.record.machine.id for run in runs if run.record.machine.id})
    )


def apart(fact: Common, groups: Groups) -> dict[str, dict[str, set[str]]]:
    """The names of which groups have no value in common, each with the values of every group that knows some.

    What may differ from run to run, such as a seed, differs between groups only where the runs of each agree. What
    every machine has of its own is held against the runs of the same machine.
    """
    found: dict[str, dict[str, set[str]]] = {}
    for part in _by_machine(groups) if fact.own else [groups]:
        known = {group: _known(fact, runs) for group, runs in part.items()}
        every = list(chain(*known.values()))
        if all(one == other for one, other in pairwise(every)):
            continue  # the usual case, and names can be many
        for name in sorted(set(chain(*every))):
            values = _values(name, known, alike=fact.pooled is None)
            if len(set().union(*values.values())) > 1 and _are_apart(values.values()):
                found[name] = found.get(name, {}) | values
    return found


def _known(fact: Common, runs: Sequence[Seen]) -> list[Named]:
    return [named for seen in runs if (named := fact.read(seen)) is not None]


def _values(
    name: str, known: Mapping[str, Sequence[Named]], *, alike: bool
) -> dict[str, set[str]]:
    """The values of each group that knows some; those of groups whose runs are `alike`, where only these count."""
    values = {
        group: {run.get(name, ABSENT) for run in runs} for group, runs in known.items()
    }
    most = 1 if alike else math.inf
    return {group: one for group, one in values.items() if 0 < len(one) <= most}


def _are_apart(values: Iterable[set[str]]) -> bool:
    return any(one.isdisjoint(other) for one, other in combinations(values, 2))


def _by_machine(groups: Groups) -> list[Groups]:
    """The same groups for each machine by itself; runs that name none together."""
    parts: dict[str | None, dict[str, list[Seen]]] = {}
    for group, runs in groups.items():
        for machine, of_it in grouped(
            runs, lambda seen: seen.record.machine.id
        ).items():
            parts.setdefault(machine, {})[group] = of_it
    return list(parts.values())


def differences(sessions: Sequence[Sequence[Record]]) -> list[str]:
    """The names of what several campaigns that repeat one another do not share, environment by environment: facts that
    would be an error within one of them, and versions of packages. What a campaign does not know is left out."""
    found: dict[str, None] = {}
    for environment in sorted({run.environment for runs in sessions for run in runs}):
        groups = {
            str(number): [Seen(run) for run in runs if run.environment == environment]
            for number, runs in enumerate(sessions)
        }
        for fact in (*SHARED, SOFTWARE):
            if fact.own or (fact.pooled != "error" and fact is not SOFTWARE):
                continue
            for values in apart(fact, groups).values():
                if ABSENT not in set().union(*values.values()):
                    found[fact.what] = None
    return list(found)
