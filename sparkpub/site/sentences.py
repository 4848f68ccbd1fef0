"""What a chart or a page says in words: the difference, whether it is real, how many runs, what was left out."""

from collections.abc import Mapping, Sequence

from sparkpub.record.metrics import Metric
from sparkpub.record.text import SPACE, listed, span, spread
from sparkpub.review.summary import CellStatistic, ComparisonRow


def differences(metric: Metric, rows: Sequence[ComparisonRow]) -> str:
    """All comparisons of a metric in a sentence or two, by verdict; empty where there is nothing to compare."""
    parts = []
    for pair in dict.fromkeys((row.candidate, row.baseline) for row in rows):
        same = [row for row in rows if (row.candidate, row.baseline) == pair]
        parts += [
            _by_verdict(metric, verdict, same)
            for verdict in dict.fromkeys(row.verdict for row in same)
        ]
    return " ".join(parts)


def _by_verdict(metric: Metric, verdict: str, rows: Sequence[ComparisonRow]) -> str:
    mine = [row for row in rows if row.verdict == verdict]
    names = listed(_subject(row, rows) for row in mine)
    names = (
        f"all {len(mine)} models"
        if len(mine) == len(rows) == len({row.model for row in rows}) > 2
        else names
    )
    candidate, baseline = mine[0].candidate, mine[0].baseline
    if verdict in ("higher", "lower"):
        shares = sorted(
            abs(row.difference_percent)
            for row in mine
            if row.difference_percent is not None
        )
        share = (
            f" ({spread([f'{value:.1f}' for value in shares], '%')})" if shares else ""
        )
        sizes = sorted(abs(row.difference) for row in mine)
        amount = spread(
            [metric.format(size, unit=False) for size in sizes], metric.unit
        )
        return f"{metric.label} is {verdict} in {candidate} than in {baseline} for {names}, by {amount}{share}."
    if verdict == "equivalent":
        margin = f"±{mine[0].equivalence_margin_percent:g}{SPACE}%"
        return f"{metric.label} is equivalent within {margin} in {candidate} and {baseline} for {names}."
    if verdict == "confounded":
        return (
            f"For {names}, {candidate} and {baseline} ran in separate blocks of time: these runs cannot tell a "
            f"difference in {metric.within_sentence} from a change over time."
        )
    return (
        f"{metric.label} is inconclusive for {names}: {candidate} against {baseline}."
    )


def _subject(row: ComparisonRow, rows: Sequence[ComparisonRow]) -> str:
    return (
        f"{row.model} ({row.workload})"
        if len({other.workload for other in rows}) > 1
        else str(row.model)
    )


def means(metric: Metric, cells: Sequence[CellStatistic]) -> str:
    """The range of the cells' means, for where nothing is compared."""
    if not cells:
        return f"No run in the figures has a value for {metric.within_sentence}."
    ordered = sorted(cells, key=lambda cell: cell.mean)
    if len(ordered) == 1:
        return (
            f"The mean of {metric.within_sentence} is {metric.format(ordered[0].mean)}."
        )
    return (
        f"Means of {metric.within_sentence} run from {metric.format(ordered[0].mean)} ({cell_name(ordered[0])}) "
        f"to {metric.format(ordered[-1].mean)} ({cell_name(ordered[-1])})."
    )


def cell_name(cell: CellStatistic) -> str:
    """`deepseek, native`."""
    return f"{cell.model}, {cell.environment}"


def sample(cells: Sequence[CellStatistic], excluded: Mapping[str, str]) -> str:
    """How many runs stand behind a chart, and which were left out and why."""
    sizes = sorted({cell.n for cell in cells})
    text = (
        f"n = {span([str(n) for n in sizes])} {'run' if sizes == [1] else 'runs'} per cell."
        if sizes
        else "n = 0."
    )
    if excluded:
        reasons = listed(reason.partition(":")[0] for reason in excluded.values())
        text += f" {len(excluded)} {'run is' if len(excluded) == 1 else 'runs are'} left out ({reasons}), drawn hollow."
    return text
