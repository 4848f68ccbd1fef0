"""The first page: the questions with their answers, over no campaign, one, three and fifty."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.metrics import METRICS
from sparkpub.record.record import Machine, Moment, Origin, Record
from sparkpub.review.checks import CHECKS, Finding
from sparkpub.review.claims import ledger
from sparkpub.review.claims.claim import Claim
from sparkpub.review.results import Results
from sparkpub.site import sentences
from sparkpub.site.content import SiteOptions
from sparkpub.site.pages import answers, campaign_page, front_page
from sparkpub.site.pages.blog import Post
from sparkpub.site.pages.templating import Templates
from sparkpub.site.publication import Publication
from sparkpub.tools.shapes.llama_benchy import FALLBACK
from tests.leaderboards import LOAD, PROMPT, TPUT, dataset_of, reviewed, runs_of

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


def page(publication: Publication, posts: Sequence[Post] = ()) -> str:
    """The first page as HTML within Markdown."""
    context = front_page.context(publication, posts, "")
    content = Templates().page(
        "index",
        front_page=context,
        publication=publication,
        options=publication.options,
    )
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


def answer_to(question: str, *records: Record) -> str:
    found = {item.question: item.text for item in answers.answers(published(*records))}
    return found[question].replace("\u00a0", " ")


def test_without_a_campaign_the_page_says_what_to_do() -> None:
    assert "sparkpub collect matrix/demo.yaml" in page(published())


@pytest.mark.parametrize("number", [1, 4])
def test_the_page_holds_with_any_number_of_campaigns(number: int) -> None:
    records = [record for place in range(number) for record in campaign(place)]
    html = page(published(*records))
    assert html.count('<article class="card">') == min(number, front_page.NEWEST)
    assert ("campaigns</a></p>" in html) == (number > front_page.NEWEST)
    # A demonstration leads only where there is nothing else.
    demo = runs_of("none", [5.0], campaign="demo", metric="matmul_gflop_s")
    assert "campaigns/demo/" in page(published(*demo))
    assert "campaigns/demo/" not in page(published(*demo, *records))


def test_models_whose_order_a_repeat_may_turn_are_named_together() -> None:
    """A repeat may be 5 % away: 63.1 is 2.7 % below 64.8, and 60 is 8 % below."""
    records = [
        *runs_of("a", [116.0], load=ONE, model_id="x/A-1B", observed=BF16),
        *runs_of("b", [64.8], load=ONE, model_id="x/B-30B", observed=FP8),
    ]
    question = "How fast, and what should I run?"
    assert answer_to(question, *records) == (
        "For one user, A-1B in BF16 makes 116 tok/s; from 20B up, B-30B in FP8: 64.8 tok/s."
    )
    records += runs_of("c", [63.1], load=ONE, model_id="x/C-30B", observed=FP8)
    records += runs_of("d", [60.0], load=ONE, model_id="x/D-30B", observed=FP8)
    assert answer_to(question, *records).endswith(
        "from 20B up, B-30B in FP8: 64.8 tok/s; C-30B in FP8: 63.1 tok/s."
    )
    assert (
        answer_to(
            "How many users can it serve?",
            *runs_of("a", [560.0], model_id="x/A-1B", observed=BF16),
        )
        == "With 8 users, A-1B in BF16 makes 560 tok/s in all, 70 for each."
    )


def test_a_difference_of_some_of_the_runs_names_the_mean_that_it_is_of() -> None:
    """The last native run has no partner: the table's mean counts it, the difference within rounds does not."""
    *records, unpaired = campaign(1, cost=0.005, observed=BF16)
    native = [record for record in records if record.environment == "native"]
    (data,) = published(*records).campaigns
    found = campaign_page.summary(published(*records), data, [METRICS[TPUT]])
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
        (data,) = publication.campaigns
        (row,) = campaign_page.summary(publication, data, [METRICS[TPUT]])
        assert ("n worth" in row["values"][0]["worth"]) is is_told


def test_what_a_container_costs_is_said_as_its_campaign_says_it() -> None:
    """A container that makes 99.5 % of the tokens in every round costs 0.5 %."""
    said = answer_to(
        "Does Docker cost anything?", *campaign(1, cost=0.005, observed=BF16)
    )
    assert said.startswith(
        "vLLM on DGX Spark: Output throughput is at most 0.6 % lower in Docker than natively"
    )
    assert "(measured −0.5 %;" in said


def test_campaigns_that_a_claim_joins_have_one_cost_over_their_machines() -> None:
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
    found = {item.question: item.text for item in answers.answers(publication)}
    said = found["Does Docker cost anything?"].replace("\u00a0", " ")
    assert said.endswith("On 2 machines together: −0.5 %, −4.4 to +3.4 (undecided).")


def test_what_can_be_judged_comes_before_what_was_checked() -> None:
    """Of two runs nothing shows the model, and each is alone in its cell."""
    records = [
        *runs_of("a", [1.0], machine=SPARK, origin=Origin(title="t", author="Ann")),
        *runs_of("b", [2.0], machine=SPARK, origin=Origin(title="t", author="Ann")),
    ]
    runs = [record.run_id for record in records]
    unknown = Finding(
        "identity", "warning", "c", None, None, "Nothing.", {"runs": runs}
    )
    said = text(page(published(*records, findings=[unknown])))
    assert (
        "Which model ran is known by name only in 2 of 2 runs. 2 of 2 cells are a single run, so how far runs "
        "differ is not known. All that is ranked on DGX Spark is from one owner, Ann. "
        f"{len(CHECKS)} checks read what there is."
    ) in said


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


def test_what_narrower_weights_bring_is_a_multiple_of_sixteen_bits() -> None:
    said = answer_to(
        "Do FP8 and NVFP4 pay?",
        *runs_of("a", [30.0], load=ONE, model_id="x/A-7B", observed=BF16),
        *runs_of("b", [48.0], load=ONE, model_id="x/A-7B-FP8", observed=FP8),
    )
    assert said == "For one user, as fast as 16 bits: FP8 1.6 times (1 model)."


def test_formats_with_another_kv_cache_are_no_answer_to_what_weights_bring() -> None:
    """What an FP8 cache brings is not what FP8 weights bring."""
    publication = published(
        *runs_of("a", [30.0], load=ONE, model_id="x/A-7B", observed=BF16),
        *runs_of(
            "b",
            [48.0],
            load=ONE,
            model_id="x/A-7B-FP8",
            observed=FP8 | {"settings": {"kv_cache_dtype": "fp8"}},
        ),
    )
    questions = [item.question for item in answers.answers(publication)]
    assert "Do FP8 and NVFP4 pay?" not in questions


def test_a_new_version_is_said_with_its_change() -> None:
    newer = BF16 | {"engine_version": "0.27.0"}
    said = answer_to(
        "Did the new version make it faster?",
        *runs_of("a", [100.0, 100.5, 99.5], load=ONE, observed=BF16),
        *runs_of("a", [110.0, 110.5, 109.5], load=ONE, campaign="d", observed=newer),
    )
    assert "from vLLM 0.26.0 to vLLM 0.27.0: 100 to 110 tok/s (+10.0 %" in said


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
