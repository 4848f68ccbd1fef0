"""Sentences under review: each finding names file and line, and sound pages have none."""

from pathlib import Path
from typing import Any

import pytest

from sparkpub.review.checks import Finding, Review, review
from sparkpub.review.dataset import load
from sparkpub.site.build import proofread
from sparkpub.site.content import Page, SiteOptions
from sparkpub.site.proofreading import with_prose
from sparkpub.site.sources import WrittenPage
from tests.review.checks.clean import clean_runs, write

CLAIM = """\
- id: equal
  source: {document: a post}
  about: data
  campaign: clean
  metric: output_throughput_tok_s
  compare: container / native
  scope: each model
  expect: {equivalent_within_percent: 2}
  note: A margin of the post.
  recorded: RECORDED
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write(folder, clean_runs(seed=7))
    return folder


def findings(data: Path, sources: Path, **pages: str) -> list[Finding]:
    for name, text in pages.items():
        (sources / f"{name}.md").write_text(text)
    return of_pages(with_prose(review(load(data)), sources))


def of_pages(found: Review) -> list[Finding]:
    """What is wrong with the pages; the data are judged elsewhere."""
    return [item for item in found.findings if "file" in item.evidence]


def test_sound_pages_have_no_finding(data: Path, tmp_path: Path) -> None:
    (tmp_path / "claims.yaml").write_text(CLAIM.replace("RECORDED", "supported"))
    run = sorted(load(data).by_id)[0]
    log = next((data / "clean").glob("*.log")).name
    text = f"See [the run](runs/{run}.md), [its log](../evidence/clean/{log}.txt), [all](runs/index.md), [x](https://example.org/runs/no/)."
    assert findings(data, tmp_path, page=f"{text}\n\n    `in code: 70 GiB`\n") == []


def test_a_figure_typed_into_a_claim_is_found(data: Path, tmp_path: Path) -> None:
    untested = "says: It is within {}.\n  decided_by: A run."
    text = CLAIM.replace("RECORDED", "hypothesis")
    for words, lines in (("2 percent", [8]), ("a margin", [])):
        (tmp_path / "claims.yaml").write_text(
            text.replace(
                "expect: {equivalent_within_percent: 2}", untested.format(words)
            )
        )
        found = findings(data, tmp_path)
        assert [item.evidence["line"] for item in found] == lines


LOWER = '{{ compare("difference_percent", "output_throughput_tok_s") }}'


class Signed:
    """Words whose expressions all say that something is above zero."""

    def said(self, *_: object) -> str:
        return "+4.3\u00a0%"

    def page(self, source: WrittenPage) -> Page:
        return source.filled(lambda text, _: text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"Throughput is {LOWER} higher.", ""),
        (f"Throughput is {LOWER} lower.", "“lower”, and the figure is +4.3"),
        (f"It falls by {LOWER}.", "“falls”"),
        (f"It gains {LOWER}.", ""),
    ],
)
def test_a_direction_against_the_sign_beside_it_is_found(
    data: Path, tmp_path: Path, text: str, words: str
) -> None:
    said: Any = Signed()
    (tmp_path / "page.md").write_text(text)
    found = of_pages(with_prose(review(load(data)), tmp_path, lambda: said))
    messages = [
        item.message for item in found if item.message.startswith("The sentence")
    ]
    assert bool(messages) == bool(words)
    assert words in "".join(messages)


def test_a_changed_verdict_names_the_places_to_reread(
    data: Path, tmp_path: Path
) -> None:
    (tmp_path / "claims.yaml").write_text(CLAIM.replace("RECORDED", "refuted"))
    (found,) = findings(
        data,
        tmp_path,
        page="{{ verdict( 'equal' ) }}\n\nNothing changed: {{ says(\"equal\") }}\n",
    )
    assert (found.check, found.severity) == ("claim", "error")
    assert (found.evidence["recorded"], found.evidence["verdict"]) == (
        "refuted",
        "supported",
    )
    assert found.evidence["places"] == ["page.md:1", "page.md:3"]


@pytest.mark.parametrize(
    "target",
    ["runs/clean-nowhere/", "../runs/clean-nowhere.md", "evidence/clean/gone.log.txt"],
)
def test_a_link_to_evidence_that_is_not_there_is_found(
    data: Path, tmp_path: Path, target: str
) -> None:
    (found,) = findings(data, tmp_path, page=f"\nLook [here]({target}#figures).\n")
    assert (found.check, found.severity, found.evidence["line"]) == (
        "dead-evidence",
        "error",
        2,
    )


POST = "---\ndate: 2026-01-02\n{}\n---\n\n# T\n"
UNREADABLE: dict[str, tuple[str, str, int, str]] = {
    "a number": ("x.md", "# X\n\n{{ 70.47 }}\n", 3, "70.47 is no call"),
    "a loop": ("x.md", "\n{% for a in b %}\n", 2, "is no call"),
    "an unknown name": ("x.md", "\n\n{{ vlaue(1) }}\n", 3, "'vlaue' is no word"),
    "a control character": ("x.md", "\nA\x07\n", 2, "U+0007"),
    "a key twice": ("x.md", "---\ntitle: a\ntitle: b\n---\n", 3, "stands twice"),
    "no quotes": ("x.md", "---\ntitle: {{ x }}\n---\n", 2, "value in quotes"),
    "no text": ("x.md", "---\ntitle: [a]\n---\n", 2, "title: input should"),
    "no day": (
        "blog/posts/x.md",
        "---\ndate: soon\n---\n",
        2,
        "write YYYY-MM-DD without quotes",
    ),
    "no date": ("blog/posts/x.md", "# A post\n", 1, "needs front matter with a date"),
    "no slug": ("blog/posts/x.md", POST.format(""), 1, "a post needs a slug"),
    "an address of its own": (
        "blog/posts/x.md",
        POST.format("slug: ../x"),
        1,
        "no address",
    ),
    "no claims": ("claims.yaml", "- id: x\n  says: [\n", 3, "not YAML"),
    "no facts": (
        "facts.yaml",
        "- id: x\n  says: [y]\n  value: 1\n  source: {document: z}\n",
        2,
        "says: input should",
    ),
    "a margin without a reason": (
        "claims.yaml",
        CLAIM.replace("RECORDED", "supported").replace(
            "  note: A margin of the post.\n", ""
        ),
        1,
        "say why in note:",
    ),
}


@pytest.mark.parametrize(
    ("name", "text", "line", "words"), UNREADABLE.values(), ids=UNREADABLE
)
def test_what_cannot_be_read_is_a_finding_and_hides_nothing(
    data: Path, tmp_path: Path, name: str, text: str, line: int, words: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    found = findings(data, tmp_path, other="It uses 70.47 GiB.\n")
    other, unread = sorted(found, key=lambda item: item.check)
    assert (unread.check, unread.severity) == ("unreadable-page", "error")
    assert unread.where == f"{path}:{line}"
    assert words in unread.message
    assert (other.check, other.where) == ("unbound-number", f"{tmp_path}/other.md:1")


def test_a_link_out_of_the_folder_is_a_finding(data: Path, tmp_path: Path) -> None:
    (tmp_path / "out.txt").symlink_to(data / "clean/campaign.json")
    (outside,) = findings(data, tmp_path)
    assert outside.where == f"{tmp_path}/out.txt:1"
    assert outside.message.startswith("a link leads out of the folder of pages; ")


def test_names_that_the_data_do_not_have_are_findings_with_their_lines(
    data: Path, tmp_path: Path
) -> None:
    """All of them at once, before a build stops at the first."""
    for number, said in enumerate(
        ('value("mean", "nope")', 'figure("nope")', 'fact("nope")')
    ):
        (tmp_path / f"{number}.md").write_text(f"\n\n{{{{ {said} }}}}\n")
    found = of_pages(proofread(load(data), SiteOptions(tmp_path)))
    assert [item.where for item in found] == [f"{tmp_path}/{n}.md:3" for n in range(3)]
    assert all("nope" in item.message for item in found)
