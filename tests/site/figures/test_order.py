"""What a chart in run order says."""

from sparkpub.site.content import SiteOptions
from tests.site.figures.test_panels import a_library


def test_of_single_runs_no_order_can_be_told(options: SiteOptions) -> None:
    """It answers the question of its section, where a trend needs three runs of a cell."""
    means = {("m", "native", "w"): 10.0, ("n", "native", "w"): 20.0}
    figure = a_library(means, options).figure("output-throughput-order")
    assert (
        figure.says
        == "No cell has enough runs to tell whether output throughput drifts with run order."
    )
