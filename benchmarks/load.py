"""`python -m benchmarks.load [SIZE...]`: many runs with logs, reports and telemetry, from the command line.

Every command runs in a process of its own, with a cache folder of its own: once when nothing is known, and again when
nothing changed. Processor time is what counts: other programs on the machine stretch the time on the clock.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import generated, harness
from benchmarks.harness import Row, row

SIZES = (1_000, 10_000)
TABLE = (
    "import sys; from pathlib import Path; from sparkpub.review.checks import review;"
    " from sparkpub.review.export import table; from sparkpub.review.workers import load_known;"
    " print(len(table(review(load_known(Path(sys.argv[1]))))))"
)
"""From records to the tidy table."""


@dataclass(frozen=True)
class Cost:
    """What a command cost: seconds on the clock and of processors, of itself and its processes; MiB at its peak."""

    clock: float
    processor: float
    memory: float


def cost(argv: Sequence[str], cache: Path) -> Cost:
    """Run a command of this program. It may find problems, but it has to end on its own."""
    variables = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *argv], env=variables, stdout=subprocess.DEVNULL
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    clock = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(argv)} ended with {process.returncode}")
    user = after.ru_utime - before.ru_utime
    system = after.ru_stime - before.ru_stime
    return Cost(clock, user + system, used.ru_maxrss / 1024)


def rows(size: int, made: Path) -> list[Row]:
    """What each command costs on a data set of that size, first and again."""
    data = made / str(size)
    generated.write(data, size)
    time.sleep(3)  # files that were just written are not trusted to show a change
    cache = made / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    out = str(made / "rows.parquet")
    command = ["-m", "sparkpub"]
    commands = {
        "check": [*command, "check", str(data)],
        "stats": [*command, "stats", str(data), "--json"],
        "export": [*command, "export", str(data), "--format", "parquet", "-o", out],
        "tidy table": ["-c", TABLE, str(data)],
    }
    found = []
    for name, argv in commands.items():
        for when in ("nothing known", "nothing changed"):
            spent = cost(argv, cache)
            found += _rows(f"{size:,} runs: {name}, {when}", spent, when, size)
    found.append(row(f"{size:,} runs: files", [_megabytes(data)], "MB"))
    found.append(row(f"{size:,} runs: what is kept", [_megabytes(cache)], "MB"))
    return found


def _rows(what: str, spent: Cost, when: str, size: int) -> list[Row]:
    goal = None
    if size == 10_000:
        goal = 120.0 if when == "nothing known" else 3.0
    return [
        row(f"{what}, processor", [spent.processor], "s", goal=goal),
        row(f"{what}, clock", [spent.clock], "s"),
        row(f"{what}, memory", [spent.memory], "MiB"),
    ]


def _megabytes(folder: Path) -> float:
    return (
        sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    )


def git_growth(runs: int, made: Path) -> list[Row]:
    """What a run adds to a repository, packed: with telemetry as it is, and compressed beforehand."""
    data = made / "git"
    generated.write(data, runs)
    plain = _packed(data)
    for path in data.rglob("*.telemetry.csv"):
        subprocess.run(["zstd", "-q", "-19", "--rm", str(path)], check=True)
    return [
        row("growth of git per run", [plain / runs / 1e3], "kB"),
        row(
            "the same with telemetry compressed one by one",
            [_packed(data) / runs / 1e3],
            "kB",
        ),
    ]


def _packed(folder: Path) -> int:
    """Bytes of the pack of a repository with these files in one commit."""
    shutil.rmtree(folder / ".git", ignore_errors=True)
    identity = ["-c", "user.name=benchmark", "-c", "user.email=none@example.org"]
    for argv in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "runs"]):
        subprocess.run(["git", "-C", str(folder), *identity, *argv], check=True)
    subprocess.run(["git", "-C", str(folder), "gc", "-q", "--aggressive"], check=True)
    return sum(path.stat().st_size for path in folder.rglob("*.pack"))


def main() -> None:
    sizes = [int(text) for text in sys.argv[1:]] or list(SIZES)
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as made:
        for size in sizes:
            found += rows(size, Path(made))
        found += git_growth(600, Path(made))
    harness.save(
        "load",
        title="Many runs with evidence",
        question="What do the commands cost on thousands of runs, the first time and when nothing changed?",
        rows=found,
        notes=[
            "Runs are drawn anew from committed ones (`generated.py`), 60 to a campaign: record, log, report, requests "
            "and telemetry, about 57 kB each.",
            "Each command once: the first of each pair finds what the commands above it left, so that `stats` finds "
            "the runs reviewed. The goal of 60 s on two cores is 120 s of processor time.",
        ],
        packages=["numpy", "scipy", "pydantic", "pyarrow"],
    )


if __name__ == "__main__":
    main()
