"""`python -m benchmarks.leaderboard PAGE COMMIT`: the same 300 imported runs, ours and as ClickBench's page.

PAGE is `index.html` of https://github.com/ClickHouse/ClickBench, of a version that holds its data in itself. Its
queries and data are replaced by ours: a run is a system, its metrics are the queries. Both pages are served by the same
host and looked at by the same Chromium in turn. Whatever either asks of another host is refused at once, so that
ClickBench's page is not made to wait for a font. Needs Chromium.
"""

import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks import harness
from benchmarks.harness import row
from benchmarks.pages import FLAGS, chromium, served
from sparkpub.review.dataset import load
from sparkpub.site.build import publish
from sparkpub.site.content import ROOT, SiteOptions
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import tree

PEER = "ClickBench's page"
ROUNDS, FILTERS = 9, 10
SLOWER = 4
"""How many times slower than this machine's the processor of the visitor is, as Lighthouse's telephone."""
MODELS = 25
QUANTIZATIONS = {"F16": 16.0, "Q8_0": 8.5, "Q6_K": 6.6, "Q4_K - Medium": 4.9}
"""Formats and their bits per weight."""
MACHINES = {"NVIDIA GB10": 273e9, "NVIDIA H200": 4.8e12, "NVIDIA L4": 300e9}
"""GPUs and their memory bandwidth in bytes per second."""
TEMPLATE = harness.ROOT / "tests/data/imports/llama-bench/multi.json"
CONFIGURATION = """
site_name: leaderboard
site_url: https://leaderboard.invalid/
docs_dir: docs
theme: {{name: material, font: false, logo: assets/sparkpub/icon.svg, favicon: assets/sparkpub/icon.svg}}
plugins: [search, {{sparkpub: {{folders: {data}}}}}, blog]
markdown_extensions: [attr_list, md_in_html, tables, toc]
"""
EMPTY = re.compile(r'<p class="sp-none">Nothing to rank.*?</p>', re.DOTALL)
"""What stands on a page while there are no runs."""


@dataclass(frozen=True)
class Visit:
    """One fresh visitor's wait: bytes as they travelled, milliseconds to the first paint, and blocked afterwards."""

    kib: float
    painted: float
    blocked: float


def llama_bench_file(
    model: int, quantization: str, machine: str, random: Random
) -> str:
    """A result of llama-bench: the form is the real tool's, the rates are what the memory bandwidth would allow."""
    parameters = int((1 + model) * 1.1e9)
    size = int(parameters * QUANTIZATIONS[quantization] / 8)
    generation = 0.6 * MACHINES[machine] / size
    name = f"models/Model-{model + 1}B-{quantization.partition(' ')[0]}.gguf"
    tests = []
    for test, rate in ((0, 25 * generation), (1, generation)):
        document = json.loads(TEMPLATE.read_text())[0]
        lengths = (
            {"n_prompt": 512, "n_gen": 0}
            if test == 0
            else {"n_prompt": 0, "n_gen": 128}
        )
        tokens = sum(lengths.values())
        times = [int(tokens / rate * 1e9 * random.gauss(1, 0.01)) for _ in range(5)]
        rates = [tokens / time * 1e9 for time in times]
        document |= lengths | {
            "gpu_info": machine,
            "backends": "CUDA",
            "model_filename": name,
            "model_type": f"llama {model + 1}B {quantization}",
            "model_size": size,
            "model_n_params": parameters,
            "test_time": f"2026-11-{1 + model:02d}T10:00:00Z",
            "avg_ns": int(statistics.fmean(times)),
            "stddev_ns": int(statistics.stdev(times)),
            "avg_ts": statistics.fmean(rates),
            "stddev_ts": statistics.stdev(rates),
            "samples_ns": times,
            "samples_ts": rates,
        }
        tests.append(document)
    return json.dumps(tests, indent=1)


def imported(folder: Path) -> Path:
    """300 files of llama-bench, a campaign for each machine, as `sparkpub import` makes them."""
    random, data = Random(1), folder / "data"
    for place, machine in enumerate(MACHINES):
        results = folder / "results" / str(place)
        results.mkdir(parents=True)
        for model in range(MODELS):
            for number, quantization in enumerate(QUANTIZATIONS):
                text = llama_bench_file(model, quantization, machine, random)
                (results / f"{model:02d}-{number}.json").write_text(text)
        argv = ["import", str(results), "--data", str(data)]
        argv += ["--campaign", f"machine-{place}", "--environment", "native"]
        subprocess.run(
            [sys.executable, "-m", "sparkpub", *argv], check=True, capture_output=True
        )
    return data


def ours(folder: Path, data: Path) -> Path:
    """A site with the first page and the leaderboard of the imported runs.

    The theme's part of both pages is that of a site without runs: the pages of the runs themselves would take long to
    build, and a reader of these two loads nothing of them.
    """
    (folder / "docs" / "blog" / "posts").mkdir(parents=True)
    (folder / "docs" / "blog" / "index.md").write_text("# Blog\n")
    (folder / "none").mkdir()
    configuration = folder / "mkdocs.yml"
    configuration.write_text(CONFIGURATION.format(data="none"))
    argv = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--quiet",
        "-f",
        str(configuration),
    ]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(argv, check=True, cwd=harness.ROOT, env=environment)

    publication = publish(load(data), SiteOptions(sources=folder / "docs"))
    library = Library(publication)
    pages = tree.pages(publication, library, {})
    made = dict(itertools.islice(pages, 2))
    for uri, root in (("index", ""), ("leaderboard/index", "../")):
        page = folder / "site" / f"{uri}.html"
        html = page.read_text()
        (empty,) = EMPTY.findall(html)
        source = made[f"{uri}.md"]
        assert not isinstance(source, bytes | Path)
        body = "".join(source.html.values())
        page.write_text(html.replace(empty, body.replace(ROOT, root)))
    return folder / "site"


def theirs(page: Path, site: Path, data: Path) -> None:
    """ClickBench's page with our runs beside our site: each run a system, its rates as seconds per thousand tokens."""
    entries = []
    for path in sorted(data.rglob("*.json")):
        if path.name == "campaign.json":
            continue
        record = json.loads(path.read_text())
        if "metrics" not in record:
            continue
        values = {name: item["value"] for name, item in record["metrics"].items()}
        times = [
            round(1000 / values[name], 4)
            for name in ("output_throughput_tok_s", "prompt_throughput_tok_s")
        ]
        tpot = [round(values[f"tpot_{part}_ms"], 4) for part in ("p50", "p90", "p99")]
        entries.append(
            {
                "system": f"{record['model']} {record['observed']['engine']}",
                "date": record["started"]["value"][:10],
                "machine": record["observed"]["device"],
                "cluster_size": 1,
                "comment": "",
                "tags": [record["observed"].get("quantization") or "F16"],
                "load_time": 0,
                "data_size": record["observed"]["weight_bytes"],
                "result": [[value] * 3 for value in (*times, *tpot)],
                "source": path.name,
            }
        )
    assert len(entries) == MODELS * len(QUANTIZATIONS) * len(MACHINES)
    queries = [
        "Generation, 1,000 tokens",
        "Prompt, 1,000 tokens",
        "TPOT, P50",
        "P90",
        "P99",
    ]
    text = replaced(page.read_text(), "queries", queries)
    text = replaced(text, "data", entries)
    (site / "clickbench").mkdir()
    (site / "clickbench" / "index.html").write_text(text)


def replaced(page: str, name: str, values: Sequence[object]) -> str:
    """The page with another list under a name. Raises SystemExit where it has no such list."""
    lines = ",\n".join(json.dumps(value) for value in values)
    text, count = re.subn(
        rf"(const {name} = \[\n).*?(^\];)",
        lambda found: f"{found[1]}{lines}\n{found[2]}",
        page,
        count=1,
        flags=re.DOTALL | re.MULTILINE,
    )
    if count != 1:
        raise SystemExit(f"no list `{name}` in the page of ClickBench")
    return text


WATCH = """window.blocked = 0;
new PerformanceObserver(list => {
  for (const task of list.getEntries()) window.blocked += Math.max(0, task.duration - 50);
}).observe({type: 'longtask', buffered: true});"""
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
FILTER = """async (selector) => {
  const boxes = [...document.querySelectorAll(selector)];
  const start = performance.now();
  boxes[0].click();
  // The frame after the next: what the click changed is on the screen.
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - start;
}"""
OUR_FILTER = "input[name=machine]"
THEIR_FILTER = "#selectors_machine .selector:not(#select-all-machines)"


def fresh(browser: Browser, address: str, *, slower: int) -> tuple[Page, list[int]]:
    """A visitor who was never here, at the address, with the bytes of every answer; nothing else is reached."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_init_script(WATCH)
    page = context.new_page()
    host = "/".join(address.split("/")[:3])
    context.route(lambda url: not url.startswith(host), lambda route: route.abort())
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    sizes: list[int] = []
    session.on(
        "Network.loadingFinished",
        lambda event: sizes.append(int(event["encodedDataLength"])),
    )
    session.send("Emulation.setCPUThrottlingRate", {"rate": slower})
    page.goto(address)
    page.wait_for_load_state("networkidle")
    return page, sizes


def visit(browser: Browser, address: str) -> Visit:
    page, sizes = fresh(browser, address, slower=SLOWER)
    page.wait_for_timeout(500)
    found = Visit(
        sum(sizes) / 1024, page.evaluate(PAINTED), page.evaluate("window.blocked")
    )
    page.context.close()
    return found


def filtered(browser: Browser, address: str, selector: str) -> list[float]:
    """Milliseconds from a click on a filter to the frame that shows it, on and off in turn."""
    page, _ = fresh(browser, address, slower=1)
    page.wait_for_selector(selector, state="attached")
    page.evaluate(FILTER, selector)
    times = [page.evaluate(FILTER, selector) for _ in range(FILTERS)]
    page.context.close()
    return times


def rows(browser: Browser, mine: str, other: str) -> list[harness.Row]:
    one, two = [], []
    for _ in range(ROUNDS):
        one.append(visit(browser, mine))
        two.append(visit(browser, other))

    def compared(
        what: str, unit: str, field: str, goal: float | None = None
    ) -> harness.Row:
        values: list[Any] = [
            [getattr(item, field) for item in side] for side in (one, two)
        ]
        return row(what, values[0], unit, against=(PEER, values[1]), goal=goal)

    return [
        compared("first load, compressed", "KiB", "kib", 90),
        compared(
            f"first contentful paint, processor {SLOWER} times slower", "ms", "painted"
        ),
        compared(
            f"main thread blocked, processor {SLOWER} times slower", "ms", "blocked", 50
        ),
        row(
            "a machine chosen, until the frame that shows it",
            filtered(browser, mine, OUR_FILTER),
            "ms",
            against=(PEER, filtered(browser, other, THEIR_FILTER)),
        ),
    ]


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("clickbench", type=Path, help="index.html of ClickBench")
    parser.add_argument("commit", help="the commit of ClickBench that the page is from")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = Path(made)
        data = imported(folder)
        site = ours(folder, data)
        theirs(arguments.clickbench, site, data)
        browser = playwright.chromium.launch(
            executable_path=chromium(), headless=True, args=FLAGS
        )
        with served(site) as address:
            found = rows(browser, f"{address}leaderboard/", f"{address}clickbench/")
            front = [visit(browser, address) for _ in range(3)]
        browser.close()
        shutil.rmtree(site)
    found.append(
        row(
            "first load of the first page", [item.kib for item in front], "KiB", goal=90
        )
    )
    found.append(
        row(
            f"main thread blocked by the first page, processor {SLOWER} times slower",
            [item.blocked for item in front],
            "ms",
            goal=50,
        )
    )
    harness.save(
        "leaderboard",
        title="Reading the leaderboard",
        question="How long does a reader of 300 imported runs wait, and how long on the best known page of its kind?",
        rows=found,
        notes=[
            f"The load of the machine was {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores: times of both sides grow "
            "with it, bytes do not.",
            f"ClickBench's page is that of its commit {arguments.commit}, with our runs in place of its own.",
            "The runs have the form of llama-bench and drawn figures: 25 models, 4 formats, 3 machines.",
            "Each page has its own layout: ours shows every figure of a row in one table, ClickBench's a bar for each "
            "system above a table of all figures. ClickBench's font comes from another host and was left out.",
        ],
    )


if __name__ == "__main__":
    main()
