"""The one reader of reports that tools write, by their mappings: of our own runs, of imports, and of the checks that
look at evidence again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sparkpub.record.record import MetricValue, Observed
from sparkpub.tools import reading
from sparkpub.tools.agreement import contradictions
from sparkpub.tools.asked import noted
from sparkpub.tools.figures import Figures, FigureSource, figures, scale_of
from sparkpub.tools.language import FactPlace, ResultMapping, of_tools
from sparkpub.tools.where import at, holds


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
            scale = scale_of(place, self.document, "ms")
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
        return self.figures.notes

    @property
    def succeeded(self) -> bool:
        """Whether any request did, by a number of them or a list."""
        place = self.mapping.run.succeeded
        found = at(self.document, place)
        if place is None:
            return True
        return bool(found if isinstance(found, list) else reading.number(found))

    @property
    def mode(self) -> str | None:
        """In which of its modes the tool wrote it, of a tool that has some."""
        terms = self.mapping.load
        return next((str(term.says) for term in terms if term.option == "mode"), None)

    @cached_property
    def figures(self) -> Figures:
        """Figures with the repetitions or the deviations behind them."""
        return figures(self.mapping, self.document, self.source)

    @property
    def _counts(self) -> tuple[float | None, float | None]:
        """How many requests failed, and how many went well."""
        if self.mapping.failed is None:
            return None, None
        failed, went_well = (at(self.document, place) for place in self.mapping.failed)
        if isinstance(failed, list):
            return float(sum(1 for item in failed if item)), reading.number(went_well)
        return reading.number(failed), reading.number(went_well)

    def _fact(self, name: str, place: FactPlace) -> Any:
        """A word, a truth or settings, as the field is; else a number, by another where the mapping says so, and whole
        where it is. None for zero, which tools give where nothing happened."""
        found = at(self.document, place.at)
        if name in _TEXTS:
            return reading.word(found)
        if isinstance(found, bool | dict):
            return found
        number = reading.number(found)
        if not number or not holds(self.document, place.when):
            return None
        if place.per is not None:
            parts = reading.number(at(self.document, place.per))
            number = number / parts if parts else None
        if number is not None and number.is_integer():
            return int(number)
        return number


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
    read as if it were the only one of its own, and a document with one row as that."""
    for tool in tools:
        for mapping in of_tools()[tool]:
            rows = str(mapping.rows)
            documents = [report, {rows: report}]
            listed = reading.objects(report.get(rows))
            documents += [{**report, rows: row} for row in listed if len(listed) == 1]
            for document in documents:
                if holds(document, mapping.when):
                    return ReportReading(mapping, document)
    return None
