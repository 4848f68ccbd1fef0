"""What the browser runs: named by its content, and made once."""

import re

import pytest

from sparkpub.site.browser import runtime
from sparkpub.site.cache import Cache


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """A cache that has the chart runtime, which takes a second to make."""
    cache = Cache(tmp_path_factory.mktemp("bundle"))
    runtime.files(cache)
    return cache


def test_modules_find_each_other_in_a_folder_named_by_its_content(
    kept: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = runtime.files(kept)
    assert {browser.module, browser.stylesheet, browser.search} < set(browser.files)
    for address, content in browser.files.items():
        folder, _, name = address.rpartition("/")
        if name.endswith(".js") and name != "vega.js":
            named = re.findall(r"'\./([\w.]+)'", content.decode())
            assert {f"{folder}/{other}" for other in named} <= browser.files.keys()
    monkeypatch.setattr(runtime, "_vega", lambda _: b"another")
    assert runtime.files(kept).module != browser.module
