"""`mkdocs serve` in a real Chromium: what is saved is soon in the open page, and nobody reloads it."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.browser import campaign
from tests.browser.campaign import NAME

SITE = """
site_name: preview
docs_dir: docs
theme: {{name: material, font: false}}
plugins:
  - sparkpub: {{folders: data, cache: cache}}
  - blog: {{post_url_format: "{{slug}}"}}
markdown_extensions: [attr_list, md_in_html, tables, toc]
"""
POST = """---
title: First
slug: first
date: 2026-01-02
description: What was found.
---

# First

Written once.
"""
MATRIX = {
    "campaign": NAME,
    "title": "Two environments, with telemetry",
    "models": {"m": {"id": "x/m"}},
    "environments": {
        "native": {"type": "host"},
        "container": {"type": "docker", "image": "engine:1"},
    },
    "baseline": "native",
    "workloads": {"w": {"type": "ctranslate2", "batches": 4}},
    "iterations": 5,
}
START_LIMIT, RELOAD_LIMIT = 300, 120
"""Seconds, for a machine that does much else at the same time."""


@dataclass
class Preview:
    """A served project and a visitor of it."""

    project: Path
    address: str
    page: Any

    def open(self, uri: str) -> None:
        self.page.goto(self.address + uri, timeout=RELOAD_LIMIT * 1000)

    def wait_for(self, text: str) -> None:
        """Until the open page says this, perhaps behind a line."""
        found = self.page.get_by_text(text).first
        found.wait_for(timeout=RELOAD_LIMIT * 1000, state="attached")


@pytest.fixture(scope="module")
def preview(
    chromium: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Preview]:
    project = tmp_path_factory.mktemp("preview")
    posts = project / "docs" / "blog" / "posts"
    posts.mkdir(parents=True)
    (posts.parent / "index.md").write_text("# Blog\n")
    (posts / "first.md").write_text(POST)
    folder = campaign.write(project / "data") / NAME
    document = json.loads((folder / "campaign.json").read_text())
    (folder / "campaign.json").write_text(json.dumps(document | {"matrix": MATRIX}))
    (project / "mkdocs.yml").write_text(SITE.format())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [sys.executable, "-m", "mkdocs", "serve", "--dev-addr", f"127.0.0.1:{port}"]
    variables = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    with (
        (project / "log").open("w") as log,
        subprocess.Popen(argv, cwd=project, env=variables, stderr=log) as process,
    ):
        context = chromium.new_context()
        try:
            address = f"http://127.0.0.1:{port}/"
            wait_until_served(address, process)
            yield Preview(project, address, context.new_page())
        finally:
            context.close()
            process.terminate()


def wait_until_served(address: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_LIMIT
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=START_LIMIT).close()
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
        else:
            return
    raise TimeoutError(f"nothing is served at {address}")


def test_the_open_page_shows_what_was_saved(preview: Preview) -> None:
    post = preview.project / "docs" / "blog" / "posts" / "first.md"
    preview.open("blog/first/")
    preview.wait_for("Written once.")
    for text in ("Written twice.", "Written a third time."):
        post.write_text(POST.replace("Written once.", text))
        preview.wait_for(text)

    # What stops a build lies over the page, with file, line and what to write, and goes when it is corrected.
    for text, told in (
        ("{{ vallue() }}", "blog/posts/first.md:10"),
        ("It makes 512 tok/s.", "'512 tok/s' is typed into the text"),
    ):
        post.write_text(POST.replace("Written once.", text))
        preview.page.locator(".sp-problems", has_text=told).wait_for(
            timeout=RELOAD_LIMIT * 1000
        )
    post.write_text(POST.replace("Written once.", "Corrected."))
    preview.wait_for("Corrected.")
    assert "is typed into the text" not in preview.page.content()

    data = preview.project / "data" / NAME
    run = f"{NAME}-native_m_w_iter01"
    (record,) = (path for path in data.glob("*.json") if run in path.read_text())
    document = json.loads(record.read_text())
    preview.open(f"runs/{run}/")
    document["metrics"]["output_throughput_tok_s"]["value"] = 512.34
    record.write_text(json.dumps(document))
    preview.wait_for("512.34")

    described = data / "campaign.json"
    preview.open(f"campaigns/{NAME}/")
    preview.wait_for("engine:1")
    described.write_text(described.read_text().replace("engine:1", "engine:2"))
    preview.wait_for("engine:2")
