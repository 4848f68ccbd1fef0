"""`python -m benchmarks.many SITE`: explorer and leaderboard of a site with thousands of runs. Needs Chromium.

SITE is built already, such as from the data of `benchmarks.load`. Each page is opened on a desk and on a telephone. A
reader waits for the processor here, not for the network: so the processor time of the page's main thread is counted,
until the page can be used, and from a filter, a search or an order until the frame that shows it. A telephone's
processor is taken to be four times slower, as in Lighthouse. Wall time grows with whatever else the machine does, and
is given beside it.
"""

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from benchmarks import harness
from benchmarks.harness import Row, row
from benchmarks.pages import FLAGS, SLOWER, chromium, served

TIMES = 5
USABLE_SECONDS = 3.0
ANSWER_MS = 200.0
SCREENS = {
    "desk": {"width": 1440, "height": 900},
    "telephone": {"width": 412, "height": 823},
}


@dataclass(frozen=True)
class Kind:
    """A page: its address, what is there when it can be used, and what a reader does, by name, in JavaScript."""

    address: str
    usable: str
    actions: dict[str, Sequence[str]]


BOX = "document.querySelectorAll('{form} input[type=checkbox]')[{number}].click()"
FIND = (
    "(() => {{ const find = document.querySelector('{form}').elements.find; find.value = '{text}';"
    " find.dispatchEvent(new Event('input', {{bubbles: true}})); }})()"
)


def _filters(form: str) -> dict[str, Sequence[str]]:
    """A box ticked and cleared, and a word sought and cleared."""
    box = BOX.format(form=form, number=0)
    return {
        "filter": (box, box),
        "search": (
            FIND.format(form=form, text="iter01"),
            FIND.format(form=form, text=""),
        ),
    }


EXPLORER = "[data-sp-explorer] form"
BOARD = "form.sp-filters"
KINDS = {
    "explorer": Kind(
        "runs/",
        "[data-sp-explorer]:not([hidden])",
        _filters(EXPLORER)
        | {
            "order": (
                "document.querySelectorAll('[data-sp-explorer] thead button')[0].click()",
            )
        },
    ),
    "leaderboard": Kind(
        "leaderboard/",
        f"{BOARD}:not([hidden])",
        {"filter": (BOX.format(form=BOARD, number=0),) * 2},
    ),
}
UNTIL_SHOWN = """async () => {
  const start = performance.now();
  %s;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - start;
}"""


@dataclass(frozen=True)
class Visit:
    """What one visit cost. Times are in milliseconds."""

    bytes: float
    usable_wall: float
    usable: float
    heap: float
    """MiB, after a collection of what is not used any more."""
    answers: dict[str, list[float]]
    """By action, processor time until the frame that shows it."""
    walls: dict[str, list[float]]


def thread_ms(session: CDPSession) -> float:
    """Processor time of the page's main thread since it began."""
    found = session.send("Performance.getMetrics")["metrics"]
    values = {item["name"]: float(item["value"]) for item in found}
    return 1000 * values["ThreadTime"]


def heap_mib(session: CDPSession) -> float:
    session.send("HeapProfiler.collectGarbage")
    found: float = session.send("Runtime.getHeapUsage")["usedSize"]
    return found / 2**20


def opened(page: Page, session: CDPSession, address: str, usable: str) -> list[float]:
    """Bytes, wall time and processor time until the page can be used."""
    loaded: list[float] = []
    session.on(
        "Network.loadingFinished",
        lambda event: loaded.append(event["encodedDataLength"]),
    )
    for part in ("Network", "Performance", "HeapProfiler"):
        session.send(f"{part}.enable")
    page.goto(address, wait_until="commit")
    page.wait_for_selector(usable, state="attached", timeout=120_000)
    wall = page.evaluate(
        "async () => { await new Promise((done) => requestAnimationFrame(() =>"
        " requestAnimationFrame(done))); return performance.now(); }"
    )
    thread = thread_ms(session)
    page.wait_for_load_state("networkidle")
    return [sum(loaded), wall, thread]


def visit(browser: Browser, address: str, kind: Kind, screen: str) -> Visit:
    """Open a page, and do what a reader does, `TIMES` times each."""
    context = browser.new_context(viewport=SCREENS[screen])  # type: ignore[arg-type]
    page = context.new_page()
    session = context.new_cdp_session(page)
    size, wall, thread = opened(page, session, address + kind.address, kind.usable)
    answers: dict[str, list[float]] = {}
    walls: dict[str, list[float]] = {}
    for name, steps in kind.actions.items():
        answers[name], walls[name] = [], []
        for number in range(TIMES * len(steps)):
            before = thread_ms(session)
            walls[name].append(page.evaluate(UNTIL_SHOWN % steps[number % len(steps)]))
            answers[name].append(thread_ms(session) - before)
    heap = heap_mib(session)
    context.close()
    return Visit(size, wall, thread, heap, answers, walls)


def rows_of(name: str, screen: str, found: Visit) -> list[Row]:
    """A telephone's times are those here, four times over."""
    times = SLOWER if screen == "telephone" else 1
    at = f"{name}, {screen}"
    rows = [
        row(f"{at}: first load", [found.bytes / 1024], "KiB"),
        row(
            f"{at}: until usable",
            [times * found.usable / 1000],
            "s",
            goal=USABLE_SECONDS,
        ),
        row(f"{at}: memory of scripts", [found.heap], "MiB"),
    ]
    for action, values in found.answers.items():
        took = [times * value for value in values]
        goal = ANSWER_MS if screen == "desk" else None
        rows.append(row(f"{at}: {action}", took, "ms", goal=goal))
    return rows


def measured(site: Path) -> dict[tuple[str, str], Visit]:
    """Every page on every screen."""
    found = {}
    with served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), headless=True, args=FLAGS
        )
        for name, kind in KINDS.items():
            for screen in SCREENS:
                seen = found[name, screen] = visit(browser, address, kind, screen)
                walls = {
                    action: round(statistics.median(values))
                    for action, values in seen.walls.items()
                }
                print(
                    f"{name}, {screen}: {seen.usable_wall:.0f} ms on the clock, {walls}",
                    flush=True,
                )
        browser.close()
    return found


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("site", type=Path, help="a site that is built")
    site: Path = parser.parse_args().site
    runs = sum(1 for path in (site / "runs").iterdir() if path.is_dir())
    load = os.getloadavg()[0]
    found = measured(site)
    harness.save(
        "many",
        title="Explorer and leaderboard with many runs",
        question="Can a reader still use the pages that show everything?",
        rows=[row for at, seen in found.items() for row in rows_of(*at, seen)],
        notes=[
            f"A site of {runs:,} runs. Times are processor time of the page's main thread, on the telephone "
            f"× {SLOWER}. The load of the machine was {load:.1f} on {os.cpu_count()} cores when this began.",
        ],
        packages=["mkdocs-material", "playwright"],
    )


if __name__ == "__main__":
    main()
