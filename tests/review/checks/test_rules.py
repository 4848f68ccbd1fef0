"""The table of rules itself: a name that nothing gives would be NaN for ever, and its rule asleep."""

import inspect
import re
from dataclasses import fields
from typing import Any

import pytest

from sparkpub.record.load import Load
from sparkpub.record.metrics import METRICS
from sparkpub.record.record import Gpu, Machine, Observed
from sparkpub.review.checks import CHECKS, conditions, rules, sensors
from sparkpub.review.checks.rules import (
    CALLED,
    DEFINED,
    Breaks,
    FiguresOfRuns,
    Rule,
    broken,
    memory_gib,
)
from tests.review.checks.in_memory import a_run, a_view, answered, said, told


def test_every_name_of_a_rule_is_given_by_something() -> None:
    given = {*METRICS, *Observed.model_fields, *DEFINED, *CALLED}
    given |= {f"asked_{field.name}" for field in fields(Load)}
    given |= {f"{name}_operations" for name in METRICS}
    given |= {"deviation_tpot", "deviation_output_tokens", "True"}
    source = "".join(map(inspect.getsource, (rules, conditions, sensors)))
    asked = [one.cases for check in CHECKS.values() for one in check.asked]
    every = [rule for one in asked if isinstance(one, Breaks) for rule in one.rules]
    expressions = [part for rule in every for part in (rule.holds, *rule[2:])]
    for expression in (*DEFINED.values(), *expressions):
        for name in re.findall(r"\b[A-Za-z_]\w+", expression):
            assert name in given or f'"{name}"' in source, name


@pytest.mark.parametrize(
    ("holds", "places"),
    [
        # Of 1 and 2, of 2 and 2, of 3 and 2, and of 2 beside nothing.
        ("one == two", [0, 2]),
        ("one != two", [1]),
        ("one <= two", [2]),
        ("one >= two", [0]),
        ("one - 1 >= 1e-9", [0]),
    ],
)
def test_what_is_not_known_breaks_no_rule(holds: str, places: list[int]) -> None:
    rows = [
        {"one": 1.0, "two": 2.0},
        {"one": 2.0, "two": 2.0},
        {"one": 3.0, "two": 2.0},
    ]
    found = broken(Rule(holds), FiguresOfRuns([*rows, {"one": 2.0}]))
    assert [place for place, _ in found] == places


def test_a_share_and_an_amount_are_allowed() -> None:
    figures = FiguresOfRuns([{"one": 100.0, "two": 111.0}])
    # A tenth of the larger one is 11.1; a twentieth 5.55, and 5.45 are missing.
    assert not list(broken(Rule("one == two", share="0.1"), figures))
    assert not list(broken(Rule("one == two", share="0.05", off="5.5"), figures))
    assert list(broken(Rule("one == two", share="0.05", off="5.4"), figures))


TPUT = "output_throughput_tok_s"
PROMPTS = "prompt_throughput_tok_s"
SENT = "request_throughput_req_s"
FAILED, HITS = "failed_requests_percent", "prefix_cache_hit_percent"
CARD = Machine(
    gpus=(
        Gpu(
            name="G",
            power_limit_watt=100.0,
            memory_total_gib=80.0,
            clock_max_sm_mhz=1000.0,
        ),
    )
)
ALONE = {"input_tokens": 500, "concurrency": 1}
LATE = {"request_latency_mean_ms": 1100.0, "ttft_mean_ms": 100.0, "itl_mean_ms": 100.0}
"""A second after the first token, in ten chunks."""


def asked(**options: Any) -> dict[str, Any]:
    return {"workload": options}


def seen(**facts: Any) -> dict[str, Any]:
    return {"observed": Observed(**facts)}


@pytest.mark.parametrize(
    ("check", "metrics", "fields", "words"),
    [
        ("unit", {"gpu_power_mean_watt": 110.0}, {}, None),
        (
            "unit",
            {"gpu_power_mean_watt": 110.5},
            {},
            "110.5 W, and the GPU's limit is 100",
        ),
        ("unit", {"gpu_memory_peak_gib": 80.0}, {}, None),
        ("unit", {"gpu_memory_peak_gib": 80.1}, {}, "the machine has 80 GiB"),
        (
            "memory-bookkeeping",
            {"weights_gib": 10.1, "allocated_peak_gib": 10.0},
            {},
            "10.1 GiB, more than peak",
        ),
        (
            "memory-bookkeeping",
            {"kv_cache_gib": 10.0, "kv_cache_tokens": 1e6, "kv_bytes_per_token": 1e4},
            {},
            ": 9.31323 GiB (GB was taken for GiB)",
        ),
        # A figure that is made of others, to the digits that printing left: 45.70 to 46.19 tokens, and 45.65 to 45.75.
        (
            "inconsistent-report",
            {TPUT: 45.7, SENT: 0.093},
            seen(output_tokens_mean=494.0),
            None,
        ),
        (
            "inconsistent-report",
            {TPUT: 130.0, SENT: 1.0},
            seen(output_tokens_mean=128.0),
            "is 130 tok/s, and request",
        ),
        # Of 2 a second for 6 s one second may be the client's own.
        (
            "inconsistent-report",
            {SENT: 2.0, "measured_time_ms": 6000.0},
            seen(requests=9),
            "measured seconds: 12",
        ),
        # Little's law: 2 a second for 5 s each. Of requests that failed nobody knows how long they took.
        (
            "inconsistent-report",
            {SENT: 2.0, "request_latency_mean_ms": 5000.0},
            seen(concurrency_mean=8.0),
            "and in flight: 10",
        ),
        (
            "inconsistent-report",
            {
                SENT: 2.0,
                "request_latency_mean_ms": 3200.0,
                "failed_requests_percent": 20.0,
            },
            seen(concurrency_mean=8.0),
            None,
        ),
        # 500 tokens of prompt at 1,000 a second: half of that time, and twice as much, are too far off.
        (
            "inconsistent-report",
            {PROMPTS: 1e3, "ttft_mean_ms": 1010.0},
            asked(**ALONE),
            "warning: ",
        ),
        (
            "inconsistent-report",
            {PROMPTS: 1e3, "ttft_mean_ms": 1010.0},
            asked(**ALONE, depth=500),
            None,
        ),
        (
            "inconsistent-report",
            {PROMPTS: 1e3, "ttft_mean_ms": 50.0},
            asked(**ALONE, prefix_caching=True),
            None,
        ),
        (
            "inconsistent-report",
            {"ttft_mean_ms": 5.1, "ttft_max_ms": 5.0},
            {},
            "5.1 ms, more than maximum",
        ),
        (
            "inconsistent-report",
            {"ttft_p99_ms": 5.0, "ttft_max_ms": 5.0},
            seen(requests=100),
            "info: ",
        ),
        ("failed-requests", {FAILED: 0.99}, {}, "info: "),
        ("failed-requests", {FAILED: 1.0}, {}, "warning: "),
        ("prefix-cache", {HITS: 25.0}, {}, None),
        ("prefix-cache", {HITS: 25.1}, {}, "25.1 % of their tokens"),
        ("prefix-cache", {HITS: 90.0}, asked(prefix_caching=True), None),
        # 25 of 100 requests were the client's own warm-up: 25 % more.
        ("prefix-cache", {HITS: 50.1}, asked(warmup=24, requests=75), "50.1 %"),
        # Eleven tokens, one in the first chunk and one in each of ten; a forced length would take 80 × 12 ms at least.
        ("inconsistent-report", LATE, seen(output_tokens_mean=11.0), None),
    ],
)
def test_figures_of_one_run_agree(
    check: str, metrics: dict[str, float], fields: dict[str, Any], words: str | None
) -> None:
    said(check, a_view(a_run(metrics, machine=CARD, **fields)), words)


@pytest.mark.parametrize(
    ("series", "words"),
    [
        ((15.0, 10.0, 10.0), None),
        ((15.1, 10.0, 10.0), "15.1 ms, while the others take 10.0 ms"),
        ((15.1, 10.0), None),
    ],
)
def test_a_first_batch_shows_a_cold_start(
    series: tuple[float, ...], words: str | None
) -> None:
    said("warmed-up", a_view(a_run(), answer=answered(series=series)), words)


@pytest.mark.parametrize("complete", [True, False])
def test_what_the_parser_noticed_counts_where_the_report_is_whole(
    complete: bool,
) -> None:
    answer = answered(problems=("two tables",), complete=complete)
    assert len(told("inconsistent-report", a_view(a_run(), answer=answer))) == complete


def test_the_memory_of_a_gpu_is_known_from_the_run_then_from_the_machine() -> None:
    gpus = tuple(Gpu(name="a", memory_total_gib=gib) for gib in (80.0, 40.0, None))
    two = Machine(memory_total_gib=200.0, gpus=gpus)
    one = two.model_copy(update={"unified_memory": True})
    assert memory_gib(a_run(machine=two).record) == 120.0
    assert memory_gib(a_run(machine=one).record) == 200.0
    assert memory_gib(a_run(machine=two, **seen(device="cpu")).record) == 200.0
    assert memory_gib(a_run(machine=one, **seen(device_total_gib=79.0)).record) == 79.0
    assert memory_gib(a_run(machine=Machine(memory_total_gib=9.0)).record) is None
