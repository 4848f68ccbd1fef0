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


def test_the_chart_runtime_is_made_once_for_a_version_of_the_converter(
    kept: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Newer:
        def javascript_bundle(self, snippet: str, *, vl_version: str) -> str:
            return f"// {snippet} {vl_version}"

    monkeypatch.setattr(runtime, "converter", Newer)
    assert b"makeView" in runtime._vega(kept)
    assert not runtime._vega(kept).startswith(b"// window")
    monkeypatch.setattr(runtime, "VERSION", "99.0")
    assert runtime._vega(kept).startswith(b"// window.sparkpubEmbed = vegaEmbed; ")


def test_modules_name_each_other_by_content(kept: Cache) -> None:
    browser = runtime.files(kept)
    assert browser.module in browser.files
    assert browser.stylesheet in browser.files
    names = {address.rpartition("/")[2] for address in browser.files}
    for address, content in browser.files.items():
        if address.endswith(".js") and "vega" not in address:
            assert set(re.findall(r"'\./([\w.]+)'", content.decode())) <= names
