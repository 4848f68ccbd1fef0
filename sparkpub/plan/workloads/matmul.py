"""Matrix multiplication: the sanity check of a machine. NumPy on the CPU, PyTorch on a GPU."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from sparkpub.plan.workloads.base import (
    MEASURING,
    PYTHON,
    WORKDIR,
    Answer,
    Command,
    Options,
    RunCase,
    flags,
    no_answer,
    own_answer,
    timed_payload,
)
from sparkpub.tools import reading

_SCRIPT, _REPORT = "matmul.py", "report.json"


class MatmulOptions(Options):
    """A product of two `size` × `size` matrices of normal random numbers, `iterations` times.

    Example: {type: matmul, size: 4096, iterations: 20, dtype: float32, device: cuda}
    """

    type: Literal["matmul"] = "matmul"
    size: PositiveInt = 10_000
    """Rows and columns of both matrices."""
    iterations: PositiveInt = 10
    """Products measured within one run."""
    warmup: int = Field(default=1, ge=0)
    """Products before the measured ones; they do not count."""
    dtype: Literal["float16", "bfloat16", "float32", "float64"] = "float32"
    """Type of the numbers."""
    device: Literal["cpu", "cuda"] = "cuda"
    """`cuda` is PyTorch on a GPU, `cpu` NumPy."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.device == "cpu" and self.dtype == "bfloat16":
            raise ValueError("dtype bfloat16 needs device cuda: NumPy has no such type")
        return self


def command(case: RunCase, options: MatmulOptions) -> Command:
    """The payload with its options as flags."""
    argv = flags(
        options.flags() | {"--seed": case.seed, "--report": f"{WORKDIR}/{_REPORT}"}
    )
    return Command(
        (PYTHON, f"{WORKDIR}/{_SCRIPT}", *argv),
        {},
        lambda: timed_payload(_SCRIPT),
        {"report": _REPORT},
        MEASURING,
    )


def parse(
    log: bytes, files: Mapping[str, bytes], options: MatmulOptions | None
) -> Answer:
    """Rate and time from the report."""
    report = reading.json_object(files.get("report"))
    if report is None:
        return no_answer("no report: the multiplication did not finish")
    problems = []
    if report.get("correct") is not True:
        problems.append(
            f"wrong result: relative error {report.get('relative_error')!r}"
        )
    if options is not None and report.get("size") != options.size:
        problems.append(
            f"the report is of size {report.get('size')!r}, not {options.size}"
        )
    figures = {
        "matmul_gflop_s": report.get("gflop_s"),
        "matmul_time_mean_ms": report.get("mean_ms"),
        "device_used_before_gib": report.get("device_used_before_gib"),
        "device_used_peak_gib": report.get("device_used_peak_gib"),
    }
    times = reading.numbers(report.get("times_ms"))
    measured = sum(times) / 1e3 or None
    metrics = reading.metrics(figures, "report")
    return own_answer(
        report, metrics, report | {"measured_seconds": measured}, problems, times
    )


def printed(log: bytes) -> dict[str, tuple[float, float]]:
    """What the payload's last line says."""
    return reading.printed(log, {"matmul_gflop_s": r": ([\d.]+) GFLOP/s"})
