"""By which words the search finds a page."""

from types import SimpleNamespace
from typing import Any

import pytest

from sparkpub.site.content import Page, SearchAnswer
from sparkpub.site.mkdocs import SparkpubPlugin
from sparkpub.site.pages import found_by
from sparkpub.site.pages.answers import Card
from sparkpub.site.pages.leaderboard_page import board_anchor
from tests.site.test_front_page import BF16, campaign, published


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("In a container", "docker"),
        ("requests a second", "requests per second"),
        ("Time to first token, median", "ttft"),
        ("Mean GPU power", "watt"),
    ],
)
def test_readers_may_type_another_word(text: str, word: str) -> None:
    assert word in found_by.with_synonyms(text).split(text)[1]


def test_pages_parts_and_metrics_are_found_by_what_readers_call_them() -> None:
    publication = published(*campaign(1, model_id="x/A-7B", observed=BF16))
    (data,) = publication.campaigns
    words = found_by.of_campaign(publication, data)
    for word in ("c1", "A-7B", "x/A-7B", "Docker", "native", "slower", "BF16", "vLLM"):
        assert word in words
    asked = Card("Does Docker cost?", "container", "At most 1 %.", "x/", "Evidence")
    (answer,) = found_by.of_front([asked])
    assert answer.anchor == "does-docker-cost"
    assert (answer.title, answer.text) == ("Does Docker cost?", "At most 1 %.")
    assert {"container", "overhead"} <= set(answer.words.split())
    loads = found_by.of_loads(publication.boards)
    assert [load.anchor for load in loads] == [
        *map(board_anchor, publication.boards),
        "cost",
    ]
    glossary = {answer.anchor: answer for answer in found_by.of_glossary()}
    assert "ttft" in glossary["ttft-p50"].words
    assert "ttft-p99" not in glossary


def test_the_search_gets_the_words_of_a_page_whatever_its_plugin_is_called() -> None:
    plugin = SparkpubPlugin()
    part = SearchAnswer("cost", "Cost?", "a & b", "price")
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
        ("a/#cost", "a &amp; b", ["price"]),
    ]
