"""How every parser reads: bytes of any origin to lines, numbers and metric values, without ever raising.

Logs carry progress bars with carriage returns, terminal colours, interleaved ranks and mixed encodings; reports
carry bare NaN and Infinity, and are cut short when a process dies.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError

from sparkpub.record import outside
from sparkpub.record.metrics import METRICS
from sparkpub.record.percentiles import quantiles
from sparkpub.record.record import MetricValue, Observed, Phase, Source

SomeValue = TypeVar("SomeValue")
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours and the cursor
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles of windows, links
    r"|[PX^_][^\x1b]*\x1b\\"  # strings for the terminal's devices
    r"|[ -/]+[0-~]"  # character sets: `tput sgr0` selects one
    r"|[0-~])"
)
"""Escape sequences of ECMA-48: one within a figure's line would hide the figure."""
NUMBER = re.compile(
    r"[-+]?(?=\.?\d)(?:[1-9]\d{0,2}(?:,\d{3})+|\d*)(?:\.\d*)?(?:[eE][-+]?\d+)?"
)
"""With commas only between groups of three digits, as tools print thousands."""
_BREAKS = re.compile(r"\r\n|\r|\n")
_SHARES = (0.5, 0.9, 0.95, 0.99)
"""Of requests, below the percentiles that are metrics."""
_LONGEST_REASON = 200
_LONGEST_MS = 1e12
"""Thirty years: no duration."""


def text(data: bytes) -> str:
    """Bytes as text: UTF-8, what cannot be decoded replaced, escape sequences removed."""
    said = data.decode("utf-8-sig", errors="replace")
    if "\x1b" in said:
        said = _ESCAPES.sub("", said)
    return said.replace("\0", "")


def lines(data: bytes) -> list[str]:
    """The lines of a log; a carriage return ends one too, so each state of a progress bar is its own line."""
    return [line.rstrip() for line in _BREAKS.split(text(data))]


def json_value(data: bytes | None) -> Any:
    """A JSON document, NaN and Infinity included; None where there is none, it is cut short, or it is none that
    `strict_json` reads."""
    if data is None:
        return None
    try:
        return strict_json(data)
    except ValueError:
        return None


def strict_json(data: bytes) -> Any:
    """A JSON document as tools write it, NaN and Infinity included. Raises UnfitError where it is out of bounds, for
    instance a key that stands twice, and another ValueError where it is none."""
    said = text(data)
    try:
        document = json.loads(
            said,
            object_pairs_hook=outside.mapping,
            parse_int=outside.whole_number,
        )
    except RecursionError:
        raise outside.too_deep() from None
    outside.refuse_depth(document)
    if "\\u" in said:
        return outside.without_controls(document)
    return document


def json_object(data: bytes | None) -> dict[str, Any] | None:
    """A JSON object; None where there is none, it is cut short, or it is something else."""
    document = json_value(data)
    if isinstance(document, dict):
        return document
    return None


def objects(document: Any) -> list[dict[str, Any]]:
    """The objects of a list; empty for anything else."""
    if not isinstance(document, list):
        return []
    return [item for item in document if isinstance(item, dict)]


def number(value: Any) -> float | None:
    """A number of a size that figures have, also from text with thousands separators; None for anything else."""
    if type(value) is float and outside.is_figure(value):
        return value  # hundreds of thousands of times, mostly
    if isinstance(value, str):
        if not NUMBER.fullmatch(value.strip()):
            return None
        try:
            value = float(value.replace(",", ""))
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if outside.is_figure(found) else None


def numbers(values: Any) -> list[float]:
    """The numbers of a list; empty for anything else."""
    if not isinstance(values, list):
        return []
    if {*map(type, values)} == {float} and all(map(outside.is_figure, values)):
        return values  # thousands of times, mostly
    return [found for item in values if (found := number(item)) is not None]


def positive_int(value: Any) -> int | None:
    """A whole number above zero, or None; a number of nothing here is as large as 10**18."""
    found = number(value)
    if found is None or not 1 <= found < outside.WHOLE_BELOW or found != int(found):
        return None
    return int(found)


def said(values: Mapping[str, SomeValue | None]) -> dict[str, SomeValue]:
    """Those of the values that there are."""
    return {name: value for name, value in values.items() if value is not None}


def word(value: Any) -> str | None:
    """Text that says something; None for null, for nothing, and for the text "None" that some tools write."""
    if not isinstance(value, str) or value.strip() in ("", "None", "N/A"):
        return None
    return value.strip()


def metric(
    name: str, value: Any, source: Source, *, scale: float = 1.0, reason: str = ""
) -> MetricValue:
    """A known metric. `scale` converts to its unit; what is no number, or beyond what is physically possible,
    becomes null with a reason."""
    known, found = METRICS[name], number(value)
    if found is not None:
        found *= scale
        if outside.is_figure(found) and known.minimum <= found <= known.maximum:
            return MetricValue(value=found, unit=known.unit, source=source)
        reason = ""  # it is for a value that is not there
    why = reason or no_figure(value, source)
    return MetricValue(value=None, unit=known.unit, source=source, reason=why)


def no_figure(value: Any, source: Source) -> str:
    """Why a figure is null: what stands in its place, of a long text its beginning."""
    said = repr(value)[:_LONGEST_REASON]
    return (
        f"published as {said}"
        if source == "published"
        else f"the {source} gives {said}"
    )


def known(metrics: Mapping[str, MetricValue], name: str) -> bool:
    """Whether a metric is there with a value."""
    return name in metrics and metrics[name].value is not None


def metrics(
    values: Mapping[str, Any], source: Source, scale: float = 1.0
) -> dict[str, MetricValue]:
    """Known metrics by name; those without a value are left out."""
    found = {}
    for name, value in values.items():
        if value is not None:
            found[name] = metric(name, value, source, scale=scale)
    return found


def failed_requests(
    failed: float | None, succeeded: float | None
) -> dict[str, MetricValue]:
    """The share of the requests that failed; nothing where the tool does not say how many did."""
    if failed is None or succeeded is None or failed + succeeded <= 0:
        return {}
    name = "failed_requests_percent"
    return {name: metric(name, 100 * failed / (failed + succeeded), "report")}


def distribution(
    stem: str, values: Sequence[float], source: Source
) -> dict[str, MetricValue]:
    """Mean, extremes and percentiles of milliseconds over requests; nothing for no values.

    Percentiles are interpolated, the same for every tool, so that P99 of a hundred requests is not simply the slowest
    one.
    """
    ran = [value for value in values if 0 <= value < _LONGEST_MS]
    array = np.asarray(ran, dtype=float)
    if not array.size:
        return {}
    found = {"mean": array.mean(), "min": array.min(), "max": array.max()}
    for share, value in zip(_SHARES, quantiles(array, _SHARES), strict=True):
        found[f"p{100 * share:g}"] = value
    metrics = {}
    for key, value in found.items():
        name = f"{stem}_{key}_ms"
        metrics[name] = metric(name, float(value), source)
    return metrics


def phases(document: Any) -> tuple[Phase, ...]:
    """Phases as our payloads report them: a list of name, start and end in seconds."""
    read = []
    for item in objects(document):
        said = {**item, "name": str(item.get("name"))[:_LONGEST_REASON]}
        with suppress(ValidationError):
            read.append(Phase(**said))
    return tuple(read)


def observed(document: Any) -> Observed:
    """What was observed, by field; what is null, unknown or impossible is left out."""
    if not isinstance(document, dict):
        return Observed()
    known = Observed.model_fields.keys()
    read = said({name: document[name] for name in known & document.keys()})
    try:
        return Observed.model_validate(read)
    except ValidationError as error:
        for item in error.errors():
            read.pop(str(item["loc"][0]), None)
        return Observed.model_validate(read)


def printed(
    log: bytes, patterns: Mapping[str, str], scale: float = 1.0
) -> dict[str, tuple[float, float]]:
    """Figures in a log, by metric: the value of the last match of each pattern, and half a unit of its last digit."""
    said = lines(log)
    found = {}
    for name, pattern in patterns.items():
        digits = search(said, pattern)
        value = number(digits)
        if digits is not None and value is not None:
            decimals = len(digits.partition(".")[2])
            found[name] = (scale * value, scale * 0.5 * 10.0**-decimals)
    return found


def search(
    log: Sequence[str], pattern: str | re.Pattern[str], *, first: bool = False
) -> str | None:
    """The first group of `pattern` in the lines of a log: of the last match, since tools print a figure while
    profiling and again when it is real, or of the first."""
    if isinstance(pattern, str):
        pattern = re.compile(pattern)
    lines = iter(log) if first else reversed(log)
    line = next(filter(pattern.search, lines), None)
    if line is None:
        return None
    matches = list(pattern.finditer(line))
    return matches[0 if first else -1][1]
