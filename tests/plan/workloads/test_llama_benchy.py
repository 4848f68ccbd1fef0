"""llama-benchy: what real files of it say, its command, and the driver against a server of ours.

The reports under `tests/data/imports/llama-benchy` are of llama-benchy 0.4.0. The run under
`tests/data/logs/llama-benchy` is of 0.4.0 against llama-server b11434 on two processor cores, as the collector keeps
it.
"""

import json
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from sparkpub.plan.workloads import llama_benchy
from sparkpub.plan.workloads.base import Answer, RunCase
from sparkpub.plan.workloads.llama_benchy import LlamaBenchyOptions
from sparkpub.plan.workloads.payload import pages
from tests.plan.workloads.running import a_case, run
from tests.plan.workloads.serving import (
    CHARACTERS_PER_TOKEN,
    TEMPLATE_TOKENS,
    Served,
    serving,
)

DATA = Path(__file__).parents[2] / "data"
IMPORTS = DATA / "imports/llama-benchy"
SAID = json.loads((DATA / "llama-benchy.json").read_text())
"""What the tool prints of who counted, and of why there is no report."""
LOAD = LlamaBenchyOptions(
    url="127.0.0.1:8000",
    input_tokens=96,
    output_tokens=16,
    concurrency=4,
    repetitions=2,
)
PAGES = {
    "/v1/models": {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 4096}]},
    "/version": {"version": "0.24.0"},
}


def report_of(name: str, index: int) -> dict[str, Any]:
    """A report with one load of a real one of several."""
    document: dict[str, Any] = json.loads((IMPORTS / name).read_text())
    return document | {"benchmarks": [document["benchmarks"][index]]}


def parsed(report: Any, log: str = "", **files: Any) -> Answer:
    content = {role: json.dumps(document).encode() for role, document in files.items()}
    content["report"] = json.dumps(report).encode()
    return llama_benchy.parse(log.encode(), content, None)


# -- what real reports say -----------------------------------------------------------------------------------


def test_a_load_of_which_a_request_failed_is_another_load() -> None:
    """The tool leaves the request out, and its rates are then of three at once in place of four."""
    requests: list[dict[str, Any]] = [
        {"request_id": number, "run_index": 1} for number in range(4)
    ]
    requests[2]["error"] = "Server disconnected"
    answer = parsed(report_of("depth-conc.json", 0), requests=requests)
    assert not answer.complete
    assert "1 of 4 requests failed: Server disconnected" in answer.problems
    assert answer.metrics["failed_requests_percent"].value == 25


# -- who counted ---------------------------------------------------------------------------------------------


def test_a_rate_of_prompts_that_the_server_counts_otherwise_is_none() -> None:
    """The tool takes the length asked for, here 64, where the server's count is further away than 20 %."""
    report = report_of("depth-conc.json", 0)
    assert report["benchmarks"][0]["prompt_size"] == 64
    for counted, known in ((76, True), (77, False)):
        requests = [{"request_id": 0, "run_index": 1, "prompt_tokens": counted}]
        metric = parsed(report, requests=requests).metrics["prompt_throughput_tok_s"]
        assert (metric.value is not None) is known
    assert (
        metric.reason == "the tool took 64 tokens a prompt, and the server counted 77"
    )


# -- why there is no report ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("log", "why"), SAID["reasons"])
def test_the_reason_is_what_the_tool_said(log: str, why: str) -> None:
    answer = llama_benchy.parse(log.encode(), {}, LOAD)
    assert not answer.complete
    assert answer.problems[0].startswith(why)


# -- the driver ----------------------------------------------------------------------------------------------

CLIENT = """#!/bin/sh
printf '%s\\n' "$@" > argv
env > variables
cp "$HOME"/.cache/llama-benchy/*.txt text
echo '{"schema":"v1","type":"request_start","ts":1.0,"request_id":0,"run_index":1}' > progress.jsonl
echo '{"type":"tokens","ts":1.5,"request_id":0,"count":1,"snippet":"x"}' >> progress.jsonl
echo '{"type":"request_end","ts":2.0,"request_id":0,"total_tokens":16,"prompt_tokens":96}' >> progress.jsonl
exit 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a run; a stand-in for llama-benchy is on PATH, and the home folder is empty."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "llama-benchy").write_text(CLIENT)
    (programs / "llama-benchy").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_HOME", raising=False)
    work = tmp_path / "run"
    work.mkdir()
    return work


def driven(
    folder: Path, server: Served, of: RunCase | None = None, **options: Any
) -> tuple[int, str, dict[str, Any]]:
    """What the driver did: its exit code, its log, and server.json."""
    changed = LOAD.model_copy(update={"url": server.url, **options})
    code, log, files = run(
        llama_benchy.command(of or a_case(model_path=None), changed), folder
    )
    return code, log.decode(), json.loads(files.get("output", b"{}"))


def test_where_there_is_no_tokenizer_the_server_counts(folder: Path) -> None:
    with serving(Served(PAGES)) as server:
        code, log, kept = driven(folder, server)
    assert code == 3, log
    text = (folder / "prose.txt").read_text()
    # 3,000 characters at 3.7 to a token are 811.
    count = round(len(text) * round(3000 / CHARACTERS_PER_TOKEN) / 3000)
    assert kept["tokenizer"] == {
        "file": None,
        "by": "server",
        "how": "pieces of even length",
        "text_tokens": count,
        "text_characters": len(text),
        "template_tokens": TEMPLATE_TOKENS,
    }
    sent = (folder / "text").read_text()
    pieces = sent.split("\u2063")
    assert "".join(pieces) == text
    assert len(pieces) == pytest.approx(len(text) / CHARACTERS_PER_TOKEN, rel=1e-3)
    assert {len(piece) for piece in pieces} == {3, 4}
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    assert set(pieces) < vocabulary.keys()
    argv = (folder / "argv").read_text().split("\n")
    assert argv[argv.index("--tokenizer") + 1] == str(folder / "tokenizer.json")
    assert "HF_HUB_OFFLINE=1" in (folder / "variables").read_text()
    home = Path(os.environ["HOME"]) / ".cache/llama-benchy"
    assert list(home.iterdir()) == []  # the text is taken away again
    assert "Paris" in kept["answer"]["text"]
    # Without the tokens one by one.
    (request,) = json.loads((folder / "requests.json").read_text())
    assert (request["started"], request["ended"], request["total_tokens"]) == (1, 2, 16)
    assert len(request) == 8


def test_the_models_tokenizer_is_found(folder: Path, tmp_path: Path) -> None:
    own, other = tmp_path / "model", tmp_path / "other"
    for place in (own, other):
        place.mkdir()
        (place / "tokenizer.json").write_text("{}")
    with serving(Served(PAGES)) as server:
        found = [
            driven(folder, server, of, **options)[2]["tokenizer"]["file"]
            for of, options in (
                (a_case(model_path=str(own)), {}),
                (a_case(model_path=str(own)), {"tokenizer": str(other)}),
                (a_case(), {"tokenizer": "owner/name"}),
            )
        ]
    files = [str(place / "tokenizer.json") for place in (own, other)]
    assert found == [*files, "owner/name"]
    # Whoever names one on the hub wants it fetched.
    assert "HF_HUB_OFFLINE" not in (folder / "variables").read_text()
    assert (folder / "text").read_text() == (folder / "prose.txt").read_text()


@pytest.mark.parametrize(
    ("server", "options", "words", "code"),
    [
        (Served(PAGES, text=""), {}, "gave no answer: it is empty", pages.LASTING),
        (Served(PAGES, counts=False), {}, "name a tokenizer", pages.LASTING),
        (Served({}, status=503), {}, "wait until it has loaded its model", 1),
        (Served(PAGES), {"model": "z"}, "does not serve z", pages.LASTING),
        (Served(PAGES), {"tokenizer": "/none"}, "no tokenizer at", pages.LASTING),
    ],
)
def test_what_cannot_be_measured_is_said(
    folder: Path, server: Served, options: dict[str, Any], words: str, code: int
) -> None:
    with serving(server):
        ended, log, _ = driven(folder, server, **options)
    assert words in log
    assert ended == code
    answer = llama_benchy.parse(log.encode(), {}, LOAD)
    assert words in answer.problems[0]


IN_PYTHON = """
import json, pathlib, sys
def main():
    seen = pathlib.Path("/proc/self/cmdline").read_text().split("\\0")
    pathlib.Path("seen").write_text(json.dumps({"argv": sys.argv, "seen": seen}))
    return 3
"""


@pytest.fixture(params=["#!{}", "#!/bin/sh\n'''exec' '{}' \"$0\" \"$@\"\n' '''"])
def installed(
    request: pytest.FixtureRequest,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stand-in for llama-benchy that is installed as pip installs it, or in a folder of a long name."""
    package = tmp_path / "package"
    facts = package / "llama_benchy-0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Name: llama-benchy\nVersion: 0\n")
    (facts / "entry_points.txt").write_text(
        "[console_scripts]\nllama-benchy = llama_benchy:main\n"
    )
    (package / "llama_benchy.py").write_text(IN_PYTHON)
    monkeypatch.setenv("PYTHONPATH", str(package))
    first = request.param.format(sys.executable)
    script = f"{first}\nimport sys, llama_benchy\nsys.exit(llama_benchy.main())\n"
    (tmp_path / "bin/llama-benchy").write_text(script)


@pytest.mark.usefixtures("installed")
def test_a_key_reaches_the_tool_and_nobody_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command line is for everybody on the machine to read."""
    argv = []
    for key in ("", "sk-a-key-of-somebody"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        with serving(Served(PAGES)) as server:
            code, log, kept = driven(folder, server)
        assert code == 3, log
        found = json.loads((folder / "seen").read_text())
        argv.append([word.replace(server.url, "URL") for word in found["argv"][1:]])
        assert "sk-a-key" not in log
        assert "sk-a-key" not in json.dumps([kept, found["seen"]])
    without, with_key = argv
    assert with_key == [*without, "--api-key", "sk-a-key-of-somebody"]


TOOL = shutil.which("llama-benchy")


@pytest.mark.skipif(TOOL is None, reason="needs llama-benchy")
def test_the_real_tool_takes_what_it_is_given(tmp_path: Path) -> None:
    with serving(Served(PAGES)) as server:
        options = LOAD.model_copy(update={"url": server.url})
        code, log, files = run(
            llama_benchy.command(a_case(model_path=None), options), tmp_path
        )
    assert code == 0, log
    answer = llama_benchy.parse(log, files, options)
    assert answer.problems == ()
    seen = answer.observed
    assert (seen.requests, seen.output_tokens_mean) == (8, 16)
    # Within a token of what was asked for, by the server's own count.
    assert seen.input_tokens_mean == pytest.approx(96, abs=1)
    assert seen.settings["coherence"] == "passed"
    assert seen.settings["output_tokens_by"] == "usage of the server"
