"""The table, the files and the sample that all figures of one metric over cells have."""

from collections.abc import Sequence
from typing import Any, Literal

from sparkpub.record.metrics import Metric
from sparkpub.record.text import between
from sparkpub.review.grouping import grouped
from sparkpub.review.tables.column import TableRow
from sparkpub.site import sentences
from sparkpub.site.figures.figure import Entry, Table, Value
from sparkpub.site.figures.rows import Row, cell_of
from sparkpub.site.figures.selection import Selection
from sparkpub.site.figures.theme import axis_title

_HARDLY_LESS = 0.5
"""How much less than their number runs may be worth before a table says so."""
Runs = Literal["linked", "listed", "left out"]
"""Whether the table has every run of a cell: charts of single runs do, and that of all runs leads to them."""


def details(
    selection: Selection, metric: Metric, runs: Runs = "left out", *, note: str = ""
) -> dict[str, Any]:
    """Members of a `Figure`: what it is flagged by, its sample with a note, its table."""
    rows = selection.runs_with(metric)
    cells = selection.cells(metric)
    return {
        "flagged": metric,
        "sample": sentences.sample(cells, selection.excluded(rows)) + note,
        "table": cell_table(metric, cells, rows, selection.scope.cells, runs),
    }


def cell_table(
    metric: Metric,
    cells: Sequence[TableRow],
    rows: Sequence[Row],
    labels: Sequence[str],
    runs: Runs,
) -> Table:
    """A row per cell: n, mean with interval, spread, and the runs; those in no figure stand in brackets."""
    mean = axis_title("Mean", metric.unit)
    head = ("Cell", "n", mean, "95 % interval", "sd", "Median", "Runs")
    statistics = {cell.cell: cell for cell in cells}
    by_cell = grouped(rows, lambda row: str(row["cell"]))
    body: list[Sequence[Value]] = []
    for label in labels:
        mine = by_cell.get(label, [])
        cell = None
        if mine:
            cell = statistics.get(cell_of(mine[0]))
        links = [_entry(metric, row, linked=runs == "linked") for row in mine]
        body.append([label, *_statistics(metric, cell), links])
    if runs == "left out":
        return Table(head[:-1], [row[:-1] for row in body])
    if not all(map(_counts, rows)):
        head = (*head[:-1], "Runs (in brackets: left out)")
    return Table(head, body)


def _counts(row: Row) -> bool:
    """Whether a run is in the figures."""
    return bool(row["state"] == "counted")


def _entry(metric: Metric, row: Row, *, linked: bool) -> Entry:
    words = metric.format(row[metric.name], unit=False)
    if not _counts(row):
        words = f"({words})"
    if linked:
        return Entry(words, row["href"])
    return Entry(words)


def _statistics(metric: Metric, cell: TableRow | None) -> list[str]:
    """n, mean, interval, sd and median, without their unit."""
    if cell is None:
        return ["0", "not available", "", "", ""]
    spread = "n/a"
    if cell.sd is not None:
        spread = metric.format(cell.sd, unit=False)
    return [
        _runs(cell),
        metric.format(cell.mean, unit=False),
        interval(metric, cell),
        spread,
        metric.format(cell.p50, unit=False),
    ]


def _runs(cell: TableRow) -> str:
    """`10`; of several machines with the runs of each: `24 on 3 machines (8, 8, 8)`."""
    if len(cell.machines) < 2:
        return str(cell.n)
    each = ", ".join(map(str, cell.n_by_machine))
    return f"{cell.n} on {len(cell.machines)} machines ({each})"


def interval(metric: Metric, cell: TableRow) -> str:
    """The 95 % interval of the mean, without its unit; and why it is wide, where runs are worth less than their number:
    neighbours are alike, or shared a server."""
    words = "n too small"
    if cell.ci95 is not None:
        low, high = cell.ci95
        words = between(low, high, metric.decimals)
    return f"{words}{worth(cell)}"


def worth(cell: TableRow) -> str:
    """` (n worth 1.9)` where runs are worth less than their number; empty elsewhere."""
    if cell.n_effective > cell.n - _HARDLY_LESS:
        return ""
    return f" (n worth {cell.n_effective:.1f})"
