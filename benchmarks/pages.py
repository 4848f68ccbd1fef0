"""`python -m benchmarks.pages`: what a reader waits for. Needs Chromium and Node.js (npx fetches Lighthouse).

The built site is served as a static host serves it, compressed and without headers of ours. Lighthouse looks at the
first page; filters are tried on the page of the largest campaign, which has charts.
"""

import functools
import gzip
import http.server
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks import harness
from benchmarks.harness import Row, row

CAMPAIGN = "campaigns/h200/"
LIGHTHOUSE = "lighthouse@12"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CATEGORIES = {
    "performance": 98,
    "accessibility": 100,
    "best-practices": 100,
    "seo": 100,
}
PEER = "ClickBench"
PEER_SOURCE = "its page of 2026-08-22 under Lighthouse 12, mobile"
PEER_SCORES = {"performance": 89, "accessibility": 82, "best-practices": 89, "seo": 73}
COMPRESSED = (".html", ".css", ".js", ".json", ".svg", ".xml", ".txt", ".csv")


class Handler(http.server.SimpleHTTPRequestHandler):
    """A static host that compresses text."""

    def send_head(self) -> Any:
        path = Path(self.translate_path(self.path))
        path = (
            path / "index.html" if path.is_dir() and self.path.endswith("/") else path
        )
        if not path.name.endswith(COMPRESSED) or not path.is_file():
            return super().send_head()
        body = gzip.compress(path.read_bytes(), 6)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        return io.BytesIO(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder while it is served."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def chromium() -> str:
    return next(
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    )


def lighthouse(address: str, *, desktop: bool) -> dict[str, Any]:
    """One run's report."""
    with tempfile.TemporaryDirectory() as made:
        flags = " ".join(["--headless=new", *FLAGS, f"--user-data-dir={made}/profile"])
        argv = [
            "npx",
            "--yes",
            LIGHTHOUSE,
            address,
            "--quiet",
            "--output=json",
            f"--output-path={made}/report.json",
        ]
        argv += [f"--chrome-flags={flags}", *(["--preset=desktop"] if desktop else [])]
        environment = os.environ | {"CHROME_PATH": chromium()}
        subprocess.run(argv, check=True, env=environment, capture_output=True)
        report: dict[str, Any] = json.loads(Path(made, "report.json").read_text())
    return report


def score_rows(reports: list[dict[str, Any]], *, desktop: bool) -> list[Row]:
    form = "desktop" if desktop else "mobile"
    rows = []
    for name, limit in CATEGORIES.items():
        scores = [100 * report["categories"][name]["score"] for report in reports]
        peer: dict[str, Any] = (
            {}
            if desktop
            else {"against": (PEER, [PEER_SCORES[name]]), "source": PEER_SOURCE}
        )
        goal = -100 if desktop else -limit
        rows.append(
            row(f"Lighthouse {form}, {name}", scores, "points", goal=goal, **peer)
        )
    return rows


def _audit(reports: list[dict[str, Any]], name: str, scale: float = 1.0) -> list[float]:
    return [report["audits"][name]["numericValue"] * scale for report in reports]


def time_rows(mobile: list[dict[str, Any]], desktop: list[dict[str, Any]]) -> list[Row]:
    first, bytes_ = "first-contentful-paint", "total-byte-weight"
    peer: dict[str, Any] = {"source": PEER_SOURCE}
    return [
        row(
            "first contentful paint, simulated mobile",
            _audit(mobile, first, 1e-3),
            "s",
            against=(PEER, [2.9]),
            **peer,
            goal=1.7,
        ),
        row(
            "first contentful paint, desktop",
            _audit(desktop, first, 1e-3),
            "s",
            goal=0.5,
        ),
        row(
            "blocked main thread, simulated mobile",
            _audit(mobile, "total-blocking-time"),
            "ms",
            goal=50,
        ),
        row(
            "layout shift, mobile",
            _audit(mobile, "cumulative-layout-shift"),
            "",
            goal=0.01,
        ),
        row(
            "first load",
            _audit(mobile, bytes_, 1 / 1024),
            "KiB",
            against=(PEER, [327]),
            **peer,
            goal=90,
        ),
    ]


SETTLE = """async (index) => {
  let last = performance.now();
  const watch = new MutationObserver(() => { last = performance.now(); });
  watch.observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true});
  const start = performance.now();
  document.querySelectorAll('form.sp-filters input')[index].click();
  do await new Promise((done) => setTimeout(done, 50)); while (performance.now() - last < 500);
  watch.disconnect();
  return last - start;
}"""
"""Choose a filter; the time until the page changes no more."""


def filter_row(address: str) -> Row:
    """From a filter's click to the last change on the page, all charts of the page being live."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), headless=True, args=FLAGS
        )
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(address)
        page.wait_for_selector("form.sp-filters input")
        for _ in range(2):
            page.evaluate(SETTLE, 0)
        times = [page.evaluate(SETTLE, index % 2) for index in range(10)]
        charts = page.locator(".sp-chart").count()
        browser.close()
    return row(f"a filter chosen, {charts} charts redrawn", times, "ms", goal=100)


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        site = Path(made, "site")
        argv = [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "--quiet",
            "--site-dir",
            str(site),
        ]
        subprocess.run(argv, check=True, cwd=harness.ROOT)
        with served(site) as address:
            mobile = [lighthouse(address, desktop=False) for _ in range(3)]
            desktop = [lighthouse(address, desktop=True) for _ in range(3)]
            chosen = filter_row(address + CAMPAIGN)
    painted = statistics.median(_audit(mobile, "largest-contentful-paint", 1e-3))
    harness.save(
        "pages",
        title="Reading the dashboard",
        question="How long does a reader wait, and how does the page stand against the best known one of its kind?",
        rows=[
            *score_rows(mobile, desktop=False),
            *score_rows(desktop, desktop=True),
            *time_rows(mobile, desktop),
            chosen,
        ],
        notes=[
            f"Lighthouse {mobile[0]['lighthouseVersion']}, on the first page. Everything on it is in its HTML; the "
            f"largest contentful paint on simulated mobile comes at {painted:.2f} s."
        ],
    )


if __name__ == "__main__":
    main()
