"""By which words the search finds a page."""

from types import SimpleNamespace
from typing import Any

from sparkpub.site.content import Page, SearchAnswer
from sparkpub.site.mkdocs import SparkpubPlugin
from sparkpub.site.pages import found_by
from tests.site.test_front_page import BF16, campaign, published


def test_a_campaign_is_found_by_the_names_in_its_charts() -> None:
    publication = published(*campaign(1, model_id="x/A-7B", observed=BF16))
    (data,) = publication.campaigns
    words = found_by.of_campaign(publication, data)
    for word in ("c1", "A-7B", "x/A-7B", "Docker", "native", "BF16", "vLLM"):
        assert word in words


def test_the_search_gets_the_words_of_a_page_whatever_its_plugin_is_called() -> None:
    plugin = SparkpubPlugin()
    part = SearchAnswer("cost", "Cost?", "a & b")
    plugin._pages = {"a.md": Page({}, "# A", found_by="docker & more", answers=(part,))}
    entries = [{"location": url, "text": ""} for url in ("a/", "a/#part", "b/")]
    search = SimpleNamespace(search_index=SimpleNamespace(entries=entries))
    config: Any = SimpleNamespace(plugins={"material/search": search, "tags": object()})
    for uri, url in (("a.md", "a/"), ("b.md", "b/")):
        page: Any = SimpleNamespace(file=SimpleNamespace(src_uri=uri), url=url)
        plugin.on_page_context({}, page=page, config=config, nav=Any)
    found = [(one["location"], one["text"], one.get("tags")) for one in entries]
    assert found == [
        ("a/", "", ["docker", "&amp;", "more"]),
        ("a/#part", "", None),
        ("b/", "", None),
        ("a/#cost", "a &amp; b", ["docker", "&amp;", "more"]),
    ]
