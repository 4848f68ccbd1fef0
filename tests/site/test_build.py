"""The docs tree of a small campaign: which pages there are, what they say, and that nothing escapes into them."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.campaign import Campaign
from sparkpub.record.errors import SiteError
from sparkpub.record.store import to_json
from sparkpub.review.checks import CHECKS
from sparkpub.site import expressions, kept
from sparkpub.site.cache import WORK
from sparkpub.site.content import SITE_CARD, File, SiteOptions, placeholders
from sparkpub.site.pages import tree
from tests.site.conftest import Built, Tree, run_of, tree_of, whole, write_run

ROOT = Path(__file__).parents[2]
RUN = "c-native_m_w_iter01_20260101T101000Z"
FAILED = "c-native_m_w_iter04_20260101T104000Z"
HOSTILE = '<script>alert(1)</script> ](javascript:alert(1)) {{ 7*7 }} `x` "q" & <img src=x onerror=alert(1)>'


def test_every_kind_of_page_is_there(built: Built) -> None:
    tree = built.tree
    wanted = [
        "index.md",
        "leaderboard/index.md",
        "campaigns/c.md",
        "models/m.md",
        "measure/index.md",
        "data/speeds.json",
        "badge.json",
        "runs/index.md",
        f"runs/{RUN}.md",
        "review/index.md",
        "data/index.md",
        "feed.xml",
        "blog/posts/first.md",
        "cards/c.png",
        SITE_CARD,
        "charts/c-output-throughput.png",
        "data/runs.parquet",
    ]
    assert [uri for uri in wanted if uri not in tree] == []
    assert len([uri for uri in tree if re.fullmatch(r"runs/c-[^/]*\.md", uri)]) == 13


def test_every_placeholder_has_its_html(built: Built) -> None:
    tree = built.tree
    for uri in tree:
        if uri.endswith(".md") and uri != "blog/index.md":
            assert placeholders(whole(tree, uri)) == []
            assert "\ue000" not in whole(tree, uri)


def test_evidence_is_published_as_it_is_with_its_digest(built: Built) -> None:
    tree = built.tree
    for record in (RUN, FAILED):
        page = page_of(tree, record)
        for path in sorted((built.data / "c").glob(f"{record.removeprefix('c-')}*")):
            address = f"evidence/c/{path.name}" + (
                ".txt" if path.suffix == ".log" else ""
            )
            assert tree[address] == path.read_bytes()
            assert hashlib.sha256(path.read_bytes()).hexdigest() in page
            assert f"../../{address}" in page
    for part in (
        "cooldown",
        "<td>60</td>",
        "<td>44</td>",
        "12.5 s",
        "measure 45.0 s",
        "\u22120.10",  # 100.1 of a mean of 100.2
        "<dt>measured from</dt><dd>not set</dd>",
    ):
        assert part in page_of(tree, RUN)


def test_a_failed_run_says_why_and_is_in_no_figure(built: Built) -> None:
    tree = built.tree
    assert "out of memory" in page_of(tree, FAILED)
    assert "out of memory" in whole(tree, "review/index.md")
    remedy = CHECKS["exit-status"].remedy
    assert f"→ {remedy}" in whole(tree, "review/index.md")
    assert f"→ {remedy}" in page_of(tree, FAILED)
    campaign = whole(tree, "campaigns/c.md")
    assert "n = 3 per cell." in campaign
    assert "method/metrics/#output-throughput" in campaign
    # Means of 100.1, 100.2, 100.3 and of 90.1, 90.2, 90.3: 10 tok/s lower, 10/100.2 = 9.98 %.
    assert "\u221210.0" in campaign


def test_no_data_yet_looks_meant(tmp_path: Path, options: SiteOptions) -> None:
    (tmp_path / "none").mkdir()
    (options.sources / "blog" / "posts" / "first.md").unlink()
    tree = tree_of(tmp_path / "none", options)
    assert "nothing to show until something is measured" in whole(tree, "index.md")
    # No program takes the place of the words, so scripting must not hide them.
    assert "No run yet." in whole(tree, "runs/index.md")
    assert "data-sp-explorer" not in whole(tree, "runs/index.md")
    assert "No run yet." in whole(tree, "hardware.md")
    assert "No claim yet." in whole(tree, "claims/index.md")
    for uri in tree:
        assert tree[uri] or not uri.endswith(".md")


def test_a_single_run_is_said_to_be_one(tmp_path: Path, options: SiteOptions) -> None:
    folder = tmp_path / "one" / "c"
    write_run(folder, run_of("m", "native", 1))
    (folder / "campaign.json").write_text(
        to_json(Campaign(campaign="c", title="One")), encoding="utf-8"
    )
    page = whole(tree_of(tmp_path / "one", options), "campaigns/c.md")
    assert "1 run of 1 model in 1 environment" in page
    assert "One run per cell: spread unknown." in page
    assert "sp-filters" not in page


def test_a_page_draws_its_first_figure_and_names_files_for_the_others(
    built: Built,
) -> None:
    tree = built.tree
    page = whole(tree, "campaigns/c.md")
    drawn, named = (
        page.count('<div class="sp-wide"><svg'),
        re.findall(r'<div class="sp-wide"><img src="([^"]+)"', page),
    )
    assert drawn == 1
    assert len(named) > 1
    for address in named:
        file = address.removeprefix("../../")
        svg = tree[file].decode()
        assert (
            f'src="{address}" {re.findall("width=.*? height=[^ ]+", svg)[0]} ' in page
        )


def test_one_digit_changes_what_rests_on_it_and_nothing_else(
    built: Built, data: Path, options: SiteOptions
) -> None:
    before = built.tree
    path = next((data / "c").glob("container_n_w_iter03_*.json"))
    path.write_text(path.read_text().replace("90.3", "91.3"))
    after = tree_of(data, options)
    changed = {uri for uri in after if uri not in before or after[uri] != before[uri]}
    assert {
        "data/speeds.json",
        "campaigns/c.md",
        "models/m.md",
        "data/runs.csv",
        f"runs/c-{path.stem}.md",
        "charts/c-output-throughput.png",
    } <= changed
    assert f"runs/{RUN}.md" not in changed


def test_links_out_of_the_folders_are_not_followed(
    data: Path, options: SiteOptions, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    log = next((data / "c").glob("*.log"))
    log.unlink()
    log.symlink_to(secret)
    tree = tree_of(data, options)
    assert not [uri for uri in tree if uri.endswith(".log.txt")]
    assert b"secret" not in b"".join(
        data for uri, data in tree.items() if uri.startswith("runs/")
    )
    (options.sources / "page.md").symlink_to(secret)
    with pytest.raises(SiteError, match="leads out of the folder of pages"):
        tree_of(data, options)


def test_two_pages_never_share_an_address(data: Path, options: SiteOptions) -> None:
    (options.sources / "data").mkdir()
    (options.sources / "data" / "runs.csv").write_text("run\n")
    with pytest.raises(
        SiteError, match=r"share the address data/runs\.csv; rename yours"
    ):
        tree_of(data, options)


def page_of(tree: Tree, run: str) -> str:
    """The page of a run, as an engine without our plugin gets it."""
    address = f"runs/{run}.md"
    return tree[address].decode()


def test_a_run_is_a_page_and_with_telemetry_a_small_file(built: Built) -> None:
    tree = built.tree
    folder = f"runs/{RUN}"
    files = {uri: data for uri, data in tree.items() if uri.startswith(folder)}
    assert set(files) == {f"{folder}.md", f"{folder}/run.json"}
    assert f"runs/{FAILED}/run.json" not in tree
    assert sum(map(len, files.values())) < 20_000
    assert not [uri for uri in tree if "telemetry-" in uri]
    page = page_of(tree, RUN)
    headings = re.findall("<h2[^>]*>(.*?)</h2>", page)
    assert headings[:3] == ["Metrics", "How to repeat it", "Findings"]
    assert page.count("data-sp-now") == 1
    assert "data-sp-block" not in page
    assert f'data-sp-rows="../../{folder}/run.json#rows"' in page
    rows = json.loads(tree[f"{folder}/run.json"])["rows"]
    signals = [row for row in rows if "value" in row]
    (heat,) = [row for row in signals if "temp" in row["panel"]]
    # A sample a second from 40 °C, a tenth of a degree more each.
    assert (heat["x"][:3], heat["value"][:3]) == ([0, 1, 2], [40, 40.1, 40.2])
    assert re.findall(r"<svg[^>]*>(.*?)</svg>", page) == ["", ""]
    phases = [row for row in rows if row.get("kind") == "phase"]
    assert {(row["name"], row["x"], row["end"]) for row in phases} == {
        ("measure", 5.0, 50.0)
    }
    specification = re.findall('data-sp-chart="../../([^"]*)"', page)[0]
    live = json.loads(tree[specification])
    assert set(live) == {"wide", "narrow"}
    failed = page_of(tree, FAILED)
    assert "<pre>1 one\n2 two\n</pre>" in failed


def test_a_long_table_leaves_csv_out(
    built: Built,
    data: Path,
    options: SiteOptions,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = built.tree
    (runs,) = [uri for uri in tree if re.fullmatch(r"data/runs\.\w+\.json", uri)]
    assert len(json.loads(tree[runs])["rows"]) == 13
    assert "data/runs.csv" in tree
    rows = tree["data/runs.csv"].count(b"\n") - 1  # below the header
    monkeypatch.setattr("sparkpub.site.pages.downloads.MOST_ROWS", rows)
    assert "data/runs.csv" in tree_of(data, options)
    monkeypatch.setattr("sparkpub.site.pages.downloads.MOST_ROWS", rows - 1)
    # What is kept was made with another bound.
    short = tree_of(data, replace(options, cache=tmp_path / "cache"))
    assert "data/runs.csv" not in short
    assert short["data/runs.parquet"] == tree["data/runs.parquet"]


def test_generated_pages_are_made_once_for_all_that_they_follow_from(
    data: Path, sources: Path, options: SiteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text of a page decides none of them; a fact, the arena, what a post says of itself and the site's address
    do. What is damaged is made anew."""
    made: list[str] = []
    make, of_others = tree.pages, {*options.cache.rglob("*")}

    def counting(*given: Any) -> Iterator[tuple[str, File]]:
        made.append("all")
        return make(*given)

    monkeypatch.setattr(tree, "pages", counting)
    monkeypatch.setattr(kept, "program", lambda: str(data))  # that nobody else has

    def published(asked: SiteOptions = options) -> tuple[dict[str, bytes], bool]:
        made.clear()
        return tree_of(data, asked), made == ["all"]

    first, was_made = published()
    assert was_made
    assert published() == (first, False)
    page = sources / "of-people.md"
    page.write_text("# A page\n\nOf somebody.\n")
    with_page, was_made = published()
    assert not was_made
    assert with_page.keys() - first.keys() == {"of-people.md"}
    fact = (
        "- {id: a, says: It was a., value: 1, source: {document: x}, quote: It was 1}\n"
    )
    for name, text in {
        "pages/facts.yaml": fact,
        "pages/blog/posts/new.md": "---\ntitle: New\nslug: new\ndate: 2026-01-02\n---\n\nText.\n",
        "arena.yaml": "[]\n",
    }.items():
        path = sources.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        assert published()[1], name
        assert not published()[1]
    assert published(replace(options, url="https://example.org/"))[1]
    for entry in {*(options.cache / WORK).glob("*/*")} - of_others:
        if entry.read_bytes().startswith(b"PK"):
            entry.write_bytes(b"PK")
    assert published()[1]


def test_a_text_is_filled_again_where_a_campaign_changed_of_which_it_speaks(
    data: Path, sources: Path, options: SiteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three native runs of 100.1, 100.2 and 100.3 tok/s the mean is 100.2, and 100.15 without the last."""
    shutil.copytree(data / "c", data / "d")
    for path in (data / "d").glob("*.json"):
        path.write_text(path.read_text().replace('"c"', '"d"').replace('"c-', '"d-'))
    mean = '{{ value("mean", "output_throughput_tok_s", model="m", environment="native", decimals=2) }}'
    (sources / "one.md").write_text(f"---\ncampaign: c\n---\n# One\n\n{mean}\n")
    (sources / "all.md").write_text("# All\n\n{{ hardware() }}\n")
    filled: list[str] = []
    render = expressions.render

    def counting(words: Any, text: str, uri: str, offset: int) -> str:
        filled.extend([uri] * ("{{" in text))
        return render(words, text, uri, offset)

    monkeypatch.setattr(expressions, "render", counting)
    monkeypatch.setattr(kept, "program", lambda: str(data))  # that nobody else has

    def of_one() -> tuple[str, set[str]]:
        filled.clear()
        page = tree_of(data, options)["one.md"].decode()
        return page.split()[-2], {*filled} & {"one.md", "all.md"}

    assert of_one() == ("100.20", {"one.md", "all.md"})
    assert of_one() == ("100.20", set())
    campaign = data / "d" / "campaign.json"
    campaign.write_text(campaign.read_text() + "\n")
    assert of_one() == ("100.20", {"all.md"})
    (last,) = (data / "c").glob("native_m_w_iter03*.json")
    last.unlink()
    assert of_one() == ("100.15", {"one.md", "all.md"})


def test_same_bytes_from_two_folders_two_hash_seeds_and_any_number_of_processors(
    data: Path, sources: Path, tmp_path: Path
) -> None:
    trees = []
    processors = os.sched_getaffinity(0)
    for seed, some in (("1", processors), ("2", {min(processors)})):
        home = tmp_path / f"home{seed}"
        shutil.copytree(data, home / "data")
        shutil.copytree(sources, home / "pages")
        argv = [
            sys.executable,
            "-m",
            "sparkpub",
            "render",
            "data",
            "--sources",
            "pages",
            "--out",
            "out",
        ]
        place = {
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": str(ROOT),
            "PATH": "",
            "HOME": str(home),
        }
        os.sched_setaffinity(0, some)  # which the process inherits
        try:
            done = subprocess.run(
                argv, cwd=home, env=place, capture_output=True, text=True, check=False
            )
        finally:
            os.sched_setaffinity(0, processors)
        assert done.returncode == 0, done.stderr
        trees.append(
            {
                path.relative_to(home / "out").as_posix(): path.read_bytes()
                for path in sorted((home / "out").rglob("*"))
                if path.is_file()
            }
        )
    assert list(trees[0]) == list(trees[1])
    assert [uri for uri in trees[0] if trees[0][uri] != trees[1][uri]] == []
    whole = b"".join(trees[0].values())
    assert str(tmp_path).encode() not in whole
    assert os.fsencode(Path.home()) + b"/" not in whole
