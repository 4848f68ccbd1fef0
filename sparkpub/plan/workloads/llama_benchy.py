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
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from sparkpub.plan.workloads import clients, llama_server, server_pages
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
from sparkpub.record.record import MetricValue
from sparkpub.tools import agreement, engine, reading

_DRIVER, _WANTED, _TEXT = "llama_benchy.py", "benchy.json", "prose.txt"
_WITH_KEY = "with_key.py"
_REPORT, _REQUESTS, _SERVER = "report.json", "requests.json", "server.json"
_PROGRESS = "progress.jsonl"
BEGINS = r"Run 1/\d+ \("
"""The first repetition that counts: those before it are called `Warmup`."""
_ENDS = r"(Saving|Printing) results"
PACKAGE = "llama-benchy"
_CLIENTS = ([PACKAGE], ["uvx", "--from", PACKAGE, PACKAGE])
_RATES = {
    "output_throughput_tok_s": "tg_throughput",
    "prompt_throughput_tok_s": "pp_throughput",
}
_OTHER_COUNT = 0.2
"""Relative difference from which the tool takes the length asked for in place of the server's count."""
_MEAN_TOLERANCE = 1e-3
"""Relative difference between a mean and its values, which some versions of the tool round to two digits."""
_COUNTED_BY = {
    "No complete token_ids in response, using stream usage": "usage of the server",
    "No token_ids or usage in response": "the tokenizer",
    "assuming 1 token per chunk": "pieces of the stream",
}
"""What the tool prints where answers lack token ids, and who counted then."""
FALLBACK = "gpt2, since that of the model could not be loaded"
"""What records say of the tokenizer that the tool takes in place of the model's: then nobody knows how many tokens of
its own the model read."""
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

    The tool has to be installed in the environment (sparkpub's extra `quick` brings it, and `uv tool install
    llama-benchy`), or `uvx`, which fetches it. It gets a key for the server from the variable `OPENAI_API_KEY` of its
    environment, if the server needs one.

    Example: {type: llama-benchy, url: "http://127.0.0.1:8000", input_tokens: 2048, output_tokens: 128, concurrency: 4}
    """

    type: Literal["llama-benchy"] = "llama-benchy"
    tokenizer: Annotated[str, Field(min_length=1)] | None = None
    """Folder or file of the tokenizer (`tokenizer.json`), or its name on the hub, from which the tool then fetches it.
    None: that of the model's folder, or of the folder that the server names; where there is none, the server counts."""
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
    latency_mode: Literal["api", "generation", "none"] = "api"
    """What is taken off the time of a prompt (`--latency-mode`): the time of a small page, of a single token, or
    nothing."""
    coherence: bool = True
    """Ask for the capital of France first, and measure nothing where the answer is not Paris. Weights that are random
    are not asked."""
    extra_args: tuple[str, ...] = ()
    """Appended to the command, e.g. `--no-cache`."""

    @property
    def programs(self) -> Mapping[str, str]:
        """The tool, or what fetches it."""
        return {PACKAGE: _install_command(), "uvx": ""}


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
            "--latency-mode": options.latency_mode,
            "--skip-coherence": case.random_weights or not options.coherence,
            "--format": "json",
            "--save-result": f"{WORKDIR}/{_REPORT}",
            "--emit-progress": f"{WORKDIR}/{_PROGRESS}",
        }
    )
    wanted = {
        "url": url,
        "model": options.model,
        "tokenizer": options.tokenizer,
        "places": [] if case.model_path is None else [case.model_path],
        "random_weights": case.random_weights,
        "clients": _CLIENTS,
        "argv": [
            word.replace(WORKDIR, "{folder}") for word in (*argv, *options.extra_args)
        ],
    }
    return Command(
        (PYTHON, f"{WORKDIR}/{_DRIVER}"),
        SAID_AT_ONCE,
        lambda: {
            _DRIVER: payload(_DRIVER),
            server_pages.PAYLOAD: payload(server_pages.PAYLOAD),
            _WITH_KEY: payload(_WITH_KEY),
            _TEXT: payload(_TEXT),
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
    report = reading.json_object(files.get("report")) or {}
    server = reading.json_object(files.get("output")) or {}
    said = reading.lines(log)
    identity = engine.merged(
        server_pages.identity(server), engine.printed(said).identity
    )
    identity["settings"] |= _settings(report, server, said)
    load = _load(report)
    if load is None:
        return no_answer(_why(said), reading.observed(identity))
    requests = _measured(files.get("requests"), load)
    good = [request for request in requests if not request.get("error")]
    metrics, samples = _metrics(load, good)
    begins = (place for place, line in enumerate(said) if re.search(BEGINS, line))
    metrics |= server_pages.counted(server)
    metrics |= llama_server.cache_hits(said[next(begins, len(said)) :])
    metrics |= reading.failed_requests(len(requests) - len(good), len(good))
    identity |= _lengths(good)
    observed = reading.observed(identity)
    problems = _failed(requests) + _contradictions(load)
    if options is not None:
        if options.exact_output:
            tokens = options.output_tokens
            problems += clients.other_lengths(observed, None, tokens)
        problems += server_pages.other_users(server, _most_tokens(options))
    seen, asked = observed.input_tokens_mean, _asked(load)
    if seen and asked and abs(seen - asked) >= _OTHER_COUNT * asked:
        why = f"the tool took {asked} tokens a prompt, and the server counted {seen:g}"
        metrics["prompt_throughput_tok_s"] = reading.metric(
            "prompt_throughput_tok_s", None, "report", reason=why
        )
        samples.pop("prompt_throughput_tok_s", None)
    # The tool leaves out what failed, and its rates are then of a smaller load.
    complete = len(good) == len(requests)
    if not reading.known(metrics, "output_throughput_tok_s"):
        complete = False
        problems.append("the report holds no rate of output tokens")
    return Answer(
        metrics,
        observed,
        complete=complete,
        problems=tuple(problems),
        notes=server_pages.answered(server),
        samples=samples,
    )


def _load(report: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The load of a report; with prefix caching that of the prompt, not of the conversation sent before it, which an
    import has as a run of its own."""
    loads = reading.objects(report.get("benchmarks"))
    if len(loads) == 1:
        return loads[0]
    for load in loads:
        if load.get("is_context_prefill_phase") is not True:
            return load
    return None


def _metrics(
    load: Mapping[str, Any], requests: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, MetricValue], dict[str, tuple[float, ...]]]:
    """The metrics of a load, and the repetitions of its rates."""
    means = {name: f"{theirs}.mean" for name, theirs in _RATES.items()}
    metrics = reading.metrics_at(load, means, "report")
    samples = {}
    for name, theirs in _RATES.items():
        values = reading.numbers(reading.at(load, f"{theirs}.values"))
        if reading.known(metrics, name) and len(values) > 1:
            samples[name] = tuple(values)
    first = reading.numbers(reading.at(load, "e2e_ttft.values"))
    rates = reading.numbers(reading.at(load, "tg_req_throughput.values"))
    latencies = [_latency(request) for request in requests]
    known = [latency for latency in latencies if latency]
    # A table has the mean alone.
    metrics |= reading.metrics_at(load, {"ttft_mean_ms": "e2e_ttft.mean"}, "report")
    metrics |= reading.distributions(
        {
            "ttft": first,
            "tpot": _token_times(requests)
            or [1e3 / rate for rate in rates if rate > 0],
            "request_latency": [1e3 * latency for latency in known],
        },
        "report",
    )
    users = [
        tokens / latency
        for request, latency in zip(requests, latencies, strict=True)
        if latency and (tokens := reading.number(request.get("total_tokens")))
    ]
    if users:
        metrics["output_throughput_per_user_tok_s"] = reading.metric(
            "output_throughput_per_user_tok_s", sum(users) / len(users), "report"
        )
    return metrics, samples


def _contradictions(load: Mapping[str, Any]) -> list[str]:
    """Where the means of a load are not those of its repetitions, and requests are missing."""
    problems = []
    values = {
        name: reading.numbers(reading.at(measured, "values"))
        for name, measured in load.items()
    }
    for name, measured in load.items():
        said = {"mean": reading.at(measured, "mean")}
        problems += agreement.of_values(name, said, values[name], _MEAN_TOLERANCE)
    return problems + _lost(load, values)


def _lost(load: Mapping[str, Any], values: Mapping[str, Sequence[float]]) -> list[str]:
    """Requests that no list holds: the tool leaves out those that failed."""
    each = reading.positive_int(load.get("concurrency"))
    rounds = max((len(values.get(name, ())) for name in _RATES.values()), default=0)
    seen = len(values.get("e2e_ttft", ()))
    if each is None or not seen or seen >= each * rounds:
        return []
    return [f"{seen} of {each * rounds} requests have a first token"]


def _latency(request: Mapping[str, Any]) -> float | None:
    """Seconds from a request to the end of its answer; None where it had no token."""
    first = reading.number(request.get("ttft_s"))
    rest = reading.number(request.get("decode_seconds"))
    if first is None or rest is None or first <= 0 or rest < 0:
        return None
    return first + rest


def _token_times(requests: Sequence[Mapping[str, Any]]) -> list[float]:
    """Milliseconds for each token after the first, of each request, by the same clock as its latency: the rates of the
    report go on for some milliseconds behind the last token, until the stream is closed."""
    found = []
    for request in requests:
        tokens = reading.number(request.get("total_tokens"))
        seconds = reading.number(request.get("decode_seconds"))
        if tokens and tokens > 1 and seconds is not None and seconds > 0:
            found.append(1e3 * seconds / (tokens - 1))
    return found


def _measured(
    content: bytes | None, load: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """The requests of a load. With prefix caching, the first ones of each round only sent the conversation."""
    requests = reading.objects(reading.json_value(content))
    each = reading.positive_int(load.get("concurrency")) or 1
    rounds: dict[Any, list[Mapping[str, Any]]] = {}
    for request in requests:
        rounds.setdefault(str(request.get("run_index")), []).append(request)
    kept: list[Mapping[str, Any]] = []
    for of_round in rounds.values():
        kept += of_round[each:] if len(of_round) == 2 * each else of_round
    return kept


def _lengths(requests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Requests, their mean lengths as the server counted them, and how long they took together."""
    found: dict[str, Any] = {"requests": len(requests) or None}
    for field, theirs in (
        ("input_tokens_mean", "prompt_tokens"),
        ("output_tokens_mean", "total_tokens"),
    ):
        counts = [reading.positive_int(request.get(theirs)) for request in requests]
        known = [count for count in counts if count is not None]
        if known and len(known) == len(counts):
            found[field] = sum(known) / len(known)
    starts = reading.numbers([request.get("started") for request in requests])
    ends = reading.numbers([request.get("ended") for request in requests])
    if starts and ends and max(ends) > min(starts):
        found["measured_seconds"] = max(ends) - min(starts)
    return found


def _asked(load: Mapping[str, Any]) -> int | None:
    """Tokens of a prompt and of the conversation before it, as they were asked for."""
    prompt = reading.positive_int(load.get("prompt_size"))
    before = reading.positive_int(load.get("context_size")) or 0
    return None if prompt is None else prompt + before


def _most_tokens(options: LlamaBenchyOptions) -> int:
    """Tokens that a run lets the server generate at most: the rounds, and what is asked before them."""
    rounds = options.repetitions + 1
    if options.prefix_caching:
        rounds *= 2
    before = (
        100 + 2 + 3
    )  # the test of coherence, two warm-ups, three measurements of the latency
    return rounds * options.concurrency * options.output_tokens + before


def _failed(requests: Sequence[Mapping[str, Any]]) -> list[str]:
    """Requests without an answer."""
    errors = [str(request["error"]) for request in requests if request.get("error")]
    if not errors:
        return []
    first = " ".join(errors[0].split())[:200]
    return [f"{len(errors)} of {len(requests)} requests failed: {first}"]


def _settings(
    report: Mapping[str, Any], server: Mapping[str, Any], said: Sequence[str]
) -> dict[str, str]:
    """How the tool measured, and who counted the tokens."""
    found = {"client": PACKAGE}
    version = reading.word(report.get("version"))
    if version is not None:
        found["client_version"] = version
    latency = reading.number(report.get("latency_ms"))
    if latency is not None:
        found["latency"] = f"{report.get('latency_mode')}, {latency:.2f} ms"
    log = "\n".join(said)
    for words, state in (
        ("Coherence test PASSED", "passed"),
        ("Coherence test FAILED", "failed"),
        ("Skipping coherence test", "not asked"),
    ):
        if words in log:
            found["coherence"] = state
    if report:
        counted = [who for words, who in _COUNTED_BY.items() if words in log]
        found["output_tokens_by"] = (counted or ["token ids of the server"])[0]
    tokenizer = _tokenizer(server.get("tokenizer"), log)
    if tokenizer is not None:
        found["tokenizer"] = tokenizer
    return found


def fallback_tokenizer(log: str) -> str | None:
    """The tokenizer that the tool took in place of the model's, as its output says."""
    return FALLBACK if "Falling back to 'gpt2'" in log else None


def _tokenizer(used: Any, log: str) -> str | None:
    """What cut the prompts, in words."""
    fallback = fallback_tokenizer(log)
    if fallback is not None:
        return fallback
    if not isinstance(used, dict):
        return None
    if used.get("by") == "server":
        tokens, characters = used.get("text_tokens"), used.get("text_characters")
        how = used.get("how")
        return f"the server counted: {tokens} tokens in {characters} characters, cut into {how}"
    return reading.word(used.get("file"))


def _why(said: Sequence[str]) -> str:
    """Why there is no report."""
    for pattern in _FAILURES:
        found = reading.search(said, pattern)
        if found is not None:
            return " ".join(found.split())[:300]
    return "llama-benchy ended without its report"
