"""The statistics as tables for people (text, Markdown) and spreadsheets (CSV), and as JSON for programs."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from sparkpub.analysis.compare import p_text
from sparkpub.analysis.criteria import criteria
from sparkpub.analysis.describe import Interval
from sparkpub.analysis.summary import CellStatistic, Statistics, row_document
from sparkpub.metrics import Metric, lookup

Form = Literal["text", "markdown", "csv", "json"]
Columns = Mapping[str, Callable[[Any], str]]
"""Heading to what stands in the column for a row."""


def render(found: Statistics, form: Form) -> str:
    """The statistics in one of the forms, with a newline at the end."""
    judged = criteria(found)
    if form == "json":
        document = found.document() | {"criteria": [row_document(row) for row in judged]}
        return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if form == "csv":
        return _csv({"cell": found.cells, "comparison": found.comparisons, "repeat": found.repeats,
                     "criterion": judged})  # fmt: skip
    draw = _markdown if form == "markdown" else _text
    parts = (
        ("Cells (* in effect the maximum: n is too small)", _CELLS, found.cells),
        ("Comparisons", _COMPARISONS, found.comparisons),
        ("Repeats", _REPEATS, found.repeats),
        ("Success criteria", _CRITERIA, judged),
    )
    tables = [draw(title, _filled(columns, rows)) for title, columns, rows in parts if rows]
    return "\n".join([_counted(found), *tables])


def _counted(found: Statistics) -> str:
    runs = {run for cell in found.cells for run in cell.runs}
    if found.include == "all":
        return f"All {len(runs)} runs as recorded, those that the review takes out included.\n"
    lines = [f"{len(runs)} runs counted, {len(found.excluded)} left out."]
    return "\n".join([*lines, *(f"- {run}: {reason}" for run, reason in found.excluded.items())]) + "\n"


def _metric(row: Any) -> Metric:
    return lookup(row.metric) or Metric(row.metric, row.unit, "neither", row.metric, "")


def _number(row: Any, value: float | None, *, unit: bool = False, signed: bool = False) -> str:
    text = "—" if value is None else _metric(row).format(value, unit=unit)
    return "+" + text if signed and value is not None and value > 0 else text


def _interval(row: Any, ends: Interval | None) -> str:
    return "—" if ends is None else " … ".join(_number(row, end) for end in ends)


def _plain(value: float | None, form: str, unit: str = "") -> str:
    return "—" if value is None else format(value, form).replace("-", "\N{MINUS SIGN}") + unit


def _word(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"


def _trend(row: CellStatistic) -> str:
    p = row.trend.p_value if row.trend_p_adjusted is None else row.trend_p_adjusted
    return f"{_plain(row.trend.slope, '+.2g')} ({p_text(p)})"


_PLACE: Columns = {
    "Campaign": lambda row: row.campaign,
    "Cell": lambda row: f"{row.model}/{row.environment}/{row.workload}",
    "Metric": lambda row: _metric(row).label,
}
_CELLS: Columns = {
    **_PLACE,
    "n": lambda row: str(row.n),
    "Mean": lambda row: _number(row, row.mean, unit=True),
    "σ": lambda row: _number(row, row.sd),
    "95 % interval": lambda row: _interval(row, row.ci95),
    "CV": lambda row: _plain(row.cv_percent, ".1f", " %"),
    "P50": lambda row: _number(row, row.p50),
    "P95": lambda row: _number(row, row.p95) + "*" * (not row.p95_supported),
    "P99": lambda row: _number(row, row.p99) + "*" * (not row.p99_supported),
    "n eff.": lambda row: _plain(row.n_effective, ".1f"),
    "Trend per run": _trend,
}
_DIFFERENCE: Columns = {
    "Difference": lambda row: _number(row, row.difference, unit=True, signed=True),
    "95 % interval": lambda row: _interval(row, row.ci95_difference),
    "%": lambda row: _plain(row.difference_percent, "+.2f"),
}
_VERDICT: Columns = {"Verdict": lambda row: row.verdict, "Why": lambda row: row.why}
_COMPARISONS: Columns = {
    "Campaign": lambda row: row.campaign,
    "Model/workload": lambda row: f"{row.model}/{row.workload}",
    "Metric": lambda row: _metric(row).label,
    "Candidate / baseline": lambda row: f"{row.candidate} / {row.baseline}",
    **_DIFFERENCE,
    "Ratio": lambda row: _plain(row.ratio, ".3f"),
    "Overhead": lambda row: _plain(row.overhead_percent, "+.2f", " %"),
    "g": lambda row: _plain(row.effect_size, "+.2f"),
    **_VERDICT,
}
_REPEATS: Columns = {
    **_PLACE,
    "Against": lambda row: row.against,
    **_DIFFERENCE,
    "Same specification": lambda row: _word(row.same_specification),
    **_VERDICT,
}
_CRITERIA: Columns = {
    "Campaign": lambda row: row.campaign,
    "Criterion": lambda row: row.criterion,
    "Cell": lambda row: row.cell or "all",
    "Metric": lambda row: row.metric or "—",
    "Value": lambda row: _plain(row.value, ".3g"),
    "Threshold": lambda row: f"{row.threshold:g}",
    "Met": lambda row: _word(row.met),
    "Why": lambda row: row.why,
}


def _filled(columns: Columns, rows: Iterable[object]) -> list[list[str]]:
    return [list(columns), *([column(row) for column in columns.values()] for row in rows)]


def _markdown(title: str, rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([f"## {title}", "", lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]]) + "\n"


def _text(title: str, rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([title, *lines]) + "\n"


def _csv(kinds: Mapping[str, Sequence[object]]) -> str:
    """One row per cell, comparison, repeat and criterion: `kind` says which; columns of other kinds stay empty."""
    rows = [{"kind": kind} | _flat(row_document(row)) for kind, group in kinds.items() for row in group]
    text = io.StringIO()
    columns = dict.fromkeys(("kind", *(name for row in rows for name in row)))
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flat(document: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """Intervals as `…_low` and `…_high`, lists joined by spaces, nested figures after their parent's name."""
    flat: dict[str, object] = {}
    for name, value in document.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}_")
        elif name.startswith("ci95"):
            flat[f"{prefix}{name}_low"], flat[f"{prefix}{name}_high"] = value or (None, None)
        else:
            flat[prefix + name] = " ".join(map(str, value)) if isinstance(value, list) else value
    return flat
