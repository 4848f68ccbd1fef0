"""By which words the search finds a page."""

from sparkpub.site.pages import found_by
from tests.site.test_front_page import BF16, campaign, published


def test_a_campaign_is_found_by_the_names_in_its_charts() -> None:
    publication = published(*campaign(1, model_id="x/A-7B", observed=BF16))
    (data,) = publication.campaigns
    words = found_by.of_campaign(publication, data)
    for word in ("c1", "A-7B", "x/A-7B", "Docker", "native", "BF16", "vLLM"):
        assert word in words
