"""Checks of single runs at their limits: what just passes, what does not, and which runs are spared."""

from collections.abc import Iterable
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
from sparkpub.review.checks.conditions import (
    POWER_CAP,
    PRESSURES,
    foreign_load,
    slow_clock,
    telemetry_gap,
    thermal_gate,
    throttled,
)
from sparkpub.review.checks.evidence import Warned
from sparkpub.review.checks.prefix_cache import prefix_cache
from sparkpub.review.checks.repetitions import repetitions
from sparkpub.review.checks.reports import failed_requests
from sparkpub.review.checks.samples import foreign_telemetry
from sparkpub.review.checks.tenants import foreign_tenant
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

TPUT = "output_throughput_tok_s"
PROMPTS = "prompt_throughput_tok_s"
ALONE = {"input_tokens": 500, "concurrency": 1}
GPU = Gpu(name="GPU", clock_max_sm_mhz=1000.0)
WITH_GPU = Machine(gpus=(GPU,))
LOCKED = Machine(gpus=(GPU,), clocks_locked_mhz=600.0)


def gate(name: str, wanted: Any, *, met: bool | None, read: Any = None) -> Gate:
    readings = () if read is None else (Reading(at_seconds=0.0, value=read),)
    return Gate(
        name=name, wanted=wanted, met=met, waited_seconds=0.0, readings=readings
    )


def event(kind: Any, text: str) -> Event:
    return Event(at_seconds=1.0, kind=kind, text=text)


def said(check: Any, view: View, words: str | None) -> None:
    """The check says `words` of the run, or nothing where they are None."""
    found = told(check, view)
    if words is None:
        assert found == []
    else:
        assert len(found) == 1
        assert words in found[0]


@pytest.mark.parametrize(
    ("start", "gates", "words"),
    [
        (45.0, (), None),
        (45.5, (), "the GPU had 46 °C, and 45 °C is the limit"),
        (60.0, (gate("max_start_temp_celsius", 70.0, met=True, read=60.0),), None),
        (20.0, (gate("max_start_temp_celsius", 45.0, met=True, read=45.0),), None),
        (
            20.0,
            (gate("max_start_temp_celsius", 45.0, met=True, read=45.1),),
            "max start temp celsius wanted 45.0 and read 45.1",
        ),
        (
            20.0,
            (gate("max_start_temp_celsius", 45.0, met=False),),
            "max start temp celsius wanted 45.0.",
        ),
        (20.0, (gate("max_start_temp_celsius", 45.0, met=None, read=50.0),), None),
        (20.0, (gate("max_start_temp_celsius", 45.0, met=True),), None),
        (20.0, (gate("max_start_temp_celsius", 45.0, met=True, read="hot"),), None),
        (20.0, (gate("max_cpu_percent", 10.0, met=False, read=99.0),), None),
    ],
)
def test_a_run_starts_hot_beyond_its_gate_or_45_degrees(
    start: float, gates: tuple[Gate, ...], words: str | None
) -> None:
    metrics = sampled("gpu_temp_start_celsius", start, "°C")
    said("thermal-gate", a_view(with_metrics(metrics, gates=gates)), words)


@pytest.mark.parametrize("gated", [True, False])
def test_who_has_no_gate_is_not_told_to_change_it(gated: bool) -> None:
    missed = gate("max_start_temp_celsius", 45.0, met=False)
    hot = sampled("gpu_temp_start_celsius", 51.0, "°C")
    run = with_metrics(hot, gates=(missed,) if gated else ())
    (found,) = thermal_gate(a_view(run))
    # Where it has none of its own, a finding has what its check advises.
    own = CHECKS["thermal-gate"].remedy
    assert ("lower max_start_temp_celsius:" in (found.remedy or own)) is gated


def heat(slowed: int, reason: int = 0x20) -> list[int]:
    """The reasons of a hundred samples, so many of which are slowed."""
    return [reason] * slowed + [0] * (100 - slowed)


@pytest.mark.parametrize(
    ("reasons", "events", "words"),
    [
        (heat(1), (), None),
        (heat(2), (), "2 % of the samples under load"),
        ([None] * 100, (), None),
        ([0] * 100, (event("throttle", "hot"),), "0 % of the samples under load: hot"),
        ([0] * 100, (event("throttle", telemetry.THROTTLES[POWER_CAP]),), None),
        (heat(10, POWER_CAP), (), None),
        (heat(11, POWER_CAP), (), "info: The GPU was at its power limit"),
    ],
)
def test_heat_slows_from_1_percent_of_the_samples_and_a_cap_is_noted_from_10(
    reasons: list[int | None], events: tuple[Event, ...], words: str | None
) -> None:
    run = a_run(machine=WITH_GPU, events=events)
    samples = quiet(range(100), gpu_throttle_reasons=reasons)
    said(throttled, a_view(run, samples=samples), words)


@pytest.mark.parametrize(
    ("gpu", "variables", "words"),
    [
        ({"power_limit_watt": 400.0, "power_default_watt": 700.0}, {}, "400 W of 700"),
        ({"power_limit_watt": 699.9, "power_default_watt": 700.0}, {}, None),
        ({"power_limit_watt": 700.0}, {}, None),
        ({"mig": True}, {}, "a slice of G"),
        ({"mig": True}, {"CUDA_VISIBLE_DEVICES": "MIG-6b8c1c1e-0d3c"}, None),
    ],
)
def test_a_part_of_a_gpu_is_told_unless_it_was_asked_for(
    gpu: dict[str, Any], variables: dict[str, str], words: str | None
) -> None:
    machine = Machine(gpus=(Gpu(name="G", **gpu),))
    run = a_run(machine=machine, asked_of={"env": variables})
    said(throttled, a_view(run, samples=quiet()), words)


def test_a_part_of_a_gpu_on_one_side_is_told_as_a_difference() -> None:
    part, whole = (
        Machine(id="m1", gpus=(Gpu(name="G", mig=mig),)) for mig in (True, False)
    )
    view = a_view(
        a_run(machine=whole), a_run(machine=part, environment="kept"), samples=quiet()
    )
    said(throttled, view, None)
    said("unequal-environments", view, "MIG off (native) and on (kept)")


def test_without_samples_throttling_is_open_where_there_is_a_gpu() -> None:
    said(throttled, a_view(a_run(machine=WITH_GPU)), None)
    said(throttled, a_view(a_run()), None)
    published = {TPUT: MetricValue(value=1.0, unit="tok/s", source="published")}
    run = with_metrics(published, machine=WITH_GPU)
    said(throttled, a_view(run), None)


@pytest.mark.parametrize(
    ("clock", "machine", "events", "words"),
    [
        (500.0, WITH_GPU, (), None),
        (499.0, WITH_GPU, (), "499 MHz under load, of 1000 MHz"),
        (300.0, LOCKED, (), None),
        (299.0, LOCKED, (), "299 MHz under load, of 600 MHz"),
        (
            499.0,
            Machine(gpus=(GPU, Gpu(name="small", clock_max_sm_mhz=10.0))),
            (),
            "1000",
        ),
        (None, Machine(), (), None),
        (499.0, Machine(), (), None),
        (900.0, WITH_GPU, (event("slow-clock", "stuck at 611"),), "stuck at 611"),
    ],
)
def test_a_clock_is_stuck_below_half_of_what_it_could_be(
    clock: float | None, machine: Machine, events: tuple[Event, ...], words: str | None
) -> None:
    run = a_run(machine=machine, events=events)
    samples = quiet(gpu_clock_sm_mhz=clock, gpu_throttle_reasons=POWER_CAP)
    said(slow_clock, a_view(run, samples=samples), words)


@pytest.mark.parametrize(
    ("columns", "machine", "words"),
    [
        # Nothing holds the clock by the driver's word: somebody locked it.
        ({"gpu_clock_sm_mhz": 700.0}, WITH_GPU, None),
        ({"gpu_clock_sm_mhz": 699.0}, WITH_GPU, "699 MHz under load, of 1000 MHz"),
        # 95 % of 3,201 MHz are 3,041.
        ({"gpu_clock_mem_mhz": 3041.0}, Machine(kind="h200"), None),
        ({"gpu_clock_mem_mhz": 3040.0}, Machine(kind="h200"), "3040 MHz of the memory"),
    ],
)
def test_clocks_that_nobody_explains_are_slow_sooner(
    columns: dict[str, float], machine: Machine, words: str | None
) -> None:
    said(slow_clock, a_view(a_run(machine=machine), samples=quiet(**columns)), words)


def test_without_samples_the_recorded_mean_clock_counts() -> None:
    slow = a_run({"gpu_clock_sm_mean_mhz": 499.0}, machine=WITH_GPU)
    said(slow_clock, a_view(slow), "499 MHz under load")
    fast = a_run({"gpu_clock_sm_mean_mhz": 500.0}, machine=WITH_GPU)
    said(slow_clock, a_view(fast), None)


@pytest.mark.parametrize(
    ("gates", "events", "processes", "words"),
    [
        ((), (), 0, None),
        ((), (), None, None),
        ((), (), 1, "the GPU was in use by up to 1 other process."),
        ((), (), 2, "the GPU was in use by up to 2 other processes."),
        ((gate("exclusive_gpu", True, met=False),), (), 0, "exclusive gpu wanted"),
        ((gate("max_cpu_percent", 10.0, met=False),), (), 0, "max cpu percent"),
        ((gate("min_free_memory_percent", 90.0, met=True, read=90.0),), (), 0, None),
        (
            (gate("min_free_memory_percent", 90.0, met=True, read=89.9),),
            (),
            0,
            "min free memory percent wanted 90.0 and read 89.9",
        ),
        ((gate("exclusive_gpu", 1.0, met=True, read=0.0),), (), 0, None),
        ((gate("max_start_temp_celsius", 45.0, met=False),), (), 0, None),
        (
            (),
            (event("foreign-process", "a game"),),
            2,
            "a game; the GPU was in use by up to 2 other",
        ),
    ],
)
def test_a_run_has_company(
    gates: tuple[Gate, ...],
    events: tuple[Event, ...],
    processes: int | None,
    words: str | None,
) -> None:
    run = a_run(gates=gates, events=events)
    samples = quiet(gpu_foreign_processes=processes)
    said("foreign-load", a_view(run, samples=samples), words)


@pytest.mark.parametrize(
    ("events", "killed", "words"),
    [
        ((), None, None),
        ((), False, None),
        ((), True, "problems: the engine reports that it was killed for lack"),
        ((event("xid", "Xid 13"),), None, "reported problems: Xid 13."),
        (
            (event("oom", "one"), event("kernel", "two")),
            None,
            ": 2 messages, the first: one.",
        ),
        ((event("memory-floor", "low"),), True, "2 messages, the first: low"),
        ((event("throttle", "hot"),), None, None),
    ],
)
def test_kernel_and_driver_complain(
    events: tuple[Event, ...], killed: bool | None, words: str | None
) -> None:
    container = Container(engine="e", image="i", image_id="d", oom_killed=killed)
    said("kernel-warning", a_view(a_run(events=events, container=container)), words)


def silent(until: float, every: float = 1.0) -> list[float]:
    """Times of samples up to second 95, none of them between the third second and this one."""
    before = np.arange(0, 3 + every / 2, every).round(6)
    return [*before.tolist(), *np.arange(until, 95.05, every).round(6).tolist()]


@pytest.mark.parametrize(
    ("times", "lasted", "words"),
    [
        (silent(8), 95.0, None),
        (silent(8.1), 95.0, "5.1 s from second 3 on, with one sample every 1 s"),
        (silent(5, every=0.1), 95.0, None),
        (silent(5.1, every=0.1), 95.0, "2.1 s from second 3 on"),
        (range(96), 100.0, None),
        (range(96), 100.5, "5.5 s from second 95 on"),
        (silent(10), 101.0, "7.0 s from second 3 on"),
        (range(96), None, None),
        ((), 2.0, None),
        ((), 2.1, "2.1 s from second 0 on"),
    ],
)
def test_a_gap_is_longer_than_five_intervals_and_two_seconds(
    times: Iterable[float], lasted: float | None, words: str | None
) -> None:
    run = a_run(duration_seconds=lasted)
    said(telemetry_gap, a_view(run, samples=quiet(times)), words)


def test_figures_of_the_sampler_need_its_samples() -> None:
    there = sampled("gpu_power_mean_watt", 100.0, "W")
    said(telemetry_gap, a_view(with_metrics(there)), "samples were not kept")
    absent = sampled("gpu_power_mean_watt", None, "W", reason="no sensor")
    said(telemetry_gap, a_view(with_metrics(absent)), None)
    said(telemetry_gap, a_view(a_run()), None)


CARD = Machine(gpus=(Gpu(name="G", power_limit_watt=100.0, memory_total_gib=80.0),))


def ledger(gpu_used: float | None) -> MemoryLedger:
    memory = Memory(
        total_gib=9.0,
        free_gib=9.0,
        available_gib=9.0,
        cached_gib=0.0,
        shmem_gib=0.0,
        swap_used_gib=0.0,
        gpu_used_gib=gpu_used,
    )
    return MemoryLedger(baseline=memory, peak=memory)


def tenants(*used: float, **fields: Any) -> list[str]:
    """What is found of runs before which so much memory was in use, on a GPU of 80 GiB."""
    runs = [
        a_run(
            {"device_used_before_gib": gib},
            iteration=place,
            **({"machine": CARD} | fields),
        )
        for place, gib in enumerate(used, 1)
    ]
    return told(foreign_tenant, a_view(*runs))


def test_memory_was_in_use_beyond_the_usual_of_a_campaign() -> None:
    assert tenants(1.0, 1.0, 1.0, 1.25) == []
    (found,) = tenants(1.0, 1.0, 1.0, 1.26)
    assert "Iteration 4" in found
    assert "1.26 GiB were in use before it, and 1.00 GiB usually are" in found
    unified = CARD.model_copy(update={"unified_memory": True})
    assert tenants(1.0, 1.0, 1.0, 9.0, machine=unified) == []


def test_memory_was_in_use_before_every_run() -> None:
    assert tenants(4.0, 4.0) == []
    (found,) = tenants(4.1, 4.1)
    assert "4.10 of 80 GiB were in use before it" in found
    assert tenants(4.1, 4.1, machine=Machine(gpus=(GPU,))) == []


@pytest.mark.parametrize(
    ("load", "words"), [(9.9, None), (10.0, "the GPU was 10 % busy before it")]
)
def test_the_gpu_was_busy_before_a_run(load: float, words: str | None) -> None:
    samples = quiet(gpu_utilization_percent=load, gpu_memory_used_gib=0.0)
    said(foreign_tenant, a_view(a_run(machine=CARD), samples=samples), words)


def test_memory_before_a_run_is_read_from_samples_then_ledger_then_tool() -> None:
    fields = {"machine": CARD, "memory": ledger(6.0)}
    run = a_run({"device_used_before_gib": 7.0}, **fields)
    said(
        foreign_tenant,
        a_view(run, samples=quiet(gpu_memory_used_gib=5.0)),
        "5.00 of 80",
    )
    said(foreign_tenant, a_view(run, samples=quiet()), "6.00 of 80")
    bare = a_run({"device_used_before_gib": 7.0}, machine=CARD, memory=ledger(None))
    said(foreign_tenant, a_view(bare), "7.00 of 80")


def test_what_was_acknowledged_as_a_foreign_tenant_is_a_foreign_load() -> None:
    run = a_run({"device_used_before_gib": 4.1}, machine=CARD)
    (found,) = foreign_load(a_view(run))
    assert (found.check, found.severity) == ("foreign-load", "warning")
    assert covers(Acknowledgement(check="foreign-tenant", reason="a desktop"), found)


def test_the_runs_of_a_server_are_no_strangers_to_it() -> None:
    settings = Observed(settings={"server": "1"})
    assert tenants(50.0, 50.0, observed=settings) == []


def test_nobody_knows_what_was_before_a_run_without_samples() -> None:
    said(foreign_tenant, a_view(a_run()), None)
    published = Plan(position=0, order="as-published")
    said(foreign_tenant, a_view(a_run(machine=CARD, plan=published)), None)
    said(foreign_tenant, a_view(a_run(machine=CARD), samples=quiet()), None)


NOISE = "Found ulimit of … and failed to automatically increase"
JIT = "Triton kernel JIT compilation during inference: _compute_slot_mapping_kernel"
PREEMPTED = "Request … is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space"


@pytest.mark.parametrize(
    ("warnings", "words"),
    [
        ([Warned(JIT, measured=False)], []),
        ([Warned(NOISE, measured=True)], []),
        ([Warned(JIT, measured=True)], ["ran on an engine that compiled kernels"]),
        (
            [Warned(JIT, measured=True), Warned(f"{JIT}_2", measured=True)],
            [f"2 warnings, the first: {JIT}"],
        ),
        (
            [Warned(JIT, measured=True), Warned(PREEMPTED, measured=True)],
            ["took requests out of its batch", "compiled kernels"],
        ),
        (
            [Warned("the worker died", measured=True, is_error=True)],
            ["reported errors while it was measured: the worker died"],
        ),
    ],
)
def test_what_the_engine_warns_of_while_it_is_measured_is_told_by_its_cause(
    warnings: list[Warned], words: list[str]
) -> None:
    view = a_view(a_run(), answer=answered(warnings=tuple(warnings)))
    found = told("engine-warning", view)
    assert len(found) == len(words)
    for line, part in zip(found, words, strict=True):
        assert line.startswith("warning: Iteration 1 of m/native/w ran on")
        assert part in line


REQUESTS = "request_throughput_req_s"
FAILED = "failed_requests_percent"


@pytest.mark.parametrize(
    ("percent", "words"),
    [
        (None, None),
        (0.0, None),
        (
            0.4,
            "info: Iteration 1 of m/native/w: 0.4 % of the requests failed, and the figures are of the others.",
        ),
        (0.99, "info: "),
        (1.0, "warning: "),
        (
            34.0,
            "34 % of the requests failed, and the figures are of the others.",
        ),
    ],
)
def test_failed_requests_are_a_note_and_from_one_percent_a_warning(
    percent: float | None, words: str | None
) -> None:
    metrics = {} if percent is None else {FAILED: percent}
    said(failed_requests, a_view(a_run(metrics)), words)
    # A record that is older than the metric has it in its report.
    said(
        failed_requests,
        a_view(a_run(), answer=answered(values={FAILED: percent})),
        words,
    )


def test_failed_requests_flag_the_cells_of_their_runs_and_no_other() -> None:
    runs = [
        a_run({FAILED: percent}, model=model)
        for model, percent in (("a", 2.0), ("b", 0.0), ("c", 34.0), ("d", 0.5))
    ]
    many, few = failed_requests(a_view(*runs))
    assert many.cells == ("a/native/w", "c/native/w")
    assert "up to 34 %" in many.message
    assert many.evidence["percents"] == {runs[0].run_id: 2.0, runs[2].run_id: 34.0}
    assert few.cells == ("d/native/w",)


@pytest.mark.parametrize(
    ("metric", "asked", "told", "words"),
    [
        # 0.32 x sqrt(3 / 2) is 0.392, and 0.33 gives 0.404.
        (TPUT, {}, Spread(repetitions=3, deviation=32.0, divisor="n"), None),
        (
            TPUT,
            {},
            Spread(repetitions=3, deviation=33.0, divisor="n"),
            "output throughput 100.00 tok/s ± 40.42 tok/s (40 % over 3)",
        ),
        (TPUT, {}, Spread(repetitions=3, deviation=33.0, divisor="n-1"), None),
        (TPUT, {}, Spread(repetitions=None, deviation=39.0, divisor="n"), None),
        (TPUT, {}, Spread(repetitions=None, deviation=40.0, divisor=None), "(40 %)"),
        (TPUT, {}, (60.0, 140.0), "± 56.57 tok/s (57 % over 2)"),
        (TPUT, {}, (90.0, 110.0), None),
        # Of five with 63 %, the mean is known to ± 2.776 x 63 % / sqrt(5) = 79 %.
        (TPUT, {}, (20.0, 60.0, 100.0, 140.0, 180.0), None),
        (TPUT, {}, Spread(repetitions=5, deviation=81.0, divisor="n-1"), "81 % over 5"),
        # Requests that wait for each other are no repetitions.
        ("ttft_mean_ms", ALONE, (60.0, 140.0), "57 % over 2"),
        ("ttft_mean_ms", ALONE | {"concurrency": 2}, (60.0, 140.0), None),
        ("ttft_mean_ms", ALONE | {"dataset": "sharegpt"}, (60.0, 140.0), None),
        # Three that agree to the last digit are one.
        (TPUT, {}, (100.1, 100.1, 100.1), "its 3 repetitions agree to the last digit"),
        (TPUT, {}, (100.1, 100.1, 100.2), None),
        (TPUT, {}, (100.1, 100.1), None),
        (TPUT, {}, (101.0, 101.0, 101.0), None),
        ("peak_memory_gib", {}, (100.1, 100.1, 100.1), None),
        (
            PROMPTS,
            {},
            Spread(repetitions=5, deviation=0.0, divisor="n"),
            "its 5 repetitions agree",
        ),
    ],
)
def test_repetitions_inside_a_run_agree(
    metric: str,
    asked: dict[str, Any],
    told: Spread | tuple[float, ...],
    words: str | None,
) -> None:
    several = "spreads" if isinstance(told, Spread) else "samples"
    value = 100.1 if metric == PROMPTS else 100.0
    run = a_run({metric: value}, workload=asked, **{several: {metric: told}})
    said(repetitions, a_view(run), words)


def test_a_spread_of_one_figure_shows_that_a_run_was_repeated() -> None:
    spreads = {
        TPUT: Spread(repetitions=3, deviation=0.0, divisor="n"),
        PROMPTS: Spread(repetitions=3, deviation=0.1, divisor="n"),
    }
    run = a_run({TPUT: 3.8, PROMPTS: 3288.3}, spreads=spreads)
    said(repetitions, a_view(run), None)


def test_the_repetitions_that_lie_furthest_apart_are_told() -> None:
    near, far = (
        a_run({TPUT: 100.0}, iteration=number, samples={TPUT: (100 - by, 100 + by)})
        for number, by in ((1, 30.0), (2, 60.0))
    )
    said(repetitions, a_view(near, far), "For example iteration 2 of m/native/w")


MEASURED = (Phase(name="measure", start_seconds=10.0, end_seconds=20.0),)
APART = (*range(10), *range(21, 40))
"""Seconds outside of it."""


@pytest.mark.parametrize(
    ("changes", "fields", "words"),
    [
        ({}, {"duration_seconds": 95.0}, None),
        ({"times": range(216)}, {"duration_seconds": 95.0}, None),
        (
            {"times": range(217)},
            {"duration_seconds": 95.0},
            "it continues to second 216, and the run was over after 95 s",
        ),
        ({"times": APART}, {}, "no sample lies within the measured phase"),
        ({"times": (*APART, 10)}, {}, None),
        ({"times": (*APART, 20)}, {}, None),
        ({"times": (-5, 0, 5, 9.9, 20.1, 25, 30)}, {}, None),
        ({"times": (0, 4.9, 9.8, 20.1, 25, 29.9)}, {}, "no sample lies within"),
        (
            {"gpu_utilization_percent": 0.0},
            {},
            "the GPU was at rest throughout the measured phase",
        ),
        ({"gpu_utilization_percent": 5.0}, {}, None),
        ({"gpu_utilization_percent": None}, {}, None),
        # Utilisation is known from five samples in the phase on.
        ({"times": (*APART, *range(10, 14)), "gpu_utilization_percent": 0.0}, {}, None),
        (
            {"times": (*APART, *range(16, 21)), "gpu_utilization_percent": 0.0},
            {},
            "the GPU was at rest",
        ),
        ({"times": (), "gpu_utilization_percent": 0.0}, {}, None),
    ],
)
def test_samples_are_those_of_their_run(
    changes: dict[str, Any], fields: dict[str, Any], words: str | None
) -> None:
    run = a_run(phases=MEASURED, **fields)
    said(foreign_telemetry, a_view(run, samples=quiet(**changes)), words)


def test_recorded_figures_of_the_sampler_are_in_its_samples() -> None:
    metrics = sampled("gpu_power_mean_watt", 100.0, "W")
    run = with_metrics(metrics, phases=MEASURED)
    for given, words in (
        ((100.1,), None),
        (
            (100.2,),
            "the record has gpu_power_mean_watt = 100, but the samples give 100.2",
        ),
        ((50.0, 100.0), None),
    ):
        samples = quiet(metrics={"gpu_power_mean_watt": given})
        said(foreign_telemetry, a_view(run, samples=samples), words)
    printed = sampled("gpu_power_mean_watt", 100.0, "W", source="log")
    run = with_metrics(printed, phases=MEASURED)
    samples = quiet(metrics={"gpu_power_mean_watt": (7.0,)})
    said(foreign_telemetry, a_view(run, samples=samples), None)


def test_without_a_measured_phase_samples_are_not_judged_by_it() -> None:
    said(foreign_telemetry, a_view(a_run(), samples=quiet()), None)


@pytest.mark.parametrize(
    ("what", "percent", "busy", "asked", "is_found"),
    [
        ("the disk", 38.0, 12.0, {}, True),
        ("the disk", 20.0, 12.0, {}, False),
        # Tasks wait although seven of eight processors are idle: something keeps them from these.
        ("processors", 55.0, 12.0, {}, True),
        ("processors", 55.0, 12.0, {"cpuset": "0-1"}, False),
        # An engine that computes on all processors waits for itself.
        ("processors", 55.0, 95.0, {}, False),
        ("processors", 26.0, 45.0, {}, False),
    ],
)
def test_processes_that_waited_are_told(
    what: str, percent: float, busy: float, asked: dict[str, Any], is_found: bool
) -> None:
    samples = quiet(**{PRESSURES[what]: percent}, cpu_percent=busy)
    run = CHECKS["foreign-load"].run
    assert run is not None
    found = list(run(a_view(a_run(asked_of=asked), samples=samples)))
    assert len(found) == is_found
    assert all(f"waited for {what} in {percent:.0f} %" in f.message for f in found)


@pytest.mark.parametrize(
    ("environment", "servers", "is_found"),
    [
        ("native", "aabb", True),
        # An environment of its own is there to be compared with the others.
        ("kept", "aabb", False),
        # The prompts of one run differ, and its server has seen no others.
        ("native", "abcd", False),
    ],
)
def test_models_whose_servers_kept_prompts_are_not_ranked_with_others(
    environment: str, servers: str, is_found: bool
) -> None:
    view = a_view(
        *(
            a_run(
                model="nm"[place < 2],
                environment=environment if place < 2 else "native",
                iteration=place + 1,
                observed=Observed(
                    settings={"enable_prefix_caching": str(place < 2), "server": server}
                ),
            )
            for place, server in enumerate(servers)
        )
    )
    found = list(prefix_cache(view))
    assert len(found) == is_found
