"""The chart runtime from packages, strict where Node is there and honest where it is not."""

import logging
import re
import subprocess
from pathlib import Path

import pytest

from sparkpub.site.browser import runtime
from sparkpub.site.cache import Cache


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """A cache that has the converter's bundle, which takes a second to make."""
    cache = Cache(tmp_path_factory.mktemp("bundle"))
    runtime.runtime(cache, node=False)
    return cache


def test_without_node_the_converter_serves_and_the_log_says_so(
    kept: Cache, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="mkdocs.plugins.sparkpub"):
        browser = runtime.files(kept, node=False)
    assert "converter's copy" in caplog.text
    assert any(
        b"makeView" in content
        for address, content in browser.files.items()
        if "vega" in address
    )


def test_the_converters_bundle_is_made_once(
    kept: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "converter", lambda: pytest.fail("made again"))
    assert b"makeView" in runtime.runtime(kept, node=False).code


def test_a_newer_converter_makes_a_bundle_of_its_own(
    kept: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Newer:
        def javascript_bundle(self, snippet: str, *, vl_version: str) -> str:
            return f"// {snippet} {vl_version}"

    monkeypatch.setattr(runtime, "VERSION", "99.0")
    monkeypatch.setattr(runtime, "converter", Newer)
    found = runtime.runtime(kept, node=False)
    assert found.code.startswith(b"// window.sparkpubEmbed = vegaEmbed; ")


def test_a_bundle_that_fails_falls_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("node", "npm"):
        tool = tmp_path / name
        tool.write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
        tool.chmod(0o755)
    assert runtime.runtime(Cache(tmp_path / "cache")).kind == "vl-convert"


def test_modules_name_each_other_by_content(kept: Cache) -> None:
    browser = runtime.files(kept, node=False)
    assert browser.module in browser.files
    assert browser.stylesheet in browser.files
    names = {address.rpartition("/")[2] for address in browser.files}
    for address, content in browser.files.items():
        if address.endswith(".js") and "vega" not in address:
            assert set(re.findall(r"'\./([\w.]+)'", content.decode())) <= names


@pytest.mark.node
@pytest.mark.parametrize("name", [*runtime.MODULES, "search.js"])
def test_every_module_is_one_that_a_browser_reads(name: str) -> None:
    text = (runtime.ASSETS / name).read_bytes()
    kind = "commonjs" if name == "search.js" else "module"
    argv = ["node", "--check", f"--input-type={kind}"]
    done = subprocess.run(argv, input=text, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
