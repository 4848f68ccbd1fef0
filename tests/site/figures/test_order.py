"""The chart in run order."""

from sparkpub.site.content import SiteOptions
from tests.site.figures.test_panels import a_library


def test_single_runs_have_no_chart_in_run_order(options: SiteOptions) -> None:
    """A trend needs three runs of a cell."""
    means = {("m", "native", "w"): 10.0, ("n", "native", "w"): 20.0}
    library = a_library(means, options)
    (campaign,) = library.publication.campaigns
    names = library.makers(campaign.name)
    assert "output-throughput" in names
    assert "output-throughput-order" not in names
