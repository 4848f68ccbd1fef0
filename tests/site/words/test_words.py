"""Prose bound to data: every function gives the figure of the records, and every mistake stops with file and line."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkpub.record.errors import ClaimError
from sparkpub.review import dataset
from sparkpub.review.checks import Review, review
from sparkpub.review.claims import facts
from sparkpub.review.claims.facts import Fact
from sparkpub.review.claims.ledger import Verdict
from sparkpub.review.results import Results
from sparkpub.site.content import SiteOptions
from sparkpub.site.pages import claims
from sparkpub.site.publication import Publication
from sparkpub.site.sources import source_of
from sparkpub.site.words import Words
from tests.review.claims.campaigns import verdict_on

FACTS = """
- id: early-native-peak
  says: Peak memory of one early native run.
  value: 78.31
  decimals: 2
  unit: GiB
  quote: 78.31 GiB at its peak
  source: {document: part 3, section: The Evidence}
"""


def words_of(
    found: Review, verdicts: Sequence[Verdict] = (), known: Mapping[str, Fact] = {}
) -> Words:
    publication = Publication(
        Results(found), found, SiteOptions(Path()), verdicts, known
    )
    return Words(publication, lambda name, **scope: f"[{name} {sorted(scope.items())}]")


@pytest.fixture(scope="module")
def words(published_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Words:
    data = dataset.load(published_data)
    found = review(data)
    path = tmp_path_factory.mktemp("facts") / "facts.yaml"
    path.write_text(FACTS)
    known = facts.read(path)
    verdict = verdict_on(
        data,
        found,
        id="sixty",
        campaign="phase1",
        include="all",
        recorded="refuted",
        expect={"holds": "runs = 60"},
    )
    return words_of(found, [verdict], known)


def rendered(words: Words, text: str, uri: str) -> str:
    return html.unescape(words.page(source_of(text, uri)).text)


def said(words: Words, expression: str) -> str:
    page = f"---\ncampaign: phase1\n---\n{{{{ {expression} }}}}"
    return rendered(words, page, "blog/posts/p.md").replace("\u00a0", " ")


def test_a_number_stays_on_the_line_of_its_unit(words: Words) -> None:
    where = 'model="deepseek", environment="native", campaign="phase1"'
    page = rendered(
        words, f'{{{{ value("mean", "peak_memory_gib", {where}) }}}} of 5 GiB', "p.md"
    )
    assert page == "70.47\u00a0GiB of 5 GiB"
    page = rendered(
        words, f'{{{{ interval("mean", "peak_memory_gib", {where}) }}}}', "p.md"
    )
    assert page.count(" ") == 2  # about "to"
    assert page.endswith("\u00a0GiB")


def test_a_table_has_a_row_per_model_and_what_each_value_gives(words: Words) -> None:
    """The values are those of the test below and of the published tables."""
    call = 'table("mean", "peak_memory_gib", environment="native", campaign="phase1")'
    head, _, *lines = rendered(words, f"{{{{ {call} }}}}", "p.md").splitlines()
    assert head.startswith("| Model | ")
    assert len(lines) == 3
    assert [line for line in lines if "| 70.47\u00a0GiB |" in line]
    peak = '"peak_memory_gib"'
    of_peak = (
        f'["difference", {peak}], ["interval difference", {peak}], ["verdict", {peak}]'
    )
    columns = f'["mean", {peak}, "native"], {of_peak}'
    call = f'table([{columns}], of=["deepseek"], campaign="phase1")'
    head, _, line = rendered(words, f"{{{{ {call} }}}}", "p.md").splitlines()
    assert [part.strip() for part in head.split("|")[3:-1]] == [
        "difference",
        "interval",
        "verdict",
    ]
    said_alone = said(words, f'compare("difference", {peak}, model="deepseek")')
    cells = line.replace("\u00a0", " ").split(" | ")
    assert cells[1:3] == ["70.47 GiB", said_alone]
    call = f'table("n", {peak}, rows=["model", "environment"], campaign="phase1")'
    assert len(rendered(words, f"{{{{ {call} }}}}", "p.md").splitlines()) == 2 + 6
    for wrong, told in (
        ('table("mean", "peak_memory", campaign="phase1")', "peak_memory_gib"),
        (
            'table("mean", "peak_memory_gib", rows="machine", campaign="phase1")',
            "model",
        ),
    ):
        with pytest.raises(ClaimError, match=told):
            rendered(words, f"{{{{ {wrong} }}}}", "p.md")


@pytest.mark.parametrize(
    ("expression", "text"),
    [  # the published tables, and the reference reading of the 63 runs
        (
            'value("mean", "peak_memory_gib", model="deepseek", environment="native")',
            "70.47 GiB",
        ),
        (
            'value("mean", "peak_memory_gib", model="gpt120b", environment="native", include="all")',
            "71.72 GiB",
        ),
        ('value("runs", include="all")', "63"),
        (
            'value("slope", "kv_cache_gib", against="peak_memory_gib", include="all")',
            "−0.9000",
        ),
        ('compare("difference", "peak_memory_gib", model="deepseek")', "+30.83 GiB"),
        (
            'compare("difference_percent", "peak_memory_gib", model="deepseek", decimals=0)',
            "+44 %",
        ),
        (
            'compare("inverse_ratio", "kv_cache_gib", model="deepseek", decimals=1)',
            "2.7",
        ),
        (
            'compare("verdict", "output_throughput_tok_s", model="deepseek")',
            "confounded",
        ),
        (
            'interval("difference", "output_throughput_tok_s", model="deepseek", candidate="container", '
            'baseline="native")',
            "−7.63 to +6.85 tok/s",
        ),
        (
            'extent("mean", "output_throughput_tok_s", over="model", environment="native", include="all")',
            "119.32 to 120.27 tok/s",  # 119.3291 and 120.2650, outwards
        ),
        (
            'predict("kv_cache_gib", "peak_memory_gib", at="early-native-peak", include="all")',
            "37.26 GiB",
        ),
        ('model("qwen72b", "weight_bytes")', "135.4 GiB"),  # 72,706,203,648 × 2 / 2³⁰
        ('machine("dgx-spark", "bandwidth_bytes_s")', "273 GB/s"),
        ('ceiling("qwen72b", batch=8)', "15.3 tok/s"),  # 8 × 273e9 / 142.9e9
        (
            'fact("early-native-peak")',
            "[78.31 GiB](../../claims/facts.md#early-native-peak){ .sp-fact }",
        ),
        (
            'claim("sixty")',
            "The number of runs is 60, with TensorRT-LLM on the DGX Spark of phase1 (all recorded runs) "
            "([refuted](../../claims/index.md#sixty){ .sp-chip .sp-refuted }).",
        ),
        (
            'verdict("sixty")',
            "[refuted](../../claims/index.md#sixty){ .sp-chip .sp-refuted }",
        ),
        ('verdicts("refuted")', "1"),
        ('finding("order-confound")', "1"),
        (
            'figure("peak-memory", campaign="phase1")',
            "[peak-memory [('campaign', 'phase1')]]",
        ),
    ],
)
def test_a_figure_comes_from_the_records(
    words: Words, expression: str, text: str
) -> None:
    assert said(words, expression) == text


def test_a_changed_verdict_is_shown_in_place(words: Words) -> None:
    """The same claim, recorded as supported: the preview says what the text was written for."""
    data = words._site.dataset
    stale = verdict_on(
        data,
        words._site.review,
        id="old",
        campaign="phase1",
        include="all",
        expect={"holds": "runs = 60"},
    )
    other = words_of(words._site.review, [stale])
    assert rendered(other, '{{ verdict("old") }}', "a.md").startswith(
        "[refuted, written for supported]("
    )


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ('valu("mean")', "'valu' is no word of a page"),
        ('value("mean", "peak_memory_gib", model="deepsek")', "no model 'deepsek'"),
        ('value("mean", "peak_memory_gbi")', "did you mean peak_memory_gib"),
        ('value("average", "peak_memory_gib")', "no statistic 'average'"),
        (
            'compare("difference", "peak_memory_gib", candidate="vm")',
            "no environment 'vm'",
        ),
        ('reference("unheard-of")', "no reference 'unheard-of'"),
        ('claim("sme")', "no claim 'sme'"),
        ('value("mean" "peak_memory_gib"', "this is no call"),
    ],
)
def test_a_mistake_stops_with_file_and_line(
    words: Words, expression: str, what: str
) -> None:
    with pytest.raises(ClaimError) as caught:
        rendered(
            words,
            f"---\ncampaign: phase1\n---\n\ntext\n\n{{{{ {expression} }}}}\n",
            "blog/posts/p.md",
        )
    line = caught.value.lines()[0]
    assert what in line
    assert "blog/posts/p.md:7;" in line


def test_every_value_listed_is_a_name_that_works(words: Words) -> None:
    rows = list(words.values())
    assert len(rows) > 400
    for name, value in [*rows[::97], rows[-1]]:
        assert value in rendered(words, f"{{{{ {name} }}}}", "index.md").replace(
            "\u00a0", " "
        )


def a_verdict(
    *units: tuple[float, list[float] | None], form: str = "difference", **changes: Any
) -> Any:
    claim = SimpleNamespace(
        compare="container / native",
        metric="peak_memory_gib",
        expect=SimpleNamespace(form=form),
    )
    evidence = {
        "units": [
            {"statistic": "difference", "value": value, "ci95": ends}
            for value, ends in units
        ]
    }
    known = {"claim": claim, "verdict": "undecided", "evidence": evidence}
    return SimpleNamespace(**{**known, **changes})


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (
            a_verdict((1.5, [-0.25, 3.0]), (0.5, [-1.0, 2.0])),
            "measured +0.50 to +1.50 GiB, between −1.00 and +3.00 GiB",
        ),
        # Nothing bounds a unit without an interval.
        (a_verdict((1.5, [-0.25, 3.0]), (0.5, None)), ""),
        (a_verdict((1.5, [0.5, 3.0]), verdict="supported"), ""),
    ],
)
def test_what_is_undecided_has_its_bound_beside_it(verdict: Any, said: str) -> None:
    assert claims.bound(verdict).replace("\u00a0", " ") == said
