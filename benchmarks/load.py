"""`python -m benchmarks.load [--only commands|site|git]... [--before FOLDER] [SIZE...]`: many runs with logs, reports
and telemetry, command by command.

Every command runs once, in a process of its own, from nothing: no cache is there. With `--before` each runs in another
checkout of sparkpub as well, right before. A site is built twice, the second time with its drawings in the cache.
Processor time is what counts, that of every process that a command started included: other programs on the machine
stretch the time on the clock. Every command that is through is saved, so that a trial that was ended half way loses no
other.
"""

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
from sparkpub.record.settings import DEFAULT_DATA
from sparkpub.record.store import campaign_folders, record_paths
from sparkpub.site.pages.evidence import FOLDER

SIZES = (350, 2_000, 10_000)
"""Runs on which the commands are tried: about as many as a study has, and up to what a repository is made for."""
BUILT = 1_000
"""Runs of which a site is built where no size is given."""
MOST_SECONDS = {"check": 60.0, "export": 30.0, "stats": 60.0}
"""What each command may take on 10,000 runs, of two cores that have nothing else to do."""
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
            # What has not begun its own program has its parent's memory, to the kilobyte.
            self.peak = max(self.peak, sum({*map(_own_memory, family)}))


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


def commands(sizes: Sequence[int], before: Path | None) -> None:
    """Measure what each command costs on data sets of these sizes, and in another checkout."""
    found: list[Row] = []
    busy = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        generated.write(made / "first", generated.RUNS_OF_A_CAMPAIGN)
        for checkout in filter(None, (before, harness.ROOT)):
            for argv in _commands(made / "first", made):  # Python compiles its modules
                cost(argv, _variables(made), checkout)
        for size in sizes:
            data = made / f"data-{size}"
            generated.write(data, size)
            for argv in _commands(data, made):
                then = cost(argv, _variables(made), before) if before else None
                now = cost(argv, _variables(made), harness.ROOT)
                found += _compared(size, argv[2], now, then)
                busy.append(os.getloadavg()[0])
                _save_commands(found, busy, before)


def _commands(data: Path, made: Path) -> list[list[str]]:
    command = ["-m", "sparkpub"]
    rows = str(made / "rows.parquet")
    return [
        [*command, "check", str(data)],
        [*command, "export", str(data), "--format", "parquet", "-o", rows],
        [*command, "stats", str(data), "--json"],
    ]


def _variables(made: Path) -> dict[str, str]:
    """The environment of a command of an installed package: its modules are compiled, and it has no cache yet."""
    cache = made / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    return {
        "XDG_CACHE_HOME": str(cache),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(made / "compiled"),
    }


def _compared(size: int, command: str, now: Cost, then: Cost | None) -> Iterator[Row]:
    what = f"{size:,} runs, {command}"
    goal = MOST_SECONDS[command] if size == SIZES[-1] else None
    for name, unit, limit in (
        ("processor", "s", goal),
        ("clock", "s", None),
        ("memory", "MiB", None),
    ):
        against = None if then is None else ("before", [getattr(then, name)])
        value = [getattr(now, name)]
        yield row(f"{what}: {name}", value, unit, against=against, goal=limit)


def _save_commands(
    found: Sequence[Row], busy: Sequence[float], before: Path | None
) -> None:
    notes = [
        "Runs are drawn anew from committed ones (`generated.py`), 60 to a campaign: record, log, report, requests "
        "and telemetry, about 57 kB each.",
        "Each command once and from nothing. Processor time is that of all processes together, memory that of the "
        "largest alone.",
        f"Load average of the machine meanwhile, by which the time on the clock is stretched: {min(busy):.1f} to "
        f"{max(busy):.1f} on {len(os.sched_getaffinity(0))} cores.",
    ]
    if before is not None:
        commit = ["git", "-C", str(before), "rev-parse", "--short=12", "HEAD"]
        found_at = subprocess.run(commit, check=True, capture_output=True, text=True)
        notes.append(f"Before: commit {found_at.stdout.strip()}.")
    harness.save(
        "commands",
        title="Commands on many runs",
        question="What do check, export and stats cost at 350, 2,000 and 10,000 runs?",
        rows=found,
        notes=notes,
        packages=["numpy", "scipy", "pandas", "pydantic", "pyarrow"],
    )


def _spent(what: str, spent: Cost) -> list[Row]:
    return [
        row(f"{what}: processor", [spent.processor], "s"),
        row(f"{what}: clock", [spent.clock], "s"),
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
    smallest = BUILT
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


def site_of(size: int) -> None:
    """Measure the site of so many runs and write its result."""
    busy = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        data = made / "data"
        generated.write(data, size)
        found = [row("files of the runs", [_megabytes(data)], "MB")]
        found += site(size, data, made)
    busy.append(os.getloadavg()[0])
    harness.save(
        f"load-{size}",
        title=f"A site of {size:,} runs with evidence",
        question=f"What does a site of {size:,} runs cost?",
        rows=found,
        notes=[
            "Runs are drawn anew from committed ones (`generated.py`), 60 to a campaign: record, log, report, requests "
            "and telemetry, about 57 kB each.",
            "Processor time is that of all processes together, memory that of the largest alone; memory together is "
            "what all processes of a build have for themselves.",
            f"Load average of the machine meanwhile, by which the time on the clock is stretched: "
            f"{min(busy):.1f} to {max(busy):.1f} on {len(os.sched_getaffinity(0))} cores.",
        ],
        packages=["numpy", "scipy", "pandas", "pydantic", "pyarrow"],
    )


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("sizes", nargs="*", type=int)
    parser.add_argument("--before", type=Path)
    parts = ("git", "commands", "site")
    parser.add_argument("--only", action="append", choices=parts)
    given = parser.parse_args()
    wanted = given.only or parts
    if "git" in wanted:
        git_growth()
    if "commands" in wanted:
        commands(given.sizes or SIZES, given.before)
    if "site" in wanted:
        for size in given.sizes or (BUILT,):
            site_of(size)


if __name__ == "__main__":
    main()
