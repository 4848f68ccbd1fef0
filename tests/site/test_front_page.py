"""The first page: the questions with their figures, over no campaign, one and several; and what a campaign answers."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.metrics import METRICS
from sparkpub.record.record import Machine, Moment, Origin, Record, Spread
from sparkpub.review.checks import Finding
from sparkpub.review.claims import ledger
from sparkpub.review.claims.claim import Claim
from sparkpub.review.results import Results
from sparkpub.site import sentences
from sparkpub.site.content import SiteOptions
from sparkpub.site.pages import (
    answers,
    campaign_page,
    findings,
    templating,
)
from sparkpub.site.pages.answers import Card
from sparkpub.site.publication import Publication
from sparkpub.site.study import StudiedCampaign
from sparkpub.tools.shapes.llama_benchy import FALLBACK
from tests.leaderboards import (
    LOAD,
    PROMPT,
    TPUT,
    dataset_of,
    reviewed,
    runs_of,
)

SPARK, H200 = Machine(kind="dgx-spark"), Machine(kind="h200")
STEADY = [100.0, 100.2, 99.9, 100.1, 100.0, 99.8]
ONE = {**LOAD, "concurrency": 1}
BF16 = {"engine": "vLLM", "engine_version": "0.26.0", "dtype": "bfloat16"}
FP8 = BF16 | {"quantization": "fp8"}


def published(
    *records: Record,
    claims: Sequence[Claim] = (),
    findings: Sequence[Finding] = (),
    **info: Any,
) -> Publication:
    review = reviewed(dataset_of(*records, **info), findings=findings)
    options = SiteOptions(sources=Path(), name="ours")
    return Publication(Results(review), review, options, ledger.judge(claims, review))


def page(publication: Publication) -> str:
    """The first page as HTML within Markdown."""
    campaigns = campaign_page.in_order(publication)
    shown = {"counts": "", "campaigns": campaigns, "posts": ()}
    content = templating.page("index", publication, answers=(), **shown)
    return content.whole("index.md")


def campaign(number: int, *, cost: float = 0.1, **fields: Any) -> list[Record]:
    """Two environments of a model on one day, in turns; the container is slower by its cost."""
    name = f"c{number}"
    records = []
    for environment, factor in (("native", 1.0), ("container", 1.0 - cost)):
        values = [factor * value for value in STEADY]
        for record in runs_of(
            f"m{number}",
            values,
            campaign=name,
            environment=environment,
            machine=SPARK,
            **fields,
        ):
            minute = 2 * record.iteration + (environment == "container")
            day = f"2026-{1 + number // 28:02d}-{1 + number % 28:02d}"
            started = Moment(value=f"{day}T10:{minute:02d}:00Z", zone="utc")
            update: dict[str, Any] = {"started": started}
            if environment == "container":
                update["requested"] = record.requested.model_copy(
                    update={"environment": {"type": "docker"}}
                )
            records.append(record.model_copy(update=update))
    return records


def text(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def card(question: str, *records: Record, **more: Any) -> Card:
    """The card whose question contains these words."""
    found = answers.cards(published(*records, **more))
    return next(item for item in found if question in item.question)


def bars(card: Card) -> list[tuple[str, str, str]]:
    return [(bar.name, bar.note, bar.figure) for bar in card.bars]


def test_without_a_campaign_the_page_says_what_to_do() -> None:
    assert "sparkpub collect matrix/demo.yaml" in page(published())


def test_the_page_shows_the_newest_campaigns_those_of_the_home_machine_first() -> None:
    records = [record for place in range(4) for record in campaign(place)]
    html = page(published(*records))
    assert html.count('<article class="card">') == 3
    assert "All 4 campaigns</a></p>" in html
    # What is not of the home machine comes behind, however new: a demonstration leads only where it is alone.
    demo = runs_of("none", [5.0], campaign="demo", metric="matmul_gflop_s")
    assert "campaigns/demo/" in page(published(*demo))
    ordered = campaign_page.in_order(published(*demo, *records))
    assert [item.name for item in ordered][-1] == "demo"


def served(model: str, rate: float, **fields: Any) -> list[Record]:
    """One user of a model, `30B` or with its format, on a Spark."""
    given: dict[str, Any] = {"load": ONE, "observed": FP8, "machine": SPARK} | fields
    return runs_of(model.lower(), [rate], model_id=f"x/A-{model}", **given)


def test_no_small_model_leads_where_a_large_one_was_measured() -> None:
    small = served("1B", 116.0, observed=BF16)
    found = card("one user", *small, *served("30B", 64.8), *served("40B", 32.4))
    assert bars(found) == [("A-30B", "FP8", "64.8"), ("A-40B", "FP8", "32.4")]
    assert [bar.share for bar in found.bars] == [1, 0.5]
    assert found.scope.startswith("DGX Spark, from 20B up, tokens a second (vLLM")
    assert "512 in, 128 out" in found.text
    alone = card("one user", *small)
    assert bars(alone) == [("A-1B", "BF16", "116")]
    assert "20B" not in alone.scope + alone.text


def test_users_together_get_a_share_each_and_a_wide_spread_is_shown() -> None:
    """240 by 8 are 30; repetitions that lie 45 apart are more than a tenth of it."""
    wide = Spread(repetitions=3, deviation=45.0, divisor="n")
    found = card("8 users", *served("30B", 240.0, load=LOAD, spreads={TPUT: wide}))
    assert (found.bars[0].figure, found.bars[0].spread) == ("240", "±\xa045")
    assert found.text == (
        "Each user gets 30 tokens a second. ±: between the repetitions of one run."
    )


@pytest.mark.parametrize("is_known", [True, False])
def test_context_is_told_at_the_lengths_that_were_measured(is_known: bool) -> None:
    """20 ms a token are 50 a second and 25 are 40, whatever the wait makes of the throughput.
    llama-bench, for one, tells no wait."""
    records = [
        record
        for at, token, wait in ((1024, 20.0, 500.0), (8192, 25.0, 2300.0))
        for record in served(
            "30B",
            30.0,
            load={**ONE, "input_tokens": at},
            metrics={"tpot_mean_ms": token}
            | ({"ttft_mean_ms": wait} if is_known else {}),
            workload=f"p{at}",
        )
    ]
    found = card("long context", *records)
    waits = [["first token", "0.50 s", "2.3 s"]] if is_known else []
    assert found.table == [
        ["tokens read", "1k", "8k"],
        ["tok/s", "50.0", "40.0"],
        *waits,
    ]
    assert found.text == "At 8k it generates at 80 % of the speed at 1k."


def test_what_narrower_weights_bring_is_a_multiple_of_sixteen_bits() -> None:
    """47.7 by 30 are 1.59, which is rounded to nearest: outwards it would be 1.5."""
    wide = served("30B", 30.0, observed=BF16)
    narrow = runs_of(
        "n", [47.7], load=ONE, model_id="x/A-30B-FP8", observed=FP8, machine=SPARK
    )
    found = card("format", *wide, *narrow)
    assert [[cell.replace("\u00a0", " ") for cell in row] for row in found.table] == [
        ["tok/s", "16 bits", "8 bits"],
        ["A-30B", "30.0", "47.7"],
    ]
    # Of another model the engine differs, too: 3.0 is not of its weights, and the first is shown without it.
    other = served("40B", 10.0, observed=BF16, workload="w")
    newer = runs_of(
        "o",
        [30.0],
        load=ONE,
        model_id="x/A-40B-FP8",
        observed=FP8 | {"engine_version": "0.27.0"},
        machine=SPARK,
        workload="w",
    )
    found = card("format", *wide, *narrow, *other, *newer)
    assert [row[0] for row in found.table] == ["tok/s", "A-30B"]
    assert "only the weights differ: FP8 1.6 (1 model)." in found.text
    assert found.text.endswith("Quality was not measured.")
    found = card("format", *other, *newer)
    assert [row[0] for row in found.table] == ["tok/s", "A-40B"]
    assert found.text.startswith("The best of each: engine or settings differ, too.")


def test_watts_and_heat_are_those_of_the_runs() -> None:
    metrics = {"gpu_power_mean_watt": 40.0, "gpu_temp_end_celsius": 61.0}
    hot = {"gpu_power_mean_watt": 81.0, "gpu_clock_sm_mean_mhz": 2500.0}
    found = card(
        "watts",
        *served("30B", 60.0, metrics=metrics),
        *served("40B", 30.0, metrics=hot),
    )
    assert (found.large, found.unit) == ("40 to 81", "W")
    assert found.scope == "DGX Spark, GPU under load, means of 2 runs"
    assert found.text == "Clock 2.50 GHz. At most 61 °C, in 1 run."
    assert found.href.endswith("power_mean_watt&columns=gpu_temp_end_celsius")


def test_what_fits_leaves_the_rest_of_the_memory() -> None:
    """30 billion parameters of 8 bits are 27.9 GiB, of NVFP4 with a scale of 8 bits for 16 of them 15.7; a stated size
    goes before that of the name."""
    spark = SPARK.model_copy(update={"memory_total_gib": 119.6, "unified_memory": True})
    stated = FP8 | {"weight_bytes": 32 * 2**30, "kv_bytes_per_token": 2**20}
    for observed, weights, left in (
        (FP8, "~28 GiB", "92 GiB"),
        (FP8 | {"quantization": "nvfp4"}, "~16 GiB", "104 GiB"),
        (stated, "32.0 GiB", "88 GiB"),
    ):
        found = card("fits", *served("30B", 60.0, observed=observed, machine=spark))
        assert found.question == "What fits in 119.6 GiB?"
        assert list(found.table[1][1:]) == [weights, left]


def test_two_engines_stand_side_by_side() -> None:
    other = FP8 | {"engine": "llama.cpp"}
    records = served("30B", 40.0), served("30B", 20.0, observed=other, campaign="d")
    found = card("Which engine", *records[0], *records[1])
    assert {bar.name: bar.share for bar in found.bars} == {"vLLM": 1, "llama.cpp": 0.5}


def test_what_is_not_measured_is_a_card_with_the_command_that_would() -> None:
    found = answers.cards(published(*served("30B", 64.8)))
    missing = {
        item.question: item.command for item in found if "Not measured" in item.text
    }
    assert list(missing) == [
        "And for ten users together?",
        "What does long context do to it?",
        "Which format?",
        "How many watts, how hot?",
        "How many requests a second can it serve?",
        "Does Docker cost anything?",
        "vLLM or llama.cpp?",
        "Two or more DGX Sparks?",
    ]
    assert all(command.startswith("sparkpub ") for command in missing.values())
    # Without any model only what holds for every site.
    demo = published(*runs_of("none", [5.0], metric="matmul_gflop_s"))
    assert [item.question for item in answers.cards(demo)] == ["Is mine as fast?"]


def test_a_difference_of_some_of_the_runs_names_the_mean_that_it_is_of() -> None:
    """The last native run has no partner: the table's mean counts it, the difference within rounds does not."""
    *records, unpaired = campaign(1, cost=0.005, observed=BF16)
    native = [record for record in records if record.environment == "native"]
    publication = published(*records)
    found = campaign_page.summary(StudiedCampaign(publication, *publication.campaigns))
    values = {row["environment"]: row["values"][0] for row in found}
    assert unpaired.environment == "container"
    paired = [record.value(TPUT) or 0 for record in native[:-1]]
    assert values["container"]["base"] == f"{sum(paired) / len(paired):.2f}"
    assert values["native"]["base"] == ""


def test_a_wide_interval_says_why_it_is_wide() -> None:
    """Runs that fall from one to the next are worth few independent ones."""
    falling = [100.0, 99.9, 99.7, 99.6, 99.3, 99.2, 99.0, 98.8, 98.7, 98.5]
    steady = [100.0, 99.9, 100.1, 99.8, 100.2, 99.9, 100.1, 100.0, 99.9, 100.1]
    for values, is_told in ((falling, True), (steady, False)):
        publication = published(*runs_of("m", values))
        whole = StudiedCampaign(publication, *publication.campaigns)
        (row,) = campaign_page.summary(whole)
        assert ("effective n" in row["values"][0]["worth"]) is is_told


def test_what_docker_costs_is_what_the_interval_leaves_open() -> None:
    """Costs of 0.2 and 0.8 % on two machines: the mean is 0.5 %, and two values leave one degree of freedom, for which
    Student's t is 12.71: 12.71 standard errors of 0.3 are 3.8 to either side, whatever each machine decides alone."""
    records = []
    for number, cost in ((1, 0.002), (2, 0.008)):
        for record in campaign(number, cost=cost, observed=BF16):
            machine = SPARK.model_copy(update={"id": f"{number}" * 16})
            same = {"model": "m", "machine": machine}
            records.append(record.model_copy(update=same))
    claim = Claim.model_validate(
        {
            "id": "both",
            "source": {"document": "part 1", "section": "Both"},
            "about": "world",
            "campaign": "c1",
            "repeated_in": ["c2"],
            "metric": TPUT,
            "compare": "container / native",
            "expect": {"equivalent_within_percent": 1},
            "recorded": "undecided",
        }
    )
    publication = published(*records, claims=[claim])
    found = next(
        item for item in answers.cards(publication) if "Docker" in item.question
    )
    assert (found.large, found.unit) == ("−4.4 to +3.4", "%")
    assert found.text == "No clear effect."
    assert found.scope.startswith("vLLM on DGX Spark, 2 machines")
    # The same day on a machine that is not the site's own: for that one nothing is known.
    away = [item.model_copy(update={"machine": H200}) for item in campaign(1)]
    said = card("Docker", *away, *served("30B", 64.8)).text
    assert said.endswith("On DGX Spark: not known.")


def test_what_can_be_judged_is_said() -> None:
    """Of two runs nothing shows the model, and each is alone in its cell."""
    records = [
        *runs_of("a", [1.0], machine=SPARK, origin=Origin(title="t", author="Ann")),
        *runs_of("b", [2.0], machine=SPARK, origin=Origin(title="t", author="Ann")),
    ]
    runs = [record.run_id for record in records]
    unknown = Finding(
        "identity", "warning", "c", None, None, "Nothing.", {"runs": runs}
    )
    assert findings.judged(published(*records, findings=[unknown])) == (
        "2 of 2 runs do not show which model ran. 2 of 2 figures are from a single run. "
        "Everything ranked on DGX Spark is from one owner, Ann."
    )


def test_models_whose_prompts_another_tokenizer_cut_are_compared_by_text() -> None:
    """Within a model the tokens are the same, whatever they are."""
    observed = BF16 | {"settings": {"tokenizer": FALLBACK}}
    one, other = (
        runs_of(name, [100.0], metric=PROMPT, observed=observed) for name in "ab"
    )
    metric = METRICS[PROMPT]
    assert "tokens of gpt2" in sentences.about_prompts(metric, [*one, *other])
    assert sentences.about_prompts(metric, [*one, *one]) == ""
    assert sentences.about_prompts(METRICS[TPUT], [*one, *other]) == ""


def test_runs_that_shared_the_machine_answer_nothing() -> None:
    """Twelve runs; a load beside half of them is a warning, beside more it leaves no answer."""
    records = campaign(1)
    runs = [record.run_id for record in records]
    for shared, answered in ((6, True), (7, False)):
        beside = {"runs": runs[:shared]}
        finding = Finding("foreign-load", "warning", "c1", None, None, "busy", beside)
        publication = published(*records, findings=[finding])
        (data,) = publication.campaigns
        answers = campaign_page.answers(publication, data)
        assert (answers[0].startswith("No answer: other programs")) is not answered
