"""What the pages of the published study say beside its figures."""

from pathlib import Path

import pytest

from sparkpub.review.dataset import load
from sparkpub.site.build import SiteOptions, publish
from sparkpub.site.pages import campaign_page

ROOT = Path(__file__).parents[2]
PHASE1 = ROOT / "data" / "comprehensive" / "phase1"

pytestmark = pytest.mark.skipif(
    not PHASE1.is_dir(), reason="the study's campaign is not here"
)


def test_a_cell_says_how_many_of_its_runs_are_in_its_figures() -> None:
    """Iteration 1 of gpt-oss-120b was recorded four times; the first one counts, so ten of thirteen runs do."""
    publication = publish(
        load(ROOT / "data" / "comprehensive"), SiteOptions(ROOT / "site_src")
    )
    campaign = publication.dataset.campaign("phase1")
    rows = campaign_page.summary(publication, campaign, publication.headlines(campaign))
    runs = {(row["model"], row["environment"]): row["runs"] for row in rows}
    assert runs["gpt120b", "native"] == "10 of 13"
    assert runs["gpt120b", "container"] == "10"
