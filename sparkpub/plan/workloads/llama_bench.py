"""`llama-bench` of llama.cpp. One run of ours is one shape: one prompt test and one generation test at one depth. A
sweep over depth is several workloads of a matrix, so that each depth is a cell of its own with its own statistics.

The tool warms up with one pass, which is not enough: on an H200 the first repetition of a prompt of 512 tokens was
slower than the others by 29 %. So a run makes `warmup` repetitions more, and its rates are means over the rest. An
import knows of no warm-up: there all repetitions count, as they do in the tool's own `avg_ts`, and the check for a
first repetition that stands apart looks at them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from sparkpub.plan.workloads.base import (
    Answer,
    Command,
    Options,
    RunCase,
    flags,
    no_answer,
)
from sparkpub.record.errors import WorkloadError
from sparkpub.tools import reading
from sparkpub.tools.reader import ReportReading, of_tool
from sparkpub.tools.shapes import llama_bench as shape

_A_TEST = r'"n_gen": \d'
"""The line with a test's result, which is printed when the test is over."""


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
    flash_attention: bool | None = None
    """Whether attention is computed by one fused kernel (`--flash-attn`); none: the build's default."""
    gpu_layers: NonNegativeInt | None = None
    """Layers computed on the GPU (`--n-gpu-layers`); none: the build's default, which is all of them."""
    extra_args: tuple[str, ...] = ()
    """Appended to the command, e.g. `--cache-type-k`, `q8_0`, `--threads`, `"8"`."""
    executable: Annotated[str, Field(min_length=1)] = "llama-bench"
    """The program, by name or path."""

    @model_validator(mode="after")
    def _something_to_measure(self) -> Self:
        if self.input_tokens == 0 and self.output_tokens == 0:
            raise ValueError(
                "input_tokens and output_tokens are both 0, so nothing would be measured"
            )
        return self


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
            "--flash-attn": flash_attention,
            "--n-gpu-layers": options.gpu_layers,
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
    tests = shape.printed(files.get("report", log))
    if not tests:
        return no_answer("no report: llama-bench printed no test")
    warmup = 0 if options is None else options.warmup
    found = ReportReading(
        of_tool("llama-bench"),
        shape.document(tests, warmup),
        "report" if "report" in files else "log",
    )
    return Answer(
        found.metrics,
        reading.observed(found.facts),
        complete=any(reading.known(found.metrics, name) for name in _RATES),
        problems=(*found.problems, *_missing(tests, found.document, options)),
        notes=found.notes,
        samples=found.samples,
    )


def _missing(
    tests: Sequence[Mapping[str, Any]],
    said: Mapping[str, Any],
    options: LlamaBenchOptions | None,
) -> Iterator[str]:
    """Tests and repetitions that were asked for and are not there."""
    if options is None:
        return
    if options.input_tokens and not said["prompt_tokens"]:
        yield "the test of the prompt is missing"
    if options.output_tokens and not said["output_tokens"]:
        yield "the test of generation is missing"
    wanted = options.repetitions + options.warmup
    for test in tests:
        made = len(reading.numbers(test.get("samples_ts")))
        if made != wanted:
            yield f"{made} of {wanted} repetitions in a test"


_RATES = ("output_throughput_tok_s", "prompt_throughput_tok_s")
