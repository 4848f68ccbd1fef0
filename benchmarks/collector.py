"""`python -m benchmarks.collector [NAME]`: what watching costs the machine that is watched.

With a GPU it also asks whether the sampler changes what a run measures, and says how much NAME, for instance
`collector-h200`, costs beside `nvidia-smi` polling the same sensors.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks import harness, quick
from benchmarks.harness import Row, row
from sparkpub.plan.workloads.base import payload
from sparkpub.record.store import read_folder
from sparkpub.review.statistics.estimate import resolution_of, two_means, verdict_of

WATCHED_SECONDS = 10.0
REPEATS = 3
SMI_FIELDS = "temperature.gpu,power.draw,clocks.sm,utilization.gpu,memory.used"


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far, in seconds, finer than the ticks of /proc.

    The clock of another process is numbered `(~pid << 3) | 2` on Linux (clock_getcpuclockid(3)).
    """
    return time.clock_gettime((~pid << 3) | 2)


def share(process: "subprocess.Popen[str]") -> float:
    """Percent of one core that a process uses, once it runs steadily."""
    time.sleep(1.0)
    before, start = cpu_seconds(process.pid), time.monotonic()
    time.sleep(WATCHED_SECONDS)
    return 100 * (cpu_seconds(process.pid) - before) / (time.monotonic() - start)


@contextmanager
def sampling(folder: Path, interval: float) -> Iterator["subprocess.Popen[str]"]:
    """The sampler as the collector starts it, watching this process."""
    settings = json.dumps({"path": str(folder / "telemetry.csv"), "interval": interval})
    argv = [sys.executable, "-m", "sparkpub.collect.sampler", settings]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.stdin.write(f"{os.getpid()} {time.monotonic()!r}\n")
        process.stdin.flush()
        yield process
        process.stdin.close()


def sampler_rows(folder: Path) -> list[Row]:
    rows = []
    for interval, goal in ((1.0, 0.5), (0.1, None)):
        ours, theirs = [], []
        for _ in range(REPEATS):
            with sampling(folder, interval) as process:
                ours.append(share(process))
            if shutil.which("nvidia-smi"):
                theirs.append(_smi(interval))
        against = (
            (f"nvidia-smi, {len(SMI_FIELDS.split(','))} fields", theirs)
            if theirs
            else None
        )
        rows.append(
            row(
                f"sampler at {1 / interval:g} Hz",
                ours,
                "% of a core",
                against=against,
                goal=goal,
            )
        )
    return rows


def _smi(interval: float) -> float:
    argv = [
        "nvidia-smi",
        f"--query-gpu={SMI_FIELDS}",
        "--format=csv,noheader",
        f"-lms={int(interval * 1000)}",
    ]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, text=True) as process:
        found = share(process)
        process.terminate()
    return found


def overhead_row(folder: Path) -> Row:
    """Wall time of a campaign beyond the durations of its runs, per run; against starting the same program bare."""
    start = time.perf_counter()
    data = quick.collect(folder)
    whole = time.perf_counter() - start
    records = [stored.record for stored in read_folder(data / "quick")]
    inside = sum(record.duration_seconds or 0.0 for record in records)
    argv = [sys.executable, *quick.ARGV[1:3], "1", "1", "100"]
    bare = [
        harness.seconds(lambda: subprocess.run(argv, check=True, capture_output=True))
        for _ in range(20)
    ]
    per_run = (whole - inside) / len(records)
    return row(
        "collector, per run beyond the workload",
        [per_run],
        "s",
        against=("the program, started bare", bare),
        goal=1,
    )


def rate(folder: Path, device: str, size: int, iterations: int) -> float:
    """GFLOP/s of the shipped matrix multiplication, run alone."""
    script, report = folder / "matmul.py", folder / "report.json"
    script.write_bytes(payload("matmul.py"))
    argv = [
        sys.executable,
        str(script),
        "--size",
        str(size),
        "--iterations",
        str(iterations),
        "--warmup",
        "5",
    ]
    argv += [
        "--dtype",
        "float32",
        "--device",
        device,
        "--seed",
        "1",
        "--report",
        str(report),
    ]
    subprocess.run(argv, check=True, capture_output=True)
    return float(json.loads(report.read_text())["gflop_s"])


def influence(folder: Path, repeats: int) -> tuple[Row, str]:
    """The same measurement with and without the sampler at 1 Hz, in turn, and whether the two are equivalent."""
    # Seconds on either, so that a sampler at 1 Hz takes part: a product has 2 TFLOP on the GPU, 7 GFLOP on the CPU.
    workload = ("cuda", 10_000, 100) if harness.machine()["gpu"] else ("cpu", 1500, 20)
    device = workload[0]
    rate(folder, *workload)
    quiet, watched = [], []
    for _ in range(repeats):
        quiet.append(rate(folder, *workload))
        with sampling(folder, 1.0):
            watched.append(rate(folder, *workload))
    return (
        row(
            f"matrix product on {device}, sampled at 1 Hz",
            watched,
            "GFLOP/s",
            against=("without sampler", quiet),
        ),
        verdict(quiet, watched),
    )


def verdict(quiet: Sequence[float], watched: Sequence[float]) -> str:
    """The comparison of both within each pair in words, at a margin of 1 %."""
    sides = np.array(quiet), np.array(watched)
    found, means = two_means(*sides, resolution_of([*quiet, *watched]), paired=True)
    base = means["mean_baseline"]
    p_values = found.p_value, found.equivalence_p(base / 100)
    word = verdict_of(means["n_effective"], found.value, *p_values, confounded=False)
    low, high = (100 * end / base for end in found.ends(0.9))
    return (
        f"With the sampler against without, margin 1 %: {word}, {low:+.2f} to {high:+.2f} % (90 % interval, "
        f"{len(quiet)} pairs)."
    )


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("name", nargs="?", default="collector", help="of the result")
    name: str = parser.parse_args().name
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        changed, words = influence(folder, 12)
        harness.save(
            name,
            title="Watching a run" + (" on a GPU" if harness.machine()["gpu"] else ""),
            question="How much does it cost to measure, and does watching change what is watched?",
            rows=[*sampler_rows(folder), overhead_row(folder), changed],
            notes=[words],
        )


if __name__ == "__main__":
    main()
