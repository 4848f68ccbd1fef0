"""`python -m benchmarks.arena [OWNERS...]`: a hub of many owners with 300 runs each, in local repositories.

Owners are gathered from nothing, gathered again where nothing changed, and the hub's site is built with them, from an
empty cache and then with a further page of its own. Each step runs once, in a process of its own; the first number of
owners is what the others are held against.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from benchmarks import generated, harness
from benchmarks.harness import Row, row
from benchmarks.load import Cost, cost
from sparkpub.record.owner import ARENA_FILE
from sparkpub.record.settings import DEFAULT_DATA
from sparkpub.record.text import counted, listed

OWNERS = (1, 20, 200)
FURTHER = (1_000,)
"""Owners for which the last line between two sizes is drawn out."""
RUNS = 300
"""Runs of an owner."""
IDENTITY = ("-c", "user.name=benchmark", "-c", "user.email=none@example.org")


def owner(place: Path, number: int) -> str:
    """Write an owner's repository, and give its line."""
    generated.write(place / DEFAULT_DATA, RUNS, seed=number)

    def git(*arguments: str) -> str:
        argv = ["git", "-C", str(place), *IDENTITY, *arguments]
        done = subprocess.run(argv, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "--quiet")
    git("add", "--all", "--force")
    git("commit", "--quiet", "--message", "runs")
    commit = git("rev-parse", "HEAD")
    shutil.rmtree(
        place / DEFAULT_DATA
    )  # what is committed is enough, and 200 owners would fill a disk
    return f"- {{owner: o{number}, repository: file://{place}, commit: {commit}, licence: MIT}}\n"


def hub(owners: int, made: Path) -> dict[str, Cost]:
    """What each step costs for so many owners."""
    project = made / f"hub-{owners}"
    argv = [sys.executable, "-m", "sparkpub", "init", str(project), "--title", "Hub"]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    for post in (project / "site_src" / "blog" / "posts").glob("*.md"):
        post.unlink()
    (project / "site_src" / "claims.yaml").write_text("[]\n")
    lines = [owner(made / f"{owners}-{number}", number) for number in range(owners)]
    (project / ARENA_FILE).write_text("".join(lines))
    variables = {"XDG_CACHE_HOME": str(project / "cache")}
    gather, build = ["-m", "sparkpub", "gather"], ["-m", "sparkpub", "build"]
    found = {
        "gather": cost(gather, variables, project),
        "gather, nothing changed": cost(gather, variables, project),
        "build": cost(build, variables, project),
    }
    (project / "site_src" / "note.md").write_text("# A note\n")
    return found | {"build, owners unchanged": cost(build, variables, project)}


def measured(sizes: Sequence[int]) -> list[Row]:
    """A row for each step and size, held against the first size."""
    found, first = [], None
    for owners in sizes:
        with tempfile.TemporaryDirectory() as folder:
            costs = hub(owners, Path(folder))
        for step, spent in costs.items():
            for name, unit in (("processor", "s"), ("clock", "s"), ("together", "MiB")):
                against = None
                if first is not None:
                    against = counted(sizes[0], "owner"), [getattr(first[step], name)]
                what = "memory" if name == "together" else name
                value = [getattr(spent, name)]
                about = f"{counted(owners, 'owner')}, {step}: {what}"
                found.append(row(about, value, unit, against=against))
        first = first or costs
    further = sizes[-1] - sizes[0]
    if first is not None and further > 0:
        builds = [step for step in costs if step.startswith("build")]
        figures = (("processor", "s"), ("together", "MiB"))
        for step, (name, unit) in product(builds, figures):
            begin, end = (getattr(spent[step], name) for spent in (first, costs))
            what = "memory" if name == "together" else name
            each = (end - begin) / further
            found.append(row(f"{step}, each further owner: {what}", [each], unit))
            for many in FURTHER:
                about = f"{many:,} owners, {step}, not measured but drawn out: {what}"
                value = begin + (many - sizes[0]) * each
                found.append(row(about, [value], unit))
    return found


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("owners", nargs="*", type=int)
    sizes = parser.parse_args().owners or OWNERS
    harness.save(
        "arena",
        title="A hub of many owners",
        question=f"What does it cost to show {listed(map(str, sizes))} owners of {RUNS} runs?",
        rows=measured(sizes),
        notes=[
            "Runs are drawn anew from committed ones (`generated.py`), 60 to a campaign, with log, report, requests "
            "and telemetry, in a local repository of each owner.",
            "Each step once. Processor time is that of all processes together; memory is what all of them have for "
            "themselves at one time.",
        ],
        packages=["pandas", "pydantic"],
    )


if __name__ == "__main__":
    main()
