"""Servers that run already: what two real clients reported, and the driver against a server of ours.

Reports and server files under `tests/data/logs/openai-endpoint` are of `vllm bench serve` 0.32 and AIPerf 0.13 against
vLLM 0.32 on two processor cores, with the options of `LOAD`; histograms were cut from the pages with metrics. Another
client used the server at the same time.
"""

import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from sparkpub.plan.environments import Server
from sparkpub.plan.workloads import openai_endpoint
from sparkpub.plan.workloads.base import Answer, RunCase
from sparkpub.plan.workloads.openai_endpoint import OpenaiEndpointOptions
from sparkpub.plan.workloads.payload import pages
from sparkpub.record.errors import WorkloadError
from tests.plan.workloads.running import run

LOGS = Path(__file__).parents[2] / "data/logs/openai-endpoint"
LOAD = OpenaiEndpointOptions(
    url="http://127.0.0.1:8101",
    requests=12,
    input_tokens=64,
    output_tokens=16,
    concurrency=4,
    warmup=4,
)


def case(**changes: Any) -> RunCase:
    facts: dict[str, Any] = {
        "model_key": "tiny",
        "model_id": "tiny/model",
        "model_path": "/models/tiny",
        "model_config": None,
        "random_weights": True,
        "iteration": 1,
        "seed": 42,
        "workload_key": "c4",
    }
    return RunCase(**facts | changes)


def real(name: str, options: OpenaiEndpointOptions | None = LOAD) -> Answer:
    files = {
        "report": (LOGS / f"{name}.report.json").read_bytes(),
        "output": (LOGS / f"{name}.server.json").read_bytes(),
    }
    return openai_endpoint.parse(b"", files, options)


def values(answer: Answer) -> dict[str, float | None]:
    return {name: metric.value for name, metric in answer.metrics.items()}


def test_what_the_client_of_vllm_printed() -> None:
    answer = real("vllm-bench-0.32")
    printed = {
        "output_throughput_tok_s": 10.43,
        "total_throughput_tok_s": 52.43,
        "request_throughput_req_s": 0.65,
        "measured_time_ms": 18410.0,
        "ttft_mean_ms": 693.69,
        "ttft_p50_ms": 666.24,
        "ttft_p99_ms": 1108.09,
        "tpot_mean_ms": 361.92,
        "itl_p95_ms": 1390.44,
        "request_latency_mean_ms": 6122.44,
        "request_latency_p90_ms": 8875.69,
    }
    found = values(answer)
    assert {name: found[name] for name in printed} == pytest.approx(printed, rel=5e-3)
    # Printed: 12 requests, 773 input tokens, 192 generated.
    seen = answer.observed
    assert (seen.requests, seen.input_tokens_mean, seen.output_tokens_mean) == (
        12,
        pytest.approx(773 / 12),
        16,
    )
    assert seen.settings["client"] == "vllm"
    assert seen.settings["client_version"] == "0.32.0+cpu"


def test_what_aiperf_printed() -> None:
    answer = real("aiperf-0.13")
    printed = {
        "output_throughput_tok_s": 8.06,
        "request_throughput_req_s": 0.51,
        "ttft_mean_ms": 1409.31,
        "ttft_min_ms": 619.39,
        "ttft_max_ms": 2177.16,
        "ttft_p99_ms": 2176.31,
        "ttft_p90_ms": 2169.39,
        "ttft_p50_ms": 1382.04,
        "request_latency_mean_ms": 7857.81,
        "request_latency_p50_ms": 6997.38,
        "tpot_mean_ms": 432.01,
        "tpot_p90_ms": 529.30,
        "output_throughput_per_user_tok_s": 2.10,
        "measured_time_ms": 23690.0,
    }
    found = values(answer)
    assert {name: found[name] for name in printed} == pytest.approx(printed, rel=1e-2)
    seen = answer.observed
    assert (seen.requests, seen.input_tokens_mean, seen.output_tokens_mean) == (
        12,
        64,
        pytest.approx(191 / 12),
    )
    assert answer.complete


@pytest.mark.parametrize("name", ["vllm-bench-0.32", "aiperf-0.13"])
def test_the_server_says_who_it_is(name: str) -> None:
    answer = real(name)
    seen = answer.observed
    assert (seen.engine, seen.engine_version, seen.model_path) == (
        "vLLM",
        "0.32.0",
        "models/tiny-llama",
    )
    assert seen.settings["max_model_len"] == "2048"
    # 1,024 blocks of 128 tokens.
    assert values(answer)["kv_cache_tokens"] == 131_072


def test_tokens_of_somebody_else_are_seen() -> None:
    """17 requests of 16 tokens are this run's at most; the counter rose from 3181 to 3462, and from 3557 to 4037."""
    said = "the server generated {} tokens and this run 272 at most: others used it meanwhile"
    assert real("vllm-bench-0.32").problems == (said.format(281),)
    assert real("aiperf-0.13").problems == (said.format(480),)
    assert real("vllm-bench-0.32", LOAD.model_copy(update={"warmup": 5})).problems == ()


def test_another_load_than_the_one_asked_for_is_said() -> None:
    other = LOAD.model_copy(update={"input_tokens": 128, "warmup": 50})
    assert real("aiperf-0.13", other).problems == (
        "prompts had 64 tokens on average instead of 128",
    )
    from_a_file = LOAD.model_copy(
        update={"dataset": "/data/prompts.jsonl", "warmup": 50}
    )
    assert real("aiperf-0.13", from_a_file).problems == ()


def identity(
    said: dict[str, Any], metrics: str = "", model: str = "m"
) -> dict[str, Any]:
    server = json.dumps(
        {"model": model, "said": said, "metrics_after": metrics}
    ).encode()
    return openai_endpoint.parse(b"", {"output": server}, None).observed.model_dump()


def test_what_a_real_llama_server_says() -> None:
    """The pages of llama-server b11434, without its template for chats, around another client."""
    server = (LOGS / "llama-server-b11434.server.json").read_bytes()
    seen = openai_endpoint.parse(b"", {"output": server}, None).observed
    assert (seen.engine, seen.engine_version) == ("llama.cpp", "b11434-unknown")
    assert seen.model_path == "models/tiny-llama/tiny-llama-q8_0.gguf"
    assert (seen.parameters, seen.weight_bytes) == (27_271_680, 29_001_728)
    assert (seen.dtype, seen.quantization, seen.batch_size) == (None, "Q8_0", 4)
    plain = identity(
        {"/v1/models": {"data": [{"id": "x"}, {"id": "m", "meta": {"ftype": "F16"}}]}}
    )
    assert (plain["dtype"], plain["quantization"]) == ("float16", None)


def test_failures_of_aiperf_are_said() -> None:
    report = json.loads((LOGS / "aiperf-0.13.report.json").read_text())
    report |= {
        "error_request_count": {"unit": "requests", "avg": 2.0},
        "was_cancelled": True,
        "is_complete": False,
        "incomplete_reason": "stalled",
    }
    answer = openai_endpoint.parse(b"", {"report": json.dumps(report).encode()}, None)
    assert answer.problems == (
        "AIPerf was cancelled",
        "AIPerf did not finish: stalled",
    )
    # 2 failed and 12 succeeded
    assert values(answer)["failed_requests_percent"] == pytest.approx(200 / 14)
    report["time_to_first_token"]["unit"] = "fortnights"
    assert (
        "ttft_mean_ms"
        not in openai_endpoint.parse(
            b"", {"report": json.dumps(report).encode()}, None
        ).metrics
    )


def wanted(case: RunCase, options: OpenaiEndpointOptions) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        openai_endpoint.command(case, options).files()["endpoint.json"]
    )
    return document


def test_both_clients_get_the_same_load() -> None:
    document = wanted(case(), LOAD.model_copy(update={"request_rate": 2.0}))
    vllm, aiperf = (" ".join(client["argv"]) for client in document["clients"])
    seed = case().prompt_seed
    for words in (
        "vllm bench serve --model {model} --tokenizer /models/tiny --base-url http://127.0.0.1:8101",
        "--random-input-len 64 --random-output-len 16",
        "--num-prompts 12",
        "--num-warmups 4",
        "--max-concurrency 4",
        "--request-rate 2.0",
        f"--seed {seed}",
        "--ignore-eos",
        "--temperature 0.0",
    ):
        assert words in vllm
    for words in (
        "aiperf profile --model {model} --tokenizer /models/tiny --url http://127.0.0.1:8101",
        "--isl 64 --isl-stddev 0",
        "--osl 16 --osl-stddev 0",
        "--request-count 12",
        "--warmup-request-count 4",
        "--concurrency 4",
        "--streaming",
        "--request-rate 2.0",
        f"--random-seed {seed}",
        "ignore_eos:true",
        "temperature:0",
    ):
        assert words in aiperf
    chosen = wanted(
        case(), LOAD.model_copy(update={"client": "aiperf", "extra_args": ("--x",)})
    )["clients"]
    assert [client["name"] for client in chosen] == ["aiperf"]
    assert chosen[0]["argv"][-1] == "--x"


@pytest.mark.parametrize(
    ("before", "begins", "ends"),
    [
        ("Warmup run completed.", "Starting main benchmark run...", None),
        # AIPerf 0.13.0 as it printed, a run with a warm-up.
        (
            "15:16:19.428 NOTICE   Phase warmup (warmup) started | phase_index=0 | target: 2 requests (runner.py:660)",
            "15:16:26.475 NOTICE   Phase profiling (profiling) started | phase_index=1 | profiling_index=0",
            "15:16:36.511 NOTICE   Phase profiling (profiling) complete | completed=12, cancelled=0, errors=0",
        ),
    ],
)
def test_the_measurement_lies_between_the_lines_of_the_client(
    before: str, begins: str, ends: str | None
) -> None:
    command = openai_endpoint.command(case(), LOAD)
    assert command.measured_from is not None
    assert command.measured_until is not None
    assert re.search(command.measured_from, begins)
    assert not re.search(command.measured_from, before)
    during = (
        "15:16:28.743 NOTICE   Phase profiling (profiling) sending complete | sent=12"
    )
    for line in (before, begins, during):
        assert not re.search(command.measured_until, line)
    assert ends is None or re.search(command.measured_until, ends)


def test_what_must_be_declared() -> None:
    served = wanted(
        case(server=Server(argv=("serve",), port=8200)), OpenaiEndpointOptions()
    )
    assert served["url"] == "http://127.0.0.1:8200"
    with pytest.raises(WorkloadError, match="address"):
        openai_endpoint.command(case(), OpenaiEndpointOptions())
    with pytest.raises(WorkloadError, match="tokenizer"):
        openai_endpoint.command(case(model_path=None), LOAD)
    with pytest.raises(ValidationError, match="extra_args needs client"):
        OpenaiEndpointOptions(extra_args=("--x",))
    with pytest.raises(ValidationError, match="either dataset or input_tokens"):
        OpenaiEndpointOptions(dataset="/data/p.jsonl", input_tokens=5)
    with pytest.raises(ValidationError, match="is not an address"):
        OpenaiEndpointOptions(url="http://")


class Pages(http.server.BaseHTTPRequestHandler):
    """A server that lists one model, and generates 16 tokens with every look at its metrics."""

    looks = 0
    says = "Paris is the capital of France, and known for its tower."

    def do_POST(self) -> None:
        message = {"role": "assistant", "content": type(self).says}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"choices": [{"message": message}]}).encode())

    def do_GET(self) -> None:
        pages = {
            "/v1/models": '{"data": [{"id": "tiny", "owned_by": "vllm"}]}',
            "/version": '{"version": "9.9"}',
        }
        if self.path == "/metrics":
            pages["/metrics"] = f"vllm:generation_tokens_total {16 * type(self).looks}"
            type(self).looks += 1
        self.send_response(200 if self.path in pages else 404)
        self.end_headers()
        self.wfile.write(pages.get(self.path, "").encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = http.server.HTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


CLIENT = """#!/bin/sh
[ "$1" = --version ] && echo "standin 1.5" && exit
printf '%s ' "$@" > argv
echo '{"completed": 1, "output_throughput": 5.0, "total_output_tokens": 16}' > report.json
exit 3
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a run; a stand-in for vLLM's client is the only program that can be found."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "vllm").write_text(CLIENT)
    (programs / "vllm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def test_the_driver_asks_measures_and_asks_again(address: str, client: Path) -> None:
    data = client / "data.jsonl"
    data.write_text('{"prompt": "one"}\n{"prompt": "two"}\n')
    options = OpenaiEndpointOptions(
        url=address, requests=3, output_tokens=8, warmup=0, dataset=str(data)
    )
    code, log, files = run(openai_endpoint.command(case(), options), client)
    assert code == 3, log
    answer = openai_endpoint.parse(log, files, options)
    assert values(answer) == {"output_throughput_tok_s": 5.0}
    assert (answer.observed.engine, answer.observed.engine_version) == ("vLLM", "9.9")
    assert answer.observed.settings["client_version"] == "1.5"
    argv = (client / "argv").read_text()
    assert "--model tiny " in argv
    assert f"--dataset-path {client}/prompts.jsonl" in argv
    sent = [
        json.loads(line) for line in (client / "prompts.jsonl").read_text().splitlines()
    ]
    assert (
        [line["prompt"] for line in sent]
        == [line["text"] for line in sent]
        == ["one", "two", "one"]
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{}", "line 1 is no JSON object with a prompt"),
        (None, "No such file"),
    ],
)
def test_a_data_set_that_cannot_be_used_is_said(
    address: str, client: Path, content: str | None, words: str
) -> None:
    data = client / "data.jsonl"
    if content is not None:
        data.write_text(content)
    code, log, _ = run(
        openai_endpoint.command(
            case(), LOAD.model_copy(update={"url": address, "dataset": str(data)})
        ),
        client,
    )
    assert code == 1
    assert words in log.decode()


def test_a_server_or_a_client_that_is_missing_is_said(
    address: str, client: Path, unused_port: int
) -> None:
    silent = LOAD.model_copy(update={"url": f"http://127.0.0.1:{unused_port}"})
    code, log, files = run(openai_endpoint.command(case(), silent), client)
    assert code == 1
    assert (
        f"no server answers at http://127.0.0.1:{unused_port}/v1/models" in log.decode()
    )
    assert openai_endpoint.parse(log, files, silent).problems == (
        "no report from the client",
    )
    other = LOAD.model_copy(update={"url": address, "client": "aiperf"})
    code, log, _ = run(openai_endpoint.command(case(), other), client)
    assert code == pages.LASTING
    assert "none of these clients is installed here: aiperf" in log.decode()
