"""Multiply two square matrices repeatedly and report how long each multiplication took.

Runs inside the environment measured, alone: NumPy on the CPU, PyTorch on a GPU. One row of the product is
compared with the same row computed in double precision, so that a fast wrong answer is no result.
"""

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkpub.plan.workloads.payload import stopwatch
else:
    import stopwatch

GIB = 2**30
TOLERANCE = {"float16": 5e-2, "bfloat16": 5e-2, "float32": 1e-3, "float64": 1e-9}
"""Largest relative error of one row, in the Euclidean norm."""


Multiply = Callable[[], object]
Finish = Callable[[], tuple[float, dict[str, Any]]]
"""Gives the relative error of the product, and what it was computed with."""


def on_cpu(chosen: SimpleNamespace) -> tuple[Multiply, Finish]:
    import numpy as np

    random = np.random.default_rng(chosen.seed)
    single = np.float64 if chosen.dtype == "float64" else np.float32
    left, right = (
        random.standard_normal((chosen.size, chosen.size), dtype=single).astype(
            chosen.dtype, copy=False
        )
        for _ in range(2)
    )
    product = np.empty_like(left)

    def finish() -> tuple[float, dict[str, Any]]:
        exact = left[0].astype(np.float64) @ right.astype(np.float64)
        blas = (
            np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
        )
        settings = {
            "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
            "cpus": str(len(os.sched_getaffinity(0))),
        }
        return float(np.linalg.norm(product[0] - exact) / np.linalg.norm(exact)), {
            "engine": "numpy",
            "engine_version": np.__version__,
            "device": platform.processor() or platform.machine(),
            "settings": settings,
        }

    return lambda: np.matmul(left, right, out=product), finish


def on_gpu(chosen: SimpleNamespace) -> tuple[Multiply, Finish]:
    import torch

    if not torch.cuda.is_available():
        raise SystemExit(
            "matmul: no CUDA device is visible to PyTorch in this environment"
        )
    free, total = torch.cuda.mem_get_info()
    before = total - free
    torch.backends.cuda.matmul.allow_tf32 = False  # FP32 means FP32
    random = torch.Generator("cuda").manual_seed(chosen.seed)
    dtype = getattr(torch, chosen.dtype)
    left, right = (
        torch.randn(
            chosen.size, chosen.size, device="cuda", dtype=dtype, generator=random
        )
        for _ in range(2)
    )
    product = torch.empty_like(left)
    torch.cuda.synchronize()

    def multiply() -> None:
        torch.matmul(left, right, out=product)
        torch.cuda.synchronize()

    def finish() -> tuple[float, dict[str, Any]]:
        used = total - torch.cuda.mem_get_info()[0]
        exact = left[0].double() @ right.double()
        return float(
            torch.linalg.norm(product[0].double() - exact) / torch.linalg.norm(exact)
        ), {
            "engine": "torch",
            "engine_version": torch.__version__,
            "device": torch.cuda.get_device_name(),
            "device_total_gib": total / GIB,
            "device_used_before_gib": before / GIB,
            "device_used_peak_gib": used / GIB,
            "settings": {"cuda": str(torch.version.cuda), "tf32": "false"},
        }

    return multiply, finish


def timed(multiply: Multiply) -> float:
    start = time.perf_counter()
    multiply()
    return time.perf_counter() - start


def main() -> None:
    chosen = stopwatch.options()
    phases = stopwatch.Phases()
    multiply, finish = (on_gpu if chosen.device == "cuda" else on_cpu)(chosen)
    phases.mark("load")
    for _ in range(chosen.warmup):
        multiply()
    phases.begin_measuring()
    seconds = [timed(multiply) for _ in range(chosen.iterations)]
    phases.mark("measure")
    error, facts = finish()
    mean = sum(seconds) / len(seconds)
    tolerance = TOLERANCE[chosen.dtype]
    report = {
        "tool": "sparkpub matmul",
        "size": chosen.size,
        "dtype": chosen.dtype,
        "times_ms": [1e3 * value for value in seconds],
        "mean_ms": 1e3 * mean,
        "gflop_s": 2 * chosen.size**3 / mean / 1e9,
        "relative_error": error,
        "tolerance": tolerance,
        "correct": error <= tolerance,
        "seed": chosen.seed,
        "python": platform.python_version(),
        **phases.report(),
        **facts,
    }
    Path(chosen.report).write_text(json.dumps(report, indent=1), encoding="utf-8")
    print(
        f"{chosen.size} x {chosen.size} {chosen.dtype}: {report['gflop_s']:.1f} GFLOP/s, relative error {error:.1e}"
    )
    if error > tolerance:
        raise SystemExit(
            f"matmul: wrong result, relative error {error:.1e} above {tolerance:.0e}"
        )


if __name__ == "__main__":
    main()
