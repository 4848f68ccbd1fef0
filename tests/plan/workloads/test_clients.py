"""Servers that run already: what real clients reported, and the driver around a client against a server of ours.

Reports and server files under `tests/data/logs/openai-endpoint` are of `vllm bench serve` 0.32 and AIPerf 0.13 against
vLLM 0.32 on two processor cores; histograms were cut from the pages with metrics. Another client used the server at the
same time.
"""

import sys
from pathlib import Path
from typing import Any

import pytest

from sparkpub.plan.workloads import command as any_command
from sparkpub.plan.workloads import vllm_bench, withdrawn
from sparkpub.plan.workloads.base import Answer
from sparkpub.plan.workloads.command import CommandOptions
from sparkpub.plan.workloads.payload import pages
from sparkpub.plan.workloads.vllm_bench import VllmBenchOptions
from sparkpub.record.errors import WorkloadError
from sparkpub.record.load import Load
from tests.plan.workloads.running import a_case, run
from tests.plan.workloads.serving import Served, serving

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "data/logs/openai-endpoint"
SERVED = {
    "/v1/models": {"data": [{"id": "tiny", "owned_by": "vllm"}]},
    "/version": {"version": "9.9"},
    "/metrics": "vllm:generation_tokens_total 7\n",
}
CLIENT = """#!/bin/sh
[ "$1" = --version ] && echo "standin 1.5" && exit
printf '%s ' "$@" > argv
cp "$REPORT" report.json
exit 3
"""
LOAD = {
    "mode": "serve",
    "url": "http://127.0.0.1:8101",
    "requests": 12,
    "input_tokens": 64,
    "output_tokens": 16,
    "concurrency": 4,
    "warmup": 4,
}


def files(name: str) -> dict[str, bytes]:
    return {
        "report": (LOGS / f"{name}.report.json").read_bytes(),
        "output": (LOGS / f"{name}.output.json").read_bytes(),
    }


def of_vllm(**changes: Any) -> Answer:
    options = VllmBenchOptions(**LOAD | changes)
    return vllm_bench.parse(b"", files("vllm-bench-0.32"), options)


def of_aiperf() -> Answer:
    options = CommandOptions(
        argv=("aiperf",), reads="aiperf", outputs={"report": "a.json"}
    )
    return any_command.parse(b"", files("aiperf-0.13"), options)


def test_tokens_of_somebody_else_are_said() -> None:
    """17 requests of 16 tokens are this run's at most; the counter rose from 3181 to 3462."""
    said = "the server generated 281 tokens and this run 272 at most: others used it meanwhile"
    assert of_vllm().problems == (said,)
    assert of_vllm(warmup=5).problems == ()


def test_the_load_of_a_command_is_what_its_report_says() -> None:
    """Nobody but the report knows what the words of a command ask for."""
    assert of_aiperf().load == Load("aiperf", 64, 16, in_flight=4, at_once=4)
    sources = {
        "guidellm": ROOT / "data/imports/guidellm/c2.json",
        "sglang": ROOT / "data/imports/sglang/vllm-c2.jsonl",
    }
    for tool, path in sources.items():
        options = CommandOptions(argv=("x",), reads=tool, outputs={"report": path.name})
        answer = any_command.parse(b"", {"report": path.read_bytes()}, options)
        assert answer.load is not None, tool
        assert (answer.load.tool, answer.load.at_once) == (tool, 2)
        assert answer.complete
    none = any_command.parse(b"", {"report": b"{}"}, options)
    assert none.problems == ("no report of sglang",)


@pytest.mark.parametrize("name", ["vllm-bench-0.32", "aiperf-0.13"])
def test_records_of_the_type_that_went_are_read(name: str) -> None:
    answer = withdrawn.parse_endpoint(b"", files(name), None)
    now = of_vllm() if name.startswith("vllm") else of_aiperf()
    rate = "output_throughput_tok_s"
    assert answer.metrics[rate] == now.metrics[rate]
    assert answer.complete
    for kind, words in (("generate", "use vllm-bench"), ("openai-endpoint", "url:")):
        options = withdrawn.WithdrawnOptions.model_construct(type=kind)
        with pytest.raises(WorkloadError, match=f"{kind} is no longer run") as refused:
            withdrawn.command(a_case(), options)
        assert words in (refused.value.remedy or "")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a run; a stand-in for vLLM's client is the only program that can be found."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "vllm").write_text(CLIENT)
    (programs / "vllm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("REPORT", str(LOGS / "vllm-bench-0.32.report.json"))
    made = tmp_path / "run"
    made.mkdir()
    return made


def test_the_driver_asks_measures_and_asks_again(folder: Path) -> None:
    with serving(Served(SERVED)) as server:
        options = VllmBenchOptions(**LOAD | {"url": server.url})
        command = vllm_bench.command(a_case(), options)
        code, log, outputs = run(command, folder)
    assert code == 3, log
    assert [path for path, _ in server.asked].count("/metrics") == 2
    answer = vllm_bench.parse(log, outputs, options)
    assert (answer.observed.engine, answer.observed.engine_version) == ("vLLM", "9.9")
    assert answer.observed.settings["client_version"] == "1.5"
    assert answer.notes[0].startswith("the model answered before the test: Paris")
    argv = (folder / "argv").read_text()
    assert argv.startswith("bench serve --model tiny --tokenizer /models/tiny ")
    assert f"--base-url {server.url} --dataset-name random" in argv
    assert command.variables["HF_HUB_OFFLINE"] == "1"


def test_a_command_of_the_user_s_is_run_in_the_same_driver(folder: Path) -> None:
    script = "import sys; open('o.json', 'w').write('{}'); print(sys.argv[1:])"
    with serving(Served(SERVED)) as server:
        options = CommandOptions(
            argv=(sys.executable, "-c", script, "{url}", "{model}", "{seed}"),
            url=f"{server.url}/v1",
            reads="aiperf",
            outputs={"report": "o.json"},
        )
        code, log, outputs = run(any_command.command(a_case(), options), folder)
    assert code == 0, log
    assert f"['{server.url}', 'tiny', '42']" in log.decode()
    answer = any_command.parse(log, outputs, options)
    assert answer.problems == ("no report of aiperf",)
    assert answer.observed.engine == "vLLM"


def test_a_client_that_is_missing_is_said(
    folder: Path,
) -> None:
    with serving(Served(SERVED)) as server:
        absent = LOAD | {"url": server.url, "executable": "absent"}
        command = vllm_bench.command(a_case(), VllmBenchOptions(**absent))
        code, log, _ = run(command, folder)
    assert code == pages.LASTING
    assert "absent is not installed here" in log.decode()
