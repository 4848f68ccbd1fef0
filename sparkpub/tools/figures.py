"""The figures of a run, by a mapping: with the repetitions or the deviation behind them.

A table is people's own, and a cell that is no figure is a mistake that they can correct. What a tool reports is as it
is: a value that is none becomes null, with its reason.
"""

import math
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Literal

from sparkpub.record import documents
from sparkpub.record.metrics import METRICS, factor
from sparkpub.record.record import MetricValue, Spread
from sparkpub.tools import cells, reading
from sparkpub.tools.cells import CellError
from sparkpub.tools.language import FigurePlace, MetricPlace, ResultMapping, TimesPlace
from sparkpub.tools.where import at, holds

FigureSource = Literal["published", "report", "log"]
"""A table, or what a tool reports or prints."""


@dataclass(frozen=True)
class Figures:
    """What a row or a document holds."""

    metrics: dict[str, MetricValue] = field(default_factory=dict)
    samples: dict[str, tuple[float, ...]] = field(default_factory=dict)
    spreads: dict[str, Spread] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What a reader should know of the repetitions."""


def figures(mapping: ResultMapping, document: Any, source: FigureSource) -> Figures:
    """All that a mapping names. Raises CellError for a cell of a table that is no figure of its metric."""
    found = Figures()
    counts: set[int] = set()
    for name, metric in mapping.metrics.items():
        if not holds(document, metric.when):
            continue
        cell = PlacedValue(str(metric.at), at(document, metric.at), source)
        repeated = PlacedValue(str(metric.values), at(document, metric.values), source)
        if metric.values is not None:
            counts.add(len(repeated.numbers))
        if cell.found is None and source != "published":
            continue
        value, scale = cell.value(mapping, name, metric.unit)
        found.metrics[name] = value
        values = tuple(scale * item for item in repeated.numbers or cell.numbers)
        if len(values) > 1:
            found.samples[name] = values
        if not values and value.value is not None:
            spread = _spread(mapping, metric, cell, document, scale)
            if spread is not None:
                found.spreads[name] = spread
    for stem, times in mapping.requests.items():
        distribution = _distribution(stem, times, document, source)
        found.metrics.update(distribution)
        for name in distribution:
            found.spreads.pop(name, None)
    return replace(found, notes=_unequal(counts))


@dataclass(frozen=True)
class PlacedValue:
    """What stands in a place, and where that is."""

    column: str
    found: Any
    source: FigureSource
    reason: str | None = None
    """Why nothing stands there."""

    @property
    def numbers(self) -> list[float]:
        """The repetitions in a cell that holds a list; empty for any other."""
        if not isinstance(self.found, list):
            return []
        if self.source != "published":
            return reading.numbers(self.found)
        said = [self._number(str(item)) for item in self.found if item is not None]
        return [number for number in said if number is not None]

    @property
    def number(self) -> float | None:
        """The figure, or the mean of several; None for an empty cell."""
        if isinstance(self.found, list):
            return fmean(self.numbers) if self.numbers else None
        if self.source != "published" and not isinstance(self.found, str):
            return reading.number(self.found)
        said = cells.text(self.found)
        return None if said is None else self._number(said.partition("±")[0].strip())

    @property
    def deviation(self) -> float | None:
        """What stands behind the sign of a mean with its deviation."""
        if not isinstance(self.found, str):
            return None
        _, mark, behind = self.found.partition("±")
        return self._number(behind.strip()) if mark else None

    def value(
        self, mapping: ResultMapping, name: str, unit: str | None
    ) -> tuple[MetricValue, float]:
        """The value of a metric in its unit, null with its reason where there is none; and what it was multiplied
        with."""
        scale = _scale(mapping, name, unit)
        number = self.number
        if self.source != "published" and name in METRICS:
            said = self.found if number is None else number
            return reading.metric(name, said, self.source, scale=scale), scale
        reason = None
        if number is None:
            where = "table" if self.source == "published" else self.source
            reason = self.reason or f"the {where} has no value"
        else:
            number *= scale
            self._refuse_impossible(name, number)
        own = mapping.metrics.get(name)
        words = {"label", "direction", "definition"}
        declared = own.model_dump(include=words) if own and name not in METRICS else {}
        metric = MetricValue(
            value=number,
            unit=mapping.unit(name) or "",
            source=self.source,
            reason=reason,
            **declared,
        )
        return metric, scale

    def _number(self, said: str) -> float | None:
        found = reading.number(said)
        if self.source != "published":
            return found
        if found is None or "," in said:
            what = f"column {self.column!r} has {cells.shown(said)}"
            raise CellError(f"{what}; write a number, as 1234.5")
        return found

    def _refuse_impossible(self, name: str, value: float) -> None:
        known = METRICS.get(name)
        if known is not None and not known.minimum <= value <= known.maximum:
            what = f"column {self.column!r} gives {value:g} {known.unit}"
            bounds = f"{known.minimum:g} to {known.maximum:g}"
            raise CellError(f"{what}, and {name} can be {bounds}; correct cell or unit")


def _scale(mapping: ResultMapping, name: str, unit: str | None) -> float:
    """What a figure in that unit is multiplied with. Raises CellError for a metric that nobody knows, and for a unit
    that cannot be converted."""
    wanted = mapping.unit(name)
    if wanted is None:
        near = documents.suggestion(name, _known_like(name))
        remedy = f"declare it under metrics: in the mapping, or {near}"
        raise CellError(
            f"sparkpub does not know the metric {cells.shown(name)}; {remedy}"
        )
    found = mapping.factor(name, unit)
    if found is None:
        what = f"{name} is in {cells.shown(unit or '')} in place of {wanted!r}"
        raise CellError(f"{what}; give its scale: in the mapping")
    return found


def _known_like(name: str) -> list[str]:
    """The known metrics that share a first word with a name; all where none does."""
    begin = name.partition("_")[0]
    return [known for known in METRICS if known.startswith(begin)] or list(METRICS)


def _spread(
    mapping: ResultMapping,
    metric: MetricPlace,
    cell: PlacedValue,
    document: Any,
    scale: float,
) -> Spread | None:
    """The deviation of a mean, where its cell or another place says it."""
    deviation = cell.deviation
    if deviation is None:
        place = metric.deviation
        deviation = PlacedValue(str(place), at(document, place), cell.source).number
    if deviation is None:
        return None
    return Spread(
        repetitions=_repetitions(metric, document, cell.source),
        deviation=abs(scale * deviation),
        divisor=mapping.divisor,
    )


def _repetitions(
    metric: MetricPlace, document: Any, source: FigureSource
) -> int | None:
    """Over how many repetitions a figure is a mean; None where not all of it is said."""
    said = metric.repetitions or ()
    places = (said,) if isinstance(said, str) else said
    counts = [
        reading.positive_int(PlacedValue(place, at(document, place), source).number)
        for place in places
    ]
    known = [count for count in counts if count is not None]
    return math.prod(known) if known and len(known) == len(counts) else None


def _distribution(
    stem: str, times: TimesPlace, document: Any, source: FigureSource
) -> dict[str, MetricValue]:
    """Mean, extremes and percentiles of the times of requests."""
    scale = scale_of(times, document, "ms")
    if scale is None or not holds(document, times.when):
        return {}
    if times.statistics:
        paths = statistics_of(stem, times)
        said = {name: at(document, path) for name, path in paths.items()}
        return reading.metrics(said, source, scale)
    cell = PlacedValue(str(times.at), at(document, times.at), source)
    values = [scale * value for value in cell.numbers]
    return reading.distribution(stem, values, source)


def statistics_of(stem: str, times: TimesPlace) -> dict[str, str]:
    """Where the tool's own statistics stand, by the names of the metrics that they are."""
    named = {f"{stem}_{ours}_ms": theirs for ours, theirs in times.statistics.items()}
    return {
        name: str(times.at).replace("{}", theirs)
        for name, theirs in named.items()
        if name in METRICS
    }


def scale_of(place: FigurePlace, document: Any, wanted: str) -> float | None:
    """What a figure is multiplied with to be in a unit; None for a unit that cannot be converted, or is not said."""
    if place.scale is not None:
        return place.scale
    unit = place.unit or wanted
    if place.unit_at is not None:
        said = str(at(document, place.unit_at))
        unit = _SPELLED.get(said, said)
    return factor(unit, wanted)


_SPELLED = {"sec": "s"}
"""Units as tools spell them."""


def _unequal(counts: set[int]) -> tuple[str, ...]:
    """What is to be said where the metrics of a run have not as many repetitions each."""
    if len(counts) < 2:
        return ()
    few, many = min(counts), max(counts)
    what = f"a rate has {few} repetitions and the other {many}"
    return (f"{what}: the tool leaves out what failed",)
