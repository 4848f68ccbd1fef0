"""What a chart or a page says in words: the difference, whether it is real, how many runs, what was left out.

A sentence has at most twenty words: the finding first, then exceptions; of more than `MOST_NAMES` names their number.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sparkpub.record.metrics import Metric
from sparkpub.record.text import (
    SPACE,
    counted,
    listed,
    significant,
    span,
    spread,
    with_unit,
)
from sparkpub.review.frame import Cell
from sparkpub.review.grouping import grouped
from sparkpub.review.statistics.describe import ALPHA
from sparkpub.review.tables.column import TableRow

MOST_NAMES = 3
MOST_WORDS = 20
"""Words of a chart's headline."""


def differences(metric: Metric, rows: Sequence[TableRow]) -> str:
    """All comparisons of a metric, a sentence for each verdict; empty where there is nothing to compare."""
    sentences = []
    for same in _by_pair(rows):
        verdicts = [row.verdict for row in same]
        # What most comparisons have comes first.
        ordered = sorted(dict.fromkeys(verdicts), key=verdicts.count, reverse=True)
        sentences.append(_first(metric, ordered[0], same))
        for verdict in ordered[1:]:
            sentences.append(_further(metric, verdict, same))
    return " ".join(sentences)


def headline(metric: Metric, rows: Sequence[TableRow]) -> str:
    """All comparisons of a metric in at most `MOST_WORDS` words: how many have which verdict, where naming them takes
    more."""
    text = differences(metric, rows)
    if len(text.split()) <= MOST_WORDS:
        return text
    return " ".join(_counts(metric, same) for same in _by_pair(rows))


def _by_pair(rows: Sequence[TableRow]) -> Iterable[Sequence[TableRow]]:
    """The comparisons of each candidate and baseline."""
    return grouped(rows, lambda row: (row.candidate, row.baseline)).values()


def _counts(metric: Metric, rows: Sequence[TableRow]) -> str:
    """`Output throughput, container against native: 3 equivalent within ±1 %, 1 inconclusive.`"""
    words = {"undecided": "inconclusive", "confounded": "not comparable"}
    words["equivalent"] = f"equivalent within {_margin(rows)}"
    numbers = Counter(row.verdict for row in rows).most_common()
    counts = [f"{number} {words.get(verdict, verdict)}" for verdict, number in numbers]
    sides = f"{rows[0].candidate} against {rows[0].baseline}"
    return f"{metric.subject}, {sides}: {', '.join(counts)}."


def _first(metric: Metric, verdict: str, rows: Sequence[TableRow]) -> str:
    """What is compared with what, and for which of the rows it has this verdict."""
    mine = [row for row in rows if row.verdict == verdict]
    which = _which(mine, rows)
    candidate, baseline = mine[0].candidate, mine[0].baseline
    if verdict in ("higher", "lower"):
        amount = _amount(metric, mine)
        return f"{metric.subject} is {amount} {verdict} in {candidate} than in {baseline} for {which}."
    if verdict == "equivalent":
        margin = _margin(mine)
        return f"{metric.subject} is equivalent within {margin} in {candidate} and {baseline} for {which}."
    if verdict == "confounded":
        return (
            f"{metric.subject} cannot be compared for {which}: "
            f"{candidate} and {baseline} ran {_apart(mine)}."
        )
    return (
        f"{metric.subject} is inconclusive for {which}: {candidate} against {baseline}."
    )


def _further(metric: Metric, verdict: str, rows: Sequence[TableRow]) -> str:
    """Which of the rows have another verdict, after a sentence that names both sides."""
    mine = [row for row in rows if row.verdict == verdict]
    which = _which(mine, rows)
    if verdict in ("higher", "lower"):
        return f"It is {_amount(metric, mine)} {verdict} for {which}."
    if verdict == "equivalent":
        return f"It is equivalent within {_margin(mine)} for {which}."
    if verdict == "confounded":
        return f"It cannot be compared for {which}, which ran {_apart(mine)}."
    return f"It is inconclusive for {which}."


def _margin(rows: Sequence[TableRow]) -> str:
    return f"±{rows[0].equivalence_margin_percent:g}{SPACE}%"


def _apart(mine: Sequence[TableRow]) -> str:
    """Why environments cannot be compared: no machine ran both, or they ran in blocks."""
    if all(row.analysis == "description" and row.machines > 1 for row in mine):
        return "on different machines"
    return "in separate blocks of time"


def _which(mine: Sequence[TableRow], rows: Sequence[TableRow]) -> str:
    """The configurations that have a verdict, and on how many machines where they were compared on several."""
    compared = {row.machines for row in mine if row.analysis == "machines"}
    return f"{_names(mine, rows)}{_on(compared)}"


def _on(machines: Iterable[int]) -> str:
    """` on 2 machines`, ` on 2 to 3 machines`; empty for none."""
    numbers = sorted(set(machines))
    if not numbers:
        return ""
    return f" on {span([str(number) for number in numbers])} machines"


def _names(mine: Sequence[TableRow], rows: Sequence[TableRow]) -> str:
    """The configurations that have a verdict, of all: by name where they are few."""
    one_workload = len({row.workload for row in rows}) == 1
    noun = "model" if one_workload else "configuration"
    if len(mine) == len(rows) > 2:
        return f"all {len(rows)} {noun}s"
    most = MOST_NAMES if one_workload else 1
    if len(mine) > most:
        return f"{len(mine)} of {counted(len(rows), noun)}"
    if one_workload:
        return listed(row.model for row in mine)
    return listed(f"{row.model} ({row.workload})" for row in mine)


def _amount(metric: Metric, rows: Sequence[TableRow]) -> str:
    """How large differences are, without sign: in per cent where the scale has a true zero."""
    shares = [
        abs(row.difference_percent)
        for row in rows
        if row.difference_percent is not None
    ]
    if len(shares) == len(rows):
        return spread([f"{share:.1f}" for share in sorted(shares)], "%")
    sizes = sorted(abs(row.difference) for row in rows)
    return spread([metric.format(size, unit=False) for size in sizes], metric.unit)


MIB_PER_GIB = 1024
_SMALL_GIB = 0.1
"""Memory below this reads better in MiB."""


def together(metric: Metric, row: TableRow, rows: Sequence[TableRow]) -> str:
    """What the cells of a campaign show together, and how many of them show it alone."""
    side = "higher" if row.effect > 0 else "lower"
    low, high = row.ci95_effect
    scale, unit = 1, row.unit
    if unit == "GiB" and abs(row.effect) < _SMALL_GIB:
        scale, unit = MIB_PER_GIB, "MiB"
    amount = with_unit(significant(scale * abs(row.effect)), unit)
    ends = with_unit(f"{significant(scale * low)} to {significant(scale * high)}", unit)
    alone = sum(other.verdict == side for other in rows)
    shown = f"{alone} cells show"
    if alone < 2:
        shown = ("No cell shows", "One cell shows")[alone]
    cells = f"{row.cells} cells"
    if row.left_out:
        cells = f"{row.cells} of {row.cells + row.left_out} cells"
    text = (
        f"{metric.label} is {amount} {side} in {row.candidate} than in {row.baseline}, pooled over {cells} "
        f"(95{SPACE}% interval {ends}, exploratory). {shown} it separately."
    )
    if row.heterogeneity_p < ALPHA:
        text += " The cells differ by more than their runs explain, so this mean describes none of them."
    return text


def means(metric: Metric, cells: Sequence[TableRow]) -> str:
    """The best and the worst mean, for where nothing is compared."""
    if not cells:
        return f"No run has a value for {metric.within_sentence}."
    ordered = sorted(cells, key=lambda cell: cell.mean, reverse=True)
    if len(ordered) == 1:
        return f"The mean of {metric.within_sentence} is {metric.rounded(ordered[0].mean)}."
    first, last = ordered[0], ordered[-1]
    extremes = "highest", "lowest"
    if metric.direction == "lower":
        first, last = last, first
        extremes = "lowest", "highest"
    names = distinct_names([cell.cell for cell in ordered])
    return (
        f"{metric.subject} is {extremes[0]} for {names[first.cell]} ({metric.rounded(first.mean)}) "
        f"and {extremes[1]} for {names[last.cell]} ({metric.rounded(last.mean, unit=False)})"
        f"{_elsewhere(first, last)}."
    )


def _elsewhere(one: TableRow, other: TableRow) -> str:
    """What a reader has to know where two means that are named together are of different machines."""
    if set(one.machines) == set(other.machines):
        return ""
    return ", on different machines"


def distinct_names(
    cells: Sequence[Cell],
) -> dict[Cell, str]:
    """Cell to the parts of its name that not all of the cells share: `deepseek, native`; the model at least."""
    varied = [place for place in range(3) if len({cell[place] for cell in cells}) > 1]
    names = {}
    for cell in cells:
        names[cell] = ", ".join(cell[place] for place in varied or [0])
    return names


def sample(cells: Sequence[TableRow], excluded: Mapping[str, str]) -> str:
    """How many runs stand behind a chart, and which were left out and why."""
    sizes = sorted({cell.n for cell in cells})
    if not sizes:
        text = "n = 0."
    else:
        noun = "run" if sizes == [1] else "runs"
        several = {len(cell.machines) for cell in cells if len(cell.machines) > 1}
        text = f"n = {span([str(n) for n in sizes])} {noun} per cell{_on(several)}."
    if excluded:
        reasons = listed(reason.partition(":")[0] for reason in excluded.values())
        noun = "run is" if len(excluded) == 1 else "runs are"
        text += f" {len(excluded)} {noun} excluded ({reasons}) and drawn hollow."
    return text
