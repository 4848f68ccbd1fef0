"""`python -m benchmarks.report`: writes README.md from the committed results. Nobody types a figure into it."""

import json
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, parser

README = Path(__file__).parent / "README.md"

HEAD = """\
# How fast sparkpub is

This page is made by `python -m benchmarks.report` from `results/*.json`; edit those by measuring again:
`python -m benchmarks.NAME`. A test fails where the two differ.

Each value is a median, with the smallest and the largest of the runs. *Against* was measured in the same run on the
same machine, unless a source is named. Only ratios may be compared between machines. A goal that was missed says so.
"""


def table(rows: list[dict[str, Any]]) -> list[str]:
    """The rows as a Markdown table."""
    lines = [
        "| what | value | runs | against | ratio | goal |",
        "|---|---:|---:|---|---:|---|",
    ]
    return lines + [f"| {' | '.join(_cells(row))} |" for row in rows]


def _cells(row: dict[str, Any]) -> list[str]:
    spread = (
        f" ({_number(row['low'])} to {_number(row['high'])})" if row["runs"] > 1 else ""
    )
    against = ratio = ""
    if row["against"] is not None:
        source = f", {row['source']}" if row["source"] else ""
        against = f"{row['against']}: {_quantity(row['against_value'], row)}{source}"
        ratio = (
            f"{row['value'] / row['against_value']:.3g}" if row["against_value"] else ""
        )
    return [
        row["what"],
        _quantity(row["value"], row) + spread,
        str(row["runs"]),
        against,
        ratio,
        _goal(row),
    ]


def _goal(row: dict[str, Any]) -> str:
    goal = row["goal"]
    if goal is None:
        return ""
    met = row["value"] <= goal if goal >= 0 else row["value"] >= -goal
    sign = "at most" if goal >= 0 else "at least"
    return f"{sign} {_quantity(abs(goal), row)}: {'met' if met else '**missed**'}"


def _quantity(value: float, row: dict[str, Any]) -> str:
    return f"{_number(value)} {row['unit']}".strip()


def _number(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def section(document: dict[str, Any]) -> str:
    """One benchmark: its question, its table, what it ran on."""
    machine = document["machine"]
    gpu = f", {machine['gpu']}" if machine["gpu"] else ""
    packages = "".join(
        f", {name} {version}" for name, version in document["packages"].items()
    )
    lines = [
        f"## {document['title']}",
        "",
        document["question"],
        "",
        *table(document["rows"]),
        "",
        *(f"- {note}" for note in document["notes"]),
        *([""] if document["notes"] else []),
        f"Measured {document['measured']} at {document['commit']} on {machine['cores']} cores of "
        f"{machine['processor']}, {machine['memory_gib']:g} GiB{gpu}; Python {machine['python']}{packages}.",
    ]
    return "\n".join(lines) + "\n"


def readme() -> str:
    """The whole page."""
    documents = [
        json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))
    ]
    return "\n".join([HEAD, *map(section, documents)])


if __name__ == "__main__":
    parser(__doc__).parse_args()
    README.write_text(readme())
