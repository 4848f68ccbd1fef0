"""From a running server to a campaign, with replayed servers and a stand-in for llama-benchy."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect import quick
from sparkpub.collect.quick import FoundServer, Wanted
from sparkpub.plan import matrix as matrices
from sparkpub.plan.workloads.llama_benchy import LlamaBenchyOptions
from sparkpub.record.errors import CollectError, SparkpubError, UsageError
from sparkpub.record.store import read_folder
from tests.calling import sparkpub
from tests.plan.workloads.serving import SENSE, Served, serving
from tests.plan.workloads.test_server_pages import LM_STUDIO, OLLAMA

VLLM = {
    "/v1/models": {
        "data": [{"id": "acme/Walker-8B", "owned_by": "vllm", "max_model_len": 4096}]
    },
    "/version": {"version": "0.24.0"},
}
CLIENT = """#!/bin/sh
while [ $# -gt 0 ]; do
  [ "$1" = --concurrency ] && at_once=$2
  [ "$1" = --pp ] && prompt=$2
  shift
done
echo "  Run 1/1 (batch size $at_once)..."
sleep 0.2
printf '{"version": "0.4.0", "latency_mode": "api", "latency_ms": 0.%s, ' $(date +1%N) > report.json
printf '"benchmarks": [{"concurrency": %s, "prompt_size": %s, ' $at_once $prompt >> report.json
printf '"tg_throughput": {"mean": %s0.0}, "e2e_ttft": {"values": [12.5]}}]}' $at_once >> report.json
echo 'Saving results to report.json'
"""


# -- who answers ---------------------------------------------------------------------------------------------


def test_what_a_server_says_and_one_answer_are_shown() -> None:
    with serving(Served(VLLM)) as server:
        found = quick.look(f"{server.url}/v1/")
    assert found.lines == [
        f"{server.url}: vLLM 0.24.0, model acme/Walker-8B, context 4,096",
        f"answer: {SENSE[:100]} ...",
    ]


@pytest.mark.parametrize(
    ("pages", "model"),
    [
        (OLLAMA, "llama3.2:latest"),
        (LM_STUDIO, "gemma-3-270m-it-qat"),
    ],
)
def test_the_model_that_is_loaded_is_measured(pages: Any, model: str) -> None:
    with serving(Served(pages)) as server:
        assert quick.look(server.url).model == model


def test_of_several_models_none_is_guessed() -> None:
    several = {"/v1/models": {"data": [{"id": "a"}, {"id": "b"}]}}
    with serving(Served(several)) as server:
        with pytest.raises(UsageError, match="has 2 models: a, b") as raised:
            quick.look(server.url)
        assert "choose one with --model" in raised.value.lines()[0]
        assert quick.look(server.url, "b").model == "b"
        with pytest.raises(UsageError, match="does not serve c; correct --model"):
            quick.look(server.url, "c")


def test_a_server_that_repeats_itself_is_measured_with_a_warning() -> None:
    with serving(Served(VLLM, text="!" * 50)) as server:
        found = quick.look(server.url)
    assert found.lines[-1].startswith("warning: the answer makes no sense: it ")
    assert found.lines[-1].endswith("the figures will say so and are not ranked")


@pytest.mark.parametrize("text", ["", "<html><h1>502</h1>"])
def test_what_is_no_answer_of_a_model_is_refused(text: str) -> None:
    with serving(Served(VLLM, text=text)) as server:
        with pytest.raises(CollectError, match="gave no answer: it is ") as said:
            quick.look(server.url)
        assert "--random-weights" in said.value.lines()[0]
        found = quick.look(server.url, random=True)
    assert quick.declare(found, Wanted(), "c")["models"] == {
        "walker-8b": {"id": "acme/Walker-8B", "random_weights": True}
    }


@pytest.mark.parametrize(
    ("pages", "status", "words"),
    [
        ({}, 200, "answered with status 404"),
        (VLLM, 500, "acme/Walker-8B gave no answer: status 500"),
    ],
)
def test_a_server_that_gives_none_is_said(pages: Any, status: int, words: str) -> None:
    with (
        serving(Served(pages, status=status)) as server,
        pytest.raises(SparkpubError, match=words),
    ):
        quick.look(server.url)
    with pytest.raises(UsageError, match="no server answers"):
        quick.look(server.url)  # it is gone by now
    with pytest.raises(UsageError, match="is not an address"):
        quick.look("http://")


# -- the matrix ----------------------------------------------------------------------------------------------


def a_found(engine: str | None = "vLLM", **changes: Any) -> FoundServer:
    identity: dict[str, Any] = {"settings": {}}
    if engine is not None:
        identity["engine"] = engine
    facts: dict[str, Any] = {
        "url": "http://h:1",
        "model": "acme/Walker-8B",
        "identity": identity,
        "answer": {"text": SENSE},
    }
    return FoundServer(**facts | changes)


def workloads(found: FoundServer, wanted: Wanted | None = None) -> dict[str, Any]:
    document = quick.declare(found, wanted or Wanted(), "c")
    declared = matrices.parse(json.dumps(document)).workloads
    assert all(isinstance(item, LlamaBenchyOptions) for item in declared.values())
    return dict(document["workloads"])


def test_prompts_fit_into_the_context() -> None:
    """1,024 tokens have room for 512 in, 128 out and the template, and not for 2,048."""
    small = {"settings": {"max_model_len": "1024"}}
    found = a_found(identity=small)
    assert quick.fitting(found, Wanted()) == [512]
    said = quick.left_out(found, Wanted())
    assert said == "too long for the context: prompts of 2,048 tokens"
    assert quick.left_out(a_found(), Wanted()) == ""
    none = {"settings": {"max_model_len": "256"}}
    with pytest.raises(
        UsageError, match="no prompt fits: the server's context has 256"
    ):
        quick.fitting(a_found(identity=none), Wanted())


def test_what_a_server_cannot_do_is_not_asked_of_it() -> None:
    plain = workloads(a_found())["in512-out128-c1"]
    assert "exact_output" not in plain
    assert "coherence" not in plain
    for engine in ("Ollama", "LM Studio", None):
        assert workloads(a_found(engine))["in512-out128-c1"]["exact_output"] is False
    other = a_found(answer={"text": "Count from one to five."})
    assert workloads(other)["in512-out128-c1"]["coherence"] is False


@pytest.mark.parametrize(
    ("tokens", "seconds", "waves"),
    [
        # 128 tokens take 0.64 s: five requests of one user, one wave of ten.
        (160, 0.8, [5, 1]),
        # 128 tokens take 4 s: two requests fit into ten seconds.
        (160, 5.0, [2, 1]),
        (None, 0.8, [1, 1]),
    ],
)
def test_a_fast_server_gets_more_than_one_request_a_run(
    tokens: int | None, seconds: float, waves: list[int]
) -> None:
    answer = {"text": SENSE, "tokens": tokens, "seconds": seconds}
    found = workloads(a_found(answer=answer), Wanted(input_tokens=(512,)))
    assert [load["repetitions"] for load in found.values()] == waves


def test_enough_rounds_have_an_interval() -> None:
    """Four rounds of 60, 61, 59 and 60: mean 60, sd 0.816, error 0.816 / 2, and Student's t of 3 is 3.18: 60 +- 1.3. A
    step of one adds 1/12 to the squared error: sqrt(0.167 + 0.083) = 0.5, which makes it 60 +- 1.6."""
    assert quick.with_interval([60, 61, 59, 60]) == "60.0 (95 % interval 58.4 to 61.6)"
    assert quick.with_interval([60, 61, 59]) == "60.0"


def test_the_time_is_said_before_it_passes() -> None:
    """Two loads a round, each 5 s and two waves of 128 tokens at 0.02 s: 2 x (5 + 5.12) s."""
    found = a_found()
    document = quick.declare(found, Wanted(input_tokens=(512,)), "c")
    said = quick.takes(found, matrices.parse(json.dumps(document)))
    assert said == "first figures in about 20s, 4 rounds in about 1m21s"


# -- the whole way -------------------------------------------------------------------------------------------


@pytest.fixture
def variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A stand-in for llama-benchy on PATH, and an empty home folder."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "llama-benchy").write_text(CLIENT)
    (programs / "llama-benchy").chmod(0o755)
    return {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path / "home")}


def test_one_command_makes_a_campaign(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    user = tmp_path / "user"
    user.mkdir()
    here: Any = {"cwd": user, **variables}
    asked = ("--at-once", 1, "--at-once", 4, "--prompt", 64, "--rounds", 2)
    with serving(Served(VLLM)) as server:
        done = sparkpub("quick", f"{server.url}/v1", *asked, **here)
        assert done.returncode == 0, done.stderr
        (file,) = (user / "matrix").iterdir()
        again = sparkpub("collect", file, "--no-commit", **here)
        # A second look gets a name of its own.
        third = sparkpub("quick", server.url, *asked[2:-1], 1, "--json", **here)
    (name,) = {path.name for path in (user / "data/comprehensive").iterdir()} - {
        json.loads(third.stdout)["campaign"]
    }
    records = [item.record for item in read_folder(user / "data/comprehensive" / name)]
    assert [record.status for record in records] == ["ok"] * 4
    # The stand-in says ten tokens a second for each request at once.
    found = {
        (record.workload, record.value("output_throughput_tok_s")) for record in records
    }
    assert found == {("in64-out128-c1", 10.0), ("in64-out128-c4", 40.0)}
    lines = done.stdout.splitlines()
    # After each run of the first round, and then the mean of rounds that say the same; two rounds have no interval.
    told = [
        "  one user: first token in 0.01 s, then 10.0 tokens a second",
        "  4 users: first token in 0.01 s, then 40.0 tokens a second in all, 10.0 for each",
    ]
    said = [line.partition("Z ")[2] for line in lines]
    heads = [f"round {number} of 2, 64 tokens in and 128 out:" for number in (1, 2)]
    begin = said.index(heads[0])
    assert said[begin + 1] == told[0]
    assert said.index(heads[0], begin + 2) == said.index(told[1]) - 1
    assert said[said.index(heads[1]) + 1 :][:2] == told
    assert lines[-1] == f"page: sparkpub serve data/comprehensive/{name}"
    assert any(line == f"campaign data/comprehensive/{name}" for line in lines)
    # What the client measured before a run, another time in each, is no setting of the server.
    review = sparkpub("check", name, "--json", **here)
    found = {item["check"] for item in json.loads(review.stdout)["findings"]}
    assert "mixed-machines" not in found
    delays = {record.observed.settings["latency"] for record in records}
    assert len(delays) > 1
    assert "0 runs measured, 0 failed, 0 to do" in again.stdout
    document = json.loads(third.stdout)
    assert document["campaign"] == f"{name}-2"
    assert len(document["runs"]) == 1
