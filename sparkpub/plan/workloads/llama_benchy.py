"""llama-benchy, the load generator of Spark owners: any server with an OpenAI-compatible interface, from outside.

Formats: llama-benchy 0.4, `results.py` (the report) and `progress.py` (the events of each request). One run of ours is
one load: a length of the prompt, of the answer and of the context before it, at one concurrency.

Three rates have definitions of the tool. Its rate of the answer begins at the first token of the first request and ends
with the last token of the last one: it has no prefill in it. Its rate of the prompt takes the time to the first
response less the latency that it measured before. A rate is the mean over repetitions, in each of which all requests
are sent at once.

Who counted: the server where its answers carry token ids or `usage`, which the tool prefers; the record says who it was
(`output_tokens_by`), and which tokenizer cut the prompts (`tokenizer`). Prompt lengths are the server's own counts.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from sparkpub.plan.workloads import clients, server_pages
from sparkpub.plan.workloads.base import (
    PYTHON,
    SAID_AT_ONCE,
    WORKDIR,
    Answer,
    ClientOptions,
    Command,
    RunCase,
    flags,
    no_answer,
    payload,
)
from sparkpub.record import package
from sparkpub.tools import reading
from sparkpub.tools.reader import ReportReading, of_tool
from sparkpub.tools.shapes import llama_benchy as shape

_DRIVER, _WANTED = "llama_benchy.py", "benchy.json"
_BESIDE = (_DRIVER, "client.py", "pages.py", "with_key.py", "prose.txt")
_REPORT, _REQUESTS, _SERVER = "report.json", "requests.json", "server.json"
_PROGRESS = "progress.jsonl"
BEGINS = r"Run 1/\d+ \("
"""The first repetition that counts: those before it are called `Warmup`."""
_ENDS = r"(Saving|Printing) results"
PACKAGE = "llama-benchy"
_OTHER_COUNT = 0.2
"""Relative difference from which the tool takes the length asked for in place of the server's count."""
_PRINTED = {
    "coherence": {
        "Coherence test PASSED": "passed",
        "Coherence test FAILED": "failed",
        "Skipping coherence test": "not asked",
    },
    # Where answers lack token ids.
    "output_tokens_by": {
        "No complete token_ids in response, using stream usage": "usage of the server",
        "No token_ids or usage in response": "the tokenizer",
        "assuming 1 token per chunk": "pieces of the stream",
    },
}
"""Setting to what the tool prints, and what that means; the first that is there counts."""
_FAILURES = (
    r"llama_benchy: error: (.*)",
    r"(Warmup failed: .*)",
    r"(Coherence test FAILED.*)",
    r"(llama-benchy: error: .*)",
    r"(HTTP \d{3}: .*)",
    r"(Error downloading or processing book: .*)",
)
"""Lines in which tool or driver say why there is no report, the surest first."""


class LlamaBenchyOptions(ClientOptions):
    """llama-benchy on a server that is already running, or on that of the environment: rounds of requests that are all
    sent at once.

    The tool has to be installed in the environment: sparkpub's extra `quick` brings it, and `uv tool install
    llama-benchy`. It gets a key for the server from the variable `OPENAI_API_KEY` of its
    environment, if the server needs one.

    Example: {type: llama-benchy, url: "http://127.0.0.1:8000", input_tokens: 2048, output_tokens: 128, concurrency: 4}
    """

    type: Literal["llama-benchy"] = "llama-benchy"
    tokenizer: Annotated[str, Field(min_length=1)] | None = None
    """Folder or file of the tokenizer (`tokenizer.json`), or its name on the hub, from which the tool then fetches it.
    None: that of the model's folder; where there is none, the server counts."""
    input_tokens: PositiveInt = 2048
    """Tokens of each prompt (`--pp`), the template of the chat included."""
    output_tokens: PositiveInt = 128
    """Tokens generated per request (`--tg`)."""
    exact_output: bool = True
    """Ask the server to ignore the end-of-sequence token (`--exact-tg`), so that every answer has its full length. Not
    every server does; the record says how long answers were."""
    depth: NonNegativeInt = 0
    """Tokens of a conversation before the prompt (`--depth`)."""
    prefix_caching: bool = False
    """Send the conversation once before it is measured (`--enable-prefix-caching`), so that the server may have it in
    its cache; needs `depth`."""
    concurrency: PositiveInt = 1
    """Requests sent at once (`--concurrency`)."""
    repetitions: PositiveInt = 3
    """Measured rounds (`--runs`), after one that does not count; a rate is their mean."""
    coherence: bool = True
    """Ask for the capital of France first, and measure nothing where the answer is not Paris. Weights that are random
    are not asked."""
    extra_args: tuple[str, ...] = ()
    """Appended to the command, e.g. `--no-cache`."""

    @property
    def programs(self) -> Mapping[str, str]:
        """The tool."""
        return {PACKAGE: _install_command()}


@cache
def _install_command() -> str:
    return package.install_command("quick")


def command(case: RunCase, options: LlamaBenchyOptions) -> Command:
    """A driver that asks the server who it is and runs the tool. Raises WorkloadError without an address."""
    url = case.server_url(options.url, PACKAGE)
    argv = flags(
        {
            "--base-url": f"{url}/v1",
            "--model": "{model}",
            "--tokenizer": "{tokenizer}",
            "--pp": options.input_tokens,
            "--tg": options.output_tokens,
            "--exact-tg": options.exact_output,
            "--depth": options.depth,
            "--enable-prefix-caching": options.prefix_caching,
            "--concurrency": options.concurrency,
            "--runs": options.repetitions,
            "--latency-mode": "api",
            "--skip-coherence": case.random_weights or not options.coherence,
            "--format": "json",
            "--save-result": f"{{folder}}/{_REPORT}",
            "--emit-progress": f"{{folder}}/{_PROGRESS}",
        }
    )
    wanted = {
        "url": url,
        "model": options.model,
        "tokenizer": options.tokenizer,
        "folder": case.model_path,
        "random_weights": case.random_weights,
        "argv": [
            word.replace(WORKDIR, "{folder}") for word in (*argv, *options.extra_args)
        ],
    }
    return Command(
        (PYTHON, f"{WORKDIR}/{_DRIVER}"),
        SAID_AT_ONCE,
        lambda: {
            **{name: payload(name) for name in _BESIDE},
            _WANTED: json.dumps(wanted).encode(),
        },
        {"report": _REPORT, "requests": _REQUESTS, "output": _SERVER},
        BEGINS,
        _ENDS,
    )


def parse(
    log: bytes, files: Mapping[str, bytes], options: LlamaBenchyOptions | None
) -> Answer:
    """Rates from the tool's report, latencies from its events, and who answered from what the server said."""
    left = clients.LeftBehind(log, files)
    said = left.lines
    left.identity["settings"] |= _settings(left.report, left.server, "\n".join(said))
    requests = reading.objects(reading.json_value(files.get("requests")))
    document = shape.of_own_run(left.report, requests)
    if document is None:
        reasons = (reading.search(said, pattern) for pattern in _FAILURES)
        why = next(filter(None, reasons), "llama-benchy ended without its report")
        why = " ".join(why.split())[:300]
        return no_answer(why, reading.observed(left.identity))
    found = ReportReading(of_tool(PACKAGE), document)
    metrics, samples = dict(found.metrics), found.samples
    observed = left.observed(found)
    problems = []
    if options is not None:
        tokens = options.output_tokens
        # Rounds, one before them, and the test of coherence, two warm-ups and three measurements of the latency.
        rounds = (options.repetitions + 1) * (2 if options.prefix_caching else 1)
        most = rounds * options.concurrency * tokens + 100 + 2 + 3
        problems += server_pages.other_users(left.server, most)
    load = document["benchmarks"]
    prompt = reading.positive_int(load.get("prompt_size"))
    if observed.input_tokens_mean is not None and prompt is not None:
        seen = observed.input_tokens_mean
        asked = prompt + (reading.positive_int(load.get("context_size")) or 0)
        if abs(seen - asked) >= _OTHER_COUNT * asked:
            why = f"the tool took {asked} tokens a prompt, and the server counted {seen:g}"
            name = "prompt_throughput_tok_s"
            metrics[name] = reading.metric(name, None, "report", reason=why)
            samples.pop(name, None)
    # The tool leaves out what failed, and its rates are then of a smaller load.
    complete = not load["requests"]["failed"]
    if not reading.known(metrics, "output_throughput_tok_s"):
        complete = False
        problems.append("the report holds no rate of output tokens")
    return left.answer(found, metrics, problems, complete=complete, samples=samples)


def _settings(
    report: Mapping[str, Any], server: Mapping[str, Any], log: str
) -> dict[str, str]:
    """How the tool measured, and who counted the tokens."""
    found: dict[str, str | None] = {"client": PACKAGE}
    found["client_version"] = reading.word(report.get("version"))
    latency = reading.number(report.get("latency_ms"))
    if latency is not None:
        found["latency"] = f"{report.get('latency_mode')}, {latency:.2f} ms"
    for name, meanings in _PRINTED.items():
        said = (meaning for words, meaning in meanings.items() if words in log)
        found[name] = next(said, None)
    if report and found["output_tokens_by"] is None:
        found["output_tokens_by"] = "token ids of the server"
    found["tokenizer"] = shape.fallback_tokenizer(log) or _tokenizer(server)
    return reading.said(found)


def _tokenizer(server: Mapping[str, Any]) -> str | None:
    """What cut the prompts, in words."""
    used = server.get("tokenizer")
    if not isinstance(used, dict):
        return None
    if used.get("by") == "server":
        tokens, characters = used.get("text_tokens"), used.get("text_characters")
        how = used.get("how")
        return f"the server counted: {tokens} tokens in {characters} characters, cut into {how}"
    return reading.word(used.get("file"))
