"""Every type of page in a real browser, as a reader meets it: light, dark, filtered, on a phone, by keyboard, on
paper's terms and without scripting."""

import gzip
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from sparkpub.record.settings import DEFAULT_DATA
from sparkpub.record.store import campaign_folders, record_paths
from tests.browser.campaign import FAILED, NAME
from tests.browser.conftest import REPOSITORY, Host

RUN = f"runs/{NAME}-native_m_w_iter01/"
DASHBOARD = "campaigns/h200/"
"""The page of the largest campaign."""
PAGES = [
    "",
    "leaderboard/",
    "campaigns/",
    "campaigns/phase1/",
    f"campaigns/{NAME}/",
    "models/",
    "models/deepseek-r1-distill-qwen-7b/",
    "measure/",
    "runs/",
    RUN,
    f"runs/{FAILED}/",
    "compare/",
    "review/",
    "claims/",
    "data/",
    "blog/",
]
TWINS = ["campaigns/phase1/"]
"""Pages that others of their kind speak for where looking takes long."""
AXE = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
FIRST_LOAD_LIMIT = 85_000
"""Bytes, compressed, of all that a page loads until nothing more comes."""
CAMPAIGN_LIMIT = 105_000
"""The same of a campaign, whose page has its diagnostics folded."""


def settle(page: Any) -> None:
    page.wait_for_load_state("networkidle")


def hand_written(folder: Path) -> list[str]:
    """A page of every kind that people wrote: posts and method."""
    posts = sorted(
        path.parent.relative_to(folder).as_posix() + "/"
        for path in folder.glob("blog/*/index.html")
    )
    return [uri for uri in posts if "archive" not in uri and "page" not in uri][:1] + [
        uri
        for uri in ("method/", "hardware/", "analysis/")
        if (folder / uri / "index.html").is_file()
    ]


def violations(page: Any, **options: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    # Of what passed axe would describe every element as well, which takes as long as looking for violations.
    wanted = {"runOnly": AXE, "resultTypes": ["violations"], **options}
    found = Axe().run(page, options=wanted).response["violations"]
    return [f"{item['id']}: {item['nodes'][0]['html'][:150]}" for item in found]


def darken(page: Any) -> None:
    # Colours that are on their way from light to dark have no contrast of their own, and without a window to be drawn
    # in some stay on their way.
    page.add_style_tag(content="* { transition: none !important; }")
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector("body[data-md-color-scheme=slate]")


def test_no_page_errs_reaches_out_or_shuts_anybody_out(site: Host) -> None:
    problems = {}
    ours = [uri for uri in PAGES if uri not in TWINS]
    for uri in ours + hand_written(site.folder)[:2]:
        visit = site.open(uri, bypass_csp=True)
        settle(visit.page)
        found = violations(visit.page)
        # Dark mode changes colours and nothing else.
        darken(visit.page)
        found += violations(visit.page, runOnly=["color-contrast"])
        found += [*visit.errors, *visit.elsewhere]
        if found:
            problems[uri] = found
        visit.page.context.close()
    assert problems == {}


def test_a_button_can_be_read(site: Host) -> None:
    """axe does not judge letters that have the colour of their ground."""
    page = site.open("campaigns/phase1/").page
    colours = page.locator(".md-content .md-button").evaluate_all(
        "all => all.map((one) => [getComputedStyle(one).color, getComputedStyle(document.body).backgroundColor])"
    )
    assert colours
    assert all(letters != ground for letters, ground in colours)


def test_every_chart_comes_to_life_without_moving_the_page(site: Host) -> None:
    visit = site.open("campaigns/phase1/")
    visit.page.evaluate(
        "document.querySelectorAll('details').forEach(fold => fold.open = true)"
    )
    charts = visit.page.locator(".sp-chart[data-sp-chart]")
    assert charts.count() > 1
    for chart in charts.all():
        chart.scroll_into_view_if_needed()
        before = chart.bounding_box()["height"]
        chart.dispatch_event("pointerenter")
        chart.locator(".sp-wide > div > svg").wait_for()
        assert chart.bounding_box()["height"] == pytest.approx(before, abs=0.01)
    assert visit.errors == []


def test_charts_are_there_without_scripting(site: Host) -> None:
    for uri in (DASHBOARD, "campaigns/phase1/", "runs/"):
        page = site.open(uri, java_script_enabled=False).page
        unfolded = ".sp-chart:not(.sp-fold *)"
        drawings = page.locator(f"{unfolded} .sp-wide > :is(svg, img)")
        assert drawings.count() == page.locator(unfolded).count() > 0
        assert all(
            drawings.nth(index).is_visible() for index in range(drawings.count())
        )
        assert page.evaluate(
            "[...document.querySelectorAll('.sp-wide img:not(.sp-fold *)')].every(image => image.naturalWidth)"
        )
        assert page.locator("table").count() > 0
        page.context.close()


def test_programs_are_plain_tables_without_scripting(site: Host) -> None:
    page = site.open("runs/", java_script_enabled=False).page
    assert page.locator("[data-sp-explorer] tbody a").first.is_visible()
    assert not page.locator("[data-sp-explorer] form").is_visible()
    # Where the other runs are.
    page.click("a[href*='h200/#coverage']")
    page.wait_for_url("**/campaigns/h200/#coverage")
    part = page.locator("#coverage ~ details").first
    part.locator("summary").click()
    assert part.locator("tbody a[href*='runs/h200-']").count() > 0


def test_a_point_leads_to_its_run_without_scripting(site: Host) -> None:
    page = site.open("campaigns/phase1/", java_script_enabled=False).page
    link = page.locator(f"{FIRST} .sp-wide svg a").last  # the one on top
    target = link.get_attribute("xlink:href")
    link.click()
    page.wait_for_url(site.address + target.removeprefix("../../"))


def test_the_first_load_is_small_and_has_no_chart_script(site: Host) -> None:
    """Of the first page, the leaderboard, the explorer, and the largest of the campaigns and of the models."""
    largest = [
        max(
            (path.parent for path in site.folder.glob(f"{kind}/*/index.html")),
            key=lambda folder: _compressed(folder / "index.html"),
        )
        for kind in ("campaigns", "models")
    ]
    pages = [f"{folder.relative_to(site.folder)}/" for folder in largest]
    loads = {}
    for uri in ("", "leaderboard/", "runs/", *pages):
        visit = site.open(uri)
        settle(visit.page)
        paths = {
            re.sub(r"[?#].*", "", url.removeprefix(site.address))
            for url in visit.requests
        }
        assert not [
            path
            for path in paths
            if "vega" in path or "live" in path or path.startswith("search/")
        ]
        assert not [
            path
            for path in paths
            if path.startswith(("charts/", "data/")) and not path.endswith(".wide.svg")
        ]
        sizes = [_compressed(_file(site.folder, path)) for path in paths]
        loads[uri] = sum(sizes)
        visit.page.context.close()
    print("bytes of the first load:", loads)
    limits = dict.fromkeys(loads, FIRST_LOAD_LIMIT)
    limits[pages[0]] = CAMPAIGN_LIMIT
    assert {uri for uri, size in loads.items() if size > limits[uri]} == set()


def _compressed(path: Path) -> int:
    return len(gzip.compress(path.read_bytes(), 9))


# ---- Search loads when somebody turns to it ------------------------------------------------------------------------


def results(page: Any) -> int:
    page.wait_for_selector(".md-search-result__item")
    return int(page.locator(".md-search-result__meta").inner_text().split()[0])


def test_search_by_keyboard_loads_its_index_once(site: Host) -> None:
    visit = site.open("")
    settle(visit.page)
    assert not [url for url in visit.requests if "search/" in url or "workers/" in url]
    visit.page.click(".md-tabs >> text=Method")
    visit.page.wait_for_url("**/method/")
    settle(visit.page)
    # The theme closes its search 125 ms after every change of address. The timers of a page keep their order: one
    # that is set once the theme's script is here, and later, comes after that, however slow the machine.
    visit.page.wait_for_selector("html.js", state="attached")
    visit.page.evaluate("new Promise((done) => setTimeout(done, 200))")
    visit.page.keyboard.press("/")
    visit.page.keyboard.type("bandwidth")
    assert results(visit.page) > 1
    # Results come with every letter.
    visit.page.wait_for_selector(".md-search-result__link[href*='?h=bandwidth']")
    assert (
        len([url for url in visit.requests if url.endswith("search_index.json")]) == 1
    )
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_url("**?h=bandwidth**")
    visit.page.locator(
        ".md-content mark:visible", has_text="bandwidth"
    ).first.wait_for()
    assert visit.errors == []


def test_the_menu_of_a_phone_opens_at_its_top(site: Host) -> None:
    """And not within the section of the page, from which a reader has to go back first."""
    page = site.open(
        "models/",
        viewport={"width": 390, "height": 800},
        has_touch=True,
        is_mobile=True,
    ).page
    settle(page)
    within = page.locator(".md-nav--primary .md-nav__item .md-nav__toggle:checked")
    assert within.count() > 0
    page.tap(".md-header [for=__drawer]")
    assert within.count() == 0


def test_a_link_to_a_claim_opens_its_line(site: Host) -> None:
    page = site.open("claims/").page
    anchor = "details.sp-claim:not([open]) [id]"
    name = page.locator(anchor).last.get_attribute("id")
    page.goto(f"{site.address}claims/#{name}")
    page.wait_for_selector(f"details.sp-claim[open] #{name}")


def _file(folder: Path, path: str) -> Path:
    return (
        folder / path / "index.html"
        if path.endswith("/") or not path
        else folder / path
    )


def test_the_page_does_not_shift(site: Host) -> None:
    measure = """() => new Promise(done => {
        const shifts = [];
        const named = node => node && `${node.nodeName} ${(node.textContent ?? '').slice(0, 40)}`;
        new PerformanceObserver(list => list.getEntries().filter(e => !e.hadRecentInput).forEach(e => {
            shifts.push([e.value, e.sources.map(s => [named(s.node), s.previousRect.toJSON(), s.currentRect.toJSON()])])
        })).observe({type: 'layout-shift', buffered: true});
        setTimeout(() => done(shifts), 300);
    })"""
    for uri in ("", "leaderboard/", DASHBOARD, "runs/", "compare/", RUN):
        for width in (1440, 390):
            page = site.open(uri, viewport={"width": width, "height": 844}).page
            settle(page)
            shifts = page.evaluate(measure)
            assert sum(value for value, _ in shifts) <= 0.01, (uri, width, shifts)
            page.context.close()


def test_nothing_sticks_out_of_a_small_screen(site: Host) -> None:
    wide = {}
    page = site.open("", viewport={"width": 390, "height": 844}).page
    for uri in PAGES + hand_written(site.folder):
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(site.address + uri)
        settle(page)
        for width in (390, 768):
            page.set_viewport_size({"width": width, "height": 844})
            extent = page.evaluate("document.documentElement.scrollWidth")
            if extent > width:
                wide[uri, width] = extent
    assert wide == {}


FIRST = "#phase1-output-throughput-relative"
"""The first chart of the campaign, of which every point is a run."""


def test_keyboard_alone_filters_and_reaches_a_run(site: Host) -> None:
    page = site.open("campaigns/phase1/").page
    page.focus(".sp-filters summary")
    page.keyboard.press("Enter")
    page.focus("input[name=model]")
    page.keyboard.press("Space")
    page.wait_for_url("**?model=*")
    page.wait_for_selector(f"{FIRST} .sp-wide .mark-symbol path")
    page.locator(f"{FIRST} .sp-mark").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/phase1-*/")


def test_a_finger_gets_the_narrow_chart_and_a_pointer_is_told_of_a_run(
    site: Host,
) -> None:
    phone = {"width": 390, "height": 800}
    page = site.open(
        "campaigns/phase1/", viewport=phone, has_touch=True, is_mobile=True
    ).page
    page.tap(f"{FIRST} .sp-chart")
    page.wait_for_selector(f"{FIRST} .sp-narrow .mark-symbol path")
    page = site.open("campaigns/phase1/").page
    page.locator(f"{FIRST} .sp-chart").dispatch_event("pointerenter")
    mark = page.locator(f"{FIRST} .sp-wide > div .mark-symbol path").first
    mark.wait_for()
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert "%" in page.locator(".sp-tip").inner_text()
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url("**/runs/phase1-*/")


def test_a_chart_that_cannot_start_stays_as_drawn(site: Host) -> None:
    page = site.open("campaigns/phase1/").page
    page.route("**/charts/*.json", lambda route: route.abort())
    drawn = page.locator(f"{FIRST} .sp-wide svg a").count()
    with page.expect_event("requestfailed"):
        page.locator(f"{FIRST} .sp-chart").dispatch_event("pointerenter")
    assert page.locator(f"{FIRST} .sp-wide svg a").count() == drawn > 0


def test_forced_colours_keep_series_apart(site: Host) -> None:
    page = site.open("campaigns/phase1/", forced_colors="active").page
    fills = page.evaluate(
        f"[...new Set([...document.querySelectorAll('{FIRST} .sp-wide a > *')]"
        ".map(mark => getComputedStyle(mark).stroke))]"
    )
    assert len(fills) == 2


# ---- Explorer ----------------------------------------------------------------------------------------------------


def explorer(site: Host, query: str = "") -> Any:
    page = site.open("runs/" + query).page
    settle(page)
    page.dispatch_event("[data-sp-explorer]", "pointerover")
    page.wait_for_selector(EXPLORER, state="attached")
    return page


EXPLORER = ".sp-columns input"
"""What only the program of the explorer makes."""


def shown(page: Any) -> int:
    return int(page.locator("[data-sp-explorer] tbody tr").count())


def test_explorer_holds_all_runs_of_all_campaigns(site: Host) -> None:
    folders = campaign_folders(REPOSITORY / DEFAULT_DATA)
    count = sum(1 for folder in folders for _ in record_paths(folder)) + 10
    page = explorer(site)
    said = page.locator("[data-sp-explorer] form output").inner_text()
    assert said == f"{count:,} of {count:,} runs"
    assert shown(page) == min(count, 10)
    if count > 100:
        page.click(f"text=Show all {count:,}")
    assert shown(page) == count


def test_explorer_filters_searches_sorts_and_remembers(site: Host) -> None:
    page = explorer(site)
    page.click("[data-sp-explorer] form summary:has-text('campaigns')")
    page.click(f"[data-sp-explorer] label:has([value={NAME}])")
    assert shown(page) == 10
    # Both environments are native ones to readers; the ids of runs part them.
    page.fill("[name=find]", "bench-native iter03")
    assert shown(page) == 1
    page.fill("[name=find]", "")
    page.locator("thead button", has_text="Output throughput").click()
    page.locator("thead button", has_text="Output throughput").click()
    page.wait_for_url("**sort=-output_throughput_tok_s**")
    first = page.locator("tbody tr").first.inner_text()
    again = explorer(site, page.url.partition("runs/")[2])
    assert again.locator("tbody tr").first.inner_text() == first
    assert shown(again) == 10


def test_explorer_draws_what_a_reader_chooses(site: Host) -> None:
    page = explorer(site, f"?campaign={NAME}")
    page.select_option("select[name=y]", "request_latency_p50_ms")
    page.wait_for_url("**y=request_latency_p50_ms**")
    page.wait_for_selector("#explorer .mark-symbol path")
    # A point for each run, and the signs of the legend.
    assert page.locator("#explorer .mark-symbol path").count() >= 10


# ---- Compare -----------------------------------------------------------------------------------------------------


def test_two_speeds_stand_side_by_side_with_their_difference(site: Host) -> None:
    """The figures are those of `data/speeds.json`; the address carries the choice."""
    visit = site.open("models/qwen3.6-27b/")
    page = visit.page
    page.click("a:has-text('Compare')")
    page.wait_for_url("**/compare/?of=*")
    page.wait_for_selector(".sp-compared tbody tr")
    second = page.locator("fieldset").nth(1).locator("select[name=model]")
    second.select_option("gpt-oss-20b")
    page.wait_for_url("**of=*&of=*")
    rows = json.loads((site.folder / "data" / "speeds.json").read_text())
    asked = parse_qs(urlsplit(page.url).query)["of"]
    by_id = {row["id"]: row for row in rows}
    first, other = (by_id[name] for name in asked)
    change = 100 * (other["total"] / first["total"] - 1)
    line = page.locator(".sp-compared tbody tr").first.inner_text()
    assert f"{abs(change):.1f} %" in line
    # The load of the first holds for both until a reader chooses another.
    loads = page.locator("select[name=load]")
    shared = "10 users, 1,024 in, 1,024 out (llama-benchy)"
    loads.first.select_option(shared)
    assert loads.nth(1).input_value() == shared
    again = site.open(page.url.removeprefix(site.address)).page
    again.wait_for_selector(".sp-compared tbody tr")
    assert (
        again.locator(".sp-compared").inner_text()
        == page.locator(".sp-compared").inner_text()
    )
    assert visit.errors == []
    # Where requests arrive at a rate, throughput follows the rate and is not compared.
    arriving = next(row["id"] for row in rows if row["rate"] is not None)
    page = site.open(f"compare/?{urlencode({'of': arriving})}").page
    page.wait_for_selector(".sp-compared tbody tr")
    heads = page.locator(".sp-compared tbody th").all_inner_texts()
    assert heads == ["First token (ms)", "Runs"]


# ---- Runs -----------------------------------------------------------------------------------------------------------


def test_a_run_is_whole_without_scripting(site: Host) -> None:
    page = site.open(RUN, java_script_enabled=False).page
    assert page.locator("h1").count() == 1
    assert page.locator("#metrics + .sp-scroll tbody tr").count() > 0
    assert page.locator("#evidence + .sp-scroll a").count() > 0
    page.click("#log")
    assert "\n260 " in page.locator(".sp-log").inner_text()


def test_a_run_is_drawn_from_its_data(site: Host) -> None:
    """Four signals of 87 samples; of a log of 260 lines the last."""
    visit = site.open(RUN)
    page = visit.page
    page.wait_for_selector(".sp-chart")
    assert page.locator("h1").count() == 1
    assert (
        page.locator(".sp-wide > svg path[d*=L], .sp-wide > svg path[d*=H]").count()
        == 0
    )
    before = page.locator(".sp-chart").bounding_box()
    page.locator(".sp-chart").scroll_into_view_if_needed()
    page.wait_for_selector(".sp-wide > div svg")
    lines = page.locator(".sp-wide .mark-line path").evaluate_all(
        "all => all.map((one) => one.getAttribute('d').length)"
    )
    assert len(lines) == 4
    assert min(lines) > 100
    after = page.locator(".sp-chart").bounding_box()
    assert (before["width"], before["height"]) == pytest.approx(
        (after["width"], after["height"]), abs=1
    )
    page.click("#log")
    log = page.locator(".sp-log").inner_text()
    assert "\n260 " in log
    assert "\n1 " not in log
    assert visit.errors == []
