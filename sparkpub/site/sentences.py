"""What a chart or a page says in words: the difference, whether it is real, how many runs, what was left out.

How large an effect is, or can be at most, comes first, and the verdict after it; of more than `MOST_NAMES` names their
number.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import ceil

from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record
from sparkpub.record.text import (
    SPACE,
    between,
    counted,
    extent,
    listed,
    outward,
    significant,
    span,
    spread,
    with_unit,
)
from sparkpub.review.grouping import grouped
from sparkpub.review.names import WITH, Names, in_environment
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics.estimate import ALPHA
from sparkpub.review.tables.column import TableRow
from sparkpub.review.tables.comparisons import deciding
from sparkpub.tools.shapes.llama_benchy import FALLBACK

MOST_NAMES = 3
SMALLEST = 0.05
"""Per cent that read as zero."""
MOST_WORDS = 36
"""Words of a chart's headline."""


def differences(names: Names, metric: Metric, rows: Sequence[TableRow]) -> str:
    """All comparisons of a metric, a sentence for each verdict: how large the effect is or can be, and only then the
    verdict. Empty where there is nothing to compare."""
    sentences = []
    for same in _by_pair(rows):
        verdicts = [row.verdict for row in same]
        # What most comparisons have comes first.
        for verdict in sorted(
            dict.fromkeys(verdicts), key=verdicts.count, reverse=True
        ):
            mine = [row for row in same if row.verdict == verdict]
            which = _which(names, mine, same)
            sentences.append(_SAID[verdict](names, metric, mine, which))
    return " ".join(sentences)


def headline(names: Names, metric: Metric, rows: Sequence[TableRow]) -> str:
    """All comparisons of a metric in at most `MOST_WORDS` words: the range that was measured, and how many have which
    verdict, where naming them takes more."""
    text = differences(names, metric, rows)
    if len(text.split()) <= MOST_WORDS:
        return text
    return " ".join(_counts(names, metric, same) for same in _by_pair(rows))


def _by_pair(rows: Sequence[TableRow]) -> Iterable[Sequence[TableRow]]:
    """The comparisons of each candidate and baseline."""
    return grouped(rows, lambda row: (row.candidate, row.baseline)).values()


_SENTENCES = {
    "counts": "{subject}, {candidate} against {baseline}: {measured} measured ({counts}).",
    "differs": "{subject} is {amount} {verdict} {than} for {which}{range}.",
    "bounded": "{subject} is {most} {side} {than} for {which} (measured {measured}; {verdict}).",
    "unbounded": "{subject} differs by {measured} between {candidate} and {baseline} for {which} "
    "(too few runs for a bound).",
    "confounded": "{subject} differs by {measured} for {which}; {candidate} and {baseline} ran {apart}, "
    "so {other} may explain it.",
}
"""What is said of comparisons, in words with gaps."""
_COSTS = {"higher": "lower", "lower": "higher", "neither": "higher or lower"}
"""Which way is better to the side whose bound is told."""


def _say(
    kind: str, names: Names, metric: Metric, rows: Sequence[TableRow], **more: str
) -> str:
    """One of the sentences, its gaps filled in from the comparisons."""
    candidate, baseline = _sides(names, rows)
    return _SENTENCES[kind].format(
        subject=metric.subject,
        measured=measured(metric, rows),
        candidate=candidate,
        baseline=baseline,
        than=f"{in_environment(candidate)} than {in_environment(baseline)}",
        **more,
    )


def _counts(names: Names, metric: Metric, rows: Sequence[TableRow]) -> str:
    """`Output throughput, Docker against native: −1.2 to +0.4 % measured (3 equivalent within ±1 %, 1 undecided).`"""
    numbers = Counter(_verdict(row) for row in rows).most_common()
    counts = ", ".join(f"{number} {verdict}" for verdict, number in numbers)
    return _say("counts", names, metric, rows, counts=counts)


def _verdict(row: TableRow) -> str:
    """The verdict, with the margin that it is about."""
    if row.verdict == "equivalent":
        return f"equivalent within ±{row.equivalence_margin_percent:g}{SPACE}%"
    return str(row.verdict)


def _differs(names: Names, metric: Metric, rows: Sequence[TableRow], which: str) -> str:
    """`Output throughput is 4.3 % higher in graphs than in launches for 8B (+3.9 to +4.7 %).`"""
    bounds = _bounds(rows)
    between = f" ({_range(metric, rows, *bounds)})" if bounds else ""
    amount, verdict = _amount(metric, rows), _verdict(rows[0])
    return _say(
        "differs",
        names,
        metric,
        rows,
        which=which,
        amount=amount,
        verdict=verdict,
        range=between,
    )


def _bounded(names: Names, metric: Metric, rows: Sequence[TableRow], which: str) -> str:
    """`Output throughput is at most 0.5 % lower in Docker than natively for 7B (measured +0.4 %; undecided).`"""
    bounds = _bounds(rows)
    if bounds is None:
        return _say("unbounded", names, metric, rows, which=which)
    low, high = bounds
    ends = {"higher": -low, "lower": high, "neither": max(abs(low), abs(high))}
    most = _at_most(metric, rows, ends[metric.direction])
    side, verdict = _COSTS[metric.direction], _verdict(rows[0])
    if rows[0].verdict == "equivalent":
        # What is rare may be missing in all of the runs.
        rare = ceil(max(row.unseen_percent for row in rows))
        verdict += f" but for up to {rare}{SPACE}% slow runs"
    return _say(
        "bounded",
        names,
        metric,
        rows,
        which=which,
        most=most,
        side=side,
        verdict=verdict,
    )


def _told_by_time(
    names: Names, metric: Metric, rows: Sequence[TableRow], which: str
) -> str:
    """What was measured where something else differs with the environment: time, or the machine."""
    other, apart = "time", "in separate blocks of time"
    if all(row.analysis == "description" and row.machines > 1 for row in rows):
        other, apart = "the machine", "on different machines"
    return _say(
        "confounded", names, metric, rows, which=which, other=other, apart=apart
    )


_SAID = {
    "higher": _differs,
    "lower": _differs,
    "equivalent": _bounded,
    "undecided": _bounded,
    "confounded": _told_by_time,
}
"""Verdict to what says it."""


def _sides(names: Names, rows: Sequence[TableRow]) -> tuple[str, str]:
    """What readers call the candidate and the baseline."""
    row = rows[0]
    return (
        names.environment(row.campaign, row.candidate),
        names.environment(row.campaign, row.baseline),
    )


def mean_of(environment: str) -> str:
    """`the mean of native`, `the mean without CUDA graphs`."""
    if environment.startswith(WITH):
        return f"the mean {environment}"
    return f"the mean of {environment}"


def _in_percent(rows: Sequence[TableRow]) -> bool:
    """Whether all differences are on a scale with a true zero."""
    return all(row.difference_percent is not None for row in rows)


def _bounds(rows: Sequence[TableRow]) -> tuple[float, float] | None:
    """The least and the largest difference that the runs leave open, over all rows: ends of the intervals that decide.
    None where one of them has no interval."""
    ends: list[float] = []
    percent = _in_percent(rows)
    for row in rows:
        interval = deciding(row)
        if interval is None:
            return None
        scale = 100 / row.mean_baseline if percent else 1
        ends += [scale * end for end in interval]
    return min(ends), max(ends)


def at_most(percent: float) -> str:
    """`at most 1.4 %`; rounded up, so that it stays a bound."""
    _, most = outward(0, max(percent, 0.0))
    return f"at most {most:.1f}{SPACE}%"


def _at_most(metric: Metric, rows: Sequence[TableRow], most: float) -> str:
    """The bound in per cent, or in the metric's unit where the scale has no true zero."""
    if _in_percent(rows):
        return at_most(most)
    _, bound = outward(0, max(most, 0.0), metric.decimals)
    return f"at most {metric.format(bound)}"


def _range(metric: Metric, rows: Sequence[TableRow], low: float, high: float) -> str:
    """`+3.9 to +4.7 %`; one figure where both ends read alike."""
    decimals, unit = metric.decimals, metric.unit
    if _in_percent(rows):
        decimals, unit = 1, "%"
    return spread([between(low, high, decimals, signed=True)], unit)


def measured(metric: Metric, rows: Sequence[TableRow]) -> str:
    """The least and the largest difference that was measured."""
    if _in_percent(rows):
        sizes = sorted(row.difference_percent for row in rows)
    else:
        sizes = sorted(row.difference for row in rows)
    return _range(metric, rows, sizes[0], sizes[-1])


def signed(percent: float) -> str:
    """`+0.4`, `−1.2`, `0.0`: per cent without its sign."""
    if abs(percent) < SMALLEST:
        return "0.0"
    return f"{percent:+.1f}".replace("-", "\N{MINUS SIGN}")


def _which(names: Names, mine: Sequence[TableRow], rows: Sequence[TableRow]) -> str:
    """The configurations that have a verdict, and on how many machines where they were compared on several."""
    compared = {row.machines for row in mine if row.analysis == "machines"}
    return f"{_names(names, mine, rows)}{_on(compared)}"


def _on(machines: Iterable[int]) -> str:
    """` on 2 machines`, ` on 2 to 3 machines`; empty for none."""
    numbers = sorted(set(machines))
    if not numbers:
        return ""
    return f" on {span([str(number) for number in numbers])} machines"


def _names(names: Names, mine: Sequence[TableRow], rows: Sequence[TableRow]) -> str:
    """The configurations that have a verdict, of all: by name where they are few."""
    one_workload = len({row.workload for row in rows}) == 1
    noun = "model" if one_workload else "configuration"
    if len(mine) == len(rows) > 2:
        return f"all {len(rows)} {noun}s"
    most = MOST_NAMES if one_workload else 1
    if len(mine) > most:
        return f"{len(mine)} of {counted(len(rows), noun)}"
    models = [names.short_model(row.campaign, row.model) for row in mine]
    if one_workload:
        return listed(models)
    loads = [names.workload(row.campaign, row.workload) for row in mine]
    return listed(
        f"{model} ({load})" for model, load in zip(models, loads, strict=True)
    )


def _amount(metric: Metric, rows: Sequence[TableRow]) -> str:
    """How large differences are, without sign: in per cent where the scale has a true zero."""
    if _in_percent(rows):
        shares = sorted(abs(row.difference_percent) for row in rows)
        return spread([between(shares[0], shares[-1], 1)], "%")
    sizes = sorted(abs(row.difference) for row in rows)
    return spread([between(sizes[0], sizes[-1], metric.decimals)], metric.unit)


MIB_PER_GIB = 1024
_SMALL_GIB = 0.1
"""Memory below this reads better in MiB."""


def together(
    names: Names, metric: Metric, row: TableRow, rows: Sequence[TableRow]
) -> str:
    """What the cells of a campaign show together, and how many of them show it alone."""
    side = "higher" if row.effect > 0 else "lower"
    low, high = row.ci95_effect
    scale, unit = 1, row.unit
    if unit == "GiB" and abs(row.effect) < _SMALL_GIB:
        scale, unit = MIB_PER_GIB, "MiB"
    amount = with_unit(significant(scale * abs(row.effect)), unit)
    ends = with_unit(extent((scale * low, scale * high), 3), unit)
    alone = sum(other.verdict == side for other in rows)
    shown = f"{alone} cells show"
    if alone < 2:
        shown = ("No cell shows", "One cell shows")[alone]
    cells = f"{row.cells} cells"
    if row.left_out:
        cells = f"{row.cells} of {row.cells + row.left_out} cells"
    candidate, baseline = _sides(names, [row])
    text = (
        f"{metric.subject} is {amount} {side} {in_environment(candidate)} than {in_environment(baseline)}, "
        f"pooled over {cells} ({ends}; exploratory). {shown} it separately."
    )
    if row.heterogeneity_p < ALPHA:
        text += " The cells differ too much to average."
    return text


_OF_PROMPTS = ("prompt_throughput_", "ttft_")
"""How the names of metrics begin that follow from the length of a prompt."""


def about_prompts(metric: Metric, records: Iterable[Record]) -> str:
    """What a comparison of models by their prompts has to say where another tokenizer than theirs cut these; empty
    else."""
    if not metric.name.startswith(_OF_PROMPTS):
        return ""
    models = {
        record.requested.model_id
        for record in records
        if record.observed.settings.get("tokenizer") == FALLBACK
    }
    if len(models) < 2:
        return ""
    return (
        "Lengths of prompts are tokens of gpt2: how many of its own tokens each model read is not known, "
        "so models are compared by text, not by tokens."
    )


def means(names: Names, metric: Metric, cells: Sequence[TableRow]) -> str:
    """The best and the worst mean, for where nothing is compared."""
    if not cells:
        return f"No run has a value for {metric.within_sentence}."
    ordered = sorted(cells, key=lambda cell: cell.mean, reverse=True)
    if len(ordered) == 1:
        return (
            f"The mean of {metric.within_sentence} is {metric.told(ordered[0].mean)}."
        )
    first, last = ordered[0], ordered[-1]
    extremes = "highest", "lowest"
    if metric.direction == "lower":
        first, last = last, first
        extremes = "lowest", "highest"
    called = distinct_names(
        [cell.cell for cell in ordered], partial(_in_words, names, first.campaign)
    )
    return (
        f"{metric.subject} is {extremes[0]} for {called[first.cell]} ({metric.told(first.mean)}) "
        f"and {extremes[1]} for {called[last.cell]} ({metric.told(last.mean)})"
        f"{_elsewhere(first, last)}."
    )


def _elsewhere(one: TableRow, other: TableRow) -> str:
    """What a reader has to know where two means that are named together are of different machines."""
    if set(one.machines) == set(other.machines):
        return ""
    return ", on different machines"


def _in_words(names: Names, campaign: str, cell: Cell) -> Cell:
    """A cell with the names for readers in place of keys."""
    model, environment, workload = cell
    return (
        names.model(campaign, model),
        names.environment(campaign, environment),
        names.workload(campaign, workload),
    )


def distinct_names(
    cells: Sequence[Cell], said: Callable[[Cell], Cell] | None = None
) -> dict[Cell, str]:
    """Cell to the parts of its name that not all of the cells share: `deepseek, native`; the model at least. `said`
    gives names in place of keys."""
    varied = [place for place in range(3) if len({cell[place] for cell in cells}) > 1]
    names = {}
    for cell in cells:
        parts = cell if said is None else said(cell)
        names[cell] = ", ".join(parts[place] for place in varied or [0])
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
        checks = [reason.partition(":")[0] for reason in excluded.values()]
        reasons = listed(check.replace("-", " ") for check in checks)
        noun = "run is" if len(excluded) == 1 else "runs are"
        text += f" {len(excluded)} {noun} excluded ({reasons}) and drawn hollow."
    return text
