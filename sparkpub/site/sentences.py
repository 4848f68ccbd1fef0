"""What a chart or a page says in words: the difference, whether it is real, how many runs, what was left out.

How large an effect is, or can be, stands beside every verdict; of more than `MOST_NAMES` names their number is told.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record
from sparkpub.record.text import (
    SPACE,
    between,
    counted,
    listed,
    outward,
    span,
    spread,
)
from sparkpub.review.grouping import grouped
from sparkpub.review.names import WITH, Names, in_environment, told_apart
from sparkpub.review.statistics.estimate import MINIMUM_RUNS
from sparkpub.review.tables.column import TableRow
from sparkpub.review.tables.comparisons import deciding
from sparkpub.tools.shapes.llama_benchy import FALLBACK

MOST_NAMES = 3
MOST_WORDS = 36
"""Words of a chart's headline."""
ComparedRows = Sequence[TableRow]

# ---- Comparisons -----------------------------------------------------------------------------------------------------


def differences(names: Names, metric: Metric, rows: ComparedRows) -> str:
    """All comparisons of a metric, a sentence for each verdict, that of most first. Empty where nothing is compared."""
    said = []
    for pair in _pairs(rows):
        by_verdict = grouped(pair, lambda row: (row.verdict, is_of_few(row))).values()
        for same in sorted(by_verdict, key=len, reverse=True):
            which = _which(names, same, pair)
            said.append(_of_verdict(names, metric, same, which))
    return " ".join(said)


def headline(names: Names, metric: Metric, rows: ComparedRows) -> str:
    """All comparisons of a metric in about `MOST_WORDS` words: the range that was measured, and how many have which
    verdict, where naming them takes more."""
    text = differences(names, metric, rows)
    if len(text.split()) <= MOST_WORDS:
        return text
    return " ".join(_counts(names, metric, pair) for pair in _pairs(rows))


def _pairs(rows: ComparedRows) -> Iterable[ComparedRows]:
    """The comparisons of each candidate and baseline."""
    return grouped(rows, lambda row: (row.candidate, row.baseline)).values()


def _counts(names: Names, metric: Metric, rows: ComparedRows) -> str:
    """`Output throughput, Docker against native: −1.2 to +0.4 % measured (3 equal within ±1 %, 1 not clear).`"""
    words = Counter(
        verdict_words(row.verdict, row.equivalence_margin_percent) for row in rows
    )
    counts = ", ".join(f"{number} {word}" for word, number in words.most_common())
    against = " against ".join(_sides(names, rows[0]))
    measured = _amount(metric, rows, _sizes(rows))
    return f"{metric.subject}, {against}: {measured} measured ({counts})."


def verdict_words(verdict: str, margin_percent: float) -> str:
    """What readers call a verdict."""
    words = {
        "equivalent": f"equal within ±{margin_percent:g}{SPACE}%",
        "undecided": "not clear",
        "confounded": "not separable from time or machine",
    }
    return words.get(verdict, verdict)


def _of_verdict(names: Names, metric: Metric, rows: ComparedRows, which: str) -> str:
    """A sentence on comparisons of one verdict."""
    row, subject = rows[0], metric.subject
    candidate, baseline = sides = _sides(names, row)
    places = [in_environment(side) for side in sides]
    measured = _amount(metric, rows, _sizes(rows))
    bounds = bounds_of(rows)
    if row.verdict == "confounded":
        why, other = "in separate blocks of time", "drift over time"
        if all(each.analysis == "description" and each.machines > 1 for each in rows):
            why, other = "on different machines", "that of the machine"
        return (
            f"{subject} differs by {measured} for {which}, but {candidate} and {baseline} ran {why}: "
            f"the effect of {_effect(candidate)} cannot be separated from {other}."
        )
    ends = _amount(metric, rows, bounds) if bounds else "too few runs for a bound"
    if row.verdict in ("higher", "lower"):
        amount = _amount(metric, rows, list(map(abs, _sizes(rows))), signed=False)
        return f"{subject} is {amount} {row.verdict} {' than '.join(places)} for {which} ({ends})."
    if row.verdict == "equivalent":
        # What is rare may be missing in all of the runs.
        rare = ceil(max(each.unseen_percent for each in rows))
        equal = verdict_words(row.verdict, row.equivalence_margin_percent)
        return (
            f"{subject} is {equal} {' and '.join(places)} for {which} "
            f"(measured {measured}, {ends}; up to {rare}{SPACE}% slow runs would not show)."
        )
    says, why = "No clear effect", ""
    if is_of_few(row):
        says = "Too few independent runs to judge the effect"
        # Nobody can measure again what others published.
        campaign = names.dataset.campaigns.get(row.campaign)
        if campaign is None or not campaign.published:
            why = f"; {MINIMUM_RUNS} are needed"
    elif bounds and (min(bounds) > 0 or max(bounds) < 0):
        why = "; not significant after correction for the number of comparisons"
    about = f"{_effect(candidate)} on {metric.within_sentence} for {which}"
    return f"{says} of {about}: {measured} ({ends}{why})."


def is_of_few(row: TableRow) -> bool:
    """Whether it is undecided for want of runs, however clear its interval."""
    return bool(row.verdict == "undecided" and row.n_effective < MINIMUM_RUNS)


def in_percent(rows: ComparedRows) -> bool:
    """Whether all differences are on a scale with a true zero."""
    return all(row.difference_percent is not None for row in rows)


def _sizes(rows: ComparedRows) -> list[float]:
    """The differences that were measured."""
    name = "difference_percent" if in_percent(rows) else "difference"
    return [getattr(row, name) for row in rows]


def bounds_of(rows: ComparedRows) -> list[float]:
    """The ends of the intervals that decide; empty where a comparison has none."""
    ends: list[float] = []
    for row in rows:
        interval = deciding(row)
        if interval is None:
            return []
        scale = 100 / row.mean_baseline if in_percent(rows) else 1
        ends += [scale * end for end in interval]
    return ends


def _amount(
    metric: Metric, rows: ComparedRows, sizes: Sequence[float], *, signed: bool = True
) -> str:
    """`+3.9 to +4.7 %`, in the metric's unit where the scale has no true zero; one figure where both ends read
    alike."""
    decimals, unit = metric.decimals, metric.unit
    if in_percent(rows):
        decimals, unit = 1, "%"
    return spread([between(min(sizes), max(sizes), decimals, signed=signed)], unit)


def _which(names: Names, mine: ComparedRows, pair: ComparedRows) -> str:
    """Those of the configurations, by name where they are few, and on how many machines where they were compared on
    several."""
    one_workload = len({row.workload for row in pair}) == 1
    noun = "model" if one_workload else "configuration"
    models = [names.called(row.campaign, "model", row.model) for row in mine]
    if len(mine) == len(pair) > 2:
        which = f"all {len(mine)} {noun}s"
    elif len(mine) > (MOST_NAMES if one_workload else 1):
        which = f"{len(mine)} of {counted(len(pair), noun)}"
    elif one_workload:
        which = listed(models)
    else:
        load = names.called(mine[0].campaign, "workload", mine[0].workload)
        which = f"{models[0]} ({load})"
    return which + _on(row.machines for row in mine if row.analysis == "machines")


def _sides(names: Names, row: TableRow) -> list[str]:
    """What readers call the candidate and the baseline."""
    return [
        names.called(row.campaign, "environment", key)
        for key in (row.candidate, row.baseline)
    ]


def _effect(environment: str) -> str:
    """What has an effect: `Docker`, `CUDA graphs` of `with CUDA graphs`."""
    return environment.removeprefix(WITH[0])


def mean_of(environment: str) -> str:
    """`the mean of native`, `the mean without CUDA graphs`."""
    if environment.startswith(WITH):
        return f"the mean {environment}"
    return f"the mean of {environment}"


def at_most(percent: float) -> str:
    """`at most 1.4 %`; rounded up, so that it stays a bound."""
    _, most = outward(0, max(percent, 0.0))
    return f"at most {most:.1f}{SPACE}%"


def _on(machines: Iterable[int]) -> str:
    """` on 2 machines`, ` on 2 to 3 machines`; empty for none."""
    numbers = sorted(set(machines))
    if not numbers:
        return ""
    return f" on {span([str(number) for number in numbers])} machines"


# ---- Means and runs --------------------------------------------------------------------------------------------------


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


def means(names: Names, metric: Metric, cells: ComparedRows) -> str:
    """The best and the worst mean, for where nothing is compared."""
    if not cells:
        return f"No run has a value for {metric.within_sentence}."
    if len(cells) == 1:
        return f"The mean of {metric.within_sentence} is {metric.told(cells[0].mean)}."
    called = told_apart([names.cell(one.campaign, one.cell) for one in cells])
    ordered = sorted(zip(cells, called, strict=True), key=lambda item: -item[0].mean)
    extremes = ["highest", "lowest"]
    if metric.direction == "lower":
        ordered.reverse()
        extremes.reverse()
    (first, best), (last, worst) = ordered[0], ordered[-1]
    # A reader has to know where two means that are named together are of different machines.
    elsewhere = ""
    if set(first.machines) != set(last.machines):
        elsewhere = ", on different machines"
    return (
        f"{metric.subject} is {extremes[0]} for {best} ({metric.told(first.mean)}) "
        f"and {extremes[1]} for {worst} ({metric.told(last.mean)}){elsewhere}."
    )


def sample(cells: ComparedRows, excluded: Mapping[str, str]) -> str:
    """How many runs stand behind a chart, and which were left out and why."""
    sizes = sorted({cell.n for cell in cells})
    if not sizes:
        text = "n = 0."
    elif sizes == [1]:
        text = "One run per cell: spread unknown."
    else:
        several = {len(cell.machines) for cell in cells if len(cell.machines) > 1}
        text = f"n = {span([str(n) for n in sizes])} per cell{_on(several)}."
    if excluded:
        checks = [reason.partition(":")[0] for reason in excluded.values()]
        reasons = listed(check.replace("-", " ") for check in checks)
        text += f" {counted(len(excluded), 'run')} excluded ({reasons}), hollow."
    return text
