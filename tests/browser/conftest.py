"""A real Chromium, and folders served to it as a static host would: one address, a sub-path, no headers of ours."""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.settings import DEFAULT_DATA
from tests.browser import campaign
from tests.conftest import BROWSERS

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PREFIX = "/pages/sparkpub/"
LATE = int(os.environ.get("SPARKPUB_LATE_SCRIPTS", "0")) / 1000
"""Seconds that every script is late, as over a slow line. No test may depend on it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder under a sub-path, in silence."""

    def translate_path(self, path: str) -> str:
        return super().translate_path(
            "/" + path.removeprefix(PREFIX) if path.startswith(PREFIX) else "/absent"
        )

    def do_GET(self) -> None:
        if self.path.partition("?")[0].endswith(".js"):
            time.sleep(LATE)
        super().do_GET()

    def log_request(self, code: object = "-", size: object = "-") -> None:
        pass

    def log_error(self, *args: object) -> None:
        pass


@dataclass
class Visit:
    """A page with what went wrong on it."""

    page: Any
    errors: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@dataclass
class Host:
    """A served folder and the browser that looks at it."""

    browser: Any
    address: str
    folder: Path

    def open(self, uri: str = "", **options: Any) -> Visit:
        """A fresh visitor at `uri`; `options` are Playwright's for a context (color_scheme, viewport, …)."""
        context = self.browser.new_context(
            viewport=options.pop("viewport", {"width": 1440, "height": 900}), **options
        )
        page = context.new_page()
        page.set_default_timeout(15_000)
        visit = Visit(page)
        page.on(
            "console",
            lambda message: (
                visit.errors.append(message.text) if message.type == "error" else None
            ),
        )
        page.on("pageerror", lambda error: visit.errors.append(str(error)))
        page.on("request", lambda request: self._seen(visit, request.url))
        page.goto(self.address + uri)
        return visit

    def _seen(self, visit: Visit, url: str) -> None:
        visit.requests.append(url)
        if not url.startswith((self.address, "data:", "blob:")):
            visit.elsewhere.append(url)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, BROWSERS)))
        browser = playwright.chromium.launch(
            executable_path=path, headless=True, args=ARGUMENTS
        )
        yield browser
        browser.close()


@pytest.fixture(autouse=True)
def leavings(chromium: Any) -> Iterator[None]:
    """Every page that a test has opened goes with it: one that stays open goes on drawing beside the tests after it."""
    before = set(chromium.contexts)
    yield
    for context in set(chromium.contexts) - before:
        context.close()


def served(chromium: Any, folder: Path) -> Iterator[Host]:
    """Serve `folder` while the fixture lives."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Host(chromium, f"http://127.0.0.1:{server.server_port}{PREFIX}", folder)
    server.shutdown()
    thread.join()
    server.server_close()


REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """The whole site as it is published: the repository's data and a campaign with telemetry, logs and a failure."""
    if not (REPOSITORY / DEFAULT_DATA / "phase1").is_dir():
        pytest.skip("the study's campaigns are not here, and this site shows them")
    folder, extra = (
        tmp_path_factory.mktemp("site"),
        campaign.write(tmp_path_factory.mktemp("extra")),
    )
    hosts = served(chromium, folder)
    host = next(hosts)
    variables = {
        **os.environ,
        "SPARKPUB_SITE_URL": host.address,
        "SPARKPUB_DATA": f"data/comprehensive{os.pathsep}{extra}",
        "NO_MKDOCS_2_WARNING": "1",
    }
    argv = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--quiet",
        "--site-dir",
        str(folder),
    ]
    subprocess.run(argv, cwd=REPOSITORY, env=variables, check=True)
    yield host
    next(hosts, None)
