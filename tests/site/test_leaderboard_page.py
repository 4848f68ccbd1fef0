"""The leaderboard as a page: a table per machine and use, with figures that lead to their set-ups."""

import re
from collections.abc import Sequence
from typing import Any

from sparkpub.record.record import Record, Spread
from sparkpub.review.checks import Finding
from sparkpub.site.pages import leaderboard_page, templating
from tests.leaderboards import LOAD, TPUT, a_finding, runs_of
from tests.site.test_front_page import H200, ONE, SPARK, published, text

VLLM = {"engine": "vLLM", "engine_version": "0.26.0"}


def page(*records: Record, findings: Sequence[Finding] = ()) -> str:
    """The whole page as HTML within Markdown."""
    publication = published(*records, findings=findings)
    content = templating.page("leaderboard", publication)
    return content.whole("leaderboard/index.md")


def rows(html: str) -> list[str]:
    return re.findall(r"<tr><th scope=.row.*?</tr>", html, re.DOTALL)


def test_a_figure_leads_to_its_recipe_and_what_all_share_stands_once() -> None:
    html = page(
        *runs_of("m", [116.0, 116.0], load=ONE, model_id="Qwen/Qwen3-7B", observed=VLLM)
    )
    (row,) = rows(html)
    assert 'href="../models/qwen3-7b/">Qwen3-7B</a>' in row
    assert re.search(r'href="../models/qwen3-7b/#not-stated-native-[0-9a-f]{6}"', row)
    assert text(row) == "Qwen3-7B 116"
    assert re.findall(r"<caption>(.*?)</caption>", html) == [
        "Tokens generated per second: one user, 512 in, 128 out "
        "(native; vLLM 0.26.0; vllm-bench serve)."
    ]


def test_engines_and_formats_are_named_where_they_differ() -> None:
    html = page(
        *runs_of("a", [90.0], load=ONE, observed=VLLM | {"quantization": "nvfp4"}),
        *runs_of(
            "a",
            [70.0],
            campaign="d",
            load=ONE,
            observed={"engine": "SGLang", "quantization": "mxfp4"},
        ),
    )
    (row,) = rows(html)
    assert text(row) == "a 90.0 NVFP4, vLLM 70.0 MXFP4, SGLang"


def test_a_model_that_drafts_tokens_on_another_board_says_where_it_does_not() -> None:
    """Of eight users the repetitions of the only run lie 15 of 120 apart, which is more than a tenth."""
    wide = {TPUT: Spread(repetitions=3, deviation=15.0, divisor="n")}
    html = page(
        *runs_of("a", [20.0], load=ONE, observed=VLLM),
        *runs_of(
            "a",
            [120.0],
            campaign="d",
            load=LOAD,
            observed=VLLM | {"speculative_decoding": True},
            spreads=wide,
        ),
    )
    assert [text(row) for row in rows(html)] == [
        "a 20.0 no speculation",
        "a 120 specu\u00adlative, ± 15",
    ]
    assert html.count(leaderboard_page.SPREAD) == 1


def test_machines_have_sections_and_the_first_is_home() -> None:
    html = page(
        *runs_of("a", [1.0], load=ONE, machine=H200),
        *runs_of("b", [1.0], load=ONE, machine=H200),
        *runs_of("c", [1.0], load=ONE, machine=SPARK),
    )
    sections = re.findall(r'<section class="sp-boards" id="([^"]+)"', html)
    assert sections == ["dgx-spark", "h200"]
    assert "How fast models run on DGX Spark" in html


def test_a_figure_of_a_long_prompt_is_in_seconds() -> None:
    long: dict[str, Any] = {**ONE, "input_tokens": 8192}
    html = page(*runs_of("a", [1.0], load=long, metrics={"ttft_p50_ms": 2330.0}))
    assert text(rows(html)[0]) == "a 2.33"
    assert "Seconds to the first token, fewer are better" in html


def test_what_is_not_ranked_is_said_in_a_sentence() -> None:
    html = page(
        *runs_of("m", [900.0], load=ONE, workload="w"),
        *runs_of("n", [100.0], load=ONE, workload="w"),
        findings=[a_finding("roofline", "error")],
    )
    assert [text(row) for row in rows(html)] == ["n 100"]
    assert (
        "Not ranked m of “ Campaign c ”, because their figures failed checks"
        in text(html)
    )
    none = page(*runs_of("a", [5.0], metric="peak_memory_gib"))
    assert "Nothing to rank yet: no model's speed" in text(none).replace("&#39;", "'")
    unsaid = page(*runs_of("a", [5.0], load={"type": "command"}))
    assert "no load says how many users there were" in text(unsaid)
