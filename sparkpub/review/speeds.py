"""How fast models ran: every cell that measured a model's speed, with its recipe and its load.

The figures are rows of the table of cells; what surrounds them is read from the cell's runs. Leaderboard, model pages
and front page select from these.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkpub.plan.requested import load_of
from sparkpub.record.load import Load
from sparkpub.record.record import Record
from sparkpub.record.weights import bits
from sparkpub.review.checks import Finding, Review
from sparkpub.review.checks.rules import usual_hits
from sparkpub.review.checks.spread import apart_inside
from sparkpub.review.models import ModelName
from sparkpub.review.names import Names
from sparkpub.review.reviewed import Cell
from sparkpub.review.setup import Setup, setup_of

GENERATION = "output_throughput_tok_s"
PROMPT = "prompt_throughput_tok_s"
RATES = (GENERATION, PROMPT)
"""A cell that has one of these above zero measured a model's speed."""
MILLISECONDS = 1000


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
    """Checks that found an error in it: its figures are not ranked, since what fails a check is no answer."""
    questioned: Mapping[str, str] = field(default_factory=dict)
    """Metric to the check that warns of it in this cell."""
    owner: str = ""
    """Whose it is; empty of one's own."""

    def is_ranked(self, metric: str) -> bool:
        """Whether its figure has a place among others: no error doubts it, and its repetitions agree so far that their
        mean says something."""
        return not self.doubts and self.questioned.get(metric) != "repetitions"

    @property
    def bits(self) -> int | None:
        """The width of the weights; None where their format is not known."""
        return bits(self.setup.quantization)

    @property
    def is_speculative(self) -> bool:
        """Whether a smaller model drafted the tokens."""
        return bool(self.records[0].observed.speculative_decoding)

    @property
    def weights(self) -> str:
        """Format of the weights in words."""
        return self.setup.weights

    @property
    def machine(self) -> str:
        """The machine in short."""
        return self.setup.machine_in_short

    @property
    def engine(self) -> str:
        """Engine and version: `vLLM 0.26.0`."""
        return self.setup.engine_with_version

    def mean(self, *metrics: str) -> float | None:
        """The mean of the first of these metrics that was measured."""
        for name in metrics:
            if name in self.figures:
                mean: float = self.figures[name].mean
                return mean
        return None

    @property
    def recipe(self) -> tuple[object, ...]:
        """What another owner does the same with, on a machine of this kind."""
        return self.machine, self.weights, self.engine, self.is_speculative

    @property
    def cached(self) -> bool:
        """Whether its prompts were answered from the server's prefix cache in part: less work than the load says."""
        hits = self.mean("prefix_cache_hit_percent") or 0.0
        return hits > usual_hits(self.records[0])

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
        owner = reviewed.campaign.owner
        records = tuple(stored.record for stored in reviewed.counted[cell])
        findings = review.by_cell.get((campaign, "/".join(cell)), ())
        errors = (each for each in findings if each.severity == "error")
        doubts = (each.check for each in errors if review.voids(each, records))
        found.append(
            Speed(
                campaign=campaign,
                cell=cell,
                model=names.entity(records[0]),
                setup=setup_of(records[0]),
                load=load_of(records[0]),
                figures=of_cell,
                records=records,
                doubts=tuple(dict.fromkeys(doubts)),
                questioned=_questioned("/".join(cell), findings) | _apart(records),
                owner="" if owner is None else owner.owner,
            )
        )
    return found


def _questioned(cell: str, findings: Iterable[Finding]) -> dict[str, str]:
    """The metrics of a cell that a check warns of by name, with the first check that does."""
    found: dict[str, str] = {}
    for finding in findings:
        metric = finding.evidence.get("metric")
        is_told = finding.severity == "warning" and cell in finding.cells
        if is_told and isinstance(metric, str):
            found.setdefault(metric, finding.check)
    return found


def _apart(records: Iterable[Record]) -> dict[str, str]:
    """The metrics whose repetitions lie so far apart that their mean says nothing, each with the check that says so."""
    names = (name for record in records for name in apart_inside(record))
    return dict.fromkeys(names, "repetitions")
