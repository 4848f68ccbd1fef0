"""Reference text made from the registries, so that documentation cannot fall behind the code."""

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from sparkpub.plan import coverage as coverages
from sparkpub.plan import environments
from sparkpub.plan.matrix import Gates
from sparkpub.plan.workloads import WORKLOADS
from sparkpub.record import catalogue
from sparkpub.record.catalogue import Kind
from sparkpub.record.errors import ClaimError
from sparkpub.record.metrics import GIB, METRICS
from sparkpub.record.record import Declared
from sparkpub.record.telemetry import COLUMNS
from sparkpub.review.checks import CHECKS
from sparkpub.review.claims.facts import Fact, FactSource
from sparkpub.review.claims.ledger import Verdict
from sparkpub.review.claims.quantities import STATISTICS
from sparkpub.review.dataset import CampaignData
from sparkpub.review.statistics import physics
from sparkpub.site.pages import simulation


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


def of(name: str) -> str:
    """One of the references below by name: `{{ reference("metrics") }}`."""
    if name not in _REFERENCES:
        raise ClaimError(
            f"no reference {name!r}",
            remedy=f"known are {', '.join(sorted(_REFERENCES))}",
        )
    return _REFERENCES[name]()


def _metrics() -> str:
    better = {
        "higher": ", higher is better",
        "lower": ", lower is better",
        "neither": "",
    }
    return "\n".join(
        f"- `{metric.name}` ({metric.unit}{better[metric.direction]}): {metric.definition}"
        + (
            f" Derived from {', '.join(f'`{name}`' for name in metric.derived_from)}."
            if metric.derived_from
            else ""
        )
        for metric in METRICS.values()
    )


def _statistics() -> str:
    rows = (
        (f"`{found.name}`", found.unit or "–", found.definition)
        for found in STATISTICS.values()
    )
    return table(("name", "unit", "meaning"), rows)


def _checks() -> str:
    rows = (
        (f"`{c.name}`", c.question, ", ".join(c.severities), c.kind)
        for c in CHECKS.values()
    )
    return table(("check", "question", "severity", "kind"), rows)


def _thresholds() -> str:
    """The numbers that checks decide by, with the reason for each; one that several checks share stands once."""
    found = {
        threshold.name: threshold
        for check in CHECKS.values()
        for threshold in check.thresholds
    }
    lines = [
        f"- {plain(name)}: {number:g}. {plain(number.reason)}"
        for name, number in found.items()
    ]
    return "\n".join(lines)


def _telemetry() -> str:
    return table(
        ("column", "unit"),
        ((f"`{name}`", unit or "–") for name, unit in COLUMNS.items()),
    )


def _gates() -> str:
    return _fields(Gates)


def _fields(model: type[BaseModel]) -> str:
    """The fields of a part of the matrix with their defaults and meaning."""
    rows = (
        (
            f"`{name}`",
            "required"
            if field.is_required()
            else _shown(field.get_default(call_default_factory=True)),
            " ".join((field.description or "").split()),
        )
        for name, field in model.model_fields.items()
        if name != "type"
    )
    return table(("option", "default", "meaning"), rows)


def _options(kinds: Mapping[str, type[Declared]]) -> str:
    return "\n\n".join(
        f"### `{name}`\n\n{_first_line(options.__doc__)}\n\n{_fields(options)}"
        for name, options in kinds.items()
    )


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n\n")[0].replace("\n", " ")


def _shown(value: Any) -> str:
    if value is None or value in ("", (), {}, []):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def catalogue_value(kind: Kind, name: str, fact: str) -> str:
    """A fact of the shipped catalogue for a reader: bytes as GiB, bandwidth as GB/s, parameters in billions."""
    known = {item.name: item for item in catalogue.facts(kind, name)}
    if fact not in known:
        raise ClaimError(
            f"no fact {fact!r} of {name}", remedy=f"known are {', '.join(known)}"
        )
    value = known[fact].value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return ", ".join(value) if isinstance(value, tuple) else str(value)
    if fact.endswith("_bytes_s"):
        return f"{value / 1e9:,.0f} GB/s"
    if fact.endswith("parameters"):
        return f"{value / 1e9:.1f} billion"
    if fact == "kv_bytes_per_token":
        return f"{value:,} bytes"
    if fact.endswith("_bytes") or "_bytes_per_" in fact:
        return f"{value / GIB:,.1f} GiB"
    unit = next(
        (
            unit
            for suffix, unit in (("_gib", " GiB"), ("_gb", " GB"))
            if fact.endswith(suffix)
        ),
        "",
    )
    return f"{value:,}{unit}"


def ceiling(model: str, machine: str, batch: int) -> str:
    """The output throughput that a machine's memory bandwidth allows a model at a batch size."""
    step = physics.bytes_per_step(catalogue.models()[model], batch)
    if step is None:
        raise ClaimError(
            f"the catalogue does not say what {model} reads per step",
            remedy="add it to models.yaml",
        )
    tokens = physics.throughput_ceiling(
        catalogue.machines()[machine].bandwidth_bytes_s, step.expected, batch
    )
    return f"{tokens:.1f} tok/s"


def _catalogue(kind: Kind) -> str:
    names = catalogue.models() if kind == "models" else catalogue.machines()
    return "\n\n".join(
        f"### {name}\n\n"
        + table(
            ("fact", "value", "source"),
            (
                (
                    f"`{item.name}`",
                    f"{catalogue_value(kind, name, item.name)}{f' ({item.how})' if item.how else ''}",
                    f"[{plain(item.source.title)}]({item.source.url})",
                )
                for item in catalogue.facts(kind, name)
            ),
        )
        for name in names
    )


def _simulated(*, required: bool, kinds: Sequence[simulation.Kind]) -> str:
    """Tables of a simulation in percent of campaigns, each under what it counts."""
    parts = []
    for kind in kinds:
        found = simulation.table(kind, required=required)
        heading = simulation.HEADINGS[kind]
        parts.append(
            f"Percent of campaigns: {heading}, before → now.\n\n{table(found.header, found.rows)}"
        )
    return "\n\n".join(parts)


_REFERENCES: Mapping[str, Callable[[], str]] = {
    "metrics": _metrics,
    "statistics": _statistics,
    "checks": _checks,
    "thresholds": _thresholds,
    "size": lambda: _simulated(
        required=True, kinds=("false_equivalent", "false_difference")
    ),
    "power": lambda: _simulated(
        required=True, kinds=("shown_equivalent", "shown_difference")
    ),
    "size-beyond": lambda: _simulated(
        required=False, kinds=("false_equivalent", "false_difference")
    ),
    "simulation": simulation.how,
    "telemetry": _telemetry,
    "gates": _gates,
    "models": lambda: _catalogue("models"),
    "machines": lambda: _catalogue("machines"),
    "workloads": lambda: _options(
        {name: workload.options for name, workload in WORKLOADS.items()}
    ),
    "environments": lambda: _options(
        {**environments.OPTIONS, "server": environments.Server}
    ),
}


def coverage(campaign: CampaignData, excluded: Mapping[str, str]) -> str:
    """Planned, recorded and counted runs per cell."""
    planned = {}
    if campaign.matrix is not None:
        cells = coverages.by_cell(campaign.matrix, campaign.records, excluded)
        planned = {
            (cell.model, cell.environment, cell.workload): cell.planned
            for cell in cells
        }
    recorded = dict.fromkeys(
        [*planned, *(record.cell for record in campaign.records)], 0
    )
    counted = dict(recorded)
    for record in campaign.records:
        recorded[record.cell] += 1
        counted[record.cell] += record.status == "ok" and record.run_id not in excluded
    rows = (
        (*cell, planned.get(cell, "–"), recorded[cell], counted[cell])
        for cell in recorded
    )
    return table(
        ("model", "environment", "workload", "planned", "recorded", "counted"), rows
    )


def ledger(verdicts: Iterable[Verdict]) -> str:
    """Claims: what each says, its verdict, the figures, and where it was published."""
    return "\n\n".join(_entry(verdict) for verdict in verdicts)


def _entry(verdict: Verdict) -> str:
    claim, word = verdict.claim, verdict.verdict
    scope = "about the world" if claim.about == "world" else "about these runs"
    changed = f" The text was written for: {claim.recorded}." if verdict.changed else ""
    lines = [
        f"### {plain(claim.sentence)} {{ #{claim.id} }}",
        f"**{word}**{{ .sp-verdict .sp-{word} }} {scope}, campaign `{claim.campaign}`. "
        f"Published in {source(claim.source)}.{changed}",
        plain(verdict.text),
        *([f"*{plain(claim.note)}*"] if claim.note else []),
    ]
    return "\n\n".join(lines)


def facts(known: Sequence[Fact]) -> str:
    """Every fact with an anchor, its meaning and its source."""
    return "\n\n".join(
        f"### {fact.text} {{ #{fact.id} }}\n\n{plain(fact.says)} Source: {source(fact.source)}."
        + (f" {plain(fact.note)}" if fact.note else "")
        for fact in known
    )


def source(found: FactSource) -> str:
    """A source as Markdown, linked where it has an address."""
    text = plain(str(found))
    return f"[{text}]({found.url})" if found.url else text
