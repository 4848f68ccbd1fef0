"""`llama-bench` of llama.cpp, from its JSON: an array (`-o json`) or one object per line (`-o jsonl`).

Fields vary by build, so unknown ones are ignored. `n_gen` > 0 with `n_prompt` = 0 is generation at batch 1,
the other way round is prompt processing. Tokenisation and sampling are not measured.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, PositiveInt

from sparkpub.plan.workloads import reading
from sparkpub.plan.workloads.base import Answer, Case, Command, Options, flags
from sparkpub.record.errors import WorkloadError
from sparkpub.record.record import MetricValue, Observed


class LlamaBenchOptions(Options):
    """Prompt processing of `input_tokens` and generation of `output_tokens`, each measured by itself at batch 1."""

    input_tokens: PositiveInt = 512
    """Tokens of the prompt that is processed (`--n-prompt`)."""
    output_tokens: PositiveInt = 128
    """Tokens generated (`--n-gen`)."""
    repetitions: PositiveInt = 5
    """How often each of the two is measured; the rate is their mean."""
    extra_args: tuple[str, ...] = ()
    """Appended to the command, e.g. `--n-gpu-layers`, `"99"`, `--flash-attn`, `"1"`."""
    executable: Annotated[str, Field(min_length=1)] = "llama-bench"
    """The program, by name or path."""


def command(case: Case, options: LlamaBenchOptions) -> Command:
    """One command; JSON lines, because standard output shares the log with the loader's messages."""
    if case.model_path is None or case.random_weights:
        what, remedy = "llama-bench needs a GGUF file with real weights", "give path: and leave random_weights out"
        raise WorkloadError(what, where=f"models.{case.model_key}", remedy=remedy)
    argv = flags({
        "--model": case.model_path, "--n-prompt": options.input_tokens, "--n-gen": options.output_tokens,
        "--repetitions": options.repetitions, "--output": "jsonl",
    })  # fmt: skip
    return Command((options.executable, *argv, *options.extra_args))


def parse(log: bytes, files: Mapping[str, bytes], options: LlamaBenchOptions | None) -> Answer:
    """The tests found in the log or in a report file."""
    tests = _tests(files.get("report", log))
    generation = [test for test in tests if _is(test, "n_gen", "n_prompt")]
    prompts = [test for test in tests if _is(test, "n_prompt", "n_gen")]
    metrics: dict[str, MetricValue] = {}
    if generation:
        metrics |= reading.metrics_at(generation[-1], {"output_throughput_tok_s": "avg_ts"}, "report")
        # Each repetition's time, divided by its tokens.
        samples, tokens = reading.numbers(generation[-1].get("samples_ns")), reading.number(generation[-1]["n_gen"])
        metrics |= reading.distribution("tpot", [value / 1e6 / (tokens or 1.0) for value in samples], "report")
    if prompts:
        metrics |= reading.metrics_at(prompts[-1], {"prompt_throughput_tok_s": "avg_ts"}, "report")
    problems = [] if metrics else ["no report: llama-bench printed no test"]
    if len(generation) > 1 or len(prompts) > 1:
        problems.append(f"{len(tests)} tests in one run; the last of each kind counts")
    observed = _observed(tests[-1], generation[-1] if generation else {}) if tests else Observed()
    return Answer(metrics, observed, complete=bool(metrics), problems=tuple(problems))


def _tests(data: bytes) -> list[dict[str, Any]]:
    """Every test object in a document, in JSON lines, or in an array printed between other lines."""
    array = re.search(r"^\[\n.*^\]$", reading.text(data), re.DOTALL | re.MULTILINE)
    document = reading.json_value(data) or (reading.json_value(array[0].encode()) if array else None)
    if document is None:
        document = [reading.json_value(line.encode()) for line in reading.lines(data) if line.startswith("{")]
    items = document if isinstance(document, list) else [document]
    return [item for item in items if isinstance(item, dict) and "n_gen" in item]


def _is(test: Mapping[str, Any], measured: str, other: str) -> bool:
    return bool(reading.number(test.get(measured))) and not reading.number(test.get(other))


def _observed(test: Mapping[str, Any], generation: Mapping[str, Any]) -> Observed:
    """Of the last test; how much was generated, of the test of that."""
    samples = reading.numbers(generation.get("samples_ns"))
    commit = reading.word(test.get("build_commit"))
    build = reading.positive_int(test.get("build_number"))
    names = ("backends", "n_gpu_layers", "flash_attn", "n_threads", "n_batch", "type_k", "type_v", "use_mmap")
    return reading.observed(
        {
            "engine": "llama.cpp",
            "engine_version": f"b{build} ({commit})" if build and commit else commit,
            "model_path": reading.word(test.get("model_filename")),
            "random_weights": False,
            "parameters": reading.positive_int(test.get("model_n_params")),
            "weight_bytes": reading.positive_int(test.get("model_size")),
            "model_type": reading.word(test.get("model_type")),
            "kv_cache_dtype": reading.word(test.get("type_k")),
            "device": reading.word(test.get("gpu_info")) or reading.word(test.get("cpu_info")),
            "requests": len(samples) if generation else None,
            "output_tokens_mean": reading.number(generation.get("n_gen")),
            "batch_size": 1,
            "measured_seconds": sum(samples) / 1e9 if generation else None,
            "settings": {name: str(test[name]) for name in names if name in test},
        }
    )
