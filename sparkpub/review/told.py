"""The tables for people (text, Markdown), spreadsheets (CSV), programs (JSON) and databases (Parquet)."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic_core import to_json

from sparkpub.record.metrics import metric_called
from sparkpub.record.store import write_atomic
from sparkpub.record.text import number, outward, outward_digits, significant
from sparkpub.review.results import Results
from sparkpub.review.tables.column import TableRow, rows

StatsForm = Literal["text", "markdown", "csv", "json"]
PART = "part-0.parquet"
_CHANGE = "unit difference ci95_difference difference_percent"
_SHOWN: Mapping[str, tuple[str, str]] = {
    "cells": (
        "Cells (sd of the sample; * is in effect the maximum: n is too small)",
        "campaign model environment workload metric unit n mean sd ci95 cv_percent p50 p95 p99 n_effective"
        " trend_slope trend_p_value",
    ),
    "comparisons": (
        "Comparisons (candidate against baseline)",
        f"campaign model workload metric family candidate baseline {_CHANGE} ratio overhead_percent verdict why",
    ),
    "repeats": (
        "Repeats (campaign against campaign)",
        f"campaign against model environment workload metric {_CHANGE} same_specification verdict why",
    ),
    "replications": (
        "Over machines (the interval holds for machines like these)",
        "campaign campaigns machines model workload metric family candidate baseline effect effect_unit ci95_effect"
        " verdict between_sd i2_percent q heterogeneity_p prediction95 verdicts replication why",
    ),
    "criteria": (
        "Success criteria",
        "campaign criterion cell metric value threshold met why",
    ),
    "capacities": (
        "Capacities (requests a second with 95 % of first tokens and of times per output token within the limits)",
        "campaign model environment load limit_seconds text served_req_s in_flight user_tok_s"
        " output_throughput_tok_s workload note",
    ),
    "bandwidths": (
        "Memory bandwidth that one request at once gets",
        "campaign model environment workload weights bytes_per_token source output_throughput_tok_s"
        " milliseconds_per_token share_percent",
    ),
}
"""Tables that `sparkpub stats` shows: the title, and the columns that people see."""
_IN_UNIT = ("mean", "sd", "ci95", "p50", "p95", "p99", "difference", "ci95_difference")
"""In the digits of their metric."""
_LISTS = ("campaigns", "verdicts")


def tables(found: Results) -> dict[str, pd.DataFrame]:
    """The tables of `sparkpub stats`. Comparisons are those over all machines."""
    frames = {name: getattr(found, name) for name in _SHOWN}
    frames["cells"] = found.cells.drop(columns="runs")
    frames["comparisons"] = found.overall.drop(columns="machine")
    return frames


def heading(found: Results) -> dict[str, Any]:
    """What stands before the tables of `sparkpub stats --json`."""
    out = [{"run": run, "reason": reason} for run, reason in found.excluded.items()]
    return {"include": found.include, "excluded": out}


def json_pieces(found: Results) -> Iterator[bytes]:
    """What `sparkpub stats --json` prints, table by table: all at once would take gigabytes."""
    yield to_json(heading(found))[:-1]
    for name, table in tables(found).items():
        documents = [row._asdict() for row in rows(table)]
        for document in documents if "cell" not in table else ():
            document.pop("cell", None)  # its parts are there
        yield b',\n"' + name.encode() + b'":'
        yield to_json(documents, inf_nan_mode="null")
    yield b"}\n"


def render(found: Results, form: StatsForm) -> str:
    """The statistics in one of the forms, with a newline at the end. In CSV they are one table, in which `table` says
    which of them a row belongs to."""
    if form == "json":
        return b"".join(json_pieces(found)).decode()
    if form == "csv":
        every = tables(found).items()
        parts = [table.astype(object).assign(table=name) for name, table in every]
        together = pd.concat(parts)
        return csv(together[["table", *together.columns.drop("table")]]).decode()
    write = _markdown if form == "markdown" else _text
    told = [_counted(found)]
    for name, table in tables(found).items():
        title, shown = _SHOWN[name]
        names = shown.split()
        lines = [names]
        for row in rows(table):
            lines.append([_cell(row, name) for name in names])
        if not table.empty:
            told += [title, *write(lines), ""]
    return "\n".join(told)


def _counted(found: Results) -> str:
    """How many runs the figures are of, and which are left out."""
    runs = {run for cell in found.cells["runs"] for run in cell}
    lines = [f"{len(runs)} runs counted, {len(found.excluded)} excluded."]
    lines += [f"- {run}: {reason}" for run, reason in found.excluded.items()]
    return "\n".join(lines) + "\n"


def _cell(row: TableRow, name: str) -> str:
    """One value of a row for a reader."""
    value = getattr(row, name)
    if name in _LISTS:
        return ", ".join(value)
    decimals = None
    if name in _IN_UNIT:
        decimals = metric_called(row.metric, row.unit).decimals
    if isinstance(value, tuple):
        low, high = value
        ends = outward_digits(low, high)
        if decimals is not None:
            ends = outward(low, high, decimals)
        return " … ".join(_figure(end, decimals) for end in ends)
    text = _figure(value, decimals)
    return text if getattr(row, f"{name}_supported", True) else f"{text}*"


def _figure(value: Any, decimals: int | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float | int):
        return value or "—"
    return significant(value) if decimals is None else number(value, decimals)


def _markdown(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    head, *body = lines
    for line in (head, ["---"] * len(head), *body):
        cells = [cell.replace("|", "\\|") for cell in line]
        yield f"| {' | '.join(cells)} |"


def _text(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(map(str.ljust, line, widths)).rstrip()


# -- files ---------------------------------------------------------------------------------------------------------


def csv(table: pd.DataFrame) -> bytes:
    """CSV with a header; empty where there is no value, lists joined by spaces."""
    text: str = _plain(table).to_csv(index=False, lineterminator="\n")
    return text.encode()


def parquet(table: pd.DataFrame) -> bytes:
    """Parquet, with the columns' types; text is text, whatever it was held as here."""
    texts = table.select_dtypes("category").columns
    buffer = io.BytesIO()
    plain = _plain(table).astype(dict.fromkeys(texts, "string"))
    plain.to_parquet(buffer, index=False, compression="zstd")
    return buffer.getvalue()


def json_rows(table: pd.DataFrame) -> bytes:
    """A JSON list with one object per row; null where there is no value."""
    plain = _plain(table).astype(object)
    rows = plain.where(plain.notna(), None).to_dict(orient="records")
    return to_json(rows, inf_nan_mode="null") + b"\n"


FORMATS: Mapping[str, Callable[[pd.DataFrame], bytes]] = {
    "csv": csv,
    "parquet": parquet,
    "json": json_rows,
}
"""Name of a format to what writes it."""


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """The table with lists as text, which every format can hold."""
    lists = {
        str(name): column.map(_listed)
        for name, column in table.items()
        if column.dtype == object
    }
    return table.assign(**lists)


def _listed(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else value


def write_partitioned(runs: pd.DataFrame, folder: Path) -> int:
    """Write a Parquet file per campaign, `campaign=NAME/part-0.parquet`; how many.

    The name of the folder is the value of the column `campaign`, as Hive, DuckDB, Polars and Spark read it.
    """
    groups = runs.groupby("campaign", observed=True, sort=False)
    for name, mine in groups:
        part = folder / f"campaign={name}"
        part.mkdir(parents=True, exist_ok=True)
        write_atomic(part / PART, parquet(mine.drop(columns="campaign")))
    return len(groups)
