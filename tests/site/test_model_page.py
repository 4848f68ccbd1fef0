"""The page of a model: one model over campaigns, its set-ups, what they cost."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from sparkpub.record.metrics import METRICS
from sparkpub.record.record import Machine, Record
from sparkpub.record.text import SPACE
from sparkpub.review.checks import Finding
from sparkpub.site.figures import speeds
from sparkpub.site.figures.draw import draw
from sparkpub.site.pages import memory, model_page, templating
from sparkpub.site.study import StudiedCampaign
from tests.leaderboards import LOAD, a_finding, runs_of
from tests.site.test_front_page import BF16, FP8, ONE, published, text


def page(*records: Record, findings: Sequence[Finding] = ()) -> str:
    """The page of the only model as HTML within Markdown."""
    publication = published(*records, findings=findings)
    (model,) = model_page.models(publication)
    content = templating.page("model", publication, model=model, charts=("", "", ""))
    return content.whole("models/a.md")


def test_campaigns_and_formats_of_a_model_share_a_page() -> None:
    html = page(
        *runs_of("a", [30.0], load=ONE, model_id="x/A-7B", observed=BF16),
        *runs_of("b", [48.0], campaign="d", model_id="y/A-7B-FP8", observed=FP8),
    )
    assert re.findall(r"^### (.*)$", html, re.MULTILINE) == ["BF16", "FP8"]
    assert "30.0 tok/s" in text(html)


@pytest.mark.parametrize(
    ("one", "other", "names"),
    [
        # As little as tells them apart.
        (
            {"observed": BF16},
            {"observed": BF16 | {"engine": "SGLang"}, "campaign": "d"},
            ["vLLM 0.26.0", "SGLang 0.26.0"],
        ),
        # What is special about one stands behind what all are.
        (
            {"observed": BF16, "environment": "container-bf16"},
            {
                "observed": BF16 | {"speculative_decoding": True},
                "environment": "container-bf16-spec",
            },
            ["BF16", "BF16, bf16-spec"],
        ),
    ],
)
def test_setups_are_told_apart(
    one: dict[str, Any], other: dict[str, Any], names: list[str]
) -> None:
    publication = published(
        *runs_of("a", [30.0], **one), *runs_of("a", [31.0], **other)
    )
    (model,) = model_page.models(publication)
    assert list(model.named.values()) == names


def test_the_commands_are_those_of_the_record_as_a_shell_takes_them() -> None:
    (record,) = runs_of("a", [30.0], observed=BF16)
    requested = record.requested.model_copy(
        update={
            "environment": {
                "type": "host",
                "server": {"argv": ["vllm", "serve", "a b"]},
            }
        }
    )
    run = record.model_copy(update={"argv": ("vllm", "bench"), "requested": requested})
    html = page(run)
    assert "<code>vllm serve &#39;a b&#39;</code></pre>" in html
    assert "<code>vllm bench</code></pre>" in html


@pytest.mark.parametrize(
    ("severity", "cell", "marked"),
    [
        ("warning", "a/native/w", ["275,040"]),
        ("warning", "b/native/w", []),
        ("info", "a/native/w", []),
    ],
)
def test_a_figure_that_a_check_warns_of_is_marked(
    severity: str, cell: str, marked: list[str]
) -> None:
    metrics = {"prompt_throughput_tok_s": 275_040.0, "ttft_mean_ms": 52.11}
    finding = replace(
        a_finding("same-numbers", severity, cell),
        evidence={"metric": "prompt_throughput_tok_s"},
    )
    html = page(
        *runs_of("a", [116.0], load=ONE, metrics=metrics, workload="w"),
        findings=[finding],
    )
    found = re.findall(r'<td>([^<]+) <abbr title="A check [^"]*: same numbers">▲', html)
    assert found == marked


def test_memory_and_what_explains_a_figure_stand_on_the_page() -> None:
    """7 billion parameters of 8 bits are 6.52 GiB; 57,344 bytes for each of 1,000 tokens are 54.7 MiB."""
    machine = Machine(kind="other", memory_total_gib=64.0)
    # Of which nothing is known has no column.
    assert "KV cache of" not in page(
        *runs_of("a", [30.0], model_id="x/A-7B-FP8", observed=FP8, machine=machine)
    )
    metrics = {"draft_acceptance_percent": 71.0, "model_load_seconds": 30.0}
    html = page(
        *runs_of(
            "a",
            [30.0],
            model_id="x/A-7B-FP8",
            observed=FP8 | {"kv_bytes_per_token": 57_344},
            machine=machine,
            metrics=metrics,
        )
    )
    fits = html.partition('id="fits"')[2] or html.partition("{: #fits }")[2]
    assert "FP8 ~7 GiB 57 GiB 64.0 GiB, other 54.7 MiB" in text(fits)
    assert "Accepted draft tokens" in text(fits)
    assert METRICS["draft_acceptance_percent"].definition in text(fits)
    assert "71.0 %" in text(fits).replace("\u00a0", " ")


def test_a_name_tells_no_size_of_formats_below_four_bits() -> None:
    """IQ1_M takes nearly two bits for each parameter; 7 billion of 4 bits are 3.26 GiB."""
    for name, shown in (("IQ1_M", []), ("Q4_K_M", ["~3 GiB"])):
        observed = {"quantization": name}
        runs = runs_of("a", [30.0], model_id="x/A-7B", observed=observed)
        publication = published(*runs)
        fits = memory.fits(publication, publication.speeds)
        assert [fit.weights for fit in fits] == shown


def test_memory_of_which_nothing_was_used_has_no_ledger() -> None:
    machine = Machine(kind="other", memory_total_gib=64.0)
    for used, says in (
        (0.0, None),
        (16.0, "Most of the memory in use is not broken down: 16.0 GiB."),
    ):
        metrics = {"peak_memory_gib": used}
        publication = published(*runs_of("a", [30.0], machine=machine, metrics=metrics))
        found = memory.ledger(StudiedCampaign(publication, publication.campaigns[0]))
        assert (found and found[0].replace(SPACE, " ")) == says


def test_a_curve_runs_along_the_users_and_says_what_is_best() -> None:
    """The point of 16 users is beaten by that of 8: less in all, and less for each."""
    records = []
    for count, total in ((1, 50.0), (8, 240.0), (16, 200.0)):
        load = {**LOAD, "concurrency": count}
        records += runs_of("m", [total], load=load, workload=f"w{count}")
    publication = published(*records)
    (model,) = model_page.models(publication)
    figure = model.curve(speeds.users_of_model)
    assert figure is not None
    # What something else beats is hollow: it does not count.
    points = [(row["x"], row.get("counts", True)) for row in figure.chart.rows]
    assert points == [(50.0, True), (30.0, True), (12.5, False)]
    assert figure.says.startswith(
        "Most measured: 240 tok/s in all, with 8 users at 30.0 tok/s each"
    )
    assert all(f">{users}<" in draw("k", figure.chart).svg_wide for users in (1, 8, 16))


OLD, NEW = (
    BF16 | {"engine": "vLLM", "engine_version": version} for version in ("0.25", "0.26")
)


def test_a_long_context_slows_the_answer_and_delays_its_first_token() -> None:
    """A token in 20 ms is 50 tok/s, one in 25 ms 40. Only the set-up with three lengths has a line, and an answer that
    is longer than its prompt says little about what stands before it."""
    measured = [
        ("a", BF16, 512, 20.0, 300.0),
        ("a", BF16, 4096, 22.0, 900.0),
        ("a", BF16, 16384, 25.0, 4000.0),
        ("a", BF16, 64, 10.0, 100.0),
        ("b", FP8, 512, 10.0, 200.0),
    ]
    runs = []
    for model, observed, prompt, token, wait in measured:
        runs += runs_of(
            model,
            [30.0],
            load=ONE | {"input_tokens": prompt, "output_tokens": 128},
            metrics={"tpot_mean_ms": token, "ttft_mean_ms": wait},
            model_id="x/A-7B",
            observed=observed,
            workload=f"in{prompt}",
        )
    publication = published(*runs)
    (model_,) = model_page.models(publication)
    figure = model_.curve(speeds.context_of_model)
    assert figure is not None
    assert figure.says.replace(SPACE, " ") == (
        "One user gets 50.0 tok/s after 512 tokens, the first in 0.30 s, "
        "and 40.0 tok/s after 16,384, the first in 4.0 s (BF16)."
    )
    assert [row["Tokens before the answer"] for row in figure.table] == [
        "512",
        "4,096",
        "16,384",
    ]
    assert draw("k", figure.chart).svg_narrow


def test_a_recipe_has_its_colour_on_every_chart_of_a_page() -> None:
    """Colours go by the order of the recipes, whichever is the fastest at the longest context."""
    runs = []
    for model, observed, token in (("a", BF16, 20.0), ("b", FP8, 10.0)):
        for prompt, users in ((512, 1), (512, 8), (4096, 1), (16384, 1)):
            lengths = {"input_tokens": prompt, "output_tokens": 128}
            runs += runs_of(
                model,
                [1000 / token],
                load=ONE | lengths | {"concurrency": users},
                metrics={"tpot_mean_ms": token, "ttft_mean_ms": 300.0},
                model_id="x/A-7B",
                observed=observed,
                workload=f"in{prompt}-c{users}",
            )
    publication = published(*runs)
    (model_,) = model_page.models(publication)
    for make in (speeds.users_of_model, speeds.context_of_model):
        figure = model_.curve(make)
        assert figure is not None
        assert figure.chart.shape.keywords["groups"] == ["BF16", "FP8"]


def test_a_new_version_is_drawn_with_what_it_changed() -> None:
    """From 100 to 120 tok/s is 20 %; one run's noise is not known, so of `o` nothing is said to have changed."""
    publication = published(
        *runs_of("m", [100.0, 101.0, 99.0, 100.0], observed=OLD),
        *runs_of("m", [50.0], observed=OLD, load=ONE, workload="o"),
        *runs_of("m", [120.0, 121.0, 119.0, 120.0], campaign="d", observed=NEW),
        *runs_of("m", [55.0], campaign="d", observed=NEW, load=ONE, workload="o"),
    )
    (model,) = model_page.models(publication)
    figure = model.versions
    assert figure is not None
    assert figure.says.startswith("1 of 2 loads changed beyond the noise of their runs")
    rows = {round(row["value"], 9): row["verdict"] for row in figure.chart.rows}
    assert rows == {10.0: "not shown", 20.0: "changed"}
    assert [str(row["Measured (tok/s)"]).count("→") for row in figure.table] == [1, 1]
    assert draw(figure.key, figure.chart).svg_wide


def test_the_change_of_one_load_is_told_by_itself() -> None:
    publication = published(
        *runs_of("m", [100.0, 101.0, 99.0, 100.0], observed=OLD),
        *runs_of("m", [120.0, 121.0, 119.0, 120.0], campaign="d", observed=NEW),
    )
    (model,) = model_page.models(publication)
    figure = model.versions
    assert figure is not None
    said = figure.says.replace("\u202f", " ").replace("\u00a0", " ")
    assert said.startswith("vLLM 0.25 → vLLM 0.26: +20.0 %, +18")
