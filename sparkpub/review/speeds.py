"""How fast models ran: every cell that measured a model's speed, with its recipe and its load.

The figures are rows of the table of cells; what surrounds them is read from the cell's runs. Leaderboard, model pages
and front page select from these.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from sparkpub.plan.requested import load_of
from sparkpub.plan.workloads.load import Load
from sparkpub.record.record import Record
from sparkpub.record.store import canonical_json
from sparkpub.review.checks import CHECKS, Finding, Review
from sparkpub.review.names import ModelName, Names
from sparkpub.review.reviewed import Cell
from sparkpub.review.setup import Setup, setup_of

GENERATION = "output_throughput_tok_s"
PROMPT = "prompt_throughput_tok_s"
RATES = (GENERATION, PROMPT)
"""A cell that has one of these above zero measured a model's speed."""
MILLISECONDS = 1000
MOST_HITS_PERCENT = 5.0
"""Hits in the prefix cache up to which a load counts as computed: what prompts share is their first tokens."""
_BITS = re.compile(r"\d+")
_FOUR_BITS = ("awq",)
"""Formats of weights without a number, of four bits."""
_BILLION = re.compile(r"E?(?P<number>\d+(\.\d+)?)(?P<unit>[BM])")


@dataclass(frozen=True)
class Recipe:
    """How a model was run: two figures of one recipe differ in their loads and days alone."""

    model: str
    """Id of the weights."""
    weights: str
    engine: str
    environment: str
    machine: str
    options: str
    """The environment's options as JSON."""

    @property
    def digest(self) -> str:
        """Six digits that part it from other recipes of its model."""
        text = canonical_json(asdict(self))
        return hashlib.sha256(text.encode()).hexdigest()[:6]


@dataclass(frozen=True)
class Speed:
    """What a cell measured of a model. `figures` are rows of the table of cells by metric."""

    campaign: str
    cell: Cell
    model: ModelName
    setup: Setup
    load: Load
    figures: Mapping[str, Any]
    records: tuple[Record, ...]
    """The runs that count, in order of time."""
    doubts: tuple[str, ...] = ()
    """Checks whose errors change what the figures mean: such figures are not ranked."""

    @cached_property
    def recipe(self) -> "Recipe":
        """What is set up once, for every load and over all campaigns."""
        record = self.records[0]
        return Recipe(
            model=record.requested.model_id,
            weights=self.weights,
            engine=self.engine,
            environment=self.cell[1],
            machine=self.machine,
            options=canonical_json(record.requested.environment),
        )

    @property
    def bits(self) -> int | None:
        """The width of the weights; None where their format is not known."""
        return bits_of(self.setup.quantization)

    @property
    def is_speculative(self) -> bool:
        """Whether a smaller model drafted the tokens."""
        return bool(self.records[0].observed.speculative_decoding)

    @property
    def weights(self) -> str:
        """Format of the weights in words."""
        return self.setup.quantization or "not stated"

    @property
    def machine(self) -> str:
        """The machine in words."""
        return machine_name(self.setup.machine)

    @property
    def engine(self) -> str:
        """Engine and version: `vLLM 0.26.0`."""
        parts = [self.setup.engine or "engine not stated", self.setup.engine_version]
        return " ".join(filter(None, parts))

    def mean(self, *metrics: str) -> float | None:
        """The mean of the first of these metrics that was measured."""
        for name in metrics:
            if name in self.figures:
                mean: float = self.figures[name].mean
                return mean
        return None

    @property
    def cached(self) -> bool:
        """Whether its prompts were answered from the server's prefix cache in part: less work than the load says."""
        return (self.mean("prefix_cache_hit_percent") or 0.0) > MOST_HITS_PERCENT

    @property
    def per_user(self) -> float | None:
        """Tokens per second that one user gets: the tokens of a request by its latency, the wait for the first token
        included. As measured, else of the mean latency, else each user's share of all, which is the same where every
        user has a request in flight."""
        measured = self.mean("output_throughput_per_user_tok_s")
        if measured:
            return measured
        latency = self.mean("request_latency_mean_ms")
        if latency and self.load.output_tokens:
            return MILLISECONDS * self.load.output_tokens / latency
        total = self.mean(GENERATION)
        if total is None or self.load.at_once is None:
            return None
        return total / self.load.at_once


def speeds(review: Review, cells: Iterable[Any], names: Names) -> list[Speed]:
    """The speeds in rows of the table of cells, in their order."""
    figures: dict[tuple[str, Cell], dict[str, Any]] = {}
    for row in cells:
        figures.setdefault((row.campaign, row.cell), {})[row.metric] = row
    found = []
    for (campaign, cell), of_cell in figures.items():
        if not any(name in of_cell and of_cell[name].mean > 0 for name in RATES):
            continue
        reviewed = review.campaigns[campaign]
        records = tuple(stored.record for stored in reviewed.counted[cell])
        findings = review.by_cell.get((campaign, "/".join(cell)), ())
        found.append(
            Speed(
                campaign=campaign,
                cell=cell,
                model=names.entity(records[0]),
                setup=setup_of(records[0]),
                load=load_of(records[0]),
                figures=of_cell,
                records=records,
                doubts=_doubts(findings),
            )
        )
    return found


def _doubts(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The checks that found a cell's figures not to mean what they seem to."""
    checks = []
    for finding in findings:
        if finding.severity == "error" and CHECKS[finding.check].kind == "meaning":
            checks.append(finding.check)
    return tuple(dict.fromkeys(checks))


def bits_of(weights: str | None) -> int | None:
    """The width of a format of weights in bits: 16 of `BF16`, 4 of `NVFP4` and `Q4_K_M`."""
    if weights is None:
        return None
    number = _BITS.search(weights)
    if number is not None:
        return int(number[0])
    if weights.lower() in _FOUR_BITS:
        return 4
    return None


def machine_name(machine: str | None) -> str:
    """`DGX Spark` of `NVIDIA DGX Spark (GB10)`."""
    if machine is None:
        return "machine not stated"
    return machine.removeprefix("NVIDIA ").partition(" (")[0]


def billions(model: ModelName) -> float | None:
    """The parameters in a model's name, in 10**9; None where its name does not hold them."""
    found = _BILLION.match(model.short)
    if found is None:
        return None
    number = float(found["number"])
    if found["unit"] == "M":
        number /= 1000
    return number
