"""Small parts: ways, escapes, sentences, thinning, feed, export."""

import html
import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import markdown
import pytest
import yaml

from sparkpub.record.errors import SiteError
from sparkpub.record.metrics import METRICS
from sparkpub.site.content import Content, fill, placeholder, way_to_root
from sparkpub.site.figures.samples import thinned
from sparkpub.site.pages import blog, runs
from sparkpub.site.pages.evidence import inert
from sparkpub.site.pages.templating import front_matter, markdown_text
from sparkpub.site.publication import slug


@pytest.mark.parametrize(
    ("uri", "way"),
    [
        ("index.md", ""),
        ("runs/index.md", "../"),
        ("runs/x.md", "../../"),
        ("blog/posts/part-1.md", "../../"),
    ],
)
def test_way_to_the_root(uri: str, way: str) -> None:
    assert way_to_root(uri) == way


def test_blocks_may_hold_blocks() -> None:
    inner, outer = "a" * 16, "b" * 16
    blocks = {inner: '<a href="\ue000/x/">', outer: f"<p>{placeholder(inner)}</p>"}
    assert fill(placeholder(outer), blocks, "../") == '<p><a href="../x/"></p>'


@pytest.mark.parametrize(
    "text",
    [
        "root: \ue000/\ue000/evil",
        '<p title="\ue000/x">',
        "&#34;\ue000/x",
        placeholder("c" * 16),
    ],
)
def test_text_cannot_imitate_a_placeholder(text: str) -> None:
    """Text from outside is escaped, so its quotes are never those before an address of ours."""
    key = "a" * 16
    assert fill(placeholder(key), {key: text}, "../") == text


def test_titles_are_written_as_html_that_shows_them() -> None:
    front = yaml.safe_load(
        str(front_matter(title='<b> & "x"', hide=["<"])).strip("-\n")
    )
    assert front == {"title": "&lt;b&gt; &amp; &quot;x&quot;", "hide": ["<"]}
    assert html.unescape(front["title"]) == '<b> & "x"'


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("a.log", "a.log.txt"),
        ("a.html", "a.html.txt"),
        ("a.SVG", "a.SVG.txt"),
        ("a.js", "a.js.txt"),
        ("a", "a.txt"),
        ("a.xml", "a.xml.txt"),
        ("a.telemetry.csv", "a.telemetry.csv"),
        ("a.json", "a.json"),
        ("a.txt", "a.txt"),
    ],
)
def test_evidence_has_a_name_that_no_browser_runs(name: str, published: str) -> None:
    assert inert(name) == published


@pytest.mark.parametrize("slug", ["../../x", "/etc/x", "a/../b", "", "a b", ".hidden"])
def test_a_post_stays_within_the_site(slug: str) -> None:
    written = {
        "blog/posts/p q.md": post("2026-01-01", "x", f"slug: {json.dumps(slug)}\n")
    }
    with pytest.raises(SiteError, match="is no address"):
        blog.posts(written)


@pytest.mark.parametrize("slug", ["index", "a/INDEX", "README"])
def test_a_post_does_not_take_the_address_of_a_folder(slug: str) -> None:
    written = {"blog/posts/p.md": post("2026-01-01", "x", f"slug: {slug}\n")}
    with pytest.raises(SiteError, match=f"'{slug}' is the address of a folder"):
        blog.posts(written)
    written = {"blog/posts/p.md": post("2026-01-01", "x", f"slug: {slug}-1\n")}
    assert [post.slug for post in blog.posts(written)] == [f"{slug}-1"]


def test_a_slug_is_no_longer_than_a_file_s_name_may_be() -> None:
    written = {"blog/posts/p.md": post("2026-01-01", "x", f"slug: {'a' * 201}\n")}
    with pytest.raises(SiteError) as caught:
        blog.posts(written)
    assert caught.value.lines() == [
        "a slug of 201 characters, blog/posts/p.md; use at most 200"
    ]
    written = {"blog/posts/p.md": post("2026-01-01", "x", f"slug: {'a' * 200}\n")}
    assert len(blog.posts(written)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "*a*",
        "[x](y)",
        "<b>",
        "`c`",
        "# h",
        "a_b_c",
        "&amp;",
        "![i](j)",
        "{: .x }",
        "|a|",
    ],
)
def test_text_stays_text_in_markdown(text: str) -> None:
    page = markdown.markdown(
        f"start {markdown_text(text)}", extensions=["attr_list", "tables"]
    )
    shown = "".join(ElementTree.fromstring(f"<div>{page}</div>").itertext())
    assert shown.strip() == f"start {text}"


def test_slugs_leave_the_unit_out() -> None:
    known = {
        "peak_memory_gib": "peak-memory",
        "output_throughput_tok_s": "output-throughput",
        "ttft_p50_ms": "ttft-p50",
    }
    assert {name: slug(name) for name in known} == known
    # Campaigns may have declared the same quantity in different units.
    assert (slug("wait_ms"), slug("wait_percent")) == ("wait-ms", "wait-percent")
    assert len({slug(name) for name in METRICS}) == len(METRICS)


def test_thinning_keeps_every_peak() -> None:
    points = [(float(t), 0.0) for t in range(10_000)]
    points[5003], points[7771] = (5003.0, 9.0), (7771.0, -4.0)
    kept = thinned(points, 300)
    assert len(kept) <= 300
    assert {(5003.0, 9.0), (7771.0, -4.0)} <= set(kept)
    assert kept == sorted(kept)


def post(date: str, title: str, more: str = "") -> Content:
    return Content(
        text=f"---\ndate: {date}\ntitle: {json.dumps(title)}\n{more}---\n\nText.\n"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("No front matter", "needs front matter"),
        ("---\ntitle: x\n---\n", "needs a date"),
        ("---\ndate: soon\n---\n", "needs a date"),
        ("---\ndate: {updated: 2026-01-02}\n---\n", "needs a date"),
        ("---\na: [\n---\n", "YAML"),
        ("---\ndate: 2026-01-01\nauthors: A\n---\n", "authors is not a list"),
        ("---\ndate: 2026-01-01\ntags: {a: 1}\n---\n", "tags is not a list"),
    ],
)
def test_a_post_without_its_front_matter_is_named(text: str, said: str) -> None:
    written: Mapping[str, Content] = {"blog/posts/p.md": Content(text=text)}
    with pytest.raises(SiteError, match=said) as caught:
        blog.posts(written)
    assert "blog/posts/p.md" in caught.value.lines()[0]


@pytest.mark.parametrize("field", ["tags", "categories"])
@pytest.mark.parametrize(
    ("name", "sign"),
    [
        ("<script>alert(1)</script>", "<"),
        ("[x](javascript:alert(1))", r"\["),
        ("x {: onclick=alert(1) }", "{"),
        ('" onclick=alert(1)', '"'),
    ],
)
def test_a_label_of_a_post_is_words(field: str, name: str, sign: str) -> None:
    """The theme wrote them into pages, lists of tags and what search finds as they were."""
    written = {"blog/posts/p.md": post("2026-01-01", "x", f"{field}: [{name!r}]\n")}
    with pytest.raises(SiteError, match=f"^{field} has a name with {sign}") as caught:
        blog.posts(written)
    (line,) = caught.value.lines()
    assert ", blog/posts/p.md; write words" in line


def test_words_of_labels_stay_as_they_are() -> None:
    names = ["R&D", "C++ (new)", "7 %", "it's", "été"]
    written = {"blog/posts/p.md": post("2026-01-01", "x", f"tags: {names}\n")}
    assert blog.posts(written)[0].tags == tuple(names)


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (["short"] * 300, 200),  # as many lines as a page has room for
        (["x" * 3000] * 3, 1),  # two of them are more than 3,500 characters
        (["x" * 3_501], 0),
        (["a", "b"], 2),
    ],
)
def test_a_page_shows_the_end_of_a_log_as_far_as_it_is_short(
    tmp_path: Path, lines: list[str], shown: int
) -> None:
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines))
    log: Any = SimpleNamespace(role="log", address="evidence/run.log.txt", path=path)
    tail = runs._log_tail([log])
    assert tail is not None
    assert (tail["total"], len(tail["lines"])) == (len(lines), shown)
    assert [number for number, _ in tail["lines"]] == list(
        range(len(lines) - shown + 1, len(lines) + 1)
    )
