"""`python -m benchmarks.review`: reading, reviewing and describing many runs, and how that grows.

The runs are real ones, copied under new names: records with log and telemetry, 60 to a campaign. Every size is
measured in a process of its own, so that no cache of the size before helps it.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

from benchmarks import harness, quick
from benchmarks.harness import Row, row
from sparkpub.record.store import campaign_folders
from sparkpub.review import stats_told
from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from sparkpub.review.results import Results

SIZES = (1_000, 10_000, 100_000)


def multiply(template: Path, data: Path, runs: int) -> None:
    """Copy a campaign of 60 runs until there are `runs`: telemetry as hard links, figures and logs drawn anew,
    so that nothing remembered of one copy serves another."""
    random = Random(1)
    records = [
        path for path in sorted(template.glob("*.json")) if path.name != "campaign.json"
    ]
    for number in range(-(-runs // len(records))):
        name = f"copy{number}"
        folder = data / name
        folder.mkdir(parents=True)
        document = json.loads((template / "campaign.json").read_text())
        document["campaign"] = document["matrix"]["campaign"] = name
        (folder / "campaign.json").write_text(json.dumps(document))
        for path in records[: runs - number * len(records)]:
            _copy(path, folder, random)


def _copy(path: Path, folder: Path, random: Random) -> None:
    document = json.loads(path.read_text())
    document |= {
        "campaign": folder.name,
        "run_id": f"{folder.name}-{document['run_id']}",
    }
    log = "".join(path.with_suffix(".log").read_text())
    for word, metric in quick.WORDS.items():
        value = document["metrics"][metric]["value"] * random.gauss(1, 0.01)
        document["metrics"][metric]["value"] = float(f"{value:.3f}")
        log = re.sub(rf"{word}: \S+", f"{word}: {value:.3f}", log)
    (folder / path.with_suffix(".log").name).write_text(log)
    for item in document["evidence"]:
        if item["role"] == "log":
            item |= {
                "sha256": hashlib.sha256(log.encode()).hexdigest(),
                "bytes": len(log.encode()),
            }
        else:
            os.link(path.parent / item["path"], folder / item["path"])
    (folder / path.name).write_text(json.dumps(document))


def times(data: Path) -> dict[str, float]:
    """Seconds for each step on a data folder, and for reading and hashing the same files with nothing else done."""
    files = [path for folder in campaign_folders(data) for path in folder.iterdir()]
    found = {
        "bare": harness.seconds(
            lambda: [hashlib.sha256(path.read_bytes()).digest() for path in files]
        )
    }
    found["load"] = harness.seconds(lambda: load(data))
    dataset = load(data)
    found["review"] = harness.seconds(lambda: review(dataset))
    reviewed = review(dataset)
    found["statistics"] = harness.seconds(
        lambda: stats_told.document(Results(reviewed))
    )
    found["together"] = found["load"] + found["review"] + found["statistics"]
    return found


def measured(data: Path) -> dict[str, float]:
    argv = [sys.executable, "-m", "benchmarks.review", str(data)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    return {str(name): float(value) for name, value in json.loads(done.stdout).items()}


def rows(found: dict[int, list[dict[str, float]]]) -> list[Row]:
    made = []
    for size, repeats in found.items():
        bare = (
            "reading and hashing the same files",
            [item["bare"] for item in repeats],
        )
        for step in ("load", "review", "statistics", "together"):
            against = bare if step == "together" else None
            made.append(
                row(
                    f"{step}, {size:,} runs",
                    [item[step] for item in repeats],
                    "s",
                    against=against,
                )
            )
    smallest, largest = (found[size] for size in (SIZES[0], SIZES[-1]))
    growth = (
        largest[0]["together"]
        / SIZES[-1]
        / (min(item["together"] for item in smallest) / SIZES[0])
    )
    made.append(
        row(
            f"time per run, {SIZES[-1]:,} runs over {SIZES[0]:,}",
            [growth],
            "times",
            goal=1.5,
        )
    )
    return made


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("data", nargs="?", type=Path, help="review this folder alone")
    data: Path | None = parser.parse_args().data
    if data is None:
        compare_sizes()
    else:
        print(json.dumps(times(data)))


def compare_sizes() -> None:
    """Measure every size, and write the result."""
    found: dict[int, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as made:
        template = quick.collect(Path(made)) / "quick"
        for size in SIZES:
            data = Path(made, str(size))
            multiply(template, data, size)
            found[size] = [measured(data) for _ in range(1 if size == SIZES[-1] else 3)]
    harness.save(
        "review",
        title="Reviewing many runs",
        question="How long does the whole review take, and does the time per run stay the same?",
        rows=rows(found),
        packages=["numpy", "scipy", "pydantic"],
    )


if __name__ == "__main__":
    main()
