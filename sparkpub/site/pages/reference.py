"""Reference text made from the registries, so that documentation cannot fall behind the code."""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from sparkpub.plan import environments
from sparkpub.plan.matrix import Gates
from sparkpub.plan.workloads import WORKLOADS
from sparkpub.plan.workloads.withdrawn import WithdrawnOptions
from sparkpub.record import catalogue
from sparkpub.record.catalogue import CatalogueFile
from sparkpub.record.errors import ClaimError
from sparkpub.record.metrics import GIB, METRICS, Metric, slug
from sparkpub.record.record import Declared
from sparkpub.record.telemetry import COLUMNS
from sparkpub.record.text import (
    between,
    counted,
    listed,
    number,
    outward,
    with_unit,
)
from sparkpub.review.checks import CHECKS
from sparkpub.review.checks.check import CheckKind
from sparkpub.review.checks.registry import THRESHOLDS
from sparkpub.review.claims.facts import Fact, FactSource
from sparkpub.review.claims.ledger import Verdict
from sparkpub.review.grouping import grouped
from sparkpub.review.names import Names
from sparkpub.review.physics import bytes_per_step
from sparkpub.review.reviewed import ReviewedCampaign
from sparkpub.review.vocabulary import STATISTICS
from sparkpub.site.pages.downloads import TABLES

SIMULATED = Path(__file__).parent / "simulated.md"
"""Size and power of the verdicts, as they were simulated."""


def plain(text: str) -> str:
    """Text from records or findings as Markdown that shows it and does nothing else."""
    return re.sub(r"([\\`*_{}\[\]|#])", r"\\\1", html.escape(text, quote=False))


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    for row in rows:
        cells = (str(cell).replace("\n", " ").replace("|", "\\|") for cell in row)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def of(name: str, own: Mapping[str, Metric] = METRICS) -> str:
    """One of the references below by name: `{{ reference("metrics") }}`, with the metrics that runs have."""
    if name == "metrics":
        return metrics(own)
    made = _REFERENCES.get(name)
    if made is not None:
        return made()
    if name in _simulated():
        return _simulated()[name]
    known = ", ".join(sorted(["metrics", *_simulated(), *_REFERENCES]))
    raise ClaimError(f"no reference {name!r}", remedy=f"known are {known}")


_BETTER = {
    "higher": ", higher is better",
    "lower": ", lower is better",
    "neither": "",
}


def metrics(found: Mapping[str, Metric]) -> str:
    """The definition of every metric that runs have, under an anchor of its name, those of campaigns alone last; of the
    others a line that opens."""
    known = {name: found[name] for name in {**METRICS, **found} if name in found}
    rest = [metric for name, metric in METRICS.items() if name not in found]
    lines = _definitions(known.values())
    if not rest:
        return lines
    others = folded(f"{len(rest)} more, which no run here has", _definitions(rest))
    return f"{lines}\n\n{others}".strip()


def _definitions(known: Iterable[Metric]) -> str:
    lines, said = [], ""
    for metric in known:
        line = f"- **{plain(metric.label)}**{{ #{slug(metric.name)} }} `{metric.name}` "
        # Of a family what all have in common is said with the first.
        family, _, own = metric.definition.rpartition("; ")
        if family and family == said:
            line += plain(own)
        else:
            line += f"({metric.unit}{_BETTER[metric.direction]}): {plain(metric.definition)}"
        said = family
        if metric.derived_from:
            names = ", ".join(f"`{name}`" for name in metric.derived_from)
            line += f" Derived from {names}."
        lines.append(line)
    return "\n".join(lines)


def _statistics() -> str:
    known = STATISTICS.values()
    rows = ((f"`{one.name}`", one.unit or "–", one.definition) for one in known)
    return table(("name", "unit", "meaning"), rows)


_CONSEQUENCES: Mapping[CheckKind, str] = {
    "meaning": "The figures stay and are flagged. An error voids claims about other runs",
    "happened": "The run failed or is damaged, and is excluded from the pooled figures",
    "prose": "A sentence on the site is wrong, and the build stops",
}
"""Kind of a check to what follows from a finding."""


def _checks() -> str:
    """The checks by what follows from a finding, a line for each consequence that opens."""
    parts = []
    for kind, consequence in _CONSEQUENCES.items():
        rows = [
            (
                f"`{one.name}`",
                one.question,
                one.remedy or "–",
                ", ".join(one.severities),
            )
            for one in CHECKS.values()
            if one.kind == kind
        ]
        found = table(("check", "question", "what to do", "severity"), rows)
        summary = f"{consequence} ({counted(len(rows), 'check')}, kind {kind})"
        parts.append(folded(summary, found))
    return "\n\n".join(parts)


def folded(summary: str, behind: str) -> str:
    """Markdown of a line that opens."""
    return (
        '<details markdown="1">\n'
        f"<summary>{html.escape(summary)}</summary>\n\n{behind}\n\n</details>"
    )


def _thresholds() -> str:
    """The numbers that checks decide by, with the reason for each."""
    return "\n".join(
        f"- {name.lower().replace('_', ' ')}: {one:g}. {plain(one.reason)}"
        for name, one in THRESHOLDS.items()
    )


def _columns() -> str:
    """The columns of each published table, a line that opens."""
    parts = []
    for name, columns in TABLES.items():
        rows = ((f"`{column}`", one.meaning) for column, one in columns.items())
        summary = f"{name} ({counted(len(columns), 'column')})"
        parts.append(folded(summary, table(("column", "meaning"), rows)))
    return "\n\n".join(parts)


def _telemetry() -> str:
    rows = ((f"`{name}`", unit or "–") for name, unit in COLUMNS.items())
    return table(("column", "unit"), rows)


def _fields(model: type[BaseModel]) -> str:
    """The fields of a part of the matrix with their defaults and meaning."""
    rows = []
    for name, field in model.model_fields.items():
        if name == "type":
            continue
        default = "required"
        if not field.is_required():
            default = _shown(field.get_default(call_default_factory=True))
        meaning = " ".join((field.description or "").split())
        rows.append((f"`{name}`", default, meaning))
    return table(("option", "default", "meaning"), rows)


def _options(kinds: Mapping[str, type[Declared]]) -> str:
    parts = []
    for name, options in kinds.items():
        first, _, _ = (options.__doc__ or "").strip().partition("\n\n")
        parts += [f"### `{name}`", first.replace("\n", " ")]
        shown = example(options)
        if shown:
            parts.append(f"```yaml\n{shown}\n```")
        parts.append(_fields(options))
    return "\n\n".join(parts)


def example(options: type[Declared]) -> str:
    """The options as somebody would write them: the last paragraph of the docstring, if it begins with "Example:"."""
    last = (options.__doc__ or "").rpartition("\n\n")[2].strip()
    if not last.startswith("Example: "):
        return ""
    return " ".join(last.removeprefix("Example: ").split())


def _shown(value: Any) -> str:
    if value is None or value in ("", (), {}, []):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{value}`"


_UNITS = {
    "_bytes_s": (1e9, ",.0f", "GB/s"),
    "_flops": (1e12, ",g", "TFLOP/s"),
    "parameters": (1e9, ".1f", "billion"),
    "_bytes_per_step": (GIB, ",.1f", "GiB"),
    "_bytes_per_token": (1, ",", "bytes"),
    "_bytes": (GIB, ",.1f", "GiB"),
    "_gib": (1, ",", "GiB"),
    "_gb": (1, ",", "GB"),
    "": (1, ",", ""),
}
"""End of a fact's name to the unit for readers: its size, how many digits a number of them has, and its name."""


def catalogue_value(kind: CatalogueFile, name: str, fact: str) -> str:
    """A fact of the shipped catalogue for a reader: bytes as GiB, bandwidth as GB/s, parameters in billions."""
    known = {item.name: item for item in catalogue.facts(kind, name)}
    if fact not in known:
        raise ClaimError(
            f"no fact {fact!r} of {name}", remedy=f"known are {', '.join(known)}"
        )
    value = known[fact].value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, str):
        return value
    size, digits, unit = next(_UNITS[end] for end in _UNITS if fact.endswith(end))
    return with_unit(f"{value if size == 1 else value / size:{digits}}", unit)


def ceiling(model: str, machine: str, batch: int) -> str:
    """The output throughput that a machine's memory bandwidth allows a model at a batch size."""
    step = bytes_per_step(catalogue.models()[model], batch)
    if step is None:
        raise ClaimError(
            f"the catalogue does not say what {model} reads per step",
            remedy="add it to models.yaml",
        )
    memory = catalogue.machines()[machine].bandwidth_bytes_s
    return f"{batch * memory / step.expected:.1f} tok/s"


def entry_of_catalogue(kind: CatalogueFile, name: str) -> str:
    """A line that opens a table of what is known about a model or a machine."""
    rows = []
    for item in catalogue.facts(kind, name):
        value = catalogue_value(kind, name, item.name)
        if item.how:
            value += f" ({item.how})"
        source_of_fact = f"[{plain(item.source.title)}]({item.source.url})"
        rows.append((f"`{item.name}`", value, source_of_fact))
    return folded(name, table(("fact", "value", "source"), rows))


@cache
def _simulated() -> Mapping[str, str]:
    """Parts of the page that `benchmarks.simulated` writes, by name."""
    _, *parts = re.split(r"^# ", SIMULATED.read_text(encoding="utf-8"), flags=re.M)
    split = (part.partition("\n") for part in parts)
    return {name: text.strip() for name, _, text in split}


_REFERENCES: Mapping[str, Callable[[], str]] = {
    "statistics": _statistics,
    "columns": _columns,
    "checks": _checks,
    "thresholds": _thresholds,
    "telemetry": _telemetry,
    "gates": lambda: _fields(Gates),
    "workloads": lambda: _options(
        {
            name: workload.options
            for name, workload in WORKLOADS.items()
            if not issubclass(workload.options, WithdrawnOptions)
        }
    ),
    "environments": lambda: _options(
        {**environments.OPTIONS, "server": environments.Server}
    ),
}


def coverage(reviewed: ReviewedCampaign, names: Names) -> str:
    """Planned, recorded and counted runs per cell."""
    campaign = reviewed.campaign
    planned = {cell: found.planned for cell, found in campaign.covered.items()}
    rows = []
    for key, recorded in reviewed.recorded.items():
        said = (plain(part) for part in names.cell(campaign.name, key))
        in_figures = len(reviewed.counted[key])
        rows.append((*said, planned.get(key, "–"), len(recorded), in_figures))
    return table(
        ("model", "environment", "workload", "planned", "recorded", "counted"), rows
    )


_SPEED = "Speed"
_TOPICS = {
    "GiB": "Memory",
    "tokens": "Memory",
    "°C": "Heat and power",
    "W": "Heat and power",
    "J": "Heat and power",
    "MHz": "Heat and power",
}
"""Unit of a metric to what a claim about it is about; every other one is about speed."""
_TOLD = {"void": "not judged", "hypothesis": "not tested"}
"""Verdict to what a reader calls it, where that is another word."""
_CONDUCT = "How was it measured?"
_OPEN = "Not tested"


def ledger(verdicts: Iterable[Verdict], names: Names, links: Mapping[str, str]) -> str:
    """Claims by the question that they answer, a line each: what it says, and the verdict; behind
    it the figures, and where it was published. What is refuted is in sight, the others are behind
    their number. `links` leads to each campaign, in Markdown."""
    by_question = grouped(verdicts, _question)
    parts: list[str] = []
    for question in dict.fromkeys((_SPEED, *_TOPICS.values(), _CONDUCT, _OPEN)):
        mine = by_question.get(question, ())
        if not mine:
            continue
        refuted = [one for one in mine if one.verdict == "refuted"]
        rest = [one for one in mine if one.verdict != "refuted"]
        shown, behind = (
            [_entry(one, names, links) for one in part] for part in (refuted, rest)
        )
        parts += [f"## {question}", *shown]
        words = Counter(one.verdict for one in rest).most_common()
        tally = listed(f"{number} {_TOLD.get(word, word)}" for word, number in words)
        if rest:
            parts.append(folded(tally, "\n\n".join(behind)))
    return "\n\n".join(parts) or "No claim yet."


def _question(verdict: Verdict) -> str:
    """What a claim is about."""
    claim = verdict.claim
    if claim.metric is None:
        return _OPEN if claim.expect is None else _CONDUCT
    metric = METRICS.get(claim.metric)
    return _SPEED if metric is None else _TOPICS.get(metric.unit, _SPEED)


def _entry(verdict: Verdict, names: Names, links: Mapping[str, str]) -> str:
    """A claim as a line that opens. A link to its name opens it: browsers open what holds the target."""
    claim, word = verdict.claim, verdict.verdict
    scope = "in general" if claim.about == "world" else "of these runs"
    where = links.get(claim.campaign, claim.campaign)
    told = plain(names.in_words(claim.campaign, verdict.text))
    behind = f"{told} Said {scope}, in {source(claim.source)}; judged by **{where}**{{ #{claim.id} }}."
    if claim.note:
        behind += f" *{plain(claim.note)}*"
    found, said = bound(verdict), plain(verdict.says)
    if found:
        said = f"{said.rstrip('.')} ({found})."
    return (
        f'<details class="sp-claim" markdown="1">\n'
        f'<summary markdown="span">{said} **{word}**{{ .sp-chip .sp-{word} }}</summary>\n\n'
        f"{behind}\n\n</details>"
    )


def bound(verdict: Verdict) -> str:
    """What is known of a difference that the runs leave undecided: what was measured, and the ends of the intervals,
    `measured −0.3 to +0.2 %, between −6.0 and +6.1 %`. Empty for other verdicts, and without an interval."""
    claim, units = verdict.claim, verdict.evidence.get("units", ())
    if verdict.verdict != "undecided" or claim.expect is None or claim.compare is None:
        return ""
    intervals = [unit["ci95"] for unit in units]
    metric = METRICS.get(claim.metric or "")
    # Of the highest and the lowest the figures are those of the others.
    is_alone = claim.expect.form not in ("highest", "lowest")
    if not (intervals and all(intervals) and metric and is_alone):
        return ""
    statistic = STATISTICS[units[0]["statistic"]]
    unit, decimals = statistic.unit, 1
    if unit == "metric":
        unit, decimals = metric.unit, metric.decimals
    values = sorted(unit["value"] for unit in units)
    ends = min(low for low, _ in intervals), max(high for _, high in intervals)
    told = between(values[0], values[-1], decimals, signed=statistic.signed)
    low, high = (
        number(end, decimals, signed=statistic.signed)
        for end in outward(*ends, decimals)
    )
    return (
        f"measured {with_unit(told, unit)}, between {low} and {with_unit(high, unit)}"
    )


def facts(known: Sequence[Fact]) -> str:
    """Every fact with an anchor and its meaning, by the document that it comes from, a line each that opens."""
    parts = []
    for document, found in grouped(known, lambda fact: fact.source.document).items():
        lines = "\n".join(_fact(fact) for fact in found)
        parts.append(folded(f"{document} ({counted(len(found), 'fact')})", lines))
    return "\n\n".join(parts)


def _fact(fact: Fact) -> str:
    place = fact.source.section or ""
    if fact.source.url:
        place = f"[{plain(place or fact.source.document)}]({fact.source.url})"
    elif place:
        place = f"“{plain(place)}”"
    line = f"- **{fact.text}**{{ #{fact.id} }} {plain(fact.says)}"
    if place:
        line += f" {place}."
    if fact.quote:
        return line + f" Quoted: “{plain(fact.quote)}”."
    return line + f" Not quoted: {plain(fact.unquoted or '')}."


def source(found: FactSource) -> str:
    """A source as Markdown, linked where it has an address."""
    text = plain(str(found))
    return f"[{text}]({found.url})" if found.url else text
