"""A campaign that collect has not finished: it can be published, its claims are undecided, its figures come later."""

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from sparkpub.plan import matrix
from sparkpub.plan.matrix import Matrix
from sparkpub.record.campaign import Campaign
from sparkpub.record.errors import ClaimError
from sparkpub.record.record import Origin
from sparkpub.record.store import Stored
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.results import Results
from sparkpub.site.content import SiteOptions
from sparkpub.site.publication import Publication
from sparkpub.site.words import Words
from tests.building import a_record
from tests.review.claims.campaigns import a_review, verdict_on

MATRIX = """\
campaign: c
title: Two environments
models: {m: {id: x/m}}
environments: {one: {type: host}, two: {type: host}}
baseline: one
workloads:
  w: {type: matmul, device: cpu, size: 8, iterations: 1, dtype: float32}
iterations: 5
"""
CLAIM: dict[str, Any] = {
    "metric": "output_throughput_tok_s",
    "scope": "each cell",
    "expect": {"holds": "n = 5"},
}
VALUE = 'value("mean", "output_throughput_tok_s", environment="{}")'
Measured = Callable[..., Dataset]


@pytest.fixture
def declared(tmp_path: Path) -> Matrix:
    path = tmp_path / "m.yaml"
    path.write_text(MATRIX)
    return matrix.read(path)


@pytest.fixture
def measured(declared: Matrix) -> Measured:
    """The campaign with so many runs of each environment."""

    def after(one: int, two: int, **info: Any) -> Dataset:
        runs = []
        for name, number in (("one", one), ("two", two)):
            for iteration in range(1, number + 1):
                record = a_record(
                    {"output_throughput_tok_s": 100.0 + iteration},
                    run_id=f"c-{name}{iteration}",
                    campaign="c",
                    model="m",
                    environment=name,
                    workload="w",
                    iteration=iteration,
                )
                runs.append(Stored(record, Path(f"c/{record.stem}.json")))
        about = Campaign(campaign="c", title="t", matrix=declared.document(), **info)
        data = CampaignData(about, Path("c"), tuple(runs))
        return Dataset(Path(), MappingProxyType({"c": data}))

    return after


def said(dataset: Dataset, expression: str) -> str:
    found = a_review(dataset)
    publication = Publication(Results(found), found, SiteOptions(Path()))
    words = Words(publication, lambda *_, **__: "drawn")
    return words.render(f"{{{{ {expression} }}}}", "p.md")


def test_a_claim_about_runs_to_come_is_undecided_and_stops_nothing(
    measured: Measured,
) -> None:
    """Two runs of each environment: n = 5 would be refuted, and that is no news of a campaign under way."""
    data = measured(2, 2)
    verdict = verdict_on(data, a_review(data), **CLAIM)
    assert (verdict.verdict, verdict.changed) == ("undecided", False)
    assert verdict.text == "Campaign c is not finished: 4 of 10 planned runs are done."


def test_a_run_that_is_given_up_is_not_done(measured: Measured) -> None:
    """Two attempts at one of the four runs failed, which is one more than the retries: 3 of 10 are done."""
    data = measured(2, 2).campaigns["c"]
    given_up = data.runs[0].record
    failed = {"status": "failed", "status_reason": "exit status 1"}
    again = [
        given_up.model_copy(update={**failed, "run_id": f"c-failed{attempt}"})
        for attempt in (1, 2)
    ]
    runs = [Stored(record, Path(f"c/{record.run_id}.json")) for record in again]
    data = CampaignData(data.info, data.folder, (*runs, *data.runs[1:]))
    assert data.progress == "3 of 10 planned runs are done"


def test_a_claim_is_judged_by_its_own_cells(measured: Measured) -> None:
    data = measured(5, 2)
    done = verdict_on(data, a_review(data), **CLAIM, environments=("one",))
    assert done.verdict == "supported", done.text
    verdict = verdict_on(data, a_review(data), **CLAIM, environments=("two",))
    assert verdict.verdict == "undecided"


@pytest.mark.parametrize(
    "info",
    [{"ended": "The machine was taken away."}, {"origin": Origin(title="elsewhere")}],
)
def test_a_campaign_that_was_ended_or_imported_is_finished(
    measured: Measured, info: dict[str, Any]
) -> None:
    data = measured(2, 2, **info)
    assert not data.campaigns["c"].unfinished_cells
    verdict = verdict_on(data, a_review(data), **CLAIM)
    assert (verdict.verdict, verdict.changed) == ("refuted", True)


def test_an_expression_about_runs_to_come_says_so(measured: Measured) -> None:
    data = measured(2, 0)
    assert said(data, VALUE.format("one")) == "101.50\u00a0tok/s"  # (101 + 102) / 2
    assert said(data, VALUE.format("two")) == "not measured yet"
    for statistic in ("difference_percent", "verdict"):
        expression = f'compare("{statistic}", "output_throughput_tok_s")'
        assert said(data, expression) == "not measured yet"
    assert said(data, 'figure("x", campaign="c")') == "drawn"
    none = measured(0, 0)
    assert said(none, VALUE.format("one")) == "not measured yet"
    assert said(none, 'figure("x", campaign="c")') == "*not measured yet*"


@pytest.mark.parametrize("attempts", [1, 2])
def test_failed_runs_are_no_measurement(measured: Measured, attempts: int) -> None:
    """With one retry a second failed attempt ends what was planned, and a page has as little to say as before."""
    data = measured(5, 5)
    failed = {"status": "failed", "status_reason": "exit status 1", "metrics": {}}
    runs = []
    for stored in data.runs:
        for attempt in range(attempts):
            run_id = f"{stored.run_id}-{attempt}"
            record = stored.record.model_copy(update={**failed, "run_id": run_id})
            runs.append(Stored(record, Path(f"c/{run_id}.json")))
    campaign = data.campaigns["c"]
    campaign = CampaignData(campaign.info, campaign.folder, tuple(runs))
    data = Dataset(Path(), MappingProxyType({"c": campaign}))
    for expression in (
        VALUE.format("two"),
        'compare("verdict", "output_throughput_tok_s")',
        'table("mean", "output_throughput_tok_s")',
    ):
        assert said(data, expression) == "not measured yet"
    assert said(data, 'figure("x", campaign="c")') == "*not measured yet*"
    assert verdict_on(data, a_review(data), **CLAIM).verdict == "undecided"


def test_a_mistake_in_an_expression_is_still_one(measured: Measured) -> None:
    data = measured(2, 0)
    with pytest.raises(ClaimError, match="no environment 'three'"):
        said(data, VALUE.format("three"))
    with pytest.raises(ClaimError, match="metric 'output'"):
        said(data, 'value("mean", "output", environment="one")')
    with pytest.raises(ClaimError, match="has the metric"):
        said(measured(2, 0, ended="enough"), VALUE.format("two"))
