"""What other sites and chat programs show of a link to a page: OpenGraph properties (https://ogp.me)."""

import html
import re
import textwrap

from mkdocs.structure.pages import Page

from sparkpub.site.content import Picture

DESCRIPTION_LENGTH = 300
"""Characters: search engines and chat programs cut what is longer."""
_PARAGRAPH = re.compile(r"<p>(.+?)</p>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


def description(page: Page, of_site: str) -> str:
    """A page's own description, else its first paragraph, else that of the site, else its title; as plain text."""
    own = str(page.meta.get("description") or "")
    text = html.unescape(own) or _first_paragraph(page.content or "") or of_site
    text = text or str(page.title)
    return textwrap.shorten(text, DESCRIPTION_LENGTH, placeholder=" …")


def _first_paragraph(content: str) -> str:
    found = _PARAGRAPH.search(content)
    if found is None:
        return ""
    return html.unescape(_TAG.sub("", found[1]))


def open_graph(
    page: Page, *, site_name: str, of_site: str, image: Picture | None
) -> list[tuple[str, str]]:
    """Properties of a page with their values, as plain text.

    `image` has its full address. Without an address of the site there is neither it nor `og:url`.
    """
    title = html.unescape(str(page.meta.get("title") or page.title or site_name))
    found = [
        ("og:type", "article" if "date" in page.meta else "website"),
        ("og:site_name", site_name),
        ("og:title", title),
        ("og:description", description(page, of_site)),
    ]
    if page.canonical_url:
        found.append(("og:url", page.canonical_url))
    if image is not None:
        found.append(("og:image", image.address))
        found.append(("og:image:alt", image.words))
    return found
