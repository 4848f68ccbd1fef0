"""Charts on a page of their own: drawn without script, live on intent, filtered together, linked by real links."""

import html
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sparkpub.site.browser import runtime, security
from sparkpub.site.cache import Cache
from sparkpub.site.content import ROOT
from sparkpub.site.figures import shapes
from sparkpub.site.figures.draw import Chart, draw
from sparkpub.site.figures.output import markup
from tests.browser.conftest import Host, served

ROWS = [
    {
        "run": f"r{i}",
        "model": "ab"[i % 2],
        "kind": "run",
        "name": "all",
        "offset": 0.5,
        "value": 10.0 + i,
        "position": i,
        "tip": {"run": f"r{i}", "value": f"{10 + i}"},
        "href": f"runs/r{i}/",
    }
    for i in range(20)
]


FORM = """<form class="sp-filters"><fieldset><legend>Model</legend>
<label><input type="checkbox" name="model" value="a"><span>a</span></label>
<label><input type="checkbox" name="model" value="b"><span>b</span></label>
</fieldset><output aria-live="polite"></output><button type="reset">All</button></form>"""


def build(folder: Path) -> None:
    browser = runtime.files(Cache(folder.parent / "cache"))
    figures = ""
    for x in ("value", "position"):
        rows = [{**row, "value": row[x]} for row in ROWS]
        chart = Chart(partial(shapes.dots, title=x), rows)
        made = draw(x, chart)
        target = folder / "charts" / f"{x}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps({"rows": rows, **json.loads(made.live)}))
        drawn = markup(made, live=f"charts/{x}.json")
        figures += f'<figure class="sp-figure" id="{x}"><p class="sp-title">{x}</p>{drawn}</figure>'
    table = "".join(
        f'<tr data-sp-row data-model="{row["model"]}"><td>{row["run"]}</td></tr>'
        for row in ROWS
    )
    page = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Charts</title>
<meta http-equiv="Content-Security-Policy" content="{security.policy([])}">
<meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,"><link rel="stylesheet" href="{browser.stylesheet}">
<script type="module" src="{browser.module}"></script></head>
<body><main>{FORM}{figures}<table class="sp-sortable"><thead><tr><th>Run</th></tr></thead>
<tbody>{table}</tbody></table></main></body></html>"""
    (folder / "index.html").write_text(page.replace(ROOT, ""))
    for row in ROWS:
        run = folder / row["href"] / "index.html"
        run.parent.mkdir(parents=True)
        run.write_text(
            f'<!doctype html><link rel="icon" href="data:,"><title>{html.escape(row["run"])}</title>'
        )
    for address, content in browser.files.items():
        (folder / address).parent.mkdir(parents=True, exist_ok=True)
        (folder / address).write_bytes(content)


@pytest.fixture(scope="module")
def charts(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("charts") / "out"
    folder.mkdir()
    build(folder)
    yield from served(chromium, folder)


def marks(page: Any, chart: str) -> int:
    """Points of the drawing or view that is shown."""
    return int(page.locator(f"#{chart} .sp-wide .mark-symbol path").count())


def live(page: Any, chart: str = "value") -> None:
    page.hover(f"#{chart} .sp-chart")
    page.wait_for_selector(f"#{chart} .sp-wide .mark-symbol path")


def test_the_live_view_takes_the_place_of_the_drawing(charts: Host) -> None:
    page = charts.open().page
    before = page.locator("#value .sp-wide svg").bounding_box()
    live(page)
    assert page.locator("#value .sp-wide svg").bounding_box() == before


def test_phone_gets_the_narrow_drawing_and_view(charts: Host) -> None:
    visit = charts.open(
        viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True
    )
    assert not visit.page.locator("#value .sp-wide svg").is_visible()
    visit.page.tap("#value .sp-chart")
    visit.page.wait_for_selector("#value .sp-narrow .mark-symbol path")
    assert any(url.endswith("value.json") for url in visit.requests)
    assert visit.errors == []


def test_hover_tells_and_a_click_opens_the_run(charts: Host) -> None:
    page = charts.open().page
    live(page)
    point = page.locator("#value .mark-symbol path").nth(4).bounding_box()
    page.mouse.move(point["x"] + point["width"] / 2, point["y"] + point["height"] / 2)
    tip = page.locator(".sp-tip")
    assert "r4" in tip.inner_text()
    assert "14" in tip.inner_text()
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url("**/runs/r4/")


def test_arrow_keys_reach_a_run(charts: Host) -> None:
    page = charts.open().page
    page.locator("#value .sp-mark").focus()
    page.wait_for_selector("#value .sp-wide .mark-symbol path")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert (
        page.evaluate("document.activeElement.getAttribute('aria-label')")
        == "run r2, value 12"
    )
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/r2/")


def test_a_filter_holds_for_all_charts_tables_and_the_address(charts: Host) -> None:
    visit = charts.open()
    page = visit.page
    page.check("input[value=a]")
    for chart in ("value", "position"):
        page.wait_for_selector(f"#{chart} .sp-wide .mark-symbol path")
        assert marks(page, chart) == 10
    assert page.locator("tbody tr:visible").count() == 10
    page.wait_for_url("**?model=a")
    assert "10 of 20" in page.locator("form [aria-live]").inner_text()
    page.check("input[value=b]")
    page.wait_for_function(
        "document.querySelectorAll('#value .mark-symbol path').length == 20"
    )
    page.wait_for_url("**?model=a,b")
    page.click("button[type=reset]")
    page.wait_for_url("**/sparkpub/")
    assert visit.errors == []


def test_a_chart_that_cannot_start_stays_as_drawn(charts: Host) -> None:
    visit = charts.open()
    visit.page.route("**/charts/*.json", lambda route: route.abort())
    with visit.page.expect_event("requestfailed"):
        visit.page.hover("#value .sp-chart")
    assert visit.page.locator("#value .sp-wide svg a").count() == len(ROWS)
