"""`llama-bench` of llama.cpp, from its JSON: an array (`-o json`) or one object per line (`-o jsonl`).

Each object is one test: `n_gen` > 0 with `n_prompt` = 0 is generation at batch 1, the other way round is prompt
processing; `n_depth` tokens are in the KV cache before either. One run of ours is one shape: one prompt test and one
generation test at one depth. A sweep over depth is several workloads of a matrix, so that each depth is a cell of its
own with its own statistics. Tokenisation and sampling are not measured, and fields vary by build, so unknown ones are
ignored.

The tool warms up with one pass, which is not enough: on an H200 the first repetition of a prompt of 512 tokens was
slower than the others by 29 %. So a run makes `warmup` repetitions more, and its rates are means over the rest. An
import knows of no warm-up: there all repetitions count, as they do in the tool's own `avg_ts`, and the check for a
first repetition that stands apart looks at them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from sparkpub.plan.workloads.base import Answer, Command, Options, RunCase, flags
from sparkpub.record import weights
from sparkpub.record.errors import WorkloadError
from sparkpub.record.record import MetricValue, Observed, Source
from sparkpub.tools import agreement, reading

CacheType = Literal["f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"]
"""Number formats of the KV cache."""

_SIX_DIGITS = 1e-4
"""The tool prints rates with six digits; a mean over many of them is off by less than this."""
_A_TEST = r'"n_gen": \d'
"""The line with a test's result, which is printed when the test is over."""
_MODEL_TYPE = re.compile(r"(?P<family>\S+) \S*(?:B|M|K|\?) (?P<format>.+)")
"""`llama 8B F16`, `qwen2 7B Q4_K - Medium`: family, size, and format of the weights."""
_SETTINGS = (
    "model_type",
    "backends",
    "n_gpu_layers",
    "n_cpu_moe",
    "flash_attn",
    "n_threads",
    "n_batch",
    "n_ubatch",
    "type_k",
    "type_v",
    "n_depth",
    "split_mode",
    "no_kv_offload",
    "load_mode",
    "use_mmap",
)
_SWITCHES = ("no_kv_offload", "use_mmap")


class LlamaBenchOptions(Options):
    """Prompt processing of `input_tokens` and generation of `output_tokens`, each measured by itself at batch 1, both
    behind `depth` tokens that are in the KV cache already. The quantisation is that of the model's file.

    Example: {type: llama-bench, input_tokens: 512, output_tokens: 128, depth: 4096}
    """

    type: Literal["llama-bench"] = "llama-bench"
    input_tokens: NonNegativeInt = 512
    """Tokens of the prompt that is processed (`--n-prompt`); 0 leaves the test out."""
    output_tokens: NonNegativeInt = 128
    """Tokens generated (`--n-gen`); 0 leaves the test out."""
    depth: NonNegativeInt = 0
    """Tokens in the KV cache before each test (`--n-depth`); filling it is not measured."""
    repetitions: PositiveInt = 5
    """How often each test is measured; its rate is their mean."""
    warmup: NonNegativeInt = 1
    """Repetitions of each test before the measured ones, besides the tool's own warm-up; they do not count."""
    n_batch: PositiveInt | None = None
    """Most tokens of a prompt submitted together (`--batch-size`); none: the tool's default, 2048."""
    n_ubatch: PositiveInt | None = None
    """Most tokens of a prompt computed together (`--ubatch-size`); none: the tool's default, 512."""
    flash_attention: bool | None = None
    """Whether attention is computed by one fused kernel (`--flash-attn`); none: the build's default."""
    cache_type_k: CacheType | None = None
    """Number format of the cached keys (`--cache-type-k`); none: f16."""
    cache_type_v: CacheType | None = None
    """Number format of the cached values (`--cache-type-v`); none: f16. A quantised one needs `flash_attention`."""
    gpu_layers: NonNegativeInt | None = None
    """Layers computed on the GPU (`--n-gpu-layers`); none: the build's default, which is all of them."""
    threads: PositiveInt | None = None
    """Processor threads (`--threads`); none: the tool's choice."""
    extra_args: tuple[str, ...] = ()
    """Appended to the command, e.g. `--split-mode`, `none`."""
    executable: Annotated[str, Field(min_length=1)] = "llama-bench"
    """The program, by name or path."""

    @model_validator(mode="after")
    def _something_to_measure(self) -> Self:
        if self.input_tokens == 0 and self.output_tokens == 0:
            raise ValueError(
                "input_tokens and output_tokens are both 0, so nothing would be measured"
            )
        return self


@dataclass(frozen=True)
class Test:
    """One test of llama-bench. Times are in ns and rates in tok/s, one for each repetition, in order."""

    document: Mapping[str, Any]
    prompt_tokens: int
    generated_tokens: int
    nanoseconds: tuple[float, ...]
    rates: tuple[float, ...]
    mean_rate: float | None
    """The mean as the tool gives it, over all repetitions."""

    @property
    def generates(self) -> bool:
        """Whether it measures generation alone."""
        return self.generated_tokens > 0 and self.prompt_tokens == 0

    @property
    def processes_a_prompt(self) -> bool:
        """Whether it measures prompt processing alone."""
        return self.prompt_tokens > 0 and self.generated_tokens == 0


def command(case: RunCase, options: LlamaBenchOptions) -> Command:
    """One command; JSON lines, because standard output shares the log with the loader's messages."""
    if case.model_path is None:
        what = "llama-bench needs a GGUF file"
        raise WorkloadError(what, where=f"models.{case.model_key}", remedy="add path:")
    flash_attention: int | None = options.flash_attention
    if flash_attention is not None:
        flash_attention = int(flash_attention)  # a flag with a value
    argv = flags(
        {
            "--model": case.model_path,
            "--n-prompt": options.input_tokens,
            "--n-gen": options.output_tokens,
            "--n-depth": options.depth,
            "--repetitions": options.repetitions + options.warmup,
            "--batch-size": options.n_batch,
            "--ubatch-size": options.n_ubatch,
            "--flash-attn": flash_attention,
            "--cache-type-k": options.cache_type_k,
            "--cache-type-v": options.cache_type_v,
            "--n-gpu-layers": options.gpu_layers,
            "--threads": options.threads,
            "--output": "jsonl",
            "--progress": True,
        }
    )
    return Command(
        (options.executable, *argv, *options.extra_args),
        measured_from=rf"benchmark 1/\d+: (?:prompt|generation) run {options.warmup + 1}/",
        measured_until=_A_TEST,
    )


def parse(
    log: bytes, files: Mapping[str, bytes], options: LlamaBenchOptions | None
) -> Answer:
    """The tests found in the report file of an import, or in the log, where the tool prints them."""
    source: Source = "log"
    if "report" in files:
        source = "report"
    tests = _tests(files.get("report", log))
    warmup = 0
    if options is not None:
        warmup = options.warmup
    generation = [test for test in tests if test.generates]
    prompts = [test for test in tests if test.processes_a_prompt]
    metrics: dict[str, MetricValue] = {}
    samples: dict[str, tuple[float, ...]] = {}
    # The rate of generation first: it is what a run is about.
    for name, found in (
        ("output_throughput_tok_s", generation),
        ("prompt_throughput_tok_s", prompts),
    ):
        if found:
            metrics[name] = reading.metric(name, _rate(found[-1], warmup), source)
            samples[name] = found[-1].rates[warmup:]
    if generation:
        # Each repetition's time, divided by its tokens.
        per_token = [
            time / 1e6 / generation[-1].generated_tokens
            for time in generation[-1].nanoseconds[warmup:]
        ]
        metrics |= reading.distribution("tpot", per_token, source)
    problems = _problems(tests, generation, prompts, options)
    complete = any(reading.known(metrics, name) for name in samples)
    counted = [*generation[-1:], *prompts[-1:]]
    return Answer(
        metrics,
        _observed(counted, warmup),
        said_at=_said_at(tests),
        complete=complete,
        problems=tuple(problems),
        samples={
            name: rates
            for name, rates in samples.items()
            if len(rates) > 1 and reading.known(metrics, name)
        },
    )


def _said_at(tests: Sequence[Test]) -> datetime | None:
    """When the first test began, which the tool writes in UTC."""
    if not tests:
        return None
    text = reading.word(tests[0].document.get("test_time"))
    with suppress(ValueError):
        return datetime.fromisoformat(text or "")
    return None


def _rate(test: Test, warmup: int) -> float | None:
    """Mean rate of a test in tok/s: over the repetitions after the warm-up, or the tool's own where there was none."""
    measured = test.rates[warmup:]
    if warmup == 0:
        return test.mean_rate
    if not measured:
        return None
    return sum(measured) / len(measured)


def _problems(
    tests: Sequence[Test],
    generation: Sequence[Test],
    prompts: Sequence[Test],
    options: LlamaBenchOptions | None,
) -> list[str]:
    """What is missing, or more than one run of ours can hold."""
    if not tests:
        return ["no report: llama-bench printed no test"]
    problems = []
    if len(generation) > 1 or len(prompts) > 1:
        problems.append(f"{len(tests)} tests in one run; the last of each kind counts")
    for test in (*generation, *prompts):
        problems += _disagreements(test)
    if not generation and not prompts:
        problems.append(
            "only tests that mix prompt and generation: no rate of either alone"
        )
    if options is None:
        return problems
    if options.input_tokens and not prompts:
        problems.append("the test of the prompt is missing")
    if options.output_tokens and not generation:
        problems.append("the test of generation is missing")
    wanted = options.repetitions + options.warmup
    problems += [
        f"{len(test.rates)} of {wanted} repetitions in a test"
        for test in (*generation, *prompts)
        if len(test.rates) != wanted
    ]
    return problems


def _disagreements(test: Test) -> Iterator[str]:
    """Where a test's means are not those of its repetitions."""
    said = {"samples_ts": test.mean_rate, "samples_ns": test.document.get("avg_ns")}
    for name, values in (("samples_ts", test.rates), ("samples_ns", test.nanoseconds)):
        yield from agreement.of_values(name, {"mean": said[name]}, values, _SIX_DIGITS)


def _tests(data: bytes) -> list[Test]:
    """Every test in a document, in JSON lines, or in an array printed between other lines."""
    return [
        test for document in _documents(data) if (test := _test(document)) is not None
    ]


def _documents(data: bytes) -> Iterator[dict[str, Any]]:
    array = re.search(r"^\[\n.*^\]$", reading.text(data), re.DOTALL | re.MULTILINE)
    document = reading.json_value(data)
    if document is None and array is not None:
        document = reading.json_value(array[0].encode())
    if document is None:
        document = [
            reading.json_value(line.encode())
            for line in reading.lines(data)
            if line.startswith("{")
        ]
    if isinstance(document, dict):
        yield document
    yield from reading.objects(document)


def _test(document: Mapping[str, Any]) -> Test | None:
    """A test from its JSON object; None for an object that is none."""
    if "n_gen" not in document:
        return None
    return Test(
        document,
        prompt_tokens=reading.positive_int(document.get("n_prompt")) or 0,
        generated_tokens=reading.positive_int(document.get("n_gen")) or 0,
        nanoseconds=tuple(reading.numbers(document.get("samples_ns"))),
        rates=tuple(reading.numbers(document.get("samples_ts"))),
        mean_rate=reading.number(document.get("avg_ts")),
    )


def _observed(tests: Sequence[Test], warmup: int) -> Observed:
    """What the tests say of engine, model and load. Nothing in them says whether the weights are random."""
    if not tests:
        return Observed()
    first = tests[0].document
    generation = next((test for test in tests if test.generates), None)
    prompt = next((test for test in tests if test.processes_a_prompt), None)
    measured = [time for test in tests for time in test.nanoseconds[warmup:]]
    model_type = reading.word(first.get("model_type")) or ""
    known_type = _MODEL_TYPE.fullmatch(model_type)
    facts: dict[str, Any] = {}
    if known_type:
        facts |= weights.facts(known_type["format"])
    if generation is not None:
        facts["requests"] = len(generation.nanoseconds[warmup:])
        facts["output_tokens_mean"] = generation.generated_tokens
    if prompt is not None:
        facts["input_tokens_mean"] = prompt.prompt_tokens
    if measured:
        facts["measured_seconds"] = sum(measured) / 1e9
    return reading.observed(
        {
            **facts,
            "engine": "llama.cpp",
            "engine_version": _version(first),
            "model_path": reading.word(first.get("model_filename")),
            "parameters": reading.positive_int(first.get("model_n_params")),
            "weight_bytes": reading.positive_int(first.get("model_size")),
            "kv_cache_dtype": reading.word(first.get("type_k")),
            "device": reading.word(first.get("gpu_info"))
            or reading.word(first.get("cpu_info")),
            "batch_size": 1,
            "settings": {
                name: _setting(name, str(first[name]))
                for name in _SETTINGS
                if first.get(name) is not None
            },
        }
    )


def _setting(name: str, said: str) -> str:
    """A switch as JSON has it, which is a number in tables."""
    if name in _SWITCHES:
        return {"0": "False", "1": "True"}.get(said, said)
    return said


def _version(test: Mapping[str, Any]) -> str | None:
    """`b6710 (8e6f8bc8)`; a build outside git knows no commit, or gives the number for it."""
    commit = reading.word(test.get("build_commit"))
    number = reading.positive_int(test.get("build_number"))
    if number is None:
        return commit
    if commit in (None, "unknown", f"b{number}"):
        return f"b{number}"
    return f"b{number} ({commit})"
