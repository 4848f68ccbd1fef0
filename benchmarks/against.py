"""`python -m benchmarks.against [--runs N] [--repeats N] [COMMIT]`: a first `check` of many runs, in turns with that of
an earlier commit.

Both check the same generated runs with logs, reports and telemetry, each time with an empty cache, so that everything
is read. A machine that slows down slows both.
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks import generated, harness
from benchmarks.harness import row
from benchmarks.load import Cost, cost

BEFORE = "c981cc4"
"""The last commit before the package was moved into rooms; it read every file for every command."""
RUNS = 2_000
REPEATS = 3
FASTER = 3.0
"""So many times faster than before."""


def checked(tree: Path, data: Path) -> Cost:
    """What a first check costs, by the program in `tree`."""
    argv = ["-m", "sparkpub", "check", str(data)]
    with tempfile.TemporaryDirectory() as cache:
        variables = {"XDG_CACHE_HOME": cache, "PYTHONPATH": str(tree)}
        return cost(argv, variables, tree)


def measure(commit: str, runs: int, repeats: int) -> tuple[list[Cost], list[Cost]]:
    """The costs of this tree and of the commit, in turns."""
    now: list[Cost] = []
    before: list[Cost] = []
    git = ["git", "-C", str(harness.ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as made:
        data = Path(made, "data")
        generated.write(data, runs)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", nargs="?", default=BEFORE)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    given = parser.parse_args()
    now, before = measure(given.commit, given.runs, given.repeats)
    rows = []
    for what, unit in (("clock", "s"), ("processor", "s"), ("memory", "MiB")):
        values = [getattr(item, what) for item in now]
        others = [getattr(item, what) for item in before]
        goal = None
        if unit == "s":
            goal = float(f"{median(others) / FASTER:.3g}")
        against = (f"commit {given.commit}", others)
        rows.append(row(f"check: {what}", values, unit, against=against, goal=goal))
    harness.save(
        "against",
        title=f"{given.runs:,} runs checked for the first time, against an earlier commit",
        question="How much faster is a review that knows nothing yet than before?",
        rows=rows,
        notes=[
            "The goal is a third of the time before. `check` ran on one core then and runs on all now; processor time "
            "is that of all processes together, memory that of the largest.",
        ],
        packages=["numpy", "scipy", "pydantic"],
    )


if __name__ == "__main__":
    main()
