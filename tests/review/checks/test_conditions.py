"""Checks of single runs at their limits: where one breaks, a good run is accused or a bad one passes.

That each fault is found at all is shown by the table of faults; here is what just passes, and what is spared.
"""

from collections.abc import Callable
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
    Phase,
    Plan,
    Reading,
    Spread,
)
from sparkpub.review.checks import CHECKS
from sparkpub.review.checks.acknowledging import covers
from sparkpub.review.checks.conditions import growth
from sparkpub.review.checks.evidence import Warned
from sparkpub.review.checks.sensors import POWER_CAP
from tests.review.checks.in_memory import (
    a_run,
    a_view,
    answered,
    quiet,
    said,
)

TPUT, PROMPTS = "output_throughput_tok_s", "prompt_throughput_tok_s"
FAILED = "failed_requests_percent"
ALONE = {"input_tokens": 500, "concurrency": 1}
GPU = Gpu(name="GPU", clock_max_sm_mhz=1000.0)
WITH_GPU = Machine(gpus=(GPU,))
LOCKED = Machine(gpus=(GPU,), clocks_locked_mhz=600.0)
CARD = Machine(gpus=(Gpu(name="G", power_limit_watt=100.0, memory_total_gib=80.0),))
SPARK = Machine(kind="dgx-spark")
"""It slows down from 91 °C on, by the catalogue, and its SM clock is 3,003 MHz at most."""
TOLD = Machine(kind="dgx-spark", gpu_slowdown_celsius=90.0)
"""Its driver says from where it slows down."""
PUBLISHED = Plan(position=0, order="as-published")


def gates(name: str, wanted: Any, *, met: bool | None, read: Any = None) -> Any:
    readings = () if read is None else (Reading(at_seconds=0.0, value=read),)
    waited = {"met": met, "waited_seconds": 0.0, "readings": readings}
    return {"gates": (Gate(name=name, wanted=wanted, **waited),)}


def event(kind: Any, text: str) -> dict[str, Any]:
    return {"events": (Event(at_seconds=1.0, kind=kind, text=text),)}


# -- conditions --------------------------------------------------------------------------------------------------


def heat(slowed: int, reason: int = 0x20) -> dict[str, Any]:
    """A hundred samples, so many of which are slowed."""
    reasons = [reason] * slowed + [0] * (100 - slowed)
    return {"times": range(100), "gpu_throttle_reasons": reasons}


def hot(celsius: float, mhz: float) -> dict[str, Any]:
    return {"gpu_temp_celsius": celsius, "gpu_clock_sm_mhz": mhz}


def clock(mhz: float, reasons: int = POWER_CAP) -> dict[str, Any]:
    return {"gpu_clock_sm_mhz": mhz, "gpu_throttle_reasons": reasons}


def silent(until: float, every: float = 1.0) -> dict[str, Any]:
    """Samples up to second 95, none of them between the third second and this one."""
    before = np.arange(0, 3 + every / 2, every).round(6)
    after = np.arange(until, 95.05, every).round(6)
    return {"times": [*before.tolist(), *after.tolist()]}


def part(**fields: Any) -> dict[str, Any]:
    return {"machine": Machine(gpus=(Gpu(name="G", **fields),))}


MEASURED = {"phases": (Phase(name="measure", start_seconds=10.0, end_seconds=20.0),)}
LASTED = {"duration_seconds": 95.0}
APART = (*range(10), *range(21, 40))
"""Seconds outside of it."""
TEMP, FREE = "max_start_temp_celsius", "min_free_memory_percent"
KILLED = Container(engine="e", image="i", image_id="d", oom_killed=True)
SLOW_DISK, DISK = "waited for the disk in 21 %", "pressure_io_some_percent"
CAP = telemetry.THROTTLES[POWER_CAP]
WITH = {"machine": WITH_GPU}
CONDITIONS: dict[str, list[tuple[dict[str, Any], dict[str, Any], str | None]]] = {
    "thermal-gate": [
        ({"metrics": {"gpu_temp_start_celsius": 45.5}}, {}, "46 °C, and 45 °C is"),
        (gates(TEMP, 45.0, met=True, read=45.0), {}, None),
        (gates(TEMP, 45.0, met=False, read=45.1), {}, "wanted 45.0 and read 45.1"),
    ],
    "throttled": [
        # More than one sample in a hundred; a clock that the power limit lowers is as it should be.
        ({}, heat(1), None),
        ({}, heat(2), "2 % of the samples under load"),
        ({}, heat(90, POWER_CAP), None),
        (event("throttle", "hot"), {}, "hardware: hot"),
        # Seven tenths of 3,003 MHz are 2,102.
        ({"machine": SPARK}, hot(91, 2101), "2101 of 3003 MHz at 91 °C"),
        ({"machine": SPARK}, hot(91, 2103), None),
        ({"machine": SPARK}, hot(90, 850), None),
        ({"machine": TOLD}, hot(90, 850), "850 of 3003 MHz at 90 °C, and 90 °C"),
        (part(power_limit_watt=699.9, power_default_watt=700.0), {}, None),
        (part(power_limit_watt=690.0, power_default_watt=700.0), {}, "690 W of 700 W"),
    ],
    "slow-clock": [
        (WITH | {"metrics": {"gpu_clock_sm_mean_mhz": 499.0}}, {}, "499 MHz"),
        (WITH, clock(500.0), None),
        (WITH, clock(499.0), "499 MHz under load, of 1000 MHz"),
        ({"machine": LOCKED}, clock(300.0), None),
        ({"machine": SPARK}, hot(92, 850), None),
        (WITH | event("slow-clock", "stuck at 611"), clock(900.0), "stuck at 611"),
        # Nothing holds the clock by the driver's word: somebody locked it.
        (WITH, clock(700.0, 0), None),
        (WITH, clock(699.0, 0), "699 MHz"),
    ],
    "foreign-load": [
        (event("foreign-process", "a game"), {"gpu_foreign_processes": 2}, "a game; "),
        (gates(FREE, 90.0, met=False, read=89.9), {}, "wanted 90.0 and read 89.9"),
        ({}, {DISK: 21.0}, SLOW_DISK),
        ({}, {DISK: 20.0}, None),
    ],
    "kernel-warning": [
        ({"container": KILLED} | event("oom", "one"), {}, "for lack of memory"),
    ],
    "telemetry-gap": [
        (LASTED, silent(8), None),
        (LASTED, silent(8.1), "5.1 s from second 3 on, with one sample every 1 s"),
        ({"duration_seconds": 2.1}, {"times": ()}, "2.1 s from second 0 on"),
    ],
    "foreign-telemetry": [
        (MEASURED, {"times": APART}, "no sample lies within the measured phase"),
        (MEASURED, {"gpu_utilization_percent": 4.9}, "the GPU was at rest"),
        (MEASURED, {"gpu_utilization_percent": 5.0}, None),
    ],
}


@pytest.mark.parametrize(
    ("check", "run", "columns", "words"),
    [(check, *case) for check, cases in CONDITIONS.items() for case in cases],
)
def test_a_condition_is_told_from_its_limit_on(
    check: str, run: dict[str, Any], columns: dict[str, Any], words: str | None
) -> None:
    said(check, a_view(a_run(**run), samples=quiet(**columns)), words)


def test_a_busy_gpu_before_a_run_is_told_under_either_name() -> None:
    busy = quiet(gpu_utilization_percent=10.0)
    (found,) = CHECKS["foreign-load"].run(a_view(a_run(), samples=busy))
    assert "the GPU was 10 % busy before it" in found.message
    assert covers(Acknowledgement(check="foreign-tenant", reason="a desktop"), found)
    said("foreign-load", a_view(a_run(plan=PUBLISHED), samples=busy), None)


# -- memory that grows -------------------------------------------------------------------------------------------

SECONDS = np.arange(600.0)
"""Ten minutes at one sample per second."""
Noise = Callable[[np.random.Generator], np.ndarray]
NOISE: list[Noise] = [
    # A saw: a gibibyte in forty seconds, given back at once.
    lambda draw: (SECONDS + draw.integers(40)) % 40 / 40,
    # Two gibibytes at some moment, held from there on.
    lambda draw: 2.0 * (draw.integers(1, 600) < SECONDS),
    # Three gibibytes taken ever more slowly, most of it in the first ten seconds.
    lambda draw: 3 * (1 - np.exp(-SECONDS / draw.uniform(2, 5))),
]


@pytest.mark.parametrize("noise", NOISE)
def test_memory_that_does_not_grow_for_good_raises_no_alarm(noise: Noise) -> None:
    """At most one false alarm in 100 phases of ten minutes."""
    draw = np.random.default_rng(11)
    series = (40 + noise(draw) + draw.normal(0, 0.02, 600) for _ in range(100))
    assert sum(growth(SECONDS, each) is not None for each in series) <= 1


def test_a_leak_is_told_with_its_rate() -> None:
    noise = np.random.default_rng(3).normal(0, 0.2, len(SECONDS))
    text = growth(SECONDS, 40 + SECONDS / 60 + noise)  # 1 GiB/min
    assert text is not None
    assert float(text.split()[-2]) == pytest.approx(1.0, rel=0.25)
    slow = SECONDS * 0.1 / 60
    assert growth(SECONDS[:240], slow[:240]) is None  # 0.4 GiB
    assert growth(SECONDS[:330], slow[:330]) is not None  # 0.55 GiB


@pytest.mark.parametrize(
    ("measured_from", "words"),
    [
        (0.0, "leaked memory: memory in use on the machine grew"),
        # Loading a model takes memory; without a beginning nobody knows what was loading.
        (300.0, None),
        (None, None),
    ],
)
def test_growth_before_the_measurement_is_no_leak(
    measured_from: float | None, words: str | None
) -> None:
    phases: tuple[Phase, ...] = ()
    if measured_from is not None:
        phases = (Phase(name="measure", start_seconds=measured_from, end_seconds=600),)
    used = np.minimum(SECONDS, 300 if words is None else 600) / 60
    samples = quiet(SECONDS, mem_available_gib=100 - used)
    said("leak", a_view(a_run(phases=phases), samples=samples), words)


# -- what server and client said ---------------------------------------------------------------------------------

JIT = "Triton kernel JIT compilation during inference: _compute_slot_mapping_kernel"
PREEMPTED = "Request … is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space"


@pytest.mark.parametrize(
    ("warning", "is_told"),
    [
        (Warned("Found ulimit of …", measured=True), False),
        (Warned("compilation", measured=False), False),
        (Warned(JIT, measured=True), True),
        (Warned(PREEMPTED, measured=True), True),
        (Warned("the worker died", measured=True, is_error=True), True),
        (Warned("the prompt was truncated", measured=False), True),
    ],
)
def test_what_the_engine_warns_of_while_it_is_measured_is_told(
    warning: Warned, is_told: bool
) -> None:
    view = a_view(a_run(), answer=answered(warnings=(warning,)))
    said("engine-warning", view, warning.text if is_told else None)


def spread(repetitions: int | None, deviation: float, divisor: Any = "n") -> Spread:
    return Spread(repetitions=repetitions, deviation=deviation, divisor=divisor)


@pytest.mark.parametrize(
    ("metric", "asked", "several", "words"),
    [
        # 0.32 x sqrt(3 / 2) is 0.392, and 0.33 gives 0.404.
        (TPUT, {}, spread(3, 32.0), None),
        (TPUT, {}, spread(3, 33.0), "100.00 tok/s ± 40.42 tok/s (40 % over 3)"),
        (TPUT, {}, spread(None, 40.0, None), "(40 %)"),
        # Requests that wait for each other are no repetitions.
        ("ttft_mean_ms", ALONE, (60.0, 140.0), "57 % over 2"),
        ("ttft_mean_ms", ALONE | {"concurrency": 2}, (60.0, 140.0), None),
    ],
)
def test_repetitions_inside_a_run_agree(
    metric: str,
    asked: dict[str, Any],
    several: Spread | tuple[float, ...],
    words: str | None,
) -> None:
    kind = "spreads" if isinstance(several, Spread) else "samples"
    run = a_run({metric: 100.0}, workload=asked, **{kind: {metric: several}})
    said("repetitions", a_view(run), words)
