"""Whether the figures can be: units and ranges, absent metrics, reports that contradict themselves."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from sparkpub.record.metrics import Metric
from sparkpub.record.record import Gpu, Record, metric_of
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.integrity import damaged
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import Case, View

CARD_LIMIT_SHARE = Threshold(
    "card limit share",
    1.1,
    "Maximum mean power or clock of a phase, as a multiple of the GPU's limit.",
)
_CARD_LIMITS: Mapping[str, Callable[[Gpu], float | None]] = {
    "W": lambda gpu: gpu.power_limit_watt,
    "MHz": lambda gpu: gpu.clock_max_sm_mhz,
}
_NEVER_ZERO = frozenset({"tok/s", "req/s", "GFLOP/s", "B/token"})


def unit(view: View) -> Iterator[Finding]:
    """Figures outside what is physically possible, whatever their unit says."""
    yield from damaged(view.campaign.name, view.damage, units=True)
    impossible: dict[str, list[Case]] = defaultdict(list)
    for stored in view.happened:
        record = stored.record
        for name, value in record.metrics.items():
            metric = metric_of(name, value)
            problem = (
                None
                if value.value is None
                else _impossible(metric, value.value, record)
            )
            if problem is not None:
                impossible[name].append(
                    (stored, f"{metric.format(value.value)}, and {problem}")
                )
    for name, cases in impossible.items():
        metric = view.metrics[name]
        yield from view.cases(
            "unit",
            "error",
            cases,
            f"cannot have the recorded {metric.label}",
            metric=name,
            unit=metric.unit,
        )


def _impossible(metric: Metric, value: float, record: Record) -> str | None:
    if value <= 0 and metric.unit in _NEVER_ZERO:
        return (
            "a successful run has a value above zero, and an unavailable value is null"
        )
    if metric.unit in _CARD_LIMITS:
        return _beyond_the_card(metric, value, record)
    if metric.memory_of is None:
        return None
    total = (
        record.machine.memory_total_gib
        if metric.memory_of == "host"
        else memory_gib(record)
    )
    if total is not None and value > total:
        return f"the machine has {total:.2f} GiB; GB and GiB may have been mixed"
    return None


def _beyond_the_card(metric: Metric, value: float, record: Record) -> str | None:
    """Power and clock of a GPU against the limits that its driver gave."""
    if not metric.name.startswith("gpu_"):
        return None
    read = _CARD_LIMITS[metric.unit]
    limits = [limit for gpu in record.machine.gpus if (limit := read(gpu)) is not None]
    if not limits or value <= CARD_LIMIT_SHARE * max(limits):
        return None
    return f"the limit of the GPU is {max(limits):g} {metric.unit}"


def memory_gib(record: Record) -> float | None:
    """The memory that the GPU can use, in GiB, as the run or its machine said it; None where nothing did."""
    if record.observed.device_total_gib is not None:
        return record.observed.device_total_gib
    machine = record.machine
    known = [
        gpu.memory_total_gib for gpu in machine.gpus if gpu.memory_total_gib is not None
    ]
    if machine.unified_memory or record.observed.device == "cpu":
        return machine.memory_total_gib
    return sum(known) if known else None


CHECKS = (
    Check(
        "unit",
        "meaning",
        ("error",),
        "Is every figure physically possible?",
        unit,
        thresholds=(CARD_LIMIT_SHARE,),
        remedy="Check the unit in the mapping or in the tool's report, and import again.",
    ),
)
