"""`python -m benchmarks.imports`: 420 real files of llama-bench become records, and hold the figures of the files.

The files lie in `tests/data/imports/many`: nested folders, every format of the tool, a quarter of them compressed. What
they say is read a second time here with Python's own readers alone, which is what the import is held against.
"""

import csv
import gzip
import io
import json
import re
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.harness import ROOT, row, seconds
from benchmarks.load import cost
from sparkpub.record.store import read_folder

ARCHIVE = ROOT / "tests/data/imports/many/llama-bench.tar.xz"
RATES = ("prompt_throughput_tok_s", "output_throughput_tok_s")
RUNS = 3
SHORT, LONG = 1_000, 10_000
"""Rows of a table."""
MAPPING = """\
run: {model: model, environment: environment, started: started}
load: {concurrency: clients}
metrics: {output_throughput_tok_s: rate}
"""
_CELL = re.compile(
    r"\| *((?:pp|tg)\d+[^|]*?) *\| *([\d.]+) ± [\d.]+ *\|$", re.MULTILINE
)


def unpacked(folder: Path) -> list[Path]:
    """The files of the archive that are results."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not {".sql", ".txt"} & set(path.suffixes)
    )


def rates(path: Path) -> Iterator[float]:
    """Tokens per second of every test of a file, by the plainest reader of its format."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content, path = gzip.decompress(content), path.with_suffix("")
    text = content.decode()
    if path.suffix == ".md":
        yield from (float(rate) for _, rate in _CELL.findall(text))
        return
    for test in _tests(text, path.suffix):
        yield float(test["avg_ts"])


def _tests(text: str, suffix: str) -> list[dict[str, Any]]:
    if suffix == ".json":
        return list(json.loads(text))
    if suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return list(csv.DictReader(io.StringIO(text)))


def figures(values: list[float]) -> Counter[str]:
    """How often each figure stands there, to six digits: so many has the tool's own list of repetitions."""
    return Counter(f"{value:.6g}" for value in values)


def recorded(data: Path) -> list[float]:
    """The rates of every record."""
    values = []
    for stored in read_folder(data / "many"):
        for name in RATES:
            value = stored.record.value(name)
            if value is not None:
                values.append(value)
    return values


def table(folder: Path, rows: int) -> list[str]:
    """The command that reads a table of so many rows, and writes nothing."""
    file, mapping = folder / f"{rows}.csv", folder / "mapping.yaml"
    mapping.write_text(MAPPING)
    lines = ["model,environment,started,clients,rate"]
    for number in range(rows):
        minute, second = divmod(number, 60)
        hour, minute = divmod(minute, 60)
        time = f"2026-03-01T{hour:02}:{minute:02}:{second:02}Z"
        lines.append(f"m{number % 20},native,{time},{2 ** (number % 5)},{number}.25")
    file.write_text("\n".join(lines) + "\n")
    argv = ["-m", "sparkpub", "import", str(file), "--mapping", str(mapping)]
    return [*argv, "--campaign", "table", "--data", str(folder), "--preview"]


def growth(folder: Path) -> list[float]:
    """Processor time of a row of a long table, in that of a row of a short one."""
    found = []
    nothing = table(folder, 1)
    for _ in range(RUNS):
        start, short, long = (
            cost(argv, {}, harness.ROOT).processor
            for argv in (nothing, table(folder, SHORT), table(folder, LONG))
        )
        found.append((long - start) / LONG / ((short - start) / SHORT))
    return found


def main() -> None:
    """Measure and write the result."""
    harness.parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        files = unpacked(Path(scratch, "files"))
        clock, processor, memory, plain = [], [], [], []
        for number in range(RUNS):
            data = Path(scratch, f"data{number}")
            argv = ["-m", "sparkpub", "import", f"{scratch}/files"]
            argv += [
                "--campaign",
                "many",
                "--environment",
                "native",
                "--model",
                "tiny-llama",
            ]
            argv += ["--data", str(data)]
            used = cost(argv, {}, harness.ROOT)
            clock.append(used.clock)
            processor.append(used.processor)
            memory.append(used.memory)
            plain.append(seconds(lambda: [list(rates(path)) for path in files]))
        grown = growth(Path(scratch))
        there = figures([rate for path in files for rate in rates(path)])
        kept = figures(recorded(Path(scratch, "data0")))
    differing = (there - kept).total() + (kept - there).total()
    rows = [
        row(
            f"{len(files)} files, {there.total()} tests",
            clock,
            "s",
            against=("the same files through Python's readers alone", plain),
        ),
        row("processor time", processor, "s"),
        row("memory at its peak", memory, "MiB"),
        row(
            f"processor time of a row in a table of {LONG:,}, in that of a row in one of {SHORT:,}",
            grown,
            "times",
            goal=1.2,
        ),
        row("figures that differ from the files'", [differing], "", goal=0),
    ]
    formats = Counter(
        path.name.removesuffix(".gz").rpartition(".")[2] for path in files
    )
    notes = [
        "Formats: "
        + ", ".join(f"{count} {name}" for name, count in formats.most_common())
        + ".",
        "Records and evidence are written so that a power cut loses none; that is most of the time.",
    ]
    question = "How long until hundreds of real files of one tool are records, and is every figure that of its file?"
    path = harness.save(
        "imports", title="Importing", question=question, rows=rows, notes=notes
    )
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
