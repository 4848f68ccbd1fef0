"""`python -m benchmarks.against [--runs N] [--repeats N] [COMMIT]`: a first `check` of many runs, in turns with that of
an earlier commit.

Both check the same runs with logs, reports and telemetry, each time with an empty cache, so that everything is read:
runs drawn anew from committed ones, and copies of the committed campaigns that the earlier commit can read. A machine
that slows down slows both.
"""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks import generated, harness
from benchmarks.harness import Row, row
from benchmarks.load import Cost, cost
from sparkpub.record.settings import DEFAULT_DATA
from sparkpub.record.store import CAMPAIGN_FILE, record_paths

BEFORE = "c981cc4"
"""The last commit before the package was moved into rooms; it read every file for every command."""
RUNS = 2_000
REPEATS = 3
FASTER = 3.0
"""So many times faster than before."""
COPIED = ("h200", "h200-sweep", "phase1")
"""Committed campaigns that the earlier commit can read: the matrices of the others declare what it does not know."""


def checked(tree: Path, data: Path) -> Cost:
    """What a first check costs, by the program in `tree`."""
    argv = ["-m", "sparkpub", "check", str(data)]
    with tempfile.TemporaryDirectory() as cache:
        variables = {"XDG_CACHE_HOME": cache, "PYTHONPATH": str(tree)}
        return cost(argv, variables, tree)


def copy_committed(data: Path, runs: int) -> None:
    """Copy the committed campaigns in turns, each under a name of its own, until there are `runs` or a few more."""
    written = 0
    number = 0
    while written < runs:
        template = harness.ROOT / DEFAULT_DATA / COPIED[number % len(COPIED)]
        written += _copy(template, data / f"copy{number}")
        number += 1


def _copy(template: Path, folder: Path) -> int:
    """Copy a campaign under the name of its new folder; how many runs it has."""
    shutil.copytree(template, folder)
    declared = json.loads((folder / CAMPAIGN_FILE).read_text())
    declared["campaign"] = folder.name
    if declared.get("matrix"):
        declared["matrix"]["campaign"] = folder.name
    declared.pop("quarantined", None)
    (folder / CAMPAIGN_FILE).write_text(json.dumps(declared))
    paths = list(record_paths(folder))
    for path in paths:
        record = json.loads(path.read_text())
        record["campaign"] = folder.name
        for name in ("run_id", "repeat_of"):
            if record.get(name):
                record[name] = f"{folder.name}-{record[name]}"
        path.write_text(json.dumps(record, indent=1))
    return len(paths)


def measure(
    commit: str, write: Callable[[Path, int], None], runs: int, repeats: int
) -> tuple[list[Cost], list[Cost]]:
    """The costs of this tree and of the commit, in turns, on the runs that `write` writes."""
    now: list[Cost] = []
    before: list[Cost] = []
    git = ["git", "-C", str(harness.ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as made:
        data = Path(made, "data")
        write(data, runs)
        time.sleep(3)  # of files that were just written nothing is kept
        tree = Path(made, "before")
        subprocess.run([*git, "add", "-q", "--detach", str(tree), commit], check=True)
        try:
            for _ in range(repeats):
                now.append(checked(harness.ROOT, data))
                before.append(checked(tree, data))
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
    return now, before


def rows(name: str, commit: str, now: list[Cost], before: list[Cost]) -> list[Row]:
    """What a check of these runs costs beside the commit, with its goal."""
    found = []
    for what, unit in (("clock", "s"), ("processor", "s"), ("memory", "MiB")):
        values = [getattr(item, what) for item in now]
        others = [getattr(item, what) for item in before]
        goal = None
        if unit == "s":
            goal = float(f"{median(others) / FASTER:.3g}")
        against = (f"commit {commit}", others)
        found.append(row(f"{name}: {what}", values, unit, against=against, goal=goal))
    return found


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("commit", nargs="?", default=BEFORE)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    given = parser.parse_args()
    found: list[Row] = []
    for name, write in (
        ("generated runs", generated.write),
        ("copied campaigns", copy_committed),
    ):
        costs = measure(given.commit, write, given.runs, given.repeats)
        found += rows(name, given.commit, *costs)
    harness.save(
        "against",
        title=f"{given.runs:,} runs checked for the first time, against an earlier commit",
        question="How much faster is a review that knows nothing yet than before?",
        rows=found,
        notes=[
            "The goal is a third of the time before. `check` ran on one core then and runs on all now; "
            "processor time is that of all processes together, memory that of the largest.",
            "Generated runs are drawn anew from those of one campaign; copied ones are those of "
            f"{', '.join(COPIED)} as they are, of which the last has no telemetry.",
        ],
        packages=["numpy", "scipy", "pydantic"],
    )


if __name__ == "__main__":
    main()
