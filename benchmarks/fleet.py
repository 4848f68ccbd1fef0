"""`python -m benchmarks.fleet`: a campaign of runs of fixed length on one, two and three nodes, against the ideal.

The nodes are processes on this machine (see `tests/collect/fleet/nodes.py`), each in place of another machine. A run
sleeps, so that nodes do not take processors from one another while it is on. The ideal is the time that the runs
themselves take, one after the other on each node: what is beyond it is gates, sampler, transport and the head.
"""

import os
import resource
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from benchmarks import harness
from benchmarks.harness import Row, row
from sparkpub.plan.matrix import Matrix
from tests.collect.collecting import a_matrix, records
from tests.collect.fleet.nodes import Nodes, command

SECONDS = 5.0
MODELS, ITERATIONS = 6, 3
RUNS = MODELS * ITERATIONS
FEW = 3
"""Models of a smaller campaign, whose difference tells what a run more costs the head."""
INNER = "from the first start to the last end"
NAMES = ("one", "two", "three")


def campaign(models: int = MODELS) -> Matrix:
    """Blocks of three runs, which any number of nodes up to three shares evenly."""
    return a_matrix(
        f"echo rate 5; sleep {SECONDS}",
        models={f"m{number}": {"id": f"x/m{number}"} for number in range(models)},
        iterations=ITERATIONS,
        telemetry={"interval": 1.0},
    )


def head_seconds() -> float:
    """Processor time of the heads so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def between(data: Path) -> float:
    """Seconds from the first start of a run to the last end, as the records have it: whole ones."""
    found = records(data)
    starts = [datetime.fromisoformat(record.started.value) for record in found]
    ends = [
        datetime.fromisoformat(record.ended.value)
        for record in found
        if record.ended is not None
    ]
    return (max(ends) - min(starts)).total_seconds()


def collected(collecting: list[str], data: Path, runs: int) -> tuple[float, float]:
    """Wall time of the command, and the processor time of the head alone: nodes are no children of it."""
    before = head_seconds()
    wall = harness.seconds(
        lambda: subprocess.run(collecting, check=True, capture_output=True)
    )
    assert len(records(data)) == runs
    return wall, head_seconds() - before


def main() -> None:
    """Measure, and write `results/fleet.json`."""
    harness.parser(__doc__).parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as place, Nodes(Path(place) / "nodes") as nodes:
        folder = Path(place)
        local = command(campaign(), nodes, folder / "alone")[:-2]
        alone, _ = collected(local, folder / "alone", RUNS)
        ideal = RUNS * SECONDS
        rows.append(_row("without a cluster", alone, ideal))
        rows.append(_row(INNER, between(folder / "alone"), ideal))
        heads = []
        for count, name in enumerate(NAMES, start=1):
            nodes.add(name)
            data = folder / name
            wall, used = collected(command(campaign(), nodes, data), data, RUNS)
            heads.append(used)
            rows.append(_row(f"{count} of 3 nodes", wall, ideal / count))
            rows.append(_row(INNER, between(data), ideal / count))
        data = folder / "few"
        _, few = collected(command(campaign(FEW), nodes, data), data, FEW * ITERATIONS)
        more = (heads[-1] - few) / (RUNS - FEW * ITERATIONS)
        rows.append(row("head: processor time of each run more", [more], "s"))
        rows.append(row("head: processor time of the campaign", heads, "s"))
    path = harness.save(
        "fleet",
        title="A campaign on several machines",
        question=f"How long do {RUNS} runs of {SECONDS:g} s take on one, two and three nodes?",
        rows=rows,
        notes=[
            f"{MODELS} models, one environment, {ITERATIONS} iterations; a model stays on its node.",
            "The nodes are processes of one machine, which they share. The time is that of the whole command; below it "
            "stands that between the first start of a run and the last end.",
            f"Load of the machine when it was measured: {os.getloadavg()[1]:.1f} on {os.cpu_count()} processors.",
        ],
        packages=["ray"],
    )
    sys.stdout.write(f"{path}\n")


def _row(what: str, seconds: float, ideal: float) -> Row:
    return row(f"{RUNS} runs, {what}", [seconds], "s", against=("ideal", [ideal]))


if __name__ == "__main__":
    main()
