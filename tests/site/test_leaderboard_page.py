"""The leaderboard as a page: rows in words, with everything against them in sight and their runs one click away."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from sparkpub.record.metrics import METRICS
from sparkpub.record.record import Machine, Record
from sparkpub.review.checks import Finding
from sparkpub.review.leaderboard import Row, Standings, standings
from sparkpub.review.results import Results
from sparkpub.review.statistics.describe import describe
from sparkpub.site.pages import leaderboard_page
from sparkpub.site.pages.leaderboard_page import place_text, spread_text
from sparkpub.site.pages.templating import Templates
from tests.leaderboards import (
    LOAD,
    TPUT,
    a_finding,
    dataset_of,
    reviewed,
    runs_of,
)

SPARK = Machine(kind="dgx-spark")


def found(*records: Record, findings: Sequence[Finding] = ()) -> Standings:
    review = reviewed(dataset_of(*records), findings=findings)
    return standings(Results(review))


def page(*records: Record, findings: Sequence[Finding] = ()) -> str:
    """The whole page as HTML within Markdown."""
    context = leaderboard_page.context(found(*records, findings=findings))
    content = Templates().page("leaderboard", **context)
    return content.inlined("leaderboard/index.md").decode()


def rows(html: str) -> list[str]:
    return re.findall(r"<tr data-model=.*?</tr>", html, re.DOTALL)


def text(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_a_row_says_what_ran_where_how_fast_and_leads_to_its_runs() -> None:
    (row,) = rows(
        page(
            *runs_of(
                "m",
                [104.0, 100.0, 106.0, 102.0],
                model_id="Qwen/Qwen2.5-7B",
                observed={
                    "engine": "vLLM",
                    "engine_version": "0.24.0",
                    "dtype": "bfloat16",
                },
                machine=SPARK,
                metrics={"ttft_p50_ms": 25.0},
            )
        )
    )
    # The mean is 103 and s² = 20/3. Half the interval is 3.182 (Student's t, three degrees of freedom) times the
    # standard error, sqrt(s² / 4 + 1 / 12) for values in steps of 1: 3.182 × 1.323 = 4.21.
    assert text(row).startswith(
        "Qwen2.5-7B c BF16 vLLM 0.24.0 NVIDIA DGX Spark (GB10) native 103.00 ± 4.21"
    )
    assert '<td class="sp-generation"><b>103.00</b> <small>± 4.21</small></td>' in row
    assert text(row).endswith("4 runs")
    assert (
        'href="../runs/?campaign=c&amp;model=m&amp;environment=native&amp;workload=w#c">4 runs<'
        in row
    )
    assert 'href="../models/m/">Qwen2.5-7B</a>' in row


def test_the_only_run_of_a_row_is_linked_itself() -> None:
    (row,) = rows(page(*runs_of("m", [100.0])))
    assert 'href="../runs/c-m-native-1/">1 run<' in row
    assert (
        'title="With fewer than 4 runs the spread is unknown.">only 1 run</span>' in row
    )


def test_bars_are_relative_to_the_best_of_the_load() -> None:
    html = page(
        *runs_of("a", [200.0]),
        *runs_of("b", [50.0]),
        *runs_of("c", [10.0], load={**LOAD, "concurrency": 1}),
    )
    widths = [re.findall(r'<rect width="([\d.]+)%"', row) for row in rows(html)]
    # Loads stand in their order: one at once, where nobody else is, then eight.
    assert widths == [[], ["100"], ["25"]]


def test_every_load_is_named_above_its_rows() -> None:
    html = page(
        *runs_of("a", [200.0]), *runs_of("c", [10.0], load={**LOAD, "concurrency": 1})
    )
    loads = re.findall(r'<th scope="rowgroup" colspan="(\d+)">([^<]+)', html)
    assert loads == [
        ("7", "512 tokens in, 128 tokens out, 1 at once"),
        ("7", "512 tokens in, 128 tokens out, 8 at once"),
    ]
    columns = re.findall(r'<th scope="col"', html)
    assert len(columns) == 7


def test_a_place_stands_only_where_there_is_somebody_to_be_ahead_of() -> None:
    alone, *both = rows(
        page(
            *runs_of("a", [200.0]),
            *runs_of("b", [50.0]),
            *runs_of("c", [10.0], load={**LOAD, "concurrency": 1}),
        )
    )
    assert "<td></td>" in alone
    assert ["<td>≈ 1</td>" in both[0], "<td>≈ 2</td>" in both[1]] == [True, True]


@pytest.mark.parametrize(
    ("places", "approximate", "words"),
    [
        ((3, 3), False, "3"),
        ((1, 2), False, "1–2"),
        ((4, 4), True, "≈ 4"),
        ((1, 5), True, "≈ 1–5"),
        (None, False, ""),
    ],
)
def test_places_in_words(
    places: tuple[int, int] | None, approximate: bool, words: str
) -> None:
    row: Row = found(*runs_of("m", [1.0])).rows[0]
    assert place_text(replace(row, places=places, is_approximate=approximate)) == words


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([100.0], ""),
        # Two equal values of resolution 0.1: rounding alone, finer than the two decimals of the metric.
        ([100.0, 100.0, 100.0, 100.0, 100.0], r"± 0\.\d+|"),
        ([100.0, 110.0, 90.0, 105.0], r"± \d+\.\d\d"),
    ],
)
def test_half_the_interval_stands_beside_a_mean(
    values: Sequence[float], words: str
) -> None:
    assert re.fullmatch(words, spread_text(describe(values), METRICS[TPUT]))


def test_an_interval_finer_than_the_digits_is_left_out() -> None:
    figure = replace(describe([1.0, 2.0]), ci95=(0.999, 1.001))
    assert spread_text(figure, METRICS[TPUT]) == ""
    figure = replace(figure, ci95=(0.98, 1.02))
    assert spread_text(figure, METRICS[TPUT]) == "± 0.02"


def test_rows_are_filtered_by_what_they_differ_in() -> None:
    context = leaderboard_page.context(
        found(
            *runs_of("c", [1.0], model_id="C", observed={"dtype": "bfloat16"}),
            *runs_of("10b", [1.0], load={**LOAD, "concurrency": 16}),
            *runs_of("2a", [1.0], load={**LOAD, "concurrency": 2, "depth": 4096}),
        )
    )
    fields = {field["name"]: field["values"] for field in context["fields"]}
    assert fields == {
        "model": ["2a", "10b", "C"],
        "weights": ["BF16", "not stated"],
        "flow": ["2 at once", "8 at once", "16 at once"],
        "depth": ["0", "4,096"],
    }


def test_each_value_of_the_form_is_the_value_of_a_row_or_of_its_load() -> None:
    html = page(
        *runs_of("a", [1.0], observed={"dtype": "bfloat16"}),
        *runs_of("b", [1.0], load={**LOAD, "concurrency": 16}),
    )
    boxes = re.findall(r'type="checkbox" name="(\w+)" value="([^"]+)"', html)
    assert len(boxes) == 6
    for name, value in boxes:
        assert f'data-{name}="{value}"' in html


def test_rows_can_be_sorted_by_each_column_in_the_direction_that_is_better() -> None:
    context = leaderboard_page.context(
        found(
            *runs_of("a", [1.0], metrics={"ttft_p50_ms": 5.0}),
            *runs_of("b", [1.0], load={**LOAD, "mode": "latency", "batch_size": 1}),
        )
    )
    sorts = [(sort["name"], sort["direction"]) for sort in context["sorts"]]
    assert sorts == [("generation", "higher"), ("ttft", "lower")]


def test_a_figure_that_a_row_does_not_have_leaves_its_cell_empty() -> None:
    with_wait, without = rows(
        page(*runs_of("m", [2.0], metrics={"ttft_p50_ms": 5.0}), *runs_of("n", [1.0]))
    )
    assert '<td class="sp-ttft"><b>5.00</b></td>' in with_wait
    assert "sp-ttft" not in without
    assert without.count("<td") == with_wait.count("<td")


def test_rows_in_doubt_say_so_and_why() -> None:
    records = runs_of("m", [100.0, 101.0, 99.0, 100.5])
    again = records[0].model_copy(update={"run_id": "c-m-native-again"})
    html = page(
        *records,
        again,
        *runs_of("n", [50.0, 51.0, 49.0, 50.5]),
        findings=[a_finding("duplicate-iteration", "error")],
    )
    doubted = next(row for row in rows(html) if 'data-model="m"' in row)
    assert "✖ not ranked: 1 error" in doubted
    assert "1 of 5 runs excluded" in doubted
    assert "sp-bar" not in doubted
    assert (
        "1 row not ranked: errors change what the figures mean (duplicate-iteration)."
        in html
    )


def test_a_load_says_how_many_rows_it_has() -> None:
    """A browser leaves so much room for a load that it has not laid out yet."""
    html = page(*runs_of("m", [1.0]), *runs_of("n", [2.0]))
    (body,) = re.findall(r"<tbody [^>]*>", html)
    assert 'data-rows="2"' in body


def test_an_error_that_leaves_the_meaning_leaves_the_place() -> None:
    html = page(*runs_of("m", [1.0]), findings=[a_finding("checksum", "error")])
    assert "✖ 1 error" in html
    assert "not ranked: 1 error" not in html


def test_the_workload_is_named_where_a_load_has_several() -> None:
    eager = runs_of("n", [50.0], workload="eager")
    notes = re.findall(
        r"</a> <small>([^<]+)</small></th>", page(*runs_of("m", [99.0]), *eager)
    )
    assert notes == ["c, w", "c, eager"]
    assert "<small>c</small>" in page(*runs_of("m", [99.0]))


@pytest.mark.parametrize(
    ("kind", "href"),
    [
        ("error", "review/#c"),
        ("warning", "review/#c"),
        ("excluded", "review/#c-left-out"),
        ("imported", "campaigns/c/"),
        ("random", "campaigns/c/"),
        ("few", ""),
    ],
)
def test_a_caveat_leads_to_what_says_more(kind: Any, href: str) -> None:
    (row,) = found(*runs_of("m", [1.0])).rows
    caveat = replace(row.caveats[-1], kind=kind)
    assert leaderboard_page._caveat(row, caveat)["href"] == href


def test_what_is_not_ranked_is_named_with_the_reason() -> None:
    html = page(*runs_of("m", [100.0]), *runs_of("g", [5.0], metric="matmul_gflop_s"))
    assert "1 cell: no token rate was measured." in html
    assert "c g/native/w" in html
    assert "Not on this page" not in page(*runs_of("m", [100.0]))


def test_nothing_to_rank_is_said() -> None:
    html = page(*runs_of("g", [5.0], metric="matmul_gflop_s"))
    assert "Nothing to rank yet" in html
    assert "<table" not in html


def test_text_of_records_is_never_markup() -> None:
    hostile = '<img src=x onerror="alert(1)">'
    html = page(
        *runs_of(
            "m",
            [1.0],
            model_id=hostile,
            observed={
                "engine": hostile,
                "engine_version": hostile,
                "quantization": hostile,
            },
            machine=Machine(cpu=hostile),
        )
    )
    assert "<img" not in html
    assert html.count("&lt;img src=x") >= 4
