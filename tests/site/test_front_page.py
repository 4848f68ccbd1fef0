"""The first page: what is known and open over no campaign, one, three and fifty."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.campaign import Campaign
from sparkpub.record.record import Machine, Moment, Record
from sparkpub.review.checks import Finding
from sparkpub.review.claims import ledger
from sparkpub.review.claims.ledger import Claim
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.leaderboard import Standings, standings
from sparkpub.review.results import Results
from sparkpub.site.content import Content, SiteOptions
from sparkpub.site.pages import blog, campaign_page, front_page
from sparkpub.site.pages.blog import Post
from sparkpub.site.pages.templating import Templates
from sparkpub.site.publication import Publication, newest_first
from tests.leaderboards import LOAD, a_finding, dataset_of, reviewed, runs_of

SPARK, H200 = Machine(kind="dgx-spark"), Machine(kind="h200")
STEADY = [100.0, 100.2, 99.9, 100.1, 100.0, 99.8]


def published(
    *records: Record,
    claims: Sequence[Claim] = (),
    findings: Sequence[Finding] = (),
    **info: Any,
) -> Publication:
    review = reviewed(dataset_of(*records, **info), findings=findings)
    options = SiteOptions(sources=Path(), name="ours")
    return Publication(Results(review), options, ledger.judge(claims, review))


def ranked(publication: Publication) -> Standings:
    return standings(publication.results)


def page(
    publication: Publication,
    posts: Sequence[Post] = (),
    written: frozenset[str] = frozenset(),
) -> str:
    """The first page as HTML within Markdown."""
    context = front_page.context(publication, ranked(publication), posts, written)
    content = Templates().page(
        "index",
        front_page=context,
        publication=publication,
        options=publication.options,
        dataset=publication.dataset,
        written=written,
    )
    return content.inlined("index.md").decode()


def campaign(number: int, **fields: Any) -> list[Record]:
    """Two environments of a model on one day, in turns; the container is 10 % slower."""
    name = f"c{number}"
    records = []
    for environment, factor in (("native", 1.0), ("container", 0.9)):
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
            records.append(record.model_copy(update={"started": started}))
    return records


def text(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def section(html: str, heading: str) -> str:
    """The part of the page below a heading."""
    return html.partition(f"<h2>{heading}")[2].partition("</section>")[0]


# -- how many campaigns there are --------------------------------------------------------------------------


def test_without_a_campaign_the_page_says_what_to_do() -> None:
    assert "nothing to show until something is measured" in page(published())


@pytest.mark.parametrize("number", [1, 3, 50])
def test_the_page_holds_with_any_number_of_campaigns(number: int) -> None:
    records = [record for index in range(number) for record in campaign(index)]
    html = page(published(*records))
    campaigns = "1 campaign" if number == 1 else f"{number} campaigns"
    models = "1 model" if number == 1 else f"{number} models"
    assert (
        f"ours publishes measurements of LLM inference: {12 * number} runs of {models} in {campaigns}."
        in html
    )
    # A list never outgrows the page: six models, six statements, three campaigns.
    assert len(re.findall("<li>", section(html, "How fast on"))) == min(number, 6)
    assert len(re.findall("<li>", section(html, "What is known"))) == min(number, 6)
    cards = re.findall(
        r'<article class="sp-card">\s*<h3><a href="campaigns/c(\d+)/">', html
    )
    assert [int(card) for card in cards] == list(range(number))[::-1][:3]
    assert (f"All {number} campaigns" in html) == (number > 3)
    assert (f"{number - 6} more" in html) == (number > 6)
    assert (f"6 of {number} models" in html) == (number > 6)
    assert len(html) < 20_000


def test_a_campaign_that_has_not_run_yet_is_open() -> None:
    matrix = {
        "campaign": "c",
        "title": "Planned",
        "models": {"m": {"id": "x/m"}},
        "environments": {"native": {"type": "host"}},
        "workloads": {"w": {"type": "matmul"}},
        "iterations": 3,
    }
    about = Campaign(campaign="c", title="Planned", matrix=matrix)
    review = reviewed(Dataset(Path(), {"c": CampaignData(about, Path("c"), ())}))
    options = SiteOptions(sources=Path(), name="ours")
    html = page(Publication(Results(review), options))
    assert "0 runs in 1 campaign." in html
    assert "Nothing yet: no comparison of these runs has a verdict." in html
    assert "0 of 3 planned runs are done." in section(html, "What is open")
    assert "How fast" not in html
    assert "Leaderboard:" not in html


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
        assert ("−10.0 %" in page(publication).replace("\u00a0", " ")) is answered


def test_the_newest_campaign_is_the_one_that_ran_last() -> None:
    publication = published(*campaign(3), *campaign(30), *campaign(7))
    newest = newest_first(publication.campaigns)
    assert [item.name for item in newest] == ["c30", "c7", "c3"]


# -- how fast ----------------------------------------------------------------------------------------------


def test_each_machine_has_its_ranking_at_the_load_that_most_models_share() -> None:
    publication = published(
        *runs_of("a", [10.0], machine=SPARK),
        *runs_of("b", [40.0], machine=SPARK),
        *runs_of("a", [30.0], machine=SPARK, environment="container"),
        *runs_of("c", [99.0], machine=SPARK, load={**LOAD, "concurrency": 64}),
        *runs_of("d", [80.0], machine=H200),
    )
    spark, h200 = front_page.rankings(ranked(publication))
    assert spark["machine"] == "NVIDIA DGX Spark (GB10)"
    assert spark["load"] == "512 tokens in, 128 tokens out, 8 at once"
    # Model a in its fastest setting, and the bars relative to the fastest on this machine (30 of 40).
    shown = [(row["model"], row["environment"], row["width"]) for row in spark["rows"]]
    assert shown == [("b", "native", "100"), ("a", "container", "75")]
    assert (spark["models"], spark["others"]) == (2, 1)
    assert [row["width"] for row in h200["rows"]] == ["100"]
    assert [row["setting"] for row in h200["rows"]] == ["native"]
    assert (
        spark["href"]
        == "leaderboard/?machine=NVIDIA+DGX+Spark+%28GB10%29#vllm-bench-serve"
    )
    assert spark["rows"][0]["model_href"] == "leaderboard/?model=b"


def test_a_load_with_models_that_have_a_place_goes_before_one_without() -> None:
    publication = published(
        *runs_of("m", [10.0], machine=SPARK, campaign="c"),
        *runs_of("n", [10.0], machine=SPARK, campaign="c"),
        *runs_of("o", [99.0], machine=SPARK, load={**LOAD, "concurrency": 64}),
        findings=[
            a_finding("roofline", "error"),
            a_finding("roofline", "error", cell="n/native/w"),
        ],
    )
    (ranking,) = front_page.rankings(ranked(publication))
    assert [row["model"] for row in ranking["rows"]] == ["o"]


def test_a_ranking_names_the_setting_as_far_as_it_is_known() -> None:
    seen = {"engine": "vLLM", "engine_version": "0.24.0", "dtype": "bfloat16"}
    publication = published(
        *runs_of("a", [2.0], machine=SPARK, observed=seen),
        *runs_of("b", [1.0], machine=SPARK, observed={"engine": "vLLM"}),
    )
    (ranking,) = front_page.rankings(ranked(publication))
    settings = [row["setting"] for row in ranking["rows"]]
    assert settings == ["BF16, vLLM 0.24.0, native", "vLLM, native"]


def test_rows_in_doubt_are_shown_as_such() -> None:
    html = page(
        published(
            *runs_of("m", [10.0], machine=SPARK),
            findings=[a_finding("roofline", "error")],
        )
    )
    assert "✖ not ranked: 1 error" in html
    assert "1 row not ranked: errors change what the figures mean (roofline)." in html
    assert "sp-bar" not in html


@pytest.mark.parametrize(
    ("machines", "heading"),
    [
        ([None], "LLM inference, measured"),
        ([SPARK], "LLM inference, measured on NVIDIA DGX Spark (GB10)"),
        (
            [SPARK, H200],
            "LLM inference, measured on NVIDIA DGX Spark (GB10) and NVIDIA H200",
        ),
        (
            [SPARK, H200, Machine(cpu="A"), Machine(cpu="B")],
            "LLM inference, measured on 4 kinds of machine",
        ),
    ],
)
def test_the_heading_names_the_machines(
    machines: list[Machine | None], heading: str
) -> None:
    records = []
    for index, machine in enumerate(machines):
        # The first machine has the most rows.
        for model in range(4 - index):
            records += runs_of(f"m{index}-{model}", [1.0], machine=machine or Machine())
    publication = published(*records)
    assert front_page.heading(ranked(publication)) == heading
    if machines == [None]:
        assert "on machines without a name?" in page(publication)


# -- what is known, what is open ---------------------------------------------------------------------------


def a_claim(name: str, number: int, holds: str | None, **fields: Any) -> Claim:
    """A statement about the runs of campaign `number`; without `holds` a hypothesis, unless `fields` say otherwise."""
    document = {
        "id": name,
        "says": f"Sentence {name}.",
        "source": {"document": "paper", "section": "1"},
        "about": "data",
        "campaign": f"c{number}",
        "recorded": "supported",
    }
    if holds is not None:
        document["expect"] = {"holds": holds}  # type: ignore[assignment]
    elif "expect" not in fields:
        document["decided_by"] = "measuring"
    return Claim.model_validate(document | fields)


CLAIMS = (
    a_claim("twelve", 1, "runs = 12"),
    a_claim("eleven", 1, "runs = 11"),
    a_claim("world", 1, "runs = 12", about="world"),
    a_claim("guess", 1, None),
)


def test_claims_are_known_or_open_by_their_verdict_those_about_the_world_first() -> (
    None
):
    publication = published(*campaign(1), claims=CLAIMS)
    campaigns, written = publication.campaigns, frozenset({"claims/index.md"})
    known = front_page.known_statements(publication, campaigns, written)
    assert [(item["text"], item["verdict"], item["href"]) for item in known] == [
        ("Sentence world.", "supported", "claims/#world"),
        ("Sentence twelve.", "supported", "claims/#twelve"),
        ("Sentence eleven.", "refuted", "claims/#eleven"),
    ]
    unsettled = front_page.open_statements(publication, campaigns, written)
    assert [(item["text"], item["verdict"]) for item in unsettled] == [
        ("Sentence guess.", "hypothesis")
    ]
    html = page(publication, written=written)
    assert "Sentence world." in section(html, "What is known")
    assert "in these runs, of one machine on one day" in section(html, "What is known")
    assert "Sentence guess." in section(html, "What is open")


def test_without_a_page_of_claims_they_lead_to_their_campaign() -> None:
    publication = published(*campaign(1), claims=CLAIMS)
    known = front_page.known_statements(publication, publication.campaigns, frozenset())
    assert {item["href"] for item in known} == {"campaigns/c1/"}


def test_a_table_that_was_copied_rightly_comes_after_other_claims() -> None:
    mean = {"metric": "output_throughput_tok_s", "scope": "each environment"}
    copied = a_claim(
        "copied",
        1,
        None,
        **mean,
        expect={"published": {"native": 100}},
    )
    publication = published(*campaign(1), claims=[copied, *CLAIMS[:1]])
    known = front_page.known_statements(publication, publication.campaigns, frozenset())
    assert [item["text"] for item in known] == ["Sentence twelve.", "Sentence copied."]


def test_posts_are_shown_the_newest_first() -> None:
    head = "---\ndate: 2026-01-0{0}\ndescription: Why.\n---\n# Post {0}\n"
    written = {
        f"blog/posts/post-{number}.md": Content(text=head.format(number))
        for number in range(1, 6)
    }
    posts = blog.posts(written)
    html = page(published(*campaign(1)), posts)
    assert re.findall(r'href="blog/(post-\d)/"', html) == ["post-5", "post-4", "post-3"]
    assert "All posts" in html
    assert "All posts" not in page(published(*campaign(1)), posts[:3])


def test_comparisons_are_known_or_open_by_their_verdict() -> None:
    publication = published(*campaign(1))
    campaigns = publication.campaigns
    (known,) = front_page.known_statements(publication, campaigns, frozenset())
    assert known["verdict"] == "lower"
    text = known["text"].replace("\N{NO-BREAK SPACE}", " ")
    assert text.startswith(
        "Output throughput is 10.0 % lower in container than natively"
    )
    assert known["href"] == "campaigns/c1/"
    assert front_page.open_statements(publication, campaigns, frozenset()) == []
    few = published(*[record for record in campaign(1) if record.iteration < 3])
    (unsettled,) = front_page.open_statements(few, few.campaigns, frozenset())
    assert unsettled["verdict"] == "undecided"
    assert front_page.known_statements(few, few.campaigns, frozenset()) == []


def test_campaigns_take_turns() -> None:
    lists: list[list[Any]] = [["a1", "a2", "a3"], [], ["b1"]]
    assert front_page.in_turn(lists) == ["a1", "b1", "a2", "a3"]


def test_a_campaign_with_planned_runs_to_do_is_open() -> None:
    matrix = {
        "campaign": "c1",
        "title": "C",
        "models": {"m1": {"id": "x/m1"}},
        "environments": {"native": {"type": "host"}},
        "workloads": {"w": {"type": "matmul"}},
        "iterations": 7,
    }
    records = [record for record in campaign(1) if record.environment == "native"]
    publication = published(*records, matrix=matrix)
    (unsettled,) = front_page.open_statements(
        publication, publication.campaigns, frozenset()
    )
    assert unsettled["text"] == "6 of 7 planned runs are done."
    assert unsettled["href"] == "campaigns/c1/diagnostics/#coverage"
