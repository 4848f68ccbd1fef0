"""What runs must share to be pooled or compared: machine, software, settings. How to read it, and where runs differ."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparkpub.record.record import Gpu, Record
from sparkpub.review.checks.finding import Severity
from sparkpub.review.checks.requested import flag_values, is_path
from sparkpub.review.checks.values import memory_gib

ABSENT = "not given"
"""Stands for a name that a run lacks."""
Values = Mapping[str, set[str]]
"""Name to the values that some runs have."""


@dataclass(frozen=True)
class Fact:
    """Something that runs must share, by name: packages with their versions, or one thing under its own name.

    `pooled` and `compared` say how bad it is where the runs of one cell, or those of environments that are compared, do
    not: an error where the figures are of two things, a warning where they are open to doubt, a note where a reader
    should know, None where it is by design.
    """

    what: str
    read: Callable[[Record], Mapping[str, str]]
    pooled: Severity | None
    compared: Severity | None
    own: bool = False
    """Whether every machine has one of its own, which whole blocks may differ in."""
    follows: str | None = None
    """The fact that explains this one: where both differ, the other is told."""
    absence_counts: bool = False
    """Whether a name that one environment lacks is a difference."""
    alike_in_each: bool = False
    """Whether it is a difference between environments only where all runs of each agree."""


def _one(
    what: str,
    read: Callable[[Record], object],
    pooled: Severity | None,
    compared: Severity | None,
    *,
    own: bool = False,
    follows: str | None = None,
) -> Fact:
    """A fact of one value, which a run may not know."""

    def named(record: Record) -> Mapping[str, str]:
        value = read(record)
        return {} if value is None else {what: str(value)}

    return Fact(what, named, pooled, compared, own, follows)


def _of_gpus(read: Callable[[Gpu], str | None]) -> Callable[[Record], str | None]:
    """What each GPU of a run has of a kind, in a row; None where none is known."""

    def joined(record: Record) -> str | None:
        known = [read(gpu) for gpu in record.machine.gpus]
        return ", ".join(each for each in known if each is not None) or None

    return joined


def _power_limit(gpu: Gpu) -> str | None:
    return None if gpu.power_limit_watt is None else f"{gpu.power_limit_watt:g} W"


_vbios = _of_gpus(lambda gpu: gpu.vbios)


def _firmware(record: Record) -> str | None:
    return _vbios(record) or record.machine.firmware


def _memory(record: Record) -> str | None:
    total = memory_gib(record)
    return None if total is None else f"{total:.0f} GiB"


def _collector(record: Record) -> str | None:
    known = record.reproducibility
    if known is None:
        return None
    if known.sparkpub_commit is None:
        return known.sparkpub_version
    return f"{known.sparkpub_version} ({known.sparkpub_commit})"


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
_OWN_TO_A_RUN = re.compile(r"server|.*_sha256|graph_reuse")
"""Settings that are no settings: which server answered, digests of what was generated, and what came of a run."""


def _packages(record: Record) -> Mapping[str, str]:
    """Packages but for sparkpub itself, whose version is a fact of its own: see `_collector`."""
    known = record.reproducibility
    if known is None:
        return {}
    packages = known.packages.items()
    return {name: version for name, version in packages if name != "sparkpub"}


def _inherited(record: Record) -> Mapping[str, str]:
    """Environment variables that the environment does not set itself; those that name places differ with every root
    file system."""
    known = record.reproducibility
    if known is None:
        return {}
    declared = record.requested.environment.get("env") or {}
    return {
        name: value
        for name, value in known.variables.items()
        if "/" not in value and name not in declared
    }


def _variables(record: Record) -> Mapping[str, str]:
    given = _inherited(record).items()
    return {name: value for name, value in given if not _STEERS.fullmatch(name)}


def _steering(record: Record) -> Mapping[str, str]:
    """Those that steer an engine or a library: one that is left over on one side is a difference."""
    given = _inherited(record).items()
    return {name: value for name, value in given if _STEERS.fullmatch(name)}


def _settings(record: Record) -> Mapping[str, str]:
    """What the engine said of its settings."""
    said = record.observed.settings.items()
    return {name: value for name, value in said if not _OWN_TO_A_RUN.fullmatch(name)}


def _flags(record: Record) -> Mapping[str, str]:
    given = flag_values(record.argv).items()
    return {flag: value or "given" for flag, value in given if not is_path(value)}


MACHINE = _one("machine", lambda record: record.machine.id, "error", "error", own=True)
SHARED = (
    MACHINE,
    _one("GPU", _of_gpus(lambda gpu: gpu.name), "error", "error", follows="machine"),
    _one(
        "GPU id",
        _of_gpus(lambda gpu: gpu.id),
        "error",
        "error",
        own=True,
        follows="GPU",
    ),
    _one("memory", _memory, "error", "error", follows="GPU"),
    _one(
        "engine version",
        lambda record: record.observed.engine_version,
        "error",
        "warning",
    ),
    _one("container image", _image, "error", None),
    _one(
        "driver", lambda record: record.machine.driver, "warning", "warning", own=True
    ),
    _one(
        "CUDA driver",
        lambda record: record.machine.cuda_driver,
        "warning",
        "warning",
        own=True,
        follows="driver",
    ),
    _one("firmware", _firmware, "warning", "warning", own=True, follows="GPU"),
    _one(
        "kernel", lambda record: record.machine.kernel, "warning", "warning", own=True
    ),
    _one(
        "number of processors",
        lambda record: record.machine.cpu_count,
        "warning",
        "warning",
        own=True,
    ),
    _one(
        "power mode",
        lambda record: record.machine.power_mode or "not set",
        "warning",
        "warning",
    ),
    _one("power limit", _of_gpus(_power_limit), "warning", "warning", own=True),
    _one(
        "locked clock",
        lambda record: record.machine.clocks_locked_mhz or "none",
        "warning",
        "warning",
    ),
    _one("number format", lambda record: record.observed.dtype, "error", "error"),
    _one("quantization", _quantization, "error", "error"),
    _one(
        "KV cache format",
        lambda record: record.observed.kv_cache_dtype,
        "error",
        "warning",
    ),
    _one("limits of memory and processors", _limits, "warning", "warning"),
    _one("collector version", _collector, "info", "warning"),
    _one("state of the collector's source", _modified, "info", "warning"),
)
"""Facts of one value, in the order of their weight."""
NAMED = (
    Fact("software", _packages, "warning", "warning", alike_in_each=True),
    Fact(
        "command line",
        _flags,
        None,
        "warning",
        absence_counts=True,
        alike_in_each=True,
    ),
    Fact("engine setting", _settings, None, "warning", alike_in_each=True),
    Fact("environment variable", _variables, None, "warning", alike_in_each=True),
    Fact(
        "variable of the engine",
        _steering,
        None,
        "warning",
        absence_counts=True,
        alike_in_each=True,
    ),
)
FACTS = (*SHARED, *NAMED)
"""What is asked of every run."""


def values(fact: Fact, runs: Sequence[Record]) -> Values:
    """Each name to the values that runs have of it, `ABSENT` among them where some lack it; runs of which nothing is
    known are left out."""
    known = [read for run in runs if (read := fact.read(run))]
    names = dict.fromkeys(name for one in known for name in one)
    return {name: {one.get(name, ABSENT) for one in known} for name in names}


def several(fact: Fact, runs: Sequence[Record]) -> Values:
    """The names of which runs have several values."""
    found = values(fact, runs).items()
    return {name: seen for name, seen in found if len(seen) > 1}


def apart(
    fact: Fact, one: Sequence[Record], other: Sequence[Record]
) -> Iterator[tuple[str, set[str], set[str]]]:
    """Names of which two environments have other values, with those of each."""
    first, then = values(fact, one), values(fact, other)
    for name in sorted(first.keys() | then.keys()):
        left, right = first.get(name, {ABSENT}), then.get(name, {ABSENT})
        if left == right:
            continue
        if ABSENT in left | right and not fact.absence_counts:
            continue
        if fact.alike_in_each and len(left) + len(right) > 2:
            continue
        yield name, left, right


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
            asked = fact.pooled == "error" or (fact in NAMED and fact.pooled)
            if asked and not fact.own and not _alike(fact, parts):
                found[fact.what] = None
    return list(found)


def _alike(fact: Fact, sessions: Sequence[Sequence[Record]]) -> bool:
    """Whether the sessions that know something have the same values of every name that all of them know."""
    each = [known for runs in sessions if (known := values(fact, runs))]
    shared = set.intersection(*(set(known) for known in each)) if each else set()
    kept: dict[str, list[set[str]]] = defaultdict(list)
    for known in each:
        for name in shared:
            kept[name].append(known[name] - {ABSENT})
    return all(seen == kinds[0] for kinds in kept.values() for seen in kinds)
