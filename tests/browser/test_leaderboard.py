"""The leaderboard as readers use it: five hundred rows, a phone, a keyboard, an address, and no scripting."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.record import Machine
from sparkpub.review.leaderboard import standings
from sparkpub.review.results import Results
from sparkpub.site.browser import runtime, security
from sparkpub.site.cache import Cache
from sparkpub.site.pages import leaderboard_page
from sparkpub.site.pages.templating import Templates
from tests.browser.conftest import Host, served
from tests.browser.test_site import violations
from tests.leaderboards import LOAD, dataset_of, reviewed, runs_of

ROWS = 500
MODELS = [f"Model-{number}B" for number in range(1, 51)]
ENGINES = ["vLLM", "llama.cpp"]
SHELL = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Leaderboard</title>
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<link rel="stylesheet" href="{style}"><script type="module" src="{module}"></script></head>
<body><main class="md-content"><article class="md-typeset"><h1>Leaderboard</h1>{body}</article></main></body></html>"""


def board() -> str:
    """50 models, 2 engines, 5 numbers of requests at once: 500 rows, faster with each model."""
    records = []
    for at_once in (1, 2, 4, 8, 16):
        for place, model in enumerate(MODELS, 1):
            for engine in ENGINES:
                rate = 10.0 * place * at_once + (engine == "vLLM")
                records += runs_of(
                    model.lower(),
                    [rate],
                    campaign=f"c{at_once}",
                    model_id=f"x/{model}",
                    environment=engine.lower(),
                    load={**LOAD, "concurrency": at_once},
                    observed={"engine": engine, "dtype": "bfloat16"},
                    metrics={
                        "ttft_p50_ms": 1000.0 / place,
                        "gpu_memory_peak_gib": float(place),
                    },
                    machine=Machine(kind="dgx-spark"),
                )
    review = reviewed(dataset_of(*records))
    found = standings(Results(review))
    page = Templates().page("leaderboard", **leaderboard_page.context(found))
    return "".join(page.blocks.values())


@pytest.fixture(scope="module")
def large(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("board") / "out"
    folder.mkdir()
    browser = runtime.files(Cache(folder.parent / "cache"), node=False)
    for address, content in browser.files.items():
        place = folder / address
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    body = board().replace("\ue000/", "")
    first_load = body.partition('<tr data-model="')[1:]
    rows = "".join(first_load).partition("</tbody>")[0]
    pages = {"index.html": body, "long.html": body.replace(rows, rows + rows, 1)}
    for name, content in pages.items():
        page = SHELL.format(
            policy=security.policy([]),
            style=browser.stylesheet,
            module=browser.module,
            body=content,
        )
        Path(folder, name).write_text(page)
    yield from served(chromium, folder)


def ready(large: Host, query: str = "", **options: Any) -> Any:
    page = large.open(query, **options).page
    page.wait_for_selector("form[data-sp-board]:not([hidden])")
    return page


def shown(page: Any) -> list[str]:
    """The model, engine and load of every row in sight."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll('.sp-board tbody tr[data-model]')]
            .filter(row => row.checkVisibility())
            .map(row => [row.dataset.model, row.dataset.engine, row.parentElement.dataset.flow].join(' '))"""
    )
    return found


def said(page: Any) -> str:
    return str(page.locator("form[data-sp-board] output").inner_text())


def test_all_rows_are_there_without_scripting(large: Host) -> None:
    page = large.open(java_script_enabled=False).page
    assert len(shown(page)) == ROWS
    assert not page.locator("form[data-sp-board]").is_visible()
    first = page.locator("tr[data-model]").first
    # The best of its load has a whole bar, the 25th of 50 models half of one.
    bars = page.locator(".sp-bar rect")
    longest = bars.first.bounding_box()["width"]
    assert longest > 50
    middle = page.locator("tr[data-model=Model-25B] .sp-bar rect").first
    assert middle.bounding_box()["width"] == pytest.approx(longest / 2, rel=0.01)
    # The best of the first load stands first: 10 × 50 × 1 tok/s, and one more on vLLM.
    assert "501.00" in first.inner_text()
    assert first.locator("a", has_text="1 run").first.is_visible()


def test_boxes_narrow_all_tables_and_the_address_keeps_the_view(large: Host) -> None:
    page = ready(large)
    assert len(shown(page)) == ROWS
    page.click("summary:has-text('Model')")
    page.locator("label", has_text="Model-7B").first.click()
    page.keyboard.press("Escape")
    page.click("summary:has-text('Requests')")
    page.locator("label", has_text="8 at once").first.click()
    page.wait_for_url("**/?model=Model-7B&flow=8+at+once")
    assert shown(page) == ["Model-7B vLLM 8 at once", "Model-7B llama.cpp 8 at once"]
    assert said(page) == "2 of 500 rows"
    assert page.locator("summary", has_text="Model (1)").count() == 1
    again = ready(large, "?model=Model-7B&flow=8+at+once")
    assert shown(again) == shown(page)
    page.keyboard.press("Escape")
    page.click("text=Clear all")
    page.wait_for_url(large.address)
    assert len(shown(page)) == ROWS


def test_search_takes_words_of_the_row_and_of_its_load(large: Host) -> None:
    page = ready(large)
    # "tokens" stands above the rows of each load alone.
    page.fill("input[name=find]", "model-9b LLAMA tokens")
    loads = [f"{number} at once" for number in (1, 2, 4, 8, 16)]
    assert shown(page) == [f"Model-9B llama.cpp {load}" for load in loads]
    page.wait_for_url("**find=*")
    assert shown(ready(large, "?find=model-9b+LLAMA+tokens")) == shown(page)
    page.fill("input[name=find]", "nothing like it")
    assert shown(page) == []
    assert said(page) == "0 of 500 rows"
    assert not page.locator("h2", has_text="vLLM").is_visible()


def test_rows_are_sorted_within_their_loads_and_bars_show_what_they_are_sorted_by(
    large: Host,
) -> None:
    page = ready(large)
    page.select_option("select[name=sort]", "ttft")
    page.wait_for_url("**/?sort=ttft")
    # 1,000 ms / 50 is the shortest wait and that of the last model the longest.
    assert shown(page)[0].startswith("Model-50B")
    assert shown(page)[99].startswith("Model-1B")
    assert shown(page)[100].endswith("2 at once")
    first = page.locator("tr[data-model]").first
    assert first.locator(".sp-ttft .sp-bar rect").get_attribute("width") == "2%"
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("TTFT")
    again = ready(large, "?sort=memory")
    assert shown(again)[0].startswith("Model-1B")
    assert shown(again)[99].startswith("Model-50B")
    page.locator("th button", has_text="Generation").first.click()
    page.wait_for_url(large.address)
    assert shown(page)[0].startswith("Model-50B")


def test_a_long_load_shows_a_hundred_rows_until_somebody_asks(large: Host) -> None:
    """Its first load has two hundred, the second hundred the same as the first; the four others have a hundred each."""
    assert len(shown(large.open("long.html", java_script_enabled=False).page)) == 600
    page = ready(large, "long.html")
    assert len(shown(page)) == 500
    # Two engines in five loads, twice in the first one.
    page.fill("input[name=find]", "model-7b")
    assert len(shown(page)) == 12
    assert said(page) == "12 of 600 rows"
    page.fill("input[name=find]", "llama.cpp")
    assert said(page) == "300 of 600 rows"
    page.fill("input[name=find]", "")
    assert len(shown(page)) == 500
    page.click("text=Show all rows")
    assert len(shown(page)) == 600
    assert page.locator("text=Show all rows").count() == 0
    assert ready(large).locator("text=Show all rows").count() == 0


def test_an_address_with_nonsense_shows_everything(large: Host) -> None:
    page = ready(large, "?sort=nonsense&model=nobody")
    assert len(shown(page)) == ROWS


def test_the_keyboard_alone_filters(large: Host) -> None:
    page = ready(large)
    page.focus("summary:has-text('Engine')")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.wait_for_url("**/?engine=*")
    assert len(shown(page)) == ROWS // 2
    page.keyboard.press("Escape")
    assert page.locator("details[open]").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_nobody_is_shut_out_and_nothing_sticks_out(
    large: Host, width: int, scheme: str
) -> None:
    visit = large.open(
        "?sort=ttft&model=Model-7B,Model-8B",
        viewport={"width": width, "height": 844},
        color_scheme=scheme,
        bypass_csp=True,
    )
    visit.page.wait_for_selector("form[data-sp-board]:not([hidden])")
    assert violations(visit.page) == []
    visit.page.click("summary:has-text('Model')")
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    assert visit.errors == visit.elsewhere == []
    assert violations(visit.page) == []


def test_a_phone_shows_each_figure_with_its_name_and_every_caveat(large: Host) -> None:
    page = ready(large, viewport={"width": 390, "height": 844})
    row = page.locator("tr[data-model]").first
    label = "cell => getComputedStyle(cell, '::before').content"
    assert row.locator(".sp-ttft").evaluate(label) == '"TTFT "'
    assert row.locator(".sp-memory").evaluate(label) == '"Memory "'
    assert row.locator(".sp-chip", has_text="only 1 run").is_visible()
    assert row.bounding_box()["width"] <= 390
