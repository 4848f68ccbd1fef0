"""What a chart or a page says in words: the difference, whether it is real, how many runs, what was left out.

How large an effect is, or can be at most, comes first, and the verdict after it; of more than `MOST_NAMES` names their
number.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
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
from sparkpub.review.tables.column import TableRow
from sparkpub.review.tables.comparisons import deciding
from sparkpub.tools.shapes.llama_benchy import FALLBACK

MOST_NAMES = 3
MOST_WORDS = 36
"""Words of a chart's headline."""


def differences(names: Names, metric: Metric, rows: Sequence[TableRow]) -> str:
    """All comparisons of a metric, a sentence for each verdict: how large the effect is or can be, and only then the
    verdict. Empty where there is nothing to compare."""
    return " ".join(chain(*(same.said for same in _by_pair(names, metric, rows))))


def headline(names: Names, metric: Metric, rows: Sequence[TableRow]) -> str:
    """All comparisons of a metric in at most `MOST_WORDS` words: the range that was measured, and how many have which
    verdict, where naming them takes more."""
    text = differences(names, metric, rows)
    if len(text.split()) <= MOST_WORDS:
        return text
    return " ".join(same.counts for same in _by_pair(names, metric, rows))


def _by_pair(
    names: Names, metric: Metric, rows: Sequence[TableRow]
) -> list["Comparisons"]:
    """The comparisons of each candidate and baseline."""
    pairs = grouped(rows, lambda row: (row.candidate, row.baseline)).values()
    return [Comparisons(names, metric, same) for same in pairs]


_COSTS = {"higher": "lower", "lower": "higher", "neither": "higher or lower"}
"""Which way is better to the side whose bound is told."""


@dataclass(frozen=True)
class Comparisons:
    """Comparisons of a metric, all of one candidate with one baseline."""

    names: Names
    metric: Metric
    rows: Sequence[TableRow]

    @property
    def said(self) -> Iterator[str]:
        """A sentence for each verdict; what most have comes first."""
        for verdict, _ in Counter(row.verdict for row in self.rows).most_common():
            rows = [row for row in self.rows if row.verdict == verdict]
            yield replace(self, rows=rows)._of_one_verdict(self._which(rows))

    @property
    def counts(self) -> str:
        """`Output throughput, Docker against native: −1.2 to +0.4 % measured (3 equivalent within ±1 %).`"""
        numbers = Counter(_verdict(row) for row in self.rows).most_common()
        counts = ", ".join(f"{number} {verdict}" for verdict, number in numbers)
        against = " against ".join(_sides(self.names, self.rows))
        return f"{self.metric.subject}, {against}: {self.measured} measured ({counts})."

    @property
    def measured(self) -> str:
        """The least and the largest difference that was measured."""
        return self._spread(self._sizes)

    def _of_one_verdict(self, which: str) -> str:
        """`Output throughput is 4.3 % higher in graphs than in launches for 8B (+3.9 to +4.7 %).`
        `Output throughput is at most 0.5 % lower in Docker than natively for 7B (measured +0.4 %; undecided).`"""
        row, subject, bounds = self.rows[0], self.metric.subject, self._bounds
        sides = _sides(self.names, self.rows)
        than = " than ".join(map(in_environment, sides))
        if row.verdict in ("higher", "lower"):
            amount = self._spread(map(abs, self._sizes), signed=False)
            ends = f" ({self._spread(bounds)})" if bounds else ""
            return f"{subject} is {amount} {row.verdict} {than} for {which}{ends}."
        if row.verdict == "confounded":
            other, apart = "time", "in separate blocks of time"
            if all(
                one.analysis == "description" and one.machines > 1 for one in self.rows
            ):
                other, apart = "the machine", "on different machines"
            return (
                f"{subject} differs by {self.measured} for {which}; {' and '.join(sides)} ran {apart}, "
                f"so {other} may explain it."
            )
        if bounds is None:
            return (
                f"{subject} differs by {self.measured} between {' and '.join(sides)} for {which} "
                "(too few runs for a bound)."
            )
        low, high = bounds
        mosts = {"higher": -low, "lower": high, "neither": max(abs(low), abs(high))}
        most = self._at_most(mosts[self.metric.direction])
        verdict = _verdict(row)
        if row.verdict == "equivalent":
            # What is rare may be missing in all of the runs.
            rare = ceil(max(one.unseen_percent for one in self.rows))
            verdict += f" but for up to {rare}{SPACE}% slow runs"
        return (
            f"{subject} is {most} {_COSTS[self.metric.direction]} {than} for {which} "
            f"(measured {self.measured}; {verdict})."
        )

    @property
    def _in_percent(self) -> bool:
        """Whether all differences are on a scale with a true zero."""
        return all(row.difference_percent is not None for row in self.rows)

    @property
    def _sizes(self) -> list[float]:
        column = "difference_percent" if self._in_percent else "difference"
        return [getattr(row, column) for row in self.rows]

    @property
    def _bounds(self) -> tuple[float, float] | None:
        """The least and the largest difference that the runs leave open, over all rows: ends of the intervals that
        decide. None where one of them has no interval."""
        ends: list[float] = []
        for row in self.rows:
            interval = deciding(row)
            if interval is None:
                return None
            scale = 100 / row.mean_baseline if self._in_percent else 1
            ends += [scale * end for end in interval]
        return min(ends), max(ends)

    def _spread(self, sizes: Iterable[float], *, signed: bool = True) -> str:
        """`+3.9 to +4.7 %`; one figure where both ends read alike."""
        ordered = sorted(sizes)
        decimals, unit = self.metric.decimals, self.metric.unit
        if self._in_percent:
            decimals, unit = 1, "%"
        ends = between(ordered[0], ordered[-1], decimals, signed=signed)
        return spread([ends], unit)

    def _at_most(self, most: float) -> str:
        """The bound in per cent, or in the metric's unit where the scale has no true zero."""
        if self._in_percent:
            return at_most(most)
        _, bound = outward(0, max(most, 0.0), self.metric.decimals)
        return f"at most {self.metric.format(bound)}"

    def _which(self, mine: Sequence[TableRow]) -> str:
        """Those of the configurations, by name where they are few, and on how many machines where they were compared on
        several."""
        one_workload = len({row.workload for row in self.rows}) == 1
        noun = "model" if one_workload else "configuration"
        models = [self.names.short_model(row.campaign, row.model) for row in mine]
        if len(mine) == len(self.rows) > 2:
            which = f"all {len(mine)} {noun}s"
        elif len(mine) > (MOST_NAMES if one_workload else 1):
            which = f"{len(mine)} of {counted(len(self.rows), noun)}"
        elif one_workload:
            which = listed(models)
        else:
            load = self.names.workload(mine[0].campaign, mine[0].workload)
            which = f"{models[0]} ({load})"
        return which + _on(row.machines for row in mine if row.analysis == "machines")


def _verdict(row: TableRow) -> str:
    """The verdict, with the margin that it is about."""
    if row.verdict == "equivalent":
        return f"equivalent within ±{row.equivalence_margin_percent:g}{SPACE}%"
    return str(row.verdict)


def _sides(names: Names, rows: Sequence[TableRow]) -> list[str]:
    """What readers call the candidate and the baseline."""
    row = rows[0]
    return [
        names.environment(row.campaign, side) for side in (row.candidate, row.baseline)
    ]


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
    elsewhere = (
        "" if set(first.machines) == set(last.machines) else ", on different machines"
    )
    return (
        f"{metric.subject} is {extremes[0]} for {best} ({metric.told(first.mean)}) "
        f"and {extremes[1]} for {worst} ({metric.told(last.mean)}){elsewhere}."
    )


def sample(cells: Sequence[TableRow], excluded: Mapping[str, str]) -> str:
    """How many runs stand behind a chart, and which were left out and why."""
    sizes = sorted({cell.n for cell in cells})
    if not sizes:
        text = "n = 0."
    elif sizes == [1]:
        text = "One run per cell, so the spread is not known."
    else:
        several = {len(cell.machines) for cell in cells if len(cell.machines) > 1}
        text = f"n = {span([str(n) for n in sizes])} runs per cell{_on(several)}."
    if excluded:
        checks = [reason.partition(":")[0] for reason in excluded.values()]
        reasons = listed(check.replace("-", " ") for check in checks)
        noun = "run is" if len(excluded) == 1 else "runs are"
        text += f" {len(excluded)} {noun} excluded ({reasons}) and drawn hollow."
    return text
