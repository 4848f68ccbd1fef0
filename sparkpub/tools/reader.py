"""The one reader of results, by the mappings of tools: of our own runs, of imports, and of the checks that look at
evidence again.

What results say is as it is: a value that is no figure becomes null, with its reason.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any

from sparkpub.record.metrics import METRICS
from sparkpub.record.record import MetricValue, Observed, Spread
from sparkpub.tools import reading
from sparkpub.tools.agreement import contradictions
from sparkpub.tools.asked import noted
from sparkpub.tools.language import (
    FigurePlace,
    MetricPlace,
    ResultMapping,
    TimesPlace,
    of_tools,
)
from sparkpub.tools.shapes.base import FigureSource
from sparkpub.tools.where import at, holds


@dataclass(frozen=True)
class Figures:
    """The figures of a run, with the repetitions or the deviations behind them."""

    metrics: dict[str, MetricValue] = field(default_factory=dict)
    samples: dict[str, tuple[float, ...]] = field(default_factory=dict)
    spreads: dict[str, Spread] = field(default_factory=dict)
    counts: set[int] = field(default_factory=set)
    """How many repetitions there are of those that should have some."""


@dataclass(frozen=True)
class ReportReading:
    """What the report of one run says."""

    mapping: ResultMapping
    document: Mapping[str, Any]
    source: FigureSource = "report"

    @cached_property
    def metrics(self) -> dict[str, MetricValue]:
        """The figures; none where no request succeeded, since tools give zeros then."""
        if not self.succeeded:
            return {}
        failed, went_well = self._counts
        return self.figures.metrics | reading.failed_requests(failed, went_well)

    @property
    def samples(self) -> dict[str, tuple[float, ...]]:
        """The repetitions of figures."""
        known = self.metrics
        return {
            name: values
            for name, values in self.figures.samples.items()
            if reading.known(known, name)
        }

    @property
    def facts(self) -> dict[str, Any]:
        """Fields of `Observed`."""
        places = self.mapping.facts
        return {name: self._fact(name, place) for name, place in places.items()}

    @property
    def deviations(self) -> dict[str, float]:
        """Standard deviations over requests: of times in ms, and of tokens."""
        found = {}
        for name, place in self.mapping.deviations.items():
            number = reading.number(at(self.document, place.at))
            scale = place.scale_to("ms", self.document)
            if number is not None and scale is not None:
                found[name] = scale * number
        return found

    @property
    def problems(self) -> list[str]:
        """What the tool says went wrong, and figures that contradict each other."""
        failed, _ = self._counts
        found = contradictions(self.mapping, self.document, lost_some=bool(failed))
        return [*found, *noted(self.mapping.problems, self.document)]

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the figures a reader should know, and what is no contradiction."""
        counts = self.figures.counts
        if len(counts) < 2:
            return ()
        what = f"a rate has {min(counts)} repetitions and the other {max(counts)}"
        return (f"{what}: the tool leaves out what failed",)

    @property
    def succeeded(self) -> bool:
        """Whether any request did, by a number of them or a list; a published rate of 0 is of none."""
        place = self.mapping.run.succeeded
        found = at(self.document, place)
        if place is None:
            metrics = self.figures.metrics.items()
            rates = {each.value for name, each in metrics if name in _RATES}
            return self.source != "published" or rates != {0}
        return bool(found if isinstance(found, list) else reading.number(found))

    @property
    def mode(self) -> str | None:
        """In which of its modes the tool wrote it, of a tool that has some."""
        terms = self.mapping.load
        return next((str(term.says) for term in terms if term.option == "mode"), None)

    @cached_property
    def figures(self) -> Figures:
        """All that the mapping names."""
        found = Figures()
        for name, place in self.mapping.metrics.items():
            if holds(self.document, place.when):
                self._read(name, place, found)
        for stem, times in self.mapping.requests.items():
            distribution = self._distribution(stem, times)
            found.metrics.update(distribution)
            for name in distribution:
                found.spreads.pop(name, None)
        return found

    def _read(self, name: str, place: MetricPlace, found: Figures) -> None:
        """One metric, with what is behind it."""
        said = self._said(place)
        repeated = reading.numbers(at(self.document, place.values))
        if place.values is not None:
            found.counts.add(len(repeated))
        unit = METRICS[name].unit if name in METRICS else place.unit
        scale = place.scale_to(unit, self.document)
        if said is None or scale is None:
            return
        mean, deviation = self._mean_and_deviation(said)
        reason = reading.no_figure(said, self.source)
        if name in METRICS:
            metric = reading.metric(name, mean, self.source, scale=scale, reason=reason)
        else:
            metric = MetricValue(
                value=None if mean is None else scale * mean,
                unit=place.unit or "",
                source=self.source,
                reason=reason if mean is None else None,
                label=place.label,
                direction=place.direction,
                definition=place.definition,
            )
        found.metrics[name] = metric
        values = repeated or (reading.numbers(said) if isinstance(said, list) else [])
        if len(values) > 1:
            found.samples[name] = tuple(scale * item for item in values)
        if deviation is None:
            deviation = reading.number(at(self.document, place.deviation))
        if deviation is not None and not values and metric.value is not None:
            found.spreads[name] = Spread(
                repetitions=self._repetitions(place),
                deviation=abs(scale * deviation),
                divisor=self.mapping.divisor,
            )

    def _said(self, place: FigurePlace) -> Any:
        """What stands there, by what else the mapping says; None where that is nothing."""
        said = at(self.document, place.at)
        if said is None or place.per is None:
            return place.otherwise if said is None else said
        whole, parts = map(_total, (said, at(self.document, place.per)))
        return whole / parts if whole is not None and parts else None

    def _mean_and_deviation(self, said: Any) -> tuple[float | None, float | None]:
        """The figure in a cell, the mean of a list, or a mean with its deviation: `32.3 ± 0.5`."""
        if isinstance(said, list):
            values = reading.numbers(said)
            return (fmean(values) if values else None), None
        if not isinstance(said, str):
            return reading.number(said), None
        if self.source == "published" and "," in said and "." not in said:
            return (
                None,
                None,
            )  # 1,204 may be a number of thousands, or of three decimals
        mean, _, deviation = said.partition("±")
        return reading.number(mean), reading.number(deviation)

    def _repetitions(self, place: MetricPlace) -> int | None:
        """Over how many repetitions a figure is a mean; None where not all of it is said."""
        said = place.repetitions or ()
        places = (said,) if isinstance(said, str) else said
        counts = [reading.positive_int(at(self.document, where)) for where in places]
        known = [count for count in counts if count is not None]
        return math.prod(known) if known and len(known) == len(counts) else None

    def _distribution(self, stem: str, times: TimesPlace) -> dict[str, MetricValue]:
        """Mean, extremes and percentiles of the times of requests."""
        scale = times.scale_to("ms", self.document)
        if scale is None or not holds(self.document, times.when):
            return {}
        if times.statistics:
            paths = times.statistics_of(stem)
            said = {name: at(self.document, path) for name, path in paths.items()}
            return reading.metrics(said, self.source, scale)
        values = reading.numbers(self._times(times))
        return reading.distribution(
            stem, [scale * value for value in values], self.source
        )

    def _times(self, times: TimesPlace) -> Any:
        """The list of them, or that of each request which counts."""
        if times.each is None:
            return at(self.document, times.at)
        requests = reading.objects(at(self.document, times.each))
        return [at(each, times.at) for each in requests if holds(each, times.having)]

    @property
    def _counts(self) -> tuple[float | None, float | None]:
        """How many requests failed, and how many went well."""
        if self.mapping.failed is None:
            return None, None
        failed, went_well = (at(self.document, place) for place in self.mapping.failed)
        if isinstance(failed, list):
            return float(sum(1 for item in failed if item)), reading.number(went_well)
        return reading.number(failed), reading.number(went_well)

    def _fact(self, name: str, place: FigurePlace) -> Any:
        """A word, a truth or settings, as the field is; else a number, by another where the mapping says so, and whole
        where it is. None for zero, which tools give where nothing happened."""
        found = self._said(place)
        if name in _TEXTS:
            return reading.word(found)
        if isinstance(found, bool | dict):
            return found
        number = reading.number(found)
        if not number or not holds(self.document, place.when):
            return None
        if number.is_integer():
            return int(number)
        return number


def _total(said: Any) -> float | None:
    """A number, or the sum of a list of them."""
    numbers = reading.numbers(said)
    return sum(numbers) if numbers else reading.number(said)


_RATES = ("output_throughput_tok_s", "total_throughput_tok_s")
_TEXTS = {
    name
    for name, field in Observed.model_fields.items()
    if field.annotation == str | None
}
"""Facts that are words."""


def of_tool(tool: str) -> ResultMapping:
    """The mapping of a tool with one form of reports."""
    (mapping,) = of_tools()[tool]
    return mapping


def read(report: Mapping[str, Any], tools: Iterable[str]) -> ReportReading | None:
    """The report of one of these tools, the first that it is of; None for any other document. A row of a document is
    read as if it were the only one of its own, with what was kept around it, and a document with one row as that."""
    for tool in tools:
        for mapping in of_tools()[tool]:
            rows = str(mapping.rows)
            documents = [report, {rows: report}, {**report, rows: report}]
            listed = reading.objects(report.get(rows))
            documents += [{**report, rows: row} for row in listed if len(listed) == 1]
            for document in documents:
                if holds(document, mapping.when):
                    return ReportReading(mapping, document)
    return None
