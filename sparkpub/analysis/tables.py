"""The statistics as tables for people (text, Markdown) and for spreadsheets (CSV), and as JSON."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sparkpub.analysis.compare import p_text
from sparkpub.analysis.describe import Interval
from sparkpub.analysis.summary import CellStatistic, ComparisonRow, Criterion, RepeatRow, Statistics, row_document
from sparkpub.metrics import Metric, lookup

Form = Literal["text", "markdown", "csv", "json"]


@dataclass(frozen=True)
class Table:
    """A heading, the names of columns, and rows of text."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def render(found: Statistics, form: Form) -> str:
    """The statistics in one of the forms, with a newline at the end."""
    if form == "json":
        return json.dumps(found.document(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if form == "csv":
        return _csv(found)
    draw = _markdown if form == "markdown" else _text
    return "\n".join([_counted(found), *(draw(table) for table in tables(found) if table.rows)])


def tables(found: Statistics) -> list[Table]:
    """Cells, comparisons, repeats and success criteria, worded for a reader."""
    return [
        Table("Cells (* in effect the maximum: n is too small)", _CELL, [_cell(row) for row in found.cells]),
        Table("Comparisons", _COMPARISON, [_comparison(row) for row in found.comparisons]),
        Table("Repeats", _REPEAT, [_repeat(row) for row in found.repeats]),
        Table("Success criteria", _CRITERION, [_criterion(row) for row in found.criteria]),
    ]


def _counted(found: Statistics) -> str:
    runs = {run for cell in found.cells for run in cell.runs}
    if found.include == "all":
        return f"All {len(runs)} runs as recorded, those that the review takes out included.\n"
    lines = [f"{len(runs)} runs counted, {len(found.excluded)} left out."]
    return "\n".join([*lines, *(f"- {run}: {reason}" for run, reason in found.excluded.items())]) + "\n"


_CELL = ("Campaign", "Cell", "Metric", "n", "Mean", "σ", "95 % interval", "CV", "P50", "P95", "P99", "n eff.",
         "Trend per run")  # fmt: skip
_COMPARISON = ("Campaign", "Model", "Workload", "Metric", "Candidate / baseline", "Difference", "95 % interval", "%",
               "Ratio", "g", "p adjusted", "Verdict", "Why")  # fmt: skip
_REPEAT = ("Campaign / against", "Cell", "Metric", "Difference", "95 % interval", "%", "Same specification", "Verdict",
           "Why")  # fmt: skip
_CRITERION = ("Campaign", "Criterion", "Cell", "Metric", "Value", "Threshold", "Met", "Why")


def _cell(row: CellStatistic) -> list[str]:
    number = _Number(row.metric, row.unit)
    trend = row.trend
    p = trend.p_value if row.trend_p_adjusted is None else row.trend_p_adjusted
    return [
        row.campaign,
        f"{row.model}/{row.environment}/{row.workload}",
        number.label,
        str(row.n),
        number(row.mean),
        number(row.sd, unit=False),
        number.interval(row.ci95),
        _plain(row.cv_percent, ".1f", " %"),
        number(row.p50, unit=False),
        number(row.p95, unit=False) + "*" * (not row.p95_supported),
        number(row.p99, unit=False) + "*" * (not row.p99_supported),
        _plain(row.n_effective, ".1f"),
        "—" if trend.slope is None else f"{trend.slope:+.2g} ({p_text(p)})",
    ]


def _comparison(row: ComparisonRow) -> list[str]:
    number = _Number(row.metric, row.unit)
    return [
        row.campaign,
        row.model,
        row.workload,
        number.label,
        f"{row.candidate} / {row.baseline}",
        number(row.difference),
        number.interval(row.ci95_difference),
        _plain(row.difference_percent, "+.2f"),
        _plain(row.ratio, ".3f"),
        _plain(row.effect_size, "+.2f"),
        p_text(row.p_adjusted).removeprefix("p = ").removeprefix("p "),
        row.verdict,
        row.why,
    ]


def _repeat(row: RepeatRow) -> list[str]:
    number = _Number(row.metric, row.unit)
    return [
        f"{row.campaign} / {row.against}",
        f"{row.model}/{row.environment}/{row.workload}",
        number.label,
        number(row.difference),
        number.interval(row.ci95_difference),
        _plain(row.difference_percent, "+.2f"),
        _word(row.same_specification),
        row.verdict,
        row.why,
    ]


def _criterion(row: Criterion) -> list[str]:
    label = "—" if row.metric is None else _Number(row.metric, "").label
    cells = [row.campaign, row.criterion, row.cell or "all", label, _plain(row.value, ".3g"), f"{row.threshold:g}"]
    return [*cells, _word(row.met), row.why]


class _Number:
    """Formats one metric's values the way the metric asks for, its own unit beside them."""

    def __init__(self, name: str, unit: str) -> None:
        self._metric = lookup(name) or Metric(name, unit, "neither", name, "")
        self.label = self._metric.label

    def __call__(self, value: float | None, *, unit: bool = True) -> str:
        return "—" if value is None else self._metric.format(value, unit=unit)

    def interval(self, ends: Interval | None) -> str:
        return "—" if ends is None else " … ".join(self(end, unit=False) for end in ends)


def _plain(value: float | None, form: str, unit: str = "") -> str:
    return "—" if value is None else format(value, form).replace("-", "\N{MINUS SIGN}") + unit


def _word(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"


def _markdown(table: Table) -> str:
    lines = [f"## {table.title}", "", _row(table.header), _row("---" for _ in table.header)]
    return "\n".join([*lines, *map(_row, table.rows)]) + "\n"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _text(table: Table) -> str:
    rows = [table.header, *table.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([table.title, *lines]) + "\n"


def _csv(found: Statistics) -> str:
    """One row per cell, comparison, repeat and criterion; `kind` says which, and columns of other kinds are empty."""
    kinds = {"cell": found.cells, "comparison": found.comparisons, "repeat": found.repeats, "criterion": found.criteria}
    rows = [{"kind": kind} | _flat(row_document(row)) for kind, group in kinds.items() for row in group]
    columns = dict.fromkeys(name for row in rows for name in row)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns) or ["kind"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flat(document: dict[str, object], prefix: str = "") -> dict[str, object]:
    """Intervals as `…_low` and `…_high`, lists joined by spaces, nested figures with their parent's name before."""
    flat: dict[str, object] = {}
    for name, value in document.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}_")
        elif "ci95" in name:
            low, high = value if isinstance(value, list) else (None, None)
            flat |= {f"{prefix}{name}_low": low, f"{prefix}{name}_high": high}
        else:
            flat[prefix + name] = " ".join(map(str, value)) if isinstance(value, list) else value
    return flat
