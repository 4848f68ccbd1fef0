"""Checks of single runs at their limits: where one breaks, a good run is accused or a bad one passes.

That each fault is found at all is shown by the table of faults; here is what just passes, and what is spared. Bytes and
operations are worked out beside each case.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparkpub.plan.matrix import from_document
from sparkpub.record.campaign import Acknowledgement
from sparkpub.record.record import (
    Analysis,
    Architecture,
    Container,
    Evidence,
    Gpu,
    Machine,
    MetricValue,
    Moment,
    Observed,
    Phase,
    Plan,
    Requested,
    Spread,
)
from sparkpub.record.store import Stored
from sparkpub.review.checks import CHECKS, Review
from sparkpub.review.checks.acknowledging import covers
from sparkpub.review.checks.conditions import growth
from sparkpub.review.checks.evidence import Warned
from sparkpub.review.checks.sensors import POWER_CAP
from sparkpub.review.dataset import Dataset
from tests.review.checks.in_memory import (
    a_run,
    a_view,
    answered,
    quiet,
    said,
    with_metrics,
)

TPUT, PROMPTS = "output_throughput_tok_s", "prompt_throughput_tok_s"
SENT = "request_throughput_req_s"
FAILED, HITS = "failed_requests_percent", "prefix_cache_hit_percent"
GIB, GB = 2**30, 10**9
PUBLISHED = {"plan": Plan(position=5, order="as-published")}
Row = tuple[dict[str, Any], dict[str, Any], str | None]
"""The fields of a run, what lies beside it, and words of the one thing that is found, if any."""


def seen(**facts: Any) -> dict[str, Any]:
    return {"observed": Observed(**facts)}


def asked(**options: Any) -> dict[str, Any]:
    return {"workload": options}


# -- conditions --------------------------------------------------------------------------------------------------

GPU = Gpu(name="GPU", clock_max_sm_mhz=1000.0)
WITH = {"machine": Machine(gpus=(GPU,))}
SPARK = {"machine": Machine(kind="dgx-spark")}
"""It slows down from 91 °C on, by the catalogue, and its SM clock is 3,003 MHz at most."""
KILLED = Container(engine="e", image="i", image_id="d", oom_killed=True)


def sensors(**columns: Any) -> dict[str, Any]:
    return {"samples": quiet(**columns)}


def heat(slowed: int, reason: int = 0x20) -> dict[str, Any]:
    """A hundred samples, so many of which are slowed."""
    reasons = [reason] * slowed + [0] * (100 - slowed)
    return sensors(times=range(100), gpu_throttle_reasons=reasons)


def hot(celsius: float, mhz: float) -> dict[str, Any]:
    return sensors(gpu_temp_celsius=celsius, gpu_clock_sm_mhz=mhz)


def clock(mhz: float, reasons: int = POWER_CAP) -> dict[str, Any]:
    return sensors(gpu_clock_sm_mhz=mhz, gpu_throttle_reasons=reasons)


def warned(text: str, *, measured: bool, is_error: bool = False) -> dict[str, Any]:
    return {"answer": answered(warnings=(Warned(text, measured, is_error),))}


CONDITIONS: dict[str, list[Row]] = {
    "thermal-gate": [
        ({"metrics": {"gpu_temp_start_celsius": 45.5}}, {}, "46 °C, and 45 °C is"),
    ],
    "throttled": [
        # More than one sample in a hundred; a clock that the power limit lowers is as it should be.
        ({}, heat(1), None),
        ({}, heat(2), "2 % of the samples under load"),
        ({}, heat(90, POWER_CAP), None),
    ],
    "slow-clock": [
        (WITH, clock(500.0), None),
        (SPARK, hot(92, 850), None),
        # Nothing holds the clock by the driver's word: somebody locked it.
        (WITH, clock(700.0, 0), None),
    ],
    "foreign-load": [
        (PUBLISHED, sensors(gpu_utilization_percent=10.0), None),
    ],
    "kernel-warning": [({"container": KILLED}, {}, "for lack of memory")],
    "engine-warning": [
        ({}, warned("Found ulimit of …", measured=True), None),
    ],
}

# -- figures of one run ------------------------------------------------------------------------------------------

CARD = Gpu(
    name="G", power_limit_watt=100.0, memory_total_gib=80.0, clock_max_sm_mhz=1000.0
)
ALONE = {"input_tokens": 500, "concurrency": 1}


def figures(found: dict[str, float], **fields: Any) -> dict[str, Any]:
    """A run with these figures, on a card of 80 GiB and 100 W."""
    return {"metrics": found, "machine": Machine(gpus=(CARD,))} | fields


def memory(**gib: float) -> dict[str, Any]:
    return figures({f"{name}_gib": value for name, value in gib.items()})


def prompt(ttft_ms: float, **options: Any) -> dict[str, Any]:
    """500 tokens of prompt at 1,000 a second take half a second."""
    return figures({PROMPTS: 1e3, "ttft_mean_ms": ttft_ms}, **asked(**ALONE, **options))


def repeated(name: str, several: Spread | tuple[float, ...], **options: Any) -> Any:
    kind = "spreads" if isinstance(several, Spread) else "samples"
    return figures({name: 100.0}, **asked(**options), **{kind: {name: several}})


def spread(repetitions: int | None, deviation: float, divisor: Any = "n") -> Spread:
    return Spread(repetitions=repetitions, deviation=deviation, divisor=divisor)


def reported(values: dict[str, float], **changes: Any) -> dict[str, Any]:
    return {"answer": answered(values, **changes)}


OPEN = {"type": "vllm-bench", "mode": "serve", "request_rate": 0.1, "requests": 100}
FIGURES: dict[str, list[Row]] = {
    "memory-bookkeeping": [
        (
            figures(
                {
                    "kv_cache_gib": 10.0,
                    "kv_cache_tokens": 1e6,
                    "kv_bytes_per_token": 1e4,
                }
            ),
            {},
            ": 9.31323 GiB (GB was taken for GiB)",
        ),
    ],
    "inconsistent-report": [
        # A figure that is made of others, to the digits that printing left: 45.70 to 46.19 tokens, and 45.65 to 45.75.
        (
            figures({TPUT: 45.7, SENT: 0.093}, **seen(output_tokens_mean=494.0)),
            {},
            None,
        ),
        # Little's law: 2 a second for 5 s each. Of requests that failed nobody knows how long they took.
        (
            figures(
                {SENT: 2.0, "request_latency_mean_ms": 3200.0, FAILED: 20.0},
                **seen(concurrency_mean=8.0),
            ),
            {},
            None,
        ),
        # Half of the time of the prompts, and twice as much, are too far off.
        (prompt(1010.0), {}, "warning: "),
        (prompt(1010.0, depth=500), {}, None),
        (prompt(50.0, prefix_caching=True), {}, None),
        (
            figures({"ttft_p99_ms": 5.0, "ttft_max_ms": 5.0}, **seen(requests=100)),
            {},
            "info: ",
        ),
        # Eleven tokens, one in the first chunk and one in each of ten; a forced length would take 80 × 12 ms at least.
        (
            figures(
                {
                    "request_latency_mean_ms": 1100.0,
                    "ttft_mean_ms": 100.0,
                    "itl_mean_ms": 100.0,
                },
                **seen(output_tokens_mean=11.0),
            ),
            {},
            None,
        ),
    ],
    "warmed-up": [
        ({}, reported({}, series=(15.0, 10.0, 10.0)), None),
        ({}, reported({}, series=(15.1, 10.0)), None),
    ],
    "failed-requests": [
        (figures({FAILED: 0.99}), {}, "info: "),
        (figures({FAILED: 1.0}), {}, "warning: "),
    ],
    "prefix-cache": [
        (figures({HITS: 25.0}), {}, None),
        (figures({HITS: 90.0}, **asked(prefix_caching=True)), {}, None),
        # 25 of 100 requests were the client's own warm-up: 25 % more.
        (figures({HITS: 50.1}, **asked(warmup=24, requests=75)), {}, "50.1 %"),
    ],
    "offered-load": [
        # 100 requests at 0.1 a second come for 1,000 s, and a mean one may take a fifth of that. Where the client
        # bounds the requests at once, no queue empties at the end.
        (figures({"request_latency_mean_ms": 200e3}, **asked(**OPEN)), {}, None),
        (figures({"request_latency_mean_ms": 201e3}, **asked(**OPEN)), {}, "201 s"),
        (
            figures(
                {"request_latency_mean_ms": 201e3}, **asked(**OPEN, concurrency=25)
            ),
            {},
            None,
        ),
    ],
    "repetitions": [
        # 0.32 x sqrt(3 / 2) is 0.392, and 0.33 gives 0.404.
        (repeated(TPUT, spread(3, 32.0)), {}, None),
        (
            repeated(TPUT, spread(3, 33.0)),
            {},
            "100.00 tok/s ± 40.42 tok/s (40 % over 3)",
        ),
    ],
}

# -- which model ran, and whether its machine can do that ----------------------------------------------------------

OF_SPARK = Machine(kind="dgx-spark", memory_total_gib=100.0, unified_memory=True)
"""273 GB/s of memory bandwidth, 250 TFLOP/s in 16 bits and 500 in 8, by the catalogue."""
TWO_SPARKS = OF_SPARK.model_copy(update={"count": 2})
WAVES = {"batch_size": 8, "requests": 9, "output_tokens": 10}
GGUF = Observed(
    engine="llama.cpp",
    parameters=10 * GB,
    dtype="float16",
    settings={"model_type": "llama 10B F16"},
)


def dense(
    tput: float, weights: int = 2 * GB, *, step: int = GB, **fields: Any
) -> dict[str, Any]:
    """A run of a dense model that reads `step` bytes of weights with every token of its one sequence."""
    facts = Architecture(
        source="matrix",
        weight_bytes=weights,
        dense_bytes_per_step=step,
        expert_bytes=0,
        kv_bytes_per_token=1,
    )
    options = {"type": "command", "batch_size": 1} | fields.pop("asked", {})
    wanted = Requested(
        model_id="x/m", architecture=facts, workload=options, environment={}
    )
    metrics = {TPUT: tput} | fields.pop("metrics", {})
    return {"metrics": metrics, "machine": OF_SPARK, "requested": wanted} | fields


def named(metrics: dict[str, float], **options: Any) -> dict[str, Any]:
    """A run in 16 bits of which only the name tells how large the model is: 31 billion parameters."""
    workload = {"type": "command"} | options
    wanted = Requested(model_id="x/m-31B-it", workload=workload, environment={})
    given = {"metrics": metrics, "machine": OF_SPARK, "requested": wanted}
    return given | seen(dtype="bfloat16")


OF_EXPERTS = named({TPUT: 60.0}, concurrency=1) | {
    "requested": Requested(
        model_id="gpt-oss-20b-F16.gguf",
        model_path="gpt-oss-20b-F16.gguf",
        workload={"type": "llama-bench"},
        environment={},
    ),
    "observed": Observed(
        engine="llama.cpp",
        dtype="float16",
        parameters=20_914_757_184,
        weight_bytes=13_792_639_168,
        settings={"model_type": "gpt-oss 20B F16"},
    ),
}
"""What llama.cpp calls F16 has 5.3 bits a parameter: the experts of gpt-oss are MXFP4 in every file."""

MODELS: dict[str, list[Row]] = {
    "roofline": [
        (OF_EXPERTS, {}, None),
        # 1 GB a step: 232.05 steps a second are 85 % of 273 GB/s.
        (dense(232.0), {}, None),
        (dense(232.1), {}, "warning: "),
        (dense(273.5), {}, "error: "),
        # A gigabyte is read once in 3.66 ms, and no first token comes before.
        (dense(100.0, metrics={"ttft_p50_ms": 3.67}), {}, None),
        (dense(100.0, metrics={"ttft_p50_ms": 3.66}), {}, "error: "),
        # 9 requests in batches of 8 take two waves: 2 steps give 9 tokens, so 1,100 tok/s are 244.4 steps a second.
        (dense(1100.0, asked=WAVES), {}, "warning: "),
        (dense(1e6, **seen(speculative_decoding=True)), {}, None),
        # 62 GFLOP a token; 4,838.7 tokens are 120 % of 250 TFLOP.
        (named({PROMPTS: 4838.0}), {}, None),
        (named({PROMPTS: 4839.0}), {}, "warning: "),
        # 10 billion, by what ran: 85 % of 250 TFLOP are 10,625 tokens.
        (named({PROMPTS: 10_626.0}) | {"observed": GGUF}, {}, "warning: "),
    ],
    "does-not-fit": [
        (dense(1.0, 100 * GIB), {}, None),
        (dense(1.0, 200 * GIB) | {"machine": TWO_SPARKS}, {}, None),
        (
            dense(1.0, 90 * GIB, metrics={"kv_cache_gib": 11.0}),
            {},
            "weights take 90.0 GiB, with the KV cache 101.0 GiB",
        ),
        # A DGX Spark has 119.7 GiB for programs, by the catalogue.
        (dense(1.0, 130 * GIB, machine=SPARK["machine"]), {}, "weights take 130.0 GiB"),
    ],
    "identity": [
        # Whoever generates tokens shows the model that did; what was seen of it has to be of its size.
        (dense(1.0), {}, "warning: "),
        (dense(1.0, **seen(weight_bytes=2 * GB)), {}, None),
        ({"metrics": {"startup_seconds": 1.0}}, {}, None),
        (OF_EXPERTS, {}, None),
        # Of a server that ran before there is only the name that it gives itself.
        (asked(type="llama-benchy", url="http://x") | seen(model_path="/m"), {}, None),
    ],
}


@pytest.mark.parametrize(
    ("small", "large", "rate", "is_found"),
    [
        (2 * GB, 3 * GB, 80.0, False),
        # 120 GB/s of 273: something else may limit both.
        (GB, 1_501_000_000, 80.0, False),
        (GB, 2 * GB, 80.0, True),
        # 1.5 of 80 tok/s are within 2 %, and not with two standard errors: 2 × √2 × √(0.1²/3 + 0.1²/12) = 0.18.
        (GB, 2 * GB, 81.5, False),
    ],
)
def test_models_of_unlike_size_do_not_run_alike(
    small: int, large: int, rate: float, is_found: bool
) -> None:
    """Two models of these bytes per step, with three runs each, one at 80 tok/s."""
    runs = []
    for model, step, tput in (("small", small, 80.0), ("large", large, rate)):
        for iteration, noise in enumerate((0.0, 0.1, -0.1), 1):
            given = dense(tput + noise, step=step, iteration=iteration, model=model)
            runs.append(a_run(**given))
    said("same-numbers", a_view(*runs), "same output" if is_found else None)
    # Under another load the smaller one is more than 1.5 times as fast, or not: then there is one model of two names.
    for rate, found in ((149.0, is_found), (151.0, False)):
        others = [
            replace(run, record=run.record.model_copy(update={"workload": "long"}))
            for run in (
                a_run(**dense(rate, model="small", minute=9)),
                a_run(**dense(100.0, model="large", minute=9)),
            )
        ]
        said("same-numbers", a_view(*runs, *others), "same output" if found else None)


# -- the record against its evidence -------------------------------------------------------------------------------


def filed(role: Any) -> dict[str, Any]:
    item = Evidence(role=role, path="a.txt", sha256="a" * 64, bytes=4096)
    return {"evidence": (item,)}


EVIDENCE: dict[str, list[Row]] = {
    "missing-log": [
        (filed("log"), {}, None),
        # A report that somebody handed over without its log.
        (PUBLISHED | filed("report"), {}, "warning: "),
    ],
    "missing-report": [
        ({}, reported({}, complete=False, truncated=True), None),
    ],
    "metric-mismatch": [
        ({}, reported({TPUT: 100.0 * (1 + 0.9e-6)}), None),
        ({}, reported({TPUT: 100.0 * (1 + 1.2e-6)}), "100 tok/s in the record"),
        ({}, reported({TPUT: 100.0}, printed={TPUT: (100.5, 0.5)}), None),
        (
            {"machine": Machine(gpus=(Gpu(name="NVIDIA GB10"),))},
            reported({TPUT: 100.0}, **seen(device="NVIDIA H100")),
            "GPU: NVIDIA GB10 in the record",
        ),
    ],
}

# -- what the matrix declares --------------------------------------------------------------------------------------

SERVED = {
    "type": "trtllm-bench",
    "requests": 128,
    "input_tokens": 512,
    "output_tokens": 128,
    "max_batch_size": 8,
    "concurrency": 8,
}
MATRIX: dict[str, Any] = {
    "campaign": "c",
    "title": "c",
    "models": {"m": {"id": "x/m"}},
    "environments": {"native": {"type": "host"}, "container": {"type": "host"}},
    "workloads": {"w": SERVED},
    "iterations": 2,
    "equivalence_margin_percent": 2,
}
DECLARED = {"matrix": MATRIX}


def placed(margin_percent: float = 2.0) -> Plan:
    declared = Analysis(primary=(), margin_percent=margin_percent)
    return Plan(position=0, order="interleaved", analysis=declared)


def planned(**fields: Any) -> dict[str, Any]:
    """A run as the matrix declares it, but for `fields`."""
    given = {"environment": "native"} | fields
    wanted = Requested(model_id="x/m", workload=SERVED, environment={"type": "host"})
    matrix = from_document(MATRIX, "c")
    usual = {
        "plan": placed(),
        "requested": wanted,
        "specification": matrix.fingerprint("m", given["environment"], "w"),
    }
    return usual | given


def of_tool(kind: str, options: dict[str, Any], /, **facts: Any) -> dict[str, Any]:
    usual = {"type": kind, "input_tokens": 512, "output_tokens": 128}
    wanted = Requested(model_id="x/m", workload=usual | options, environment={})
    return {"requested": wanted} | seen(**facts)


REQUESTED: list[Row] = [
    (planned(model="other"), DECLARED, "the matrix has no such cell"),
    (planned(specification="0" * 64), DECLARED, "model, seed or options were others"),
    (planned(plan=placed(1.0)), DECLARED, "margin in %: 1 in place of 2"),
    (
        planned(**seen(input_tokens_mean=514.0, output_tokens_mean=126.0)),
        DECLARED,
        None,
    ),
    # 96 of 128 requests succeeded, and 32 or 31 failed.
    (planned(**seen(requests=96), metrics={FAILED: 25.0}), DECLARED, None),
    # An import is asked for its work alone.
    (planned(specification="0" * 64, **PUBLISHED), DECLARED, None),
    # Two rounds of four requests are eight.
    (
        of_tool("llama-benchy", {"concurrency": 4, "repetitions": 2}, requests=4),
        {},
        "requests: 4 in place of 8",
    ),
    # A client that tells the server to go on counts exactly.
    (of_tool("vllm-bench", {}, output_tokens_mean=128.5), {}, None),
    # Of an answer's chunks none may be missing, whatever text prompts are cut from.
    (of_tool("llama-benchy", {}, output_tokens_mean=121.0), {}, "121 in place of 128"),
    (
        of_tool("vllm-bench", {}, output_tokens_mean=128.5)
        | {"argv": ("vllm", "--ignore-eos")},
        {},
        "output",
    ),
    # A chat template may add 10 %, and 64 tokens to a short prompt; answers may end early.
    (
        of_tool(
            "vllm-bench",
            {"input_tokens": 4000},
            input_tokens_mean=4400.0,
            output_tokens_mean=90.0,
        )
        | PUBLISHED,
        {},
        None,
    ),
    (
        of_tool("vllm-bench", {"input_tokens": 32}, input_tokens_mean=97.0) | PUBLISHED,
        {},
        "input tokens",
    ),
]


def lasted(second: str) -> dict[str, Any]:
    """100 s by the monotonic clock."""
    started, ended = (
        Moment(value=f"2026-11-20T10:{at}Z", zone="utc") for at in ("01:00", second)
    )
    return {"started": started, "ended": ended, "duration_seconds": 100.0}


PLANNED: dict[str, list[Row]] = {
    "not-as-requested": REQUESTED,
    # 3 s and 1 % may lie between.
    "time-consistency": [
        (lasted("02:45"), {}, "but 105 s from start to end"),
    ],
}
TABLES = CONDITIONS, FIGURES, MODELS, EVIDENCE, PLANNED


@pytest.mark.parametrize(
    ("check", "run", "beside", "words"),
    [
        (check, *row)
        for table in TABLES
        for check, rows in table.items()
        for row in rows
    ],
)
def test_a_run_is_accused_from_the_limit_on(
    check: str, run: dict[str, Any], beside: dict[str, Any], words: str | None
) -> None:
    said(check, a_view(a_run(**run), **beside), words)


@pytest.mark.parametrize(
    ("value", "source", "check", "words"),
    [
        (None, "log", "missing-report", "exit code 0 but has no figures"),
        (1.0, "report", "missing-report", "coming from a report, but there is none"),
        (1.0, "published", "missing-log", "warning: "),
    ],
)
def test_a_figure_has_come_from_somewhere(
    value: float | None, source: Any, check: str, words: str
) -> None:
    reason = None if value else "x"
    metric = MetricValue(value=value, unit="tok/s", source=source, reason=reason)
    said(check, a_view(with_metrics({TPUT: metric}), answer=answered()), words)


def test_former_names_of_checks_answer_as_before() -> None:
    """A run of which a fact differs counts as before, and claims that rest on it are void as before."""
    busy = a_view(a_run(), samples=quiet(gpu_utilization_percent=10.0))
    (found,) = CHECKS["foreign-load"].run(busy)
    assert "the GPU was 10 % busy before it" in found.message
    assert covers(Acknowledgement(check="foreign-tenant", reason="a desktop"), found)
    view = a_view(a_run(**seen(engine="a")), answer=answered(**seen(engine="b")))
    (found,) = CHECKS["metric-mismatch"].run(view)
    assert covers(Acknowledgement(check="fact-mismatch", reason="an alias"), found)
    campaigns = {"c": view.reviewed}
    assert Review(Dataset(Path(), {}), campaigns, (found,)).voids(found)


# -- memory that grows -------------------------------------------------------------------------------------------

SECONDS = np.arange(600.0)
"""Ten minutes at one sample per second."""


def test_memory_that_does_not_grow_for_good_raises_no_alarm() -> None:
    """A saw: a gibibyte in forty seconds, given back at once; at most one false alarm in 100 phases of ten minutes."""
    draw = np.random.default_rng(11)
    saws = ((SECONDS + draw.integers(40)) % 40 / 40 for _ in range(100))
    series = (40 + saw + draw.normal(0, 0.02, 600) for saw in saws)
    assert sum(growth(SECONDS, each) is not None for each in series) <= 1


def test_a_leak_is_told_with_its_rate() -> None:
    noise = np.random.default_rng(3).normal(0, 0.2, len(SECONDS))
    text = growth(SECONDS, 40 + SECONDS / 60 + noise)  # 1 GiB/min
    assert text is not None
    assert float(text.split()[-2]) == pytest.approx(1.0, rel=0.25)
    slow = SECONDS * 0.1 / 60
    assert growth(SECONDS[:240], slow[:240]) is None  # 0.4 GiB
    assert growth(SECONDS[:330], slow[:330]) is not None  # 0.55 GiB


@pytest.mark.parametrize("begins", [0.0, 300.0, None])
def test_growth_before_the_measurement_is_no_leak(begins: float | None) -> None:
    """Loading a model takes memory; without a beginning nobody knows what was loading."""
    phases: tuple[Phase, ...] = ()
    if begins is not None:
        phases = (Phase(name="measure", start_seconds=begins, end_seconds=600),)
    used = np.minimum(SECONDS, 600 if begins == 0 else 300) / 60
    samples = quiet(SECONDS, mem_available_gib=100 - used)
    words = "leaked memory: memory in use on the machine grew"
    view = a_view(a_run(phases=phases), samples=samples)
    said("leak", view, words if begins == 0 else None)


# -- as many runs as declared ----------------------------------------------------------------------------------


def container(iteration: int = 1, **fields: Any) -> Stored:
    return a_run(environment="container", iteration=iteration, minute=5, **fields)


FEW = "Of the good runs that the matrix declares there are 1 of 2: m/container/w."
BAD: dict[str, Any] = {"status": "failed", "status_reason": "killed"}


@pytest.mark.parametrize(
    ("runs", "check", "words"),
    [
        ([container(**BAD)], "missing-cell", "No good run of m/container/w"),
        ([container(), container(2, repeat_of="another")], "unbalanced", FEW),
        ([container(), container(2, **BAD)], "unbalanced", FEW),
        ([container(), container(2)], "unbalanced", None),
    ],
)
def test_cells_have_as_many_runs_as_declared(
    runs: list[Stored], check: str, words: str | None
) -> None:
    native = [a_run(iteration=number) for number in (1, 2)]
    said(check, a_view(*native, *runs, matrix=MATRIX), words)
