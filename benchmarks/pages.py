"""`python -m benchmarks.pages [SITE]`: what a reader waits for. Needs Chromium and Node.js (npx fetches Lighthouse).

The built site is served as a static host serves it, compressed and without headers of ours. Lighthouse looks at the
first page, the leaderboard, the page of a campaign, on which filters are tried as well, the largest of these, that of a
model and the explorer of runs. SITE is built already.

Lighthouse's times grow with whatever else the machine does. So the work of the main thread is measured in processor
time too, against the theme's own page without content, style sheet or script of ours, in turns.
"""

import functools
import gzip
import http.server
import io
import json
import os
import re
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

from playwright.sync_api import Browser, sync_playwright

from benchmarks import harness
from benchmarks.harness import Row, row

CAMPAIGN = "campaigns/h200/"
PAGES = {
    "first page": "",
    "leaderboard": "leaderboard/",
    "a campaign": CAMPAIGN,
    "the largest campaign": "campaigns/spark-open-loop/",
    "a model": "models/qwen3.6-35b-a3b/",
    "run explorer": "runs/",
}
"""Name of a page to its address."""
VISITS = 7
SLOWER = 4
"""How many times slower than this machine's the processor of a telephone is, as in Lighthouse."""
LONG_TASK_MS = 50
"""A task of the main thread blocks for what it takes beyond this."""
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
BARE = "bare.html"
TASK = "ThreadControllerImpl::RunTask"
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


def score_rows(page: str, reports: list[dict[str, Any]], *, desktop: bool) -> list[Row]:
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
            row(
                f"{page}: Lighthouse {form}, {name}",
                scores,
                "points",
                goal=goal,
                **peer,
            )
        )
    return rows


OURS = re.compile(r"<(?:link|script)[^>]*assets/sparkpub/[^>]*>(?:</script>)?")
ARTICLE = re.compile(r"(<article[^>]*>).*</article>", re.DOTALL)


def bare_page(site: Path) -> str:
    """The address of the first page without what is ours: the theme alone, with the same features."""
    page = OURS.sub("", (site / "index.html").read_text())
    (site / BARE).write_text(ARTICLE.sub(r"\1<h1>Bare</h1></article>", page))
    return BARE


def blocked(browser: Browser, address: str) -> float:
    """Milliseconds that tasks after the first paint block the main thread, from their processor time."""
    context = browser.new_context(viewport={"width": 412, "height": 823})
    page = context.new_page()
    browser.start_tracing(page=page, categories=["toplevel", "loading"])
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    context.close()
    painted = next(event for event in events if event["name"] == "firstContentfulPaint")
    main_thread = painted["pid"], painted["tid"]
    total = 0.0
    for event in events:
        if event["name"] != TASK or event["ph"] != "X":
            continue
        if (event["pid"], event["tid"]) != main_thread:
            continue
        if event["ts"] + event["dur"] > painted["ts"]:
            took = SLOWER * event.get("tdur", 0) / 1000
            total += max(0.0, took - LONG_TASK_MS)
    return total


def thread_rows(address: str, bare: str) -> list[Row]:
    """How long each page blocks the main thread, held against the bare page in the same round."""
    times: dict[str, list[float]] = {name: [] for name in PAGES}
    against: list[float] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), headless=True, args=FLAGS
        )
        for _ in range(VISITS):
            against.append(blocked(browser, address + bare))
            for name, page in PAGES.items():
                times[name].append(blocked(browser, address + page))
        browser.close()
    return [
        row(
            f"{name}: main thread blocked, processor time × {SLOWER}",
            values,
            "ms",
            against=("bare Material", against),
            goal=50,
        )
        for name, values in times.items()
    ]


def _audit(reports: list[dict[str, Any]], name: str, scale: float = 1.0) -> list[float]:
    return [report["audits"][name]["numericValue"] * scale for report in reports]


def blocked_row(page: str, reports: list[dict[str, Any]]) -> Row:
    """Lighthouse's total blocking time of a page; the goal is for the first page and the leaderboard."""
    goal = None if page.endswith("campaign") else LONG_TASK_MS
    blocked_ms = _audit(reports, "total-blocking-time")
    return row(f"{page}: blocked, simulated mobile", blocked_ms, "ms", goal=goal)


def time_rows(mobile: list[dict[str, Any]], desktop: list[dict[str, Any]]) -> list[Row]:
    first = "first-contentful-paint"
    return [
        row(
            "first contentful paint, simulated mobile",
            _audit(mobile, first, 1e-3),
            "s",
            against=(PEER, [2.9]),
            source=PEER_SOURCE,
            goal=1.7,
        ),
        row(
            "first contentful paint, desktop",
            _audit(desktop, first, 1e-3),
            "s",
            goal=0.5,
        ),
    ]


def load_rows(page: str, reports: list[dict[str, Any]]) -> list[Row]:
    """What does not depend on the machine: what a page fetches until nothing more comes, and how far it moves."""
    return [
        row(
            f"{page}: first load",
            _audit(reports, "total-byte-weight", 1 / 1024),
            "KiB",
            against=(PEER, [327]),
            source=PEER_SOURCE,
            goal=90,
        ),
        row(
            f"{page}: requests",
            [
                len(report["audits"]["network-requests"]["details"]["items"])
                for report in reports
            ],
            "",
        ),
        row(
            f"{page}: layout shift",
            _audit(reports, "cumulative-layout-shift"),
            "",
            goal=0,
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


def built(folder: Path) -> Path:
    """The site of this repository, in the folder."""
    argv = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    argv += ["--site-dir", str(folder / "site")]
    subprocess.run(argv, check=True, cwd=harness.ROOT)
    return folder / "site"


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("site", type=Path, nargs="?", help="a site that is built")
    given: Path | None = parser.parse_args().site
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as made:
        site = Path(made, "copy")
        shutil.copytree(given or built(Path(made)), site)
        bare = bare_page(site)
        with served(site) as address:
            mobile = {
                name: [lighthouse(address + page, desktop=False) for _ in range(3)]
                for name, page in PAGES.items()
            }
            desktop = [lighthouse(address, desktop=True) for _ in range(3)]
            threads = thread_rows(address, bare)
            chosen = filter_row(address + CAMPAIGN)
    first = mobile["first page"]
    painted = statistics.median(_audit(first, "largest-contentful-paint", 1e-3))
    scores = [
        item
        for name, reports in mobile.items()
        for item in score_rows(name, reports, desktop=False)
    ]
    loads = [
        item for name, reports in mobile.items() for item in load_rows(name, reports)
    ]
    for item in loads:
        print(f"{item.what}: {item.value:g} {item.unit}")
    harness.save(
        "pages",
        title="Reading the dashboard",
        question="How long does a reader wait, and how does the page stand against the best known one of its kind?",
        rows=[
            *scores,
            *score_rows("first page", desktop, desktop=True),
            *time_rows(first, desktop),
            *(blocked_row(name, reports) for name, reports in mobile.items()),
            *loads,
            *threads,
            chosen,
        ],
        notes=[
            f"Lighthouse {first[0]['lighthouseVersion']}. Times without another page are of the first page. Everything "
            f"on it is in its HTML; its largest contentful paint on simulated mobile comes at {painted:.2f} s.",
            f"The load of the machine was {load:.1f} on {os.cpu_count()} cores when this began. Lighthouse's times "
            "grow with it; processor time does so less, and its ratio to the bare page hardly.",
        ],
        packages=["mkdocs-material", "playwright"],
    )


if __name__ == "__main__":
    main()
