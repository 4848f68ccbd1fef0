"""`python -m benchmarks.load [--no-build] [SIZE...]`: many runs with logs, reports and telemetry, command by command.

Every command runs once, in a process of its own; a site is built twice, the second time with its drawings in the cache.
Processor time is what counts, that of every process that a command started included: other programs on the machine
stretch the time on the clock. Each size has a result of its own, so that one that was ended half way
loses no other.
"""

import argparse
import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks import generated, harness
from benchmarks.harness import Row, row
from sparkpub.record.store import DEFAULT_DATA, campaign_folders, record_paths
from sparkpub.site.pages.evidence import FOLDER

SIZES = (1_000, 10_000)
MOST_SECONDS = 60.0
"""What a command on 10,000 runs may take on the clock of two cores with nothing else to do."""
MOST_BYTES_OF_A_RUN = 20.0
"""Kilobytes that a run may add to a site beyond its evidence."""
MOST_FILES_OF_A_RUN = 3.0
MOST_MEBIBYTES = 2048.0
MOST_MEGABYTES = 1000.0
"""What a site of 10,000 runs may take: memory while it is built, and room where it is published."""
BYTES = "site without evidence, per run"
FILES = "files without evidence, per run"
LOOK_SECONDS = 0.25
"""Between two looks at the memory of all processes."""
_SUBREAPER = 36
"""Linux: PR_SET_CHILD_SUBREAPER of prctl."""


@dataclass(frozen=True)
class Cost:
    """What a command cost: seconds on the clock and of processors, of itself and all that it started; MiB at the peak
    of the largest of these processes, and of all of them together, without what they share."""

    clock: float
    processor: float
    memory: float
    together: float


def cost(argv: Sequence[str], variables: Mapping[str, str], folder: Path) -> Cost:
    """Run a command of this program. It may find problems, but it has to end on its own."""
    # A process that the command leaves behind becomes ours, so that its time is counted too.
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *argv],
        env={**os.environ, **variables},
        cwd=folder,
        stdout=subprocess.DEVNULL,
    ) as process:
        watch = _Watch(process.pid)
        watch.start()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        watch.ended.set()
        watch.join()
    clock = time.perf_counter() - start
    largest = max(used.ru_maxrss, *_left_behind())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(argv)} ended with {process.returncode}")
    user = after.ru_utime - before.ru_utime
    system = after.ru_stime - before.ru_stime
    return Cost(clock, user + system, largest / 1024, watch.peak / 1024)


class _Watch(threading.Thread):
    """Adds up the memory of a process and its children again and again. `peak` is in KiB."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.peak = 0
        self._process = process

    def run(self) -> None:
        """Look until the process has ended."""
        while not self.ended.wait(LOOK_SECONDS):
            family = _family(self._process)
            self.peak = max(self.peak, sum(map(_own_memory, family)))


def _family(process: int) -> list[int]:
    """A process and all that it started, as far as they are there now."""
    found = [process]
    for member in found:
        for listing in Path(f"/proc/{member}/task").glob("*/children"):
            with suppress(OSError):
                found += map(int, listing.read_text().split())
    return found


def _own_memory(process: int) -> int:
    """The memory that no file backs and that nobody else has, in KiB; 0 for a process that has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "RssAnon":
                return int(value.split()[0])
    return 0


def _left_behind() -> list[int]:
    """Wait for the processes that a command left behind; the peak of each in KiB, and 0."""
    peaks = [0]
    while True:
        try:
            _, _, used = os.wait3(0)
        except ChildProcessError:
            return peaks
        peaks.append(used.ru_maxrss)


def commands(size: int, data: Path, made: Path) -> Iterator[Row]:
    """What each command costs on a data set of that size."""
    out = str(made / "rows.parquet")
    command = ["-m", "sparkpub"]
    steps = {
        "check": [*command, "check", str(data)],
        "export": [*command, "export", str(data), "--format", "parquet", "-o", out],
        "stats": [*command, "stats", str(data), "--json"],
    }
    goal = MOST_SECONDS if size == SIZES[-1] else None
    for name, argv in steps.items():
        yield from _spent(name, cost(argv, {}, harness.ROOT), goal)
    yield row("files of the runs", [_megabytes(data)], "MB")


def _spent(what: str, spent: Cost, goal: float | None = None) -> list[Row]:
    return [
        row(f"{what}: processor", [spent.processor], "s"),
        row(f"{what}: clock", [spent.clock], "s", goal=goal),
        row(f"{what}: memory", [spent.memory], "MiB"),
    ]


def site(size: int, data: Path, made: Path) -> list[Row]:
    """What the site of these runs costs to build, first and again, and how large it is."""
    project, published = made / "project", made / "site"
    argv = [sys.executable, "-m", "sparkpub", "init", str(project), "--title", "Load"]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    # The first post and claims of a new site speak of a campaign that is not measured here.
    for post in (project / "site_src" / "blog" / "posts").glob("*.md"):
        post.unlink()
    (project / "site_src" / "claims.yaml").write_text("[]\n")
    cache = made / "cache"
    variables = {"XDG_CACHE_HOME": str(cache), "SPARKPUB_DATA": str(data)}
    build = ["-m", "mkdocs", "build", "--quiet", "--site-dir", str(published)]
    known = _megabytes(cache)
    first = cost(build, variables, project)
    drawn = _megabytes(cache) - known
    again = cost(build, variables, project)
    files = [path for path in published.rglob("*") if path.is_file()]
    copies = {path for path in (published / FOLDER).rglob("*") if path.is_file()}
    kept = {*files} - copies
    kilobytes = sum(path.stat().st_size for path in kept) / 1e3
    largest = MOST_MEBIBYTES if size == SIZES[-1] else None
    room = MOST_MEGABYTES if size == SIZES[-1] else None
    return [
        *_spent("build, nothing drawn", first),
        *_spent("build, nothing changed", again),
        row(
            "build, nothing drawn: memory together",
            [first.together],
            "MiB",
            goal=largest,
        ),
        row(
            "build, nothing changed: memory together",
            [again.together],
            "MiB",
            goal=largest,
        ),
        row("drawings that are kept", [drawn], "MB"),
        row("site", [_megabytes(published)], "MB", goal=room),
        row("site: files", [float(len(files))], "files"),
        row(BYTES, [kilobytes / size], "kB"),
        row(FILES, [len(kept) / size], "files"),
        *_growth(size, BYTES, kilobytes, "kB", MOST_BYTES_OF_A_RUN),
        *_growth(size, FILES, len(kept), "files", MOST_FILES_OF_A_RUN),
    ]


def _growth(size: int, what: str, total: float, unit: str, goal: float) -> list[Row]:
    """What a further run adds, from the smallest size to this one: the pages that every site has are no growth."""
    smallest = SIZES[0]
    path = harness.RESULTS / f"load-{smallest}.json"
    if size <= smallest or not path.is_file():
        return []
    for known in json.loads(path.read_text())["rows"]:
        if known["what"] == what:
            added = total - smallest * known["value"]
            each = added / (size - smallest)
            about = f"{what}, of each beyond {smallest:,}"
            return [row(about, [each], unit, goal=goal)]
    return []


def _megabytes(folder: Path) -> float:
    return (
        sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    )


def git_growth() -> None:
    """Measure what a run of each committed campaign with telemetry adds to a repository: with telemetry as it is, and
    each file compressed beforehand."""
    found = []
    for folder in campaign_folders(harness.ROOT / DEFAULT_DATA):
        telemetry = len(list(folder.glob("*.telemetry.csv")))
        runs = len(list(record_paths(folder)))
        if telemetry < runs / 2:
            continue
        with tempfile.TemporaryDirectory() as made:
            copied = shutil.copytree(folder, Path(made, "repository", folder.name))
            plain = _packed(copied.parent)
            for path in copied.glob("*.telemetry.csv"):
                subprocess.run(["gzip", "-9", "-n", str(path)], check=True)
            compressed = _packed(copied.parent)
        files = 1e6 * _megabytes(folder)
        what = f"{folder.name}, {runs} runs: growth per run"
        as_files = ("as files", [files / runs / 1e3])
        found.append(row(what, [plain / runs / 1e3], "kB", against=as_files))
        what = f"{folder.name}: the same with telemetry as .csv.gz"
        as_it_is = ("as it is", [plain / runs / 1e3])
        found.append(row(what, [compressed / runs / 1e3], "kB", against=as_it_is))
    harness.save(
        "git",
        title="Runs in git",
        question="What does a run add to a repository, and would it pay to compress telemetry?",
        rows=found,
        notes=[
            "The pack of a repository that holds the campaign in one commit, after `git gc`."
        ],
    )


def _packed(folder: Path) -> int:
    """Bytes of the pack of a repository with these files in one commit."""
    shutil.rmtree(folder / ".git", ignore_errors=True)
    identity = ["-c", "user.name=benchmark", "-c", "user.email=none@example.org"]
    for argv in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "runs"]):
        subprocess.run(["git", "-C", str(folder), *identity, *argv], check=True)
    subprocess.run(["git", "-C", str(folder), "gc", "-q"], check=True)
    return sum(path.stat().st_size for path in folder.rglob("*.pack"))


def measure(size: int, *, with_site: bool) -> None:
    """Measure one size and write its result, again with every command that is through."""
    busy = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        data = made / "data"
        generated.write(data, size)
        found: list[Row] = []
        for item in commands(size, data, made):
            found.append(item)
            _save(size, found, busy)
        if with_site:
            found += site(size, data, made)
            _save(size, found, busy)


def _save(size: int, found: Sequence[Row], busy: list[float]) -> None:
    busy.append(os.getloadavg()[0])
    harness.save(
        f"load-{size}",
        title=f"{size:,} runs with evidence",
        question=f"What do commands and a site of {size:,} runs cost?",
        rows=found,
        notes=[
            "Runs are drawn anew from committed ones (`generated.py`), 60 to a campaign: record, log, report, requests "
            "and telemetry, about 57 kB each.",
            "Each command once. Processor time is that of all processes together, memory that of the largest alone; "
            "memory together is what all processes of a build have for themselves.",
            f"Load average of the machine meanwhile, by which the time on the clock is stretched: "
            f"{min(busy):.1f} to {max(busy):.1f} on {len(os.sched_getaffinity(0))} cores.",
        ],
        packages=["numpy", "scipy", "pandas", "pydantic", "pyarrow"],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--no-build", action="store_true")
    given = parser.parse_args()
    git_growth()
    for size in given.sizes:
        measure(size, with_site=not given.no_build)


if __name__ == "__main__":
    main()
