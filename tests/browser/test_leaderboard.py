"""The leaderboard as readers use it: a switch for the load, filters, a phone, a keyboard, an address, no scripting; and
a reader's own result beside the published ones."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.record import Machine
from sparkpub.site.browser import runtime, security
from sparkpub.site.cache import Cache
from sparkpub.site.pages import measure_page, model_page, templating
from tests.browser.conftest import Host, served
from tests.leaderboards import LOAD, runs_of
from tests.site.test_front_page import published

DATA = Path(__file__).parents[1] / "data" / "imports"
SIZES = [1, 7, 30, 70]
ENGINES = ["vLLM", "SGLang"]
BELOW = "Below 20B, or size not stated"
SHELL = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Leaderboard</title>
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<link rel="stylesheet" href="{style}"><script type="module" src="{module}"></script></head>
<body><main class="md-content"><article class="md-typeset"><h1>Leaderboard</h1>{body}</article></main></body></html>"""


def pages() -> dict[str, bytes]:
    """Four models in two formats by two engines for one and eight users: SGLang 10 % slower, FP8 twice as fast."""
    records = []
    for users in (1, 8):
        for size in SIZES:
            for engine in ENGINES:
                for weights, factor in (("bf16", 1), ("fp8", 2)):
                    rate = 1000 / size * users * factor
                    records += runs_of(
                        f"m{size}-{weights}",
                        [rate * (0.9 if engine == "SGLang" else 1.0)],
                        campaign=f"{engine.lower()}-{users}",
                        model_id=f"x/Model-{size}B-{weights.upper()}",
                        load={**LOAD, "concurrency": users},
                        observed={
                            "engine": engine,
                            "quantization": weights,
                            "settings": {"seed": "7"},
                        },
                        machine=Machine(kind="dgx-spark"),
                    )
    records += runs_of(
        "tiny", [100.0], model_id="tiny-llama", load={**LOAD, "concurrency": 4}
    )
    publication = published(*records)
    model = model_page.models(publication)[0]
    made = {
        "index.html": templating.page("leaderboard", publication),
        "measure.html": templating.page(
            "measure", publication, figures=measure_page.FIGURES
        ),
        "model.html": templating.page(
            "model", publication, model=model, charts=("", "", "")
        ),
    }
    found = {}
    for name, page in made.items():
        found[name] = "".join(page.html.values()).replace("\ue000/", "").encode()
    return found | {measure_page.FIGURES: measure_page.published(publication)}


@pytest.fixture(scope="module")
def board(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("board") / "out"
    folder.mkdir()
    browser = runtime.files(Cache(folder.parent / "cache"))
    files = dict(browser.files)
    for name, content in pages().items():
        files[name] = content
        if name.endswith(".html"):
            page = SHELL.format(
                policy=security.policy([]),
                style=browser.stylesheet,
                module=browser.module,
                body=content.decode(),
            )
            files[name] = page.encode()
    for address, content in files.items():
        place = folder / address
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    yield from served(chromium, folder)


def shown(page: Any) -> list[str]:
    """The rows of the first table as far as a reader can see them: model and figures, or a title."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelector('.sp-board').querySelectorAll('tbody tr')]
            .filter(row => row.checkVisibility())
            .map(row => [...row.querySelectorAll('a')].filter(a => a.checkVisibility())
              .map(a => a.firstChild.textContent.trim()).join(' ') || row.textContent)"""
    )
    return found


def test_everything_is_there_without_scripting(board: Host) -> None:
    page = board.open(java_script_enabled=False).page
    # 1,000 tok/s of 1B in 16 bits by vLLM, a 30th of that of 30B, twice that in 8. Large models come first.
    assert shown(page)[0] == "Model-30B 33.3 66.7"
    assert shown(page)[2:4] == [BELOW, "Model-1B 1,000 2,000"]
    assert len(shown(page)) == len(SIZES) + 1
    assert not page.locator("form.sp-filters").is_visible()


def test_filters_narrow_rows_columns_and_recipes_and_the_address_keeps_them(
    board: Host,
) -> None:
    page = board.open().page
    page.click("summary:has-text('Engine')")
    page.locator("label", has_text="SGLang").first.click()
    page.wait_for_url("**/?engine=SGLang")
    assert shown(page)[2:4] == [BELOW, "Model-1B 900 1,800"]
    page.click("summary:has-text('Weights')")
    page.locator("label", has_text="BF16").first.click()
    assert shown(page)[2:4] == [BELOW, "Model-1B 900"]
    again = board.open("?engine=SGLang&weights=BF16").page
    again.wait_for_selector("form:has(:checked)")
    assert shown(again) == shown(page)
    page.click("text=Clear all")
    page.wait_for_url(board.address)
    assert shown(page)[3] == "Model-1B 1,000 2,000"


@pytest.mark.parametrize(
    ("file", "model", "said"),
    [
        # The file has 102.32 tok/s at one user; 100 is published at 4.
        ("llama-benchy/vllm.json", "", "published here: 100.0 with the same weights, under the nearest load"),
        ("vllm-bench/serve-c4.json", "", "Yours: 115.2 tok/s, published here: 100.0"),
        ("vllm-bench/serve-c4.json", "Model-7B", "Yours: 115.2 tok/s, published here: 2,285.7"),
        ("vllm-bench/serve-c4.json", "Other-9B", "No figure of Other-9B is published here."),
        # Its first test generates at 70.39 tok/s, one user.
        ("llama-bench/multi.json", "", "Yours: 70.4 tok/s, published here: 100.0 under the nearest load"),
        ("genai-perf/whole_genai_perf.json", "", "whole_genai_perf.json is no record of sparkpub and no JSON of"),
    ],
)  # fmt: skip
def test_a_result_of_ones_own_stands_beside_the_published_ones(
    board: Host, file: str, model: str, said: str
) -> None:
    visit = board.open("measure.html")
    page = visit.page
    page.fill("input[name=model]", model)
    page.set_input_files("input[type=file]", DATA / file)
    page.wait_for_selector("[data-sp-result] > *")
    assert said in page.inner_text("[data-sp-result]")
    assert visit.errors == visit.elsewhere == []


def test_the_same_load_is_the_same_whatever_tool_measured_it(
    board: Host, tmp_path: Path
) -> None:
    """50 of 100 tokens a second are half."""
    row = {"prompt_size": 512, "response_size": 128, "concurrency": 4}
    own = {
        "model": "tiny-llama",
        "benchmarks": [{**row, "tg_throughput": {"mean": 50}}],
    }
    path = tmp_path / "benchy.json"
    path.write_text(json.dumps(own))
    page = board.open("measure.html").page
    page.set_input_files("input[type=file]", path)
    page.wait_for_selector("[data-sp-result] table")
    said = page.inner_text("[data-sp-result]")
    assert "under the same load" in said
    assert "measured with vllm-bench serve). Yours is 50 % of it." in said
    assert "The loads differ" not in said


def test_a_file_chosen_before_the_page_is_ready_is_not_forgotten(board: Host) -> None:
    page = board.open().page
    held: list[Any] = []
    # Playwright takes no built-in function.
    page.route("**/yours*.js", lambda route: held.append(route))  # noqa: PLW0108
    page.goto(board.address + "measure.html")
    page.set_input_files("input[type=file]", DATA / "llama-bench" / "multi.json")
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    page.wait_for_selector("[data-sp-result] > *")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "result.json is no record of sparkpub"),
        (b'[1, "x", null]', "result.json is no record of sparkpub"),
        (b'{"metrics": {}, "requested": {}}', "result.json is no record of sparkpub"),
    ],
)  # fmt: skip
def test_a_file_of_no_use_is_refused_in_one_line(
    board: Host, tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(content)
    visit = board.open("measure.html")
    with visit.page.expect_file_chooser() as chooser:
        visit.page.click("input[type=file]")
    chooser.value.set_files(path)
    visit.page.wait_for_selector("[data-sp-result] > p")
    assert visit.page.inner_text("[data-sp-result]").startswith(said)
    assert visit.errors == []


def test_a_file_may_call_a_model_as_it_likes(board: Host) -> None:
    """Owner, format and tuning stand around the name; of two that fit, the longer one is meant."""
    keys = ["llama-3-1-8-b", "llama-3-8-b", "qwen-2-5-7-b", "tiny-llama"]
    meant = {
        "llama3.1:8b-instruct-q4_K_M": "llama-3-1-8-b",
        "meta-llama/Meta-Llama-3.1-8B-Instruct": "llama-3-1-8-b",
        "C:\\models\\Meta-Llama-3-8B.IQ2_XS.gguf": "llama-3-8-b",
        "someone/Qwen2.5-7B-Instruct-GPTQ-Int4": "qwen-2-5-7-b",
        "Qwen/Qwen2.5-72B": None,
    }
    (module,) = board.folder.glob("assets/sparkpub/*/yours.js")
    page = board.open().page
    said = page.evaluate(
        """([module, names, keys]) => import(module).then(({ofModel}) =>
          names.map((name) => ofModel(name, keys.map((key) => ({key})))[0]?.key ?? null))""",
        [f"{board.address}{module.relative_to(board.folder)}", [*meant], keys],
    )
    assert said == list(meant.values())
