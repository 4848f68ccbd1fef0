"""Reference text made from the registries, so that documentation cannot fall behind the code."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from sparkpub.plan import environments
from sparkpub.plan.matrix import Gates
from sparkpub.plan.workloads import WORKLOADS
from sparkpub.plan.workloads.withdrawn import WithdrawnOptions
from sparkpub.record import catalogue
from sparkpub.record.catalogue import CatalogueFile
from sparkpub.record.errors import ClaimError
from sparkpub.record.metrics import GIB, METRICS, Metric
from sparkpub.record.record import Declared
from sparkpub.record.telemetry import COLUMNS
from sparkpub.record.text import with_unit
from sparkpub.review.checks.registry import THRESHOLDS
from sparkpub.review.physics import bytes_per_step
from sparkpub.review.vocabulary import STATISTICS
from sparkpub.site.pages import templating
from sparkpub.site.pages.downloads import TABLES

PARTS = templating.SHIPPED / "reference"
"""A template for each part; `benchmarks.simulated` writes those on size and power of the verdicts."""


def of(name: str, found: Mapping[str, Metric] = METRICS) -> str:
    """A part of the method by name, `{{ reference("metrics") }}`, with the metrics that runs have: those of campaigns
    alone last."""
    known = {path.name.partition(".")[0]: path.name for path in PARTS.iterdir()}
    if name not in known:
        remedy = f"known are {', '.join(sorted(known))}"
        raise ClaimError(f"no reference {name!r}", remedy=remedy)
    return templating.text(
        f"reference/{known[name]}",
        found=[found[name] for name in {**METRICS, **found} if name in found],
        others=[one for one in METRICS.values() if one.name not in found],
        fields_of=fields_of,
        example=example,
        COLUMNS=COLUMNS,
        ENVIRONMENTS={**environments.OPTIONS, "server": environments.Server},
        GATES=Gates,
        STATISTICS=STATISTICS,
        TABLES=TABLES,
        THRESHOLDS=THRESHOLDS,
        WORKLOADS={
            name: workload.options
            for name, workload in WORKLOADS.items()
            if not issubclass(workload.options, WithdrawnOptions)
        },
    ).strip()


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    for row in rows:
        cells = (str(cell).replace("\n", " ").replace("|", "\\|") for cell in row)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def fields_of(model: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    """Each field of a part of the matrix with its default and its meaning."""
    for name, field in model.model_fields.items():
        if name == "type":
            continue
        default = "required"
        if not field.is_required():
            default = _shown(field.get_default(call_default_factory=True))
        yield name, default, " ".join((field.description or "").split())


def _shown(value: Any) -> str:
    if value is None or value in ("", (), {}, []):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{value}`"


def example(options: type[Declared]) -> str:
    """The options as somebody would write them: the last paragraph of the docstring, if it begins with "Example:"."""
    last = (options.__doc__ or "").rpartition("\n\n")[2].strip()
    if not last.startswith("Example: "):
        return ""
    return " ".join(last.removeprefix("Example: ").split())


# -- the catalogue -----------------------------------------------------------------------------------------


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


def catalogued(kind: CatalogueFile, names: Iterable[str]) -> str:
    """What the catalogue knows of models or machines, each a line that opens a table; a sentence where it has none."""
    entries = catalogue.models() if kind == "models" else catalogue.machines()
    known = {name: catalogue.facts(kind, name) for name in names if name in entries}
    return templating.text(
        "catalogue.md.j2", kind=kind, known=known, value=catalogue_value
    ).strip()


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
