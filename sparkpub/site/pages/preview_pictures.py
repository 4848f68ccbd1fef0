"""Preview pictures with the actual result: of each campaign, of each post, and of the site."""

import textwrap
from collections.abc import Callable, Sequence

from sparkpub.review.dataset import CampaignData
from sparkpub.site.cache import Cache
from sparkpub.site.content import SITE_CARD, File
from sparkpub.site.figures import draw
from sparkpub.site.pages import answers, campaign_page, templating
from sparkpub.site.pages.blog import Post
from sparkpub.site.publication import Publication

TITLE, TEXT = (38, 3), (68, 5)
"""Letters of a line, and lines, of a picture's title and of the text below it."""


def card(campaign: CampaignData) -> str:
    """The preview picture of a campaign, from the root of the site."""
    return f"cards/{campaign.name}.png"


def pictures(
    publication: Publication, series: Sequence[Post], cache: Cache
) -> Callable[[], dict[str, File]]:
    """What gives a picture for each campaign, with its first answer, for each post, with its description, and one of
    the site for all other pages."""
    name = publication.options.name
    shown = {SITE_CARD: (name, answers.counts(publication))}
    for campaign in publication.campaigns:
        said = campaign_page.answers(publication, campaign)
        shown[card(campaign)] = campaign.info.title, " ".join(said)
    for post in series:
        shown[post.card] = post.title, post.description
    svgs = {}
    for address, (title, text) in shown.items():
        parts = {"title": _lines(title, *TITLE), "text": _lines(text, *TEXT)}
        svgs[address] = templating.text("card.svg.j2", name=name, **parts)
    return draw.pictures(svgs, cache)


def _lines(text: str, width: int, most: int) -> list[str]:
    return textwrap.wrap(text, width, max_lines=most, placeholder=" …")
