"""The statistics as tables for people (text, Markdown) and spreadsheets (CSV), and as JSON for programs."""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic_core import to_json

from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.text import outward, outward_digits, p_text, significant
from sparkpub.review.results import Results
from sparkpub.review.statistics.bootstrap import RESAMPLES, SEED
from sparkpub.review.statistics.estimate import ALPHA, MINIMUM_RUNS
from sparkpub.review.tables.column import TableRow, rows

StatsForm = Literal["text", "markdown", "csv", "json"]

_CELL = "campaign model environment workload metric n mean sd ci95 cv_percent p50 p95 p99 n_effective trend_slope"
_CHANGE = "difference ci95_difference difference_percent"
_COLUMNS = {
    "cells": (
        _CELL,
        "Cells (σ of the sample; * is in effect the maximum: n is too small)",
    ),
    "comparisons": (
        f"campaign model workload metric family candidate baseline {_CHANGE} ratio overhead_percent"
        " verdict why",
        "Comparisons (candidate against baseline)",
    ),
    "pooled": (
        "campaign metric family candidate baseline cells effect unit ci95_effect t p_value heterogeneity_p",
        "Pooled over cells (memory in GiB, all else in % of the baseline; exploratory)",
    ),
    "repeats": (
        f"campaign against model environment workload metric {_CHANGE} same_specification verdict why",
        "Repeats (campaign against campaign)",
    ),
    "replications": (
        "campaign campaigns machines model workload metric family candidate baseline effect effect_unit ci95_effect"
        " verdict between_sd i2_percent q heterogeneity_p prediction95 verdicts replication why",
        "Over machines (the interval holds for machines like these)",
    ),
    "criteria": (
        "campaign criterion cell metric value threshold met why",
        "Success criteria",
    ),
    "capacities": (
        "campaign model environment load limit_seconds limit_tpot_ms text served_req_s in_flight user_tok_s"
        " output_throughput_tok_s workload note",
        "Capacities (requests a second with 95 % of first tokens and of times per output token within the limits)",
    ),
    "bandwidths": (
        "campaign model environment workload weights bytes_per_token source output_throughput_tok_s"
        " milliseconds_per_token share_percent",
        "Memory bandwidth that one request at once gets",
    ),
}
_HEADINGS = {
    "sd": "σ",
    "ci95": "95 % interval",
    "ci95_difference": "95 % interval",
    "cv_percent": "CV %",
    "difference_percent": "%",
    "overhead_percent": "overhead %",
    "ci95_effect": "95 % interval",
    "effect_unit": "unit",
    "between_sd": "τ",
    "i2_percent": "I² %",
    "q": "Q",
    "prediction95": "95 % prediction",
    "heterogeneity_p": "p of heterogeneity",
    "n_effective": "n eff.",
    "trend_slope": "trend per run",
    "limit_seconds": "limit in s",
    "limit_tpot_ms": "per token in ms",
    "text": "requests/s",
    "served_req_s": "completed/s",
    "in_flight": "in flight",
    "user_tok_s": "tok/s each",
    "output_throughput_tok_s": "tok/s",
    "milliseconds_per_token": "ms per token",
    "share_percent": "% of the bandwidth",
}
_IN_UNIT = frozenset(
    ["mean", "sd", "ci95", "p50", "p95", "p99", "difference", "ci95_difference"]
)
_SIGNED = frozenset(
    [
        "difference",
        "difference_percent",
        "overhead_percent",
        "effect",
    ]
)


TABLES = tuple(_COLUMNS)
_IN_NO_DOCUMENT = {
    "cells": {"runs", "cell"},
    "comparisons": {"machine"},
    "repeats": {"cell"},
    "capacities": {"cell"},
    "bandwidths": {"cell"},
}
"""Columns that the rows of a document lack. The parts of a cell are there."""
_OF_A_TREND = ("slope", "p_value", "inflation", "n")


def table_rows(found: Results, name: str) -> list[TableRow]:
    """The rows of one of `TABLES`. Comparisons are those over all machines."""
    if name == "cells":
        return found.cell_rows
    if name == "comparisons":
        return found.comparison_rows
    return rows(getattr(found, name))


def heading(found: Results) -> dict[str, Any]:
    """What stands before the tables of `sparkpub stats --json`."""
    out = [{"run": run, "reason": reason} for run, reason in found.excluded.items()]
    bootstrap = {"resamples": RESAMPLES, "seed": SEED, "interval": "bootstrap-t"}
    method = {
        "confidence": 1 - ALPHA,
        "minimum_runs": MINIMUM_RUNS,
        "bootstrap": bootstrap,
    }
    return {"include": found.include, "excluded": out, "method": method}


def document(found: Results) -> dict[str, Any]:
    """As `sparkpub stats --json` prints it: JSON values, figures with 12 significant digits."""
    return heading(found) | {name: list(documents(found, name)) for name in TABLES}


def json_pieces(found: Results) -> Iterator[bytes]:
    """The same as text, a line for each row, in pieces: all at once would take gigabytes."""
    yield to_json(heading(found))[:-1]
    for name in TABLES:
        yield b',\n"' + name.encode() + b'":['
        before = b"\n"
        for row in documents(found, name):
            yield before + to_json(row)
            before = b",\n"
        yield b"]"
    yield b"}\n"


def documents(found: Results, name: str) -> Iterator[dict[str, Any]]:
    """The rows of one of `TABLES` as JSON values."""
    left_out = _IN_NO_DOCUMENT.get(name, set())
    for row in table_rows(found, name):
        values = row._asdict()
        if name == "cells":
            values["trend"] = _trend_of(values)
        yield {
            key: _json(value) for key, value in values.items() if key not in left_out
        }


def _trend_of(values: dict[str, Any]) -> dict[str, Any] | None:
    """The columns of a cell's trend as one object, which they are taken out for."""
    trend = {name: values.pop(f"trend_{name}") for name in _OF_A_TREND}
    return None if trend["n"] is None else trend


def _json(value: Any) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return float(f"{value:.12g}")
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    if isinstance(value, dict):
        return {name: _json(item) for name, item in value.items()}
    return value


def render(found: Results, form: StatsForm) -> str:
    """The statistics in one of the forms, with a newline at the end."""
    if form == "json":
        return b"".join(json_pieces(found)).decode()
    if form == "csv":
        return _csv({name: list(documents(found, name)) for name in TABLES})
    parts = [_counted(found)]
    for kind, (names, title) in _COLUMNS.items():
        shown = table_rows(found, kind)
        if not shown:
            continue
        table = _filled(names.split(), shown)
        if form == "markdown":
            parts.append(_markdown(title, table))
        else:
            parts.append(_text(title, table))
    return "\n".join(parts)


def _counted(found: Results) -> str:
    runs = {run for cell in found.cells["runs"] for run in cell}
    if found.include == "all":
        return f"All {len(runs)} runs as recorded, including excluded ones.\n"
    lines = [f"{len(runs)} runs counted, {len(found.excluded)} excluded."]
    for run, reason in found.excluded.items():
        lines.append(f"- {run}: {reason}")
    return "\n".join(lines) + "\n"


def _filled(names: Sequence[str], rows: Sequence[Any]) -> list[list[str]]:
    """A table of text: the headings, then a line for each row."""
    table = [[_HEADINGS.get(name, name) for name in names]]
    for row in rows:
        table.append([_cell(row, name) for name in names])
    return table


def _cell(row: Any, name: str) -> str:
    value = getattr(row, name)
    if name == "trend_slope":
        return _trend(row)
    if name == "n":
        return _runs(row)
    if name in {"verdicts", "campaigns"}:
        return ", ".join(value)
    if isinstance(value, tuple):
        low, high = value
        if name in _IN_UNIT and row.metric in METRICS:
            low, high = outward(low, high, METRICS[row.metric].decimals)
        else:
            low, high = outward_digits(low, high)
        return " … ".join(_figure(row, name, end) for end in (low, high))
    if isinstance(value, str):
        return value
    text = _figure(row, name, value)
    if not getattr(row, f"{name}_supported", True):
        return f"{text}*"
    return text


def _runs(row: TableRow) -> str:
    """The number of runs, with those of each machine where the campaign has several: `16 (a: 8, b: 8)`."""
    if not row.machines:
        return str(row.n)
    pairs = zip(row.machines, row.n_by_machine, strict=True)
    each = ", ".join(f"{machine}: {n}" for machine, n in pairs)
    return f"{row.n} ({each})"


def _trend(row: TableRow) -> str:
    if row.trend_n is None:
        return "—"
    p_value = row.trend_p_adjusted
    if p_value is None:
        p_value = row.trend_p_value
    return f"{_figure(row, 'slope', row.trend_slope)} ({p_text(p_value)})"


def _figure(row: Any, name: str, value: float | bool | None) -> str:
    """One value for a reader: in the metric's own digits where it is in its unit, which stands beside mean and
    difference."""
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = significant(value)
    if name in _IN_UNIT:
        metric = METRICS.get(row.metric)
        if metric is None:
            metric = Metric(row.metric, row.unit, "neither", row.metric, "")
        text = metric.format(value, unit=name in {"mean", "difference"})
    if name in _SIGNED and value > 0:
        return f"+{text}"
    return text


def _markdown(title: str, rows: list[list[str]]) -> str:
    lines = [f"## {title}", ""]
    for number, row in enumerate(rows):
        cells = [cell.replace("|", "\\|") for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
        if number == 0:
            lines.append("|" + " --- |" * len(row))
    return "\n".join(lines) + "\n"


def _text(title: str, rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [title]
    for row in rows:
        cells = map(str.ljust, row, widths)
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def _csv(kinds: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """All rows in one table: `table` says which they belong to, and columns of the others stay empty."""
    rows: list[dict[str, object]] = []
    columns = {"table": None}
    for kind, group in kinds.items():
        for item in group:
            row = {"table": kind, **_flat(item)}
            columns |= dict.fromkeys(row)
            rows.append(row)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flat(document: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """Intervals as `…_low` and `…_high`, lists joined by spaces, nested figures after their parent's name."""
    flat: dict[str, object] = {}
    for name, value in document.items():
        column = f"{prefix}{name}"
        if isinstance(value, dict):
            flat |= _flat(value, f"{column}_")
        elif name.startswith("ci95") or name == "prediction95":
            low, high = value or (None, None)
            flat[f"{column}_low"] = low
            flat[f"{column}_high"] = high
        elif isinstance(value, list):
            flat[column] = " ".join(map(str, value))
        else:
            flat[column] = value
    return flat
