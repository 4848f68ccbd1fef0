"""Runs and what lies beside them in memory, to hold a check against its limits."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sparkpub.record.campaign import Campaign
from sparkpub.record.record import MetricValue, Moment, Plan, Requested
from sparkpub.record.store import Stored
from sparkpub.review.checks import CHECKS
from sparkpub.review.checks.evidence import (
    EvidenceReader,
    Examined,
    FileSum,
    Reread,
)
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.sensors import COLUMNS, Samples
from sparkpub.review.checks.view import View
from sparkpub.review.dataset import CampaignData
from tests.building import a_record

ANSWER = Reread({})
"""What a parser says of a log in which there is nothing."""


@dataclass(frozen=True)
class InMemory(Examined):
    """What lies beside a run of which no file is there."""

    given: Samples | None

    @property
    def samples(self) -> Samples | None:  # type: ignore[override]
        return self.given


@dataclass
class Beside(EvidenceReader):
    """Evidence by run id; runs without an entry have none."""

    samples: dict[str, Samples] = field(default_factory=dict)
    answers: dict[str, Reread] = field(default_factory=dict)
    sums: dict[str, FileSum] = field(default_factory=dict)

    def of(self, stored: Stored) -> Examined:
        run = stored.run_id
        return InMemory(stored, self.sums, self.answers.get(run), self.samples.get(run))


def a_run(
    metrics: Mapping[str, float] | None = None,
    *,
    iteration: int = 1,
    environment: str = "native",
    model: str = "m",
    minute: int | None = None,
    workload: Mapping[str, Any] | None = None,
    asked_of: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Stored:
    """One run of campaign `c`; it starts in its `minute`, its iteration where none is given."""
    started = iteration if minute is None else minute
    usual: dict[str, Any] = {
        "run_id": f"c-{environment}_{model}_{iteration}_{started}",
        "plan": Plan(position=started, order="interleaved"),
        "started": Moment(value=f"2026-11-20T10:{started:02d}:00Z", zone="utc"),
        "requested": Requested(
            model_id="x/m",
            workload={"type": "command", **(workload or {})},
            environment={"type": "host", **(asked_of or {})},
        ),
    }
    record = a_record(
        metrics,
        iteration=iteration,
        environment=environment,
        model=model,
        **(usual | fields),
    )
    return Stored(record, Path(f"{record.run_id}.json"))


def sampled(
    name: str, value: float | None, unit: str, **fields: Any
) -> dict[str, MetricValue]:
    """A metric that the sampler gave."""
    given: dict[str, Any] = {"source": "sampler"} | fields
    return {name: MetricValue(value=value, unit=unit, **given)}


def with_metrics(metrics: Mapping[str, MetricValue], **fields: Any) -> Stored:
    """A run with these values and no other."""
    run = a_run(**fields)
    record = run.record.model_copy(update={"metrics": dict(metrics)})
    return Stored(record, run.path)


def a_view(
    *runs: Stored,
    samples: Samples | None = None,
    answer: Reread | None = None,
    matrix: dict[str, Any] | None = None,
) -> View:
    """The runs as a campaign; each of them has these samples and this answer of the parser."""
    info = Campaign(campaign="c", title="c", matrix=matrix)
    beside = Beside()
    for run in runs:
        if samples is not None:
            beside.samples[run.run_id] = samples
        if answer is not None:
            beside.answers[run.run_id] = answer
    return View(CampaignData(info, Path("c"), runs), evidence=beside)


def quiet(
    times: Iterable[float] = range(-4, 96),
    **columns: Any,
) -> Samples:
    """Samples in which nothing stands out, but for these columns: a value for all samples, or one for each."""
    moments = np.array(sorted(times), dtype=np.float64)
    found = {name: np.full(len(moments), np.nan) for name in COLUMNS}
    found["elapsed_seconds"] = moments
    found["gpu_utilization_percent"] = np.where(moments < 0, 0.0, 90.0)
    found["gpu_throttle_reasons"][:] = 0
    found["gpu_foreign_processes"][:] = 0
    for name, value in columns.items():
        found[name][:] = value
    return Samples(found)


def answered(values: Mapping[str, float] | None = None, **changes: Any) -> Reread:
    """An empty answer, but for this, and for figures by name."""
    metrics = {
        name: MetricValue(value=value, unit="x", source="log")
        for name, value in (values or {}).items()
    }
    return replace(ANSWER, metrics=metrics, **changes)


def told(check: Callable[[View], Iterable[Finding]] | str, view: View) -> list[str]:
    """Severity and message of what a check finds, or the one of that name."""
    run = asked(check) if isinstance(check, str) else check
    return [f"{found.severity}: {found.message}" for found in run(view)]


def asked(check: str) -> Callable[[View], Iterable[Finding]]:
    """Everything that a check asks of a campaign."""
    one = CHECKS[check]
    return lambda view: [*one.ask(view, takes_out=True), *one.run(view)]


def said(check: str, view: View, words: str | None) -> None:
    """The check says `words` of the run, or nothing where they are None."""
    found = told(check, view)
    assert len(found) == (words is not None), found
    assert all((words or "") in line for line in found), found
