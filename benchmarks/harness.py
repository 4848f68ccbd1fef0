"""What every benchmark shares: timing both sides in one run, and a result on disk that the report can read.

A time on its own says more about the machine than about the program. So each row holds what was measured and,
wherever there is something to hold it against, the same measured in the same run on the same machine: their ratio
is what may be compared between machines.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import pynvml

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parent.parent


def parser(what: str | None) -> argparse.ArgumentParser:
    """The command line of a benchmark, whose module says `what` it does: without options of its own it takes none, and
    nothing is measured for `--help` or a mistake."""
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks.{Path(sys.argv[0]).stem}",
        description=what,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


@dataclass(frozen=True)
class Row:
    """One thing measured: the median of `runs` values, with the smallest and the largest.

    `against` is what it is held against, measured in the same run unless `source` says where that figure is from.
    `goal` is an upper limit in the same unit; a negative `goal` is a lower one.
    """

    what: str
    value: float
    unit: str
    runs: int
    low: float
    high: float
    against: str | None = None
    against_value: float | None = None
    source: str | None = None
    goal: float | None = None


def row(
    what: str,
    values: Sequence[float],
    unit: str,
    *,
    against: tuple[str, Sequence[float]] | None = None,
    source: str | None = None,
    goal: float | None = None,
) -> Row:
    """A row from the values of repeated runs, held against those of another program."""
    name, others = against or (None, None)
    return Row(
        what=what,
        value=_rounded(statistics.median(values)),
        unit=unit,
        runs=len(values),
        low=_rounded(min(values)),
        high=_rounded(max(values)),
        against=name,
        against_value=_rounded(statistics.median(others)) if others else None,
        source=source,
        goal=goal,
    )


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes, in seconds of wall time."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def machine() -> dict[str, object]:
    """What the figures depend on; nothing that names the machine."""
    cpu = next(
        (
            line.split(":", 1)[1].strip()
            for line in _lines("/proc/cpuinfo")
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = next(
        (
            int(line.split()[1])
            for line in _lines("/proc/meminfo")
            if line.startswith("MemTotal")
        ),
        0,
    )
    return {
        "processor": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 2**20, 1),
        "gpu": _gpu(),
        "kernel": platform.release().split("-")[0],
        "python": platform.python_version(),
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def _gpu() -> str | None:
    try:
        pynvml.nvmlInit()
        name: str = pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0))
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return None
    return name


def save(
    name: str,
    *,
    title: str,
    question: str,
    rows: Sequence[Row],
    notes: Sequence[str] = (),
    packages: Sequence[str] = (),
) -> Path:
    """Write `results/<name>.json`, which the report turns into a table."""
    document = {
        "title": title,
        "question": question,
        "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": _commit(),
        "machine": machine(),
        "packages": {package: metadata.version(package) for package in packages},
        "rows": [asdict(item) for item in rows],
        "notes": list(notes),
    }
    path = RESULTS / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def _commit() -> str | None:
    """What `SPARKPUB_COMMIT` says, for a copy that was carried elsewhere without its history; else what git says."""
    told = os.environ.get("SPARKPUB_COMMIT", "")[:12]
    if told:
        return told
    argv = ["git", "rev-parse", "--short=12", "HEAD"]
    found = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None
