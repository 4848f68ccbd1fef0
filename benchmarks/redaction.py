"""`python -m benchmarks.redaction`: what it costs to keep secrets out of logs and reports, and what it changes there.

The texts are those of the committed campaigns. They went through redaction when they were measured, and hold no secret:
whatever it changes in them is a false alarm.
"""

import statistics
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks import harness
from benchmarks.harness import Row, row
from sparkpub.record.secrets import without_secrets

DATA = Path(__file__).parents[1] / "data/comprehensive"
KINDS = {"logs": "*.log", "records and reports": "*.json", "telemetry": "*.csv"}
ROUNDS = 5
MEGABYTE = 1_000_000
TELLING = (
    "Authorization: none token: {0} api_key=None password=None url=http://me@host:{0}/x?y=1 "
    "--hf-token-file x secret_name: y"
)
"""A line of nothing but names that tell of a secret, and addresses."""


def texts(pattern: str) -> list[str]:
    """Committed files of one kind; bytes that are no text as redaction sees them."""
    return [
        path.read_bytes().decode("utf-8", "surrogateescape")
        for path in sorted(DATA.rglob(pattern))
    ]


def seconds_per_megabyte(files: Iterable[str]) -> float:
    """Of the processor."""
    size = 0
    began = time.process_time()
    for text in files:
        without_secrets(text)
        size += len(text)
    return (time.process_time() - began) / size * MEGABYTE


def changed_lines(files: Iterable[str]) -> int:
    """Lines that redaction changes."""
    count = 0
    for text in files:
        clean = without_secrets(text)
        if clean != text:
            before, after = text.split("\n"), clean.split("\n")
            differ = sum(a != b for a, b in zip(before, after, strict=False))
            count += differ + abs(len(before) - len(after))
    return count


def main() -> None:
    """Measure and write the result."""
    harness.parser(__doc__).parse_args()
    rows: list[Row] = []
    changed = 0
    for name, pattern in KINDS.items():
        files = texts(pattern)
        size = sum(map(len, files)) / MEGABYTE
        changed += changed_lines(files)
        times = [seconds_per_megabyte(files) for _ in range(ROUNDS)]
        rows.append(row(f"{name}, {size:.1f} MB", times, "s of a core a MB"))
        print(f"{name}: {statistics.median(times):.3f} s a MB", flush=True)
    telling = "\n".join(TELLING.format(number) for number in range(10_000))
    times = [seconds_per_megabyte([telling]) for _ in range(ROUNDS)]
    rows.append(row("lines full of names and addresses", times, "s of a core a MB"))
    rows.append(row("committed lines changed", [changed], "lines", goal=0))
    harness.save(
        "redaction",
        title="Keeping secrets out",
        question="What does it cost to look for secrets, and how often is something else taken for one?",
        rows=rows,
        notes=[
            "Lines changed are those of the committed logs, records, reports and telemetry."
        ],
        packages=["google-re2"],
    )


if __name__ == "__main__":
    main()
