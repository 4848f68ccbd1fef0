"""What holds for every workload of the registry."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from sparkpub.plan.environments import OPTIONS, Server
from sparkpub.plan.matrix import Gates
from sparkpub.plan.workloads import WORKLOADS, WorkloadOptions
from sparkpub.plan.workloads.withdrawn import WithdrawnOptions
from sparkpub.record.record import metric_problems
from sparkpub.tools import reading


def test_every_workload_is_an_option_of_the_matrix() -> None:
    """The registry and the type of the options name the same ones."""
    union, *_ = get_args(WorkloadOptions)
    kinds = {
        get_args(options.model_fields["type"].annotation)[0]: options
        for options in get_args(union)
    }
    assert kinds == {name: member.options for name, member in WORKLOADS.items()}


PARTS = {
    **{
        f"workload {name}": member.options
        for name, member in WORKLOADS.items()
        if not issubclass(member.options, WithdrawnOptions)
    },
    **{f"environment {name}": options for name, options in OPTIONS.items()},
    "gates": Gates,
    "server": Server,
}


@pytest.mark.parametrize("part", PARTS)
def test_every_option_says_what_it_means(part: str) -> None:
    """The reference page prints these texts."""
    silent = [
        name
        for name, field in PARTS[part].model_fields.items()
        if name != "type" and not (field.description or "").endswith(".")
    ]
    assert silent == []


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("log", [b"", b"\xff\xfe\x00", b"[[[[", b"{}"])
def test_no_parser_raises_and_none_calls_nothing_complete(
    name: str, log: bytes
) -> None:
    answer = WORKLOADS[name].parse(log, {"report": log, "requests": log}, None)
    assert not answer.complete
    assert answer.problems


JUNK = [
    None,
    "x",
    "",
    [],
    [[]],
    {},
    {"a": 1},
    -1,
    0,
    1e308,
    float("nan"),
    True,
    "\ud800",
]
PHASE = {"name": "load", "start_seconds": 0.0, "end_seconds": 1.0}
LOGS = Path(__file__).parents[2] / "data/logs/trtllm-bench"
# Small reports with every part that a parser reads, for those that read one.
REPORTS: dict[str, tuple[Any, Any]] = {
    "matmul": (
        {
            "gflop_s": 1.0,
            "mean_ms": 1.0,
            "times_ms": [1.0],
            "correct": True,
            "size": 5,
            "settings": {"a": "b"},
            "phases": [PHASE],
            "phases_epoch": 1.0,
            "device": "cpu",
        },
        None,
    ),
    "trtllm-bench": (
        json.loads((LOGS / "report-and-requests.report.json").read_text()),
        json.loads((LOGS / "report-and-requests.requests.json").read_text())[:1],
    ),
    "vllm-bench": (
        {
            "latencies": [1.0],
            "avg_latency": 1.0,
            "elapsed_time": 1.0,
            "completed": 1,
            "failed": 1,
            "duration": 1.0,
            "model_id": "m",
            "num_requests": 1,
            "output_throughput": 1.0,
            "mean_ttft_ms": 1.0,
        },
        None,
    ),
    "llama-bench": (
        [
            {
                "n_gen": 1,
                "n_prompt": 0,
                "avg_ts": 1.0,
                "samples_ns": [1],
                "samples_ts": [1.0, 2.0],
                "model_size": 1,
                "model_n_params": 1,
                "build_commit": "a",
                "build_number": 1,
                "type_k": "f16",
                "gpu_info": "x",
                "n_threads": 4,
            }
        ],
        None,
    ),
    "llama-benchy": (
        {
            "version": "0.4.0",
            "latency_mode": "api",
            "latency_ms": 1.0,
            "benchmarks": [
                {
                    "concurrency": 1,
                    "context_size": 0,
                    "prompt_size": 64,
                    "is_context_prefill_phase": False,
                    "pp_throughput": {"mean": 1.0, "values": [1.0, 2.0]},
                    "tg_throughput": {"mean": 1.0, "values": [1.0, 2.0]},
                    "tg_req_throughput": {"values": [1.0]},
                    "e2e_ttft": {"values": [1.0]},
                }
            ],
        },
        [
            {
                "run_index": 1,
                "started": 1.0,
                "ended": 2.0,
                "ttft_s": 0.5,
                "decode_seconds": 0.5,
                "total_tokens": 2,
                "prompt_tokens": 64,
                "error": "",
            }
        ],
    ),
    "openai-endpoint": (
        {
            "aiperf_version": "0.13.0",
            "request_latency": {"unit": "ms", "avg": 1.0},
            "is_complete": True,
            "output_token_throughput": {"unit": "tokens/sec", "avg": 1.0},
            "request_count": {"avg": 1},
            "benchmark_duration": {"unit": "sec", "avg": 1.0},
        },
        None,
    ),
}


def damaged(document: Any) -> Iterator[Any]:
    """The document with each of its parts replaced by each piece of junk, or gone."""
    yield from JUNK
    if isinstance(document, dict):
        for key, value in document.items():
            yield {name: other for name, other in document.items() if name != key}
            yield from (document | {key: other} for other in damaged(value))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from (
                [*document[:index], other, *document[index + 1 :]]
                for other in damaged(value)
            )


@pytest.mark.parametrize("name", REPORTS)
def test_no_damage_to_a_report_makes_a_parser_raise(name: str) -> None:
    report, requests = REPORTS[name]
    pairs = [(other, requests) for other in damaged(report)]
    pairs += (
        [(report, other) for other in damaged(requests)] if requests is not None else []
    )
    assert len(pairs) > 100
    for one, two in pairs:
        files = {
            "report": json.dumps(one).encode(),
            "requests": json.dumps(two).encode(),
        }
        answer = WORKLOADS[name].parse(b"", files, None)
        for metric, value in answer.metrics.items():
            assert not metric_problems(metric, value), (one, two)
        assert answer.samples.keys() <= answer.metrics.keys()
        assert all(
            math.isfinite(value)
            for values in answer.samples.values()
            for value in values
        )


@pytest.mark.parametrize(
    "printed",
    [
        b"rate 5",
        b"rate\x1b(B\x1b[m 5",  # as `tput sgr0` prints it
        b"\x1b]0;a title\x07rate 5",
        b"rate \x1bP+q544e\x1b\\5",
        b"rate\x1b7 5\x1b8",
    ],
)
def test_no_escape_sequence_hides_a_figure(printed: bytes) -> None:
    assert (
        reading.search(reading.lines(b"\xb0\n" + printed + b"\n"), r"rate ([0-9.]+)")
        == "5"
    )
