"""The effect on each machine: every machine's interval, that of all together, and what is said of them."""

import math

import pytest

from sparkpub.record.text import SPACE
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.site.build import publish
from sparkpub.site.content import SiteOptions
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import campaign_page
from tests.review.machines import TPUT, a_fleet, drawn

NAME = "effect-per-machine"
CLAIM = """
- id: both
  source: {document: d}
  about: world
  campaign: one
  repeated_in: [two]
  metric: output_throughput_tok_s
  compare: container / native
  scope: each model
  expect: {direction: higher}
  recorded: supported
"""


def a_library(options: SiteOptions, *campaigns: CampaignData) -> Library:
    known = {campaign.name: campaign for campaign in campaigns}
    return Library(publish(Dataset(options.sources, known), options))


def is_asked(library: Library, campaign: CampaignData) -> bool:
    """Whether the page of a campaign asks whether it holds on other machines."""
    whole = library.campaign(campaign.name)
    sections = campaign_page.answering(whole, library, campaign_page.asked(whole))
    return any("other machines" in section.title for section in sections)


def test_a_row_for_each_machine_and_one_for_all(options: SiteOptions) -> None:
    measured = {"abcdefgh": drawn(100, 5, 1), "12345678": drawn(140, 5, 2)}
    figure = a_library(options, a_fleet(measured)).figure(NAME, "c")
    labels = [row["name"] for row in figure.chart.rows]
    assert labels == ["DGX Spark abcdef", "DGX Spark 123456", "all together"]
    first, second, together = figure.chart.rows
    assert first["value"] == pytest.approx(5, abs=0.5)
    assert first["low"] < first["value"] < first["high"]
    ends = sorted([first["value"], second["value"]])
    assert ends[0] <= together["value"] <= ends[1]
    # On one degree of freedom the interval of both is wider than that of either.
    assert together["high"] - together["low"] > first["high"] - first["low"]
    assert first["verdict"] == "higher"
    says = "1 comparison over 2 machines: 1 replicated."
    assert figure.says == says
    assert "±2 %" in figure.sample
    body = figure.table.rows
    assert body[0][2] == "8 and 8"
    assert str(body[2][6]).startswith("replicates. Over 2 machines the mean is higher")


def test_runs_are_held_against_the_mean_that_the_drawing_takes(
    options: SiteOptions,
) -> None:
    """Of 100 and 104 with a hundredth of the spread, the cell's mean is near 100, and that of the runs 102."""
    steady, wavering = [99.9, 100.0, 100.1, 100.0], [94.0, 114.0, 94.0, 114.0]
    measured = {
        name: {("m", side): {TPUT: values} for side in ("native", "container")}
        for name, values in (("abcdefgh", steady), ("12345678", wavering))
    }
    library = a_library(options, a_fleet(measured))
    cells = library.figure("output-throughput", "c").table
    assert [row[1] for row in cells.rows] == ["8 on 2 machines (4, 4)"] * 2
    figure = library.figure("output-throughput-relative", "c")
    assert [row[3] for row in figure.table.rows] == [f"0.00{SPACE}%"] * 2


def test_machines_may_disagree_or_leave_it_open(options: SiteOptions) -> None:
    """Of 5 % and 3.5 % the interval of the mean reaches 12.706 standard errors to either side, and the end of the 90 %
    interval, which is the bound, 6.314."""
    apart = {"a": drawn(100, 5, 1), "b": drawn(140, -5, 2)}
    assert a_library(options, a_fleet(apart)).figure(NAME, "c").says == (
        "1 comparison over 2 machines: 1 not replicated."
    )
    measured = {"a": drawn(100, 5, 1), "b": drawn(140, 3.5, 2)}
    figure = a_library(options, a_fleet(measured)).figure(NAME, "c")
    together = figure.chart.rows[-1]
    half = (together["high"] - together["low"]) / 2
    most = math.ceil(10 * (together["value"] + half * 6.314 / 12.706)) / 10
    assert figure.says == (
        f"1 comparison over 2 machines: 1 undecided (at most {most:.1f}{SPACE}%)."
    )


def test_campaigns_that_a_claim_joins_are_drawn_together(options: SiteOptions) -> None:
    """One session of each machine: the chart stands on both pages, its own session first."""
    (options.sources / "claims.yaml").write_text(CLAIM)
    one = a_fleet({"a": drawn(100, 5, 1)}, name="one")
    two = a_fleet({"b": drawn(140, 5, 2)}, name="two")
    library = a_library(options, one, two)
    labels = [row["name"] for row in library.figure(NAME, "two").chart.rows]
    assert labels == ["DGX Spark b", "DGX Spark a, one", "all together"]
    assert all(is_asked(library, each) for each in library.publication.campaigns)


def test_a_campaign_on_one_machine_has_no_such_figure(options: SiteOptions) -> None:
    library = a_library(options, a_fleet({"a": drawn(100, 5, 1)}))
    (campaign,) = library.publication.campaigns
    assert NAME not in library.makers(campaign.name)
    assert not is_asked(library, campaign)
