"""Checks of single runs at their limits: where one breaks, a good run is accused or a bad one passes.

That each fault is found at all is shown by the table of faults; here is what just passes, and what is spared.
"""

from typing import Any

import numpy as np
import pytest

from sparkpub.record import telemetry
from sparkpub.record.campaign import Acknowledgement
from sparkpub.record.record import (
    Container,
    Event,
    Gate,
    Gpu,
    Machine,
    Memory,
    MemoryLedger,
    MetricValue,
    Observed,
    Phase,
    Plan,
    Reading,
    Spread,
)
from sparkpub.review.checks import CHECKS
from sparkpub.review.checks.acknowledging import covers
from sparkpub.review.checks.conditions import POWER_CAP, PRESSURES
from sparkpub.review.checks.evidence import Warned
from sparkpub.review.checks.view import View
from tests.review.checks.in_memory import (
    a_run,
    a_view,
    answered,
    quiet,
    sampled,
    told,
    with_metrics,
)

TPUT, PROMPTS = "output_throughput_tok_s", "prompt_throughput_tok_s"
REQUESTS, FAILED = "request_throughput_req_s", "failed_requests_percent"
ALONE = {"input_tokens": 500, "concurrency": 1}
GPU = Gpu(name="GPU", clock_max_sm_mhz=1000.0)
WITH_GPU = Machine(gpus=(GPU,))
LOCKED = Machine(gpus=(GPU,), clocks_locked_mhz=600.0)
CARD = Machine(gpus=(Gpu(name="G", power_limit_watt=100.0, memory_total_gib=80.0),))
SPARK = Machine(kind="dgx-spark")
"""It slows down from 91 °C on, by the catalogue, and its SM clock is 3,003 MHz at most."""
PUBLISHED = Plan(position=0, order="as-published")


def gate(name: str, wanted: Any, *, met: bool | None, read: Any = None) -> Gate:
    readings = () if read is None else (Reading(at_seconds=0.0, value=read),)
    return Gate(
        name=name, wanted=wanted, met=met, waited_seconds=0.0, readings=readings
    )


def gates(*given: Any, **fields: Any) -> dict[str, Any]:
    return {"gates": (gate(*given, **fields),)}


def event(kind: Any, text: str) -> dict[str, Any]:
    return {"events": (Event(at_seconds=1.0, kind=kind, text=text),)}


def said(check: Any, view: View, words: str | None) -> None:
    """The check says `words` of the run, or nothing where they are None."""
    found = told(check, view)
    assert len(found) == (words is not None), found
    assert all((words or "") in line for line in found)


# -- conditions --------------------------------------------------------------------------------------------------


def heat(slowed: int, reason: int = 0x20) -> dict[str, Any]:
    """A hundred samples, so many of which are slowed."""
    reasons = [reason] * slowed + [0] * (100 - slowed)
    return {"times": range(100), "gpu_throttle_reasons": reasons}


def hot(celsius: float, mhz: float) -> dict[str, Any]:
    return {"gpu_temp_celsius": celsius, "gpu_clock_sm_mhz": mhz}


def clock(mhz: float) -> dict[str, Any]:
    return {"gpu_clock_sm_mhz": mhz, "gpu_throttle_reasons": POWER_CAP}


def silent(until: float, every: float = 1.0) -> dict[str, Any]:
    """Samples up to second 95, none of them between the third second and this one."""
    before = np.arange(0, 3 + every / 2, every).round(6)
    after = np.arange(until, 95.05, every).round(6)
    return {"times": [*before.tolist(), *after.tolist()]}


def part(**fields: Any) -> dict[str, Any]:
    return {"machine": Machine(gpus=(Gpu(name="G", **fields),))}


def waiting(what: str, percent: float, busy: float) -> dict[str, Any]:
    return {PRESSURES[what]: percent, "cpu_percent": busy}


MEASURED = {"phases": (Phase(name="measure", start_seconds=10.0, end_seconds=20.0),)}
APART = (*range(10), *range(21, 40))
"""Seconds outside of it."""
TEMP, FREE = "max_start_temp_celsius", "min_free_memory_percent"
MIG = {"env": {"CUDA_VISIBLE_DEVICES": "MIG-6b8c1c1e-0d3c"}}
KILLED = Container(engine="e", image="i", image_id="d", oom_killed=True)


@pytest.mark.parametrize(
    ("check", "run", "columns", "words"),
    [
        ("thermal-gate", gates(TEMP, 45.0, met=True, read=45.0), {}, None),
        ("thermal-gate", gates(TEMP, 45.0, met=True, read=45.1), {}, "wanted 45.0 and read 45.1"),
        ("thermal-gate", gates(TEMP, 45.0, met=None, read=50.0), {}, None),
        ("thermal-gate", gates("max_cpu_percent", 10.0, met=False, read=99.0), {}, None),
        # More than one sample in a hundred; a clock that the power limit lowers is as it should be.
        ("throttled", {}, heat(1), None),
        ("throttled", {}, heat(2), "2 % of the samples under load"),
        ("throttled", {}, heat(90, POWER_CAP), None),
        ("throttled", {}, {"gpu_throttle_reasons": None}, None),
        ("throttled", event("throttle", "hot"), {}, "0 % of the samples under load: hot"),
        ("throttled", event("throttle", telemetry.THROTTLES[POWER_CAP]), {}, None),
        # Two thirds of 3,003 MHz are 2,002.
        ("throttled", {"machine": SPARK}, hot(91, 2001), "2001 of 3003 MHz at 91 °C"),
        ("throttled", {"machine": SPARK}, hot(91, 2003), None),
        ("throttled", {"machine": SPARK}, hot(90, 850), None),
        ("throttled", part(power_limit_watt=699.9, power_default_watt=700.0), {}, None),
        ("throttled", part(power_limit_watt=690.0, power_default_watt=700.0), {}, "690 W of 700 W"),
        ("throttled", part(power_limit_watt=400.0), {}, None),
        ("throttled", part(mig=True) | {"asked_of": MIG}, {}, None),
        ("slow-clock", {"machine": WITH_GPU}, clock(500.0), None),
        ("slow-clock", {"machine": WITH_GPU}, clock(499.0), "499 MHz under load, of 1000 MHz"),
        ("slow-clock", {"machine": LOCKED}, clock(300.0), None),
        ("slow-clock", {"machine": LOCKED}, clock(299.0), "of 600 MHz"),
        ("slow-clock", {}, clock(499.0), None),
        ("slow-clock", {"machine": SPARK}, hot(92, 850), None),
        ("slow-clock", {"machine": WITH_GPU} | event("slow-clock", "stuck at 611"), clock(900.0), "stuck at 611"),
        # Nothing holds the clock by the driver's word: somebody locked it.
        ("slow-clock", {"machine": WITH_GPU}, {"gpu_clock_sm_mhz": 700.0}, None),
        ("slow-clock", {"machine": WITH_GPU}, {"gpu_clock_sm_mhz": 699.0}, "699 MHz"),
        # 95 % of 3,201 MHz are 3,041.
        ("slow-clock", {"machine": Machine(kind="h200")}, {"gpu_clock_mem_mhz": 3041.0}, None),
        ("slow-clock", {"machine": Machine(kind="h200")}, {"gpu_clock_mem_mhz": 3040.0}, "3040 MHz of the memory"),
        ("foreign-load", {}, {"gpu_foreign_processes": None}, None),
        ("foreign-load", event("foreign-process", "a game"), {"gpu_foreign_processes": 2}, "a game; the GPU was"),
        ("foreign-load", gates("exclusive_gpu", True, met=False), {}, "exclusive gpu wanted"),
        ("foreign-load", gates(FREE, 90.0, met=True, read=90.0), {}, None),
        ("foreign-load", gates(FREE, 90.0, met=True, read=89.9), {}, "wanted 90.0 and read 89.9"),
        ("foreign-load", gates(TEMP, 45.0, met=False), {}, None),
        ("foreign-load", {}, waiting("the disk", 21.0, 12.0), "waited for the disk in 21 %"),
        ("foreign-load", {}, waiting("the disk", 20.0, 12.0), None),
        # Tasks wait although seven of eight processors are idle: something keeps them from these.
        ("foreign-load", {}, waiting("processors", 55.0, 12.0), "waited for processors in 55 %"),
        ("foreign-load", {"asked_of": {"cpuset": "0-1"}}, waiting("processors", 55.0, 12.0), None),
        # An engine that computes on all processors waits for itself.
        ("foreign-load", {}, waiting("processors", 55.0, 41.0), None),
        ("kernel-warning", {"container": KILLED}, {}, "killed for lack of memory"),
        ("kernel-warning", {"container": KILLED} | event("oom", "one"), {}, ": 2 messages, the first: one."),
        ("kernel-warning", event("throttle", "hot"), {}, None),
        ("telemetry-gap", {"duration_seconds": 95.0}, silent(8), None),
        ("telemetry-gap", {"duration_seconds": 95.0}, silent(8.1), "5.1 s from second 3 on, with one sample every 1 s"),
        ("telemetry-gap", {"duration_seconds": 95.0}, silent(5, every=0.1), None),
        ("telemetry-gap", {"duration_seconds": 95.0}, silent(5.1, every=0.1), "2.1 s from second 3 on"),
        ("telemetry-gap", {"duration_seconds": 100.5}, {"times": range(96)}, "5.5 s from second 95 on"),
        ("telemetry-gap", {}, {"times": range(96)}, None),
        ("telemetry-gap", {"duration_seconds": 2.1}, {"times": ()}, "2.1 s from second 0 on"),
        ("foreign-telemetry", {"duration_seconds": 95.0}, {"times": range(216)}, None),
        ("foreign-telemetry", {"duration_seconds": 95.0}, {"times": range(217)}, "it continues to second 216"),
        ("foreign-telemetry", MEASURED, {"times": APART}, "no sample lies within the measured phase"),
        ("foreign-telemetry", MEASURED, {"times": (*APART, 20)}, None),
        ("foreign-telemetry", MEASURED, {"times": (-5, 0, 5, 9.9, 20.1, 25, 30)}, None),
        ("foreign-telemetry", MEASURED, {"gpu_utilization_percent": 4.9}, "the GPU was at rest"),
        ("foreign-telemetry", MEASURED, {"gpu_utilization_percent": 5.0}, None),
        # Utilisation is known from five samples in the phase on.
        ("foreign-telemetry", MEASURED, {"times": (*APART, *range(10, 14)), "gpu_utilization_percent": 0.0}, None),
    ],
)  # fmt: skip
def test_a_condition_is_told_from_its_limit_on(
    check: str, run: dict[str, Any], columns: dict[str, Any], words: str | None
) -> None:
    said(check, a_view(a_run(**run), samples=quiet(**columns)), words)


@pytest.mark.parametrize(
    ("check", "metric", "unit", "value", "machine", "words"),
    [
        ("thermal-gate", "gpu_temp_start_celsius", "°C", 45.0, Machine(), None),
        ("thermal-gate", "gpu_temp_start_celsius", "°C", 45.5, Machine(), "46 °C, and 45 °C is the limit"),
        ("slow-clock", "gpu_clock_sm_mean_mhz", "MHz", 500.0, WITH_GPU, None),
        ("slow-clock", "gpu_clock_sm_mean_mhz", "MHz", 499.0, WITH_GPU, "499 MHz under load"),
        ("telemetry-gap", "gpu_power_mean_watt", "W", 100.0, Machine(), "its samples are gone: Mean GPU power"),
        ("telemetry-gap", "gpu_power_mean_watt", "W", None, Machine(), None),
    ],
)  # fmt: skip
def test_without_samples_the_recorded_figure_counts(
    check: str,
    metric: str,
    unit: str,
    value: float | None,
    machine: Machine,
    words: str | None,
) -> None:
    reason = {} if value is not None else {"reason": "no sensor"}
    metrics = sampled(metric, value, unit, **reason)
    said(check, a_view(with_metrics(metrics, machine=machine)), words)


def test_a_part_of_a_gpu_on_one_side_is_told_as_a_difference() -> None:
    slices = [Machine(id="m1", gpus=(Gpu(name="G", mig=mig),)) for mig in (False, True)]
    runs = [
        a_run(machine=machine, environment=name)
        for machine, name in zip(slices, ("native", "kept"), strict=True)
    ]
    view = a_view(*runs, samples=quiet())
    said("throttled", view, None)
    said("unequal-environments", view, "MIG off (native) and on (kept)")


@pytest.mark.parametrize(
    ("used", "fields", "words"),
    [
        ((1.0, 1.0, 1.0, 1.25), {}, None),
        ((1.0, 1.0, 1.0, 1.26), {}, "1.26 GiB were in use before it, and 1.00 GiB usually are"),
        ((1.0, 9.0), {"machine": CARD.model_copy(update={"unified_memory": True})}, None),
        # A twentieth of 80 GiB is 4.
        ((4.0, 4.0), {}, None),
        ((4.1, 4.1), {}, "4.10 of 80 GiB were in use before it"),
        # The runs of a server, and those that others published, are no strangers to what was there.
        ((50.0, 50.0), {"observed": Observed(settings={"server": "1"})}, None),
        ((50.0, 50.0), {"plan": PUBLISHED}, None),
    ],
)  # fmt: skip
def test_memory_before_a_run_belongs_to_somebody(
    used: tuple[float, ...], fields: dict[str, Any], words: str | None
) -> None:
    runs = [
        a_run(
            {"device_used_before_gib": gib},
            iteration=place,
            **({"machine": CARD} | fields),
        )
        for place, gib in enumerate(used, 1)
    ]
    said("foreign-load", a_view(*runs), words)


def test_memory_before_a_run_is_read_from_samples_then_ledger_then_tool() -> None:
    def ledger(gpu_used: float | None) -> MemoryLedger:
        names = ("total", "free", "available", "cached", "shmem", "swap_used")
        memory = Memory(gpu_used_gib=gpu_used, **{f"{name}_gib": 9.0 for name in names})
        return MemoryLedger(baseline=memory, peak=memory)

    tool = {"device_used_before_gib": 7.0}
    run = a_run(tool, machine=CARD, memory=ledger(6.0))
    view = a_view(run, samples=quiet(gpu_memory_used_gib=5.0))
    said("foreign-load", view, "5.00 of 80")
    said("foreign-load", a_view(run, samples=quiet()), "6.00 of 80")
    bare = a_run(tool, machine=CARD, memory=ledger(None))
    said("foreign-load", a_view(bare), "7.00 of 80")
    (found,) = CHECKS["foreign-load"].run(a_view(bare))  # type: ignore[misc]
    assert covers(Acknowledgement(check="foreign-tenant", reason="a desktop"), found)


@pytest.mark.parametrize(
    ("source", "given", "words"),
    [
        ("sampler", (100.1,), None),
        ("sampler", (100.2,), "gpu_power_mean_watt = 100, but the samples give 100.2"),
        ("sampler", (50.0, 100.0), None),
        ("log", (7.0,), None),
    ],
)
def test_recorded_figures_of_the_sampler_are_in_its_samples(
    source: str, given: tuple[float, ...], words: str | None
) -> None:
    run = with_metrics(sampled("gpu_power_mean_watt", 100.0, "W", source=source))
    samples = quiet(metrics={"gpu_power_mean_watt": given})
    said("foreign-telemetry", a_view(run, samples=samples), words)


# -- what server and client said ---------------------------------------------------------------------------------

JIT = "Triton kernel JIT compilation during inference: _compute_slot_mapping_kernel"
PREEMPTED = "Request … is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space"


@pytest.mark.parametrize(
    ("warnings", "words"),
    [
        ([Warned(JIT, measured=False)], []),
        ([Warned("Found ulimit of … and failed to automatically increase", measured=True)], []),
        ([Warned(JIT, measured=True), Warned(f"{JIT}_2", measured=True)], [f"2 warnings, the first: {JIT}"]),
        (
            [Warned(JIT, measured=True), Warned(PREEMPTED, measured=True)],
            ["took requests out of its batch", "compiled kernels"],
        ),
        ([Warned("the worker died", measured=True, is_error=True)], ["reported errors while it was measured"]),
    ],
)  # fmt: skip
def test_what_the_engine_warns_of_while_it_is_measured_is_told_by_its_cause(
    warnings: list[Warned], words: list[str]
) -> None:
    view = a_view(a_run(), answer=answered(warnings=tuple(warnings)))
    found = told("engine-warning", view)
    assert len(found) == len(words)
    for line, expected in zip(found, words, strict=True):
        assert expected in line


@pytest.mark.parametrize(
    ("percent", "words"), [(0.0, None), (0.99, "info: "), (1.0, "warning: ")]
)
def test_failed_requests_are_a_note_and_from_one_percent_a_warning(
    percent: float, words: str | None
) -> None:
    said("failed-requests", a_view(a_run({FAILED: percent})), words)
    # A record that is older than the metric has it in its report.
    older = a_view(a_run(), answer=answered(values={FAILED: percent}))
    said("failed-requests", older, words)


@pytest.mark.parametrize(
    ("asked", "hits", "words"),
    [
        ({}, 25.0, None),
        ({}, 25.1, "found its prompts in the server's prefix cache"),
        ({"prefix_caching": True}, 90.0, None),
        # A warm-up of 24 requests that repeat the first of 75 gives hits in a quarter of 100.
        ({"warmup": 24, "requests": 75}, 50.0, None),
        ({"warmup": 24, "requests": 75}, 50.1, "50.1 % of their tokens"),
    ],
)
def test_prompts_come_from_a_cache_beyond_the_client_s_own_warm_up(
    asked: dict[str, Any], hits: float, words: str | None
) -> None:
    run = a_run({"prefix_cache_hit_percent": hits}, workload=asked)
    said("prefix-cache", a_view(run), words)


@pytest.mark.parametrize(
    ("series", "asked", "slowest", "words"),
    [
        ((15.0, 10.0, 10.0), {}, 0.0, None),
        ((15.1, 10.0, 10.0), {}, 0.0, "15.1 ms, while the others take 10.0 ms"),
        ((50.0, 10.0), {}, 0.0, None),
        ((), {"warmup": 0}, 501.0, "TTFT is 100 ms at the median and 501 ms at P99"),
        ((), {"warmup": 0}, 499.0, None),
        ((), {"warmup": 8}, 501.0, None),
        # The last of 16 prompts that came together waits for all of them, and the median one for its own at least.
        ((), {"warmup": 0, "concurrency": 16}, 1599.0, None),
        ((), {"warmup": 0, "concurrency": 16}, 1601.0, "1601 ms"),
        ((), {"warmup": 0, "request_rate": 2.0}, 1601.0, None),
    ],
)
def test_a_first_batch_or_a_slowest_request_shows_a_cold_start(
    series: tuple[float, ...], asked: dict[str, Any], slowest: float, words: str | None
) -> None:
    run = a_run({"ttft_p50_ms": 100.0, "ttft_p99_ms": slowest}, workload=asked)
    said("warmed-up", a_view(run, answer=answered(series=series)), words)


def spread(repetitions: int | None, deviation: float, divisor: Any = "n") -> Spread:
    return Spread(repetitions=repetitions, deviation=deviation, divisor=divisor)


@pytest.mark.parametrize(
    ("metric", "asked", "several", "words"),
    [
        # 0.32 x sqrt(3 / 2) is 0.392, and 0.33 gives 0.404.
        (TPUT, {}, spread(3, 32.0), None),
        (TPUT, {}, spread(3, 33.0), "output throughput 100.00 tok/s ± 40.42 tok/s (40 % over 3)"),
        (TPUT, {}, spread(3, 33.0, "n-1"), None),
        (TPUT, {}, spread(None, 39.0), None),
        (TPUT, {}, spread(None, 40.0, None), "(40 %)"),
        # Of five with 63 %, the mean is known to ± 2.776 x 63 % / sqrt(5) = 79 %.
        (TPUT, {}, (20.0, 60.0, 100.0, 140.0, 180.0), None),
        (TPUT, {}, spread(5, 81.0, "n-1"), "81 % over 5"),
        # Requests that wait for each other are no repetitions.
        ("ttft_mean_ms", ALONE, (60.0, 140.0), "57 % over 2"),
        ("ttft_mean_ms", ALONE | {"concurrency": 2}, (60.0, 140.0), None),
        ("ttft_mean_ms", ALONE | {"dataset": "sharegpt"}, (60.0, 140.0), None),
        # Three that agree to the last digit are one.
        (PROMPTS, {}, (100.1, 100.1, 100.1), "its 3 repetitions agree to the last digit"),
        (PROMPTS, {}, (100.1, 100.1), None),
        (PROMPTS, {}, (101.0, 101.0, 101.0), None),
        ("peak_memory_gib", {}, (100.1, 100.1, 100.1), None),
    ],
)  # fmt: skip
def test_repetitions_inside_a_run_agree(
    metric: str,
    asked: dict[str, Any],
    several: Spread | tuple[float, ...],
    words: str | None,
) -> None:
    kind = "spreads" if isinstance(several, Spread) else "samples"
    run = a_run({metric: 100.0}, workload=asked, **{kind: {metric: several}})
    said("repetitions", a_view(run), words)


def test_the_repetitions_that_lie_furthest_apart_are_told() -> None:
    apart = {
        number: {metric: (100 - by, 100 + by)}
        for number, metric, by in ((1, TPUT, 30.0), (2, PROMPTS, 60.0))
    }
    figures = {TPUT: 100.0, PROMPTS: 100.0}
    runs = [a_run(figures, iteration=n, samples=each) for n, each in apart.items()]
    said("repetitions", a_view(*runs), "For example iteration 2 of m/native/w")


def test_published_figures_without_samples_raise_nothing() -> None:
    published = {TPUT: MetricValue(value=1.0, unit="tok/s", source="published")}
    run = with_metrics(published, machine=WITH_GPU, plan=PUBLISHED)
    for check in ("throttled", "slow-clock", "foreign-load", "telemetry-gap"):
        said(check, a_view(run), None)
