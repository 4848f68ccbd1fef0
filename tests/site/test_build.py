"""The docs tree of a small campaign: which pages there are, what they say, and that nothing escapes into them."""

import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import markdown
import pytest

from sparkpub.record.campaign import Campaign, Quarantine
from sparkpub.record.errors import SiteError
from sparkpub.record.metrics import METRICS
from sparkpub.record.store import to_json
from sparkpub.review.dataset import load
from sparkpub.site import sentences
from sparkpub.site.build import build, publish, refuse
from sparkpub.site.content import Content, SiteOptions, placeholders
from tests.site.conftest import run_of, write_run

ROOT = Path(__file__).parents[2]
Whole = Callable[[Mapping[str, Content], str], str]
RUN = "c-native_m_w_iter01_20260101T101000Z"
FAILED = "c-native_m_w_iter04_20260101T104000Z"
HOSTILE = '<script>alert(1)</script> ](javascript:alert(1)) {{ 7*7 }} `x` "q" & <img src=x onerror=alert(1)>'


def test_every_kind_of_page_is_there(data: Path, options: SiteOptions) -> None:
    tree = build(load(data), options)
    wanted = [
        "index.md",
        "leaderboard/index.md",
        "campaigns/c.md",
        "models/m.md",
        "environments/c/container.md",
        "metrics/peak-memory.md",
        "runs/index.md",
        f"runs/{RUN}.md",
        "review/index.md",
        "coverage/index.md",
        "data/index.md",
        "feed.xml",
        "blog/posts/first.md",
        "cards/c.png",
        "charts/c-peak-memory.svg",
        "charts/c-peak-memory.csv",
        "charts/c-output-throughput.png",
        "data/runs.parquet",
        "data/record.schema.json",
    ]
    assert [uri for uri in wanted if uri not in tree] == []
    assert sum(uri.startswith("runs/c-") for uri in tree) == 13


def test_every_placeholder_has_its_html(
    data: Path, options: SiteOptions, whole: Whole
) -> None:
    tree = build(load(data), options)
    for uri, content in tree.items():
        if content.text is not None:
            assert placeholders(whole(tree, uri)) == []
            assert "\ue000" not in whole(tree, uri)


def test_evidence_is_published_as_it_is_with_its_digest(
    data: Path, options: SiteOptions, whole: Whole
) -> None:
    tree = build(load(data), options)
    for record in (RUN, FAILED):
        page = whole(tree, f"runs/{record}.md")
        for path in sorted((data / "c").glob(f"{record.removeprefix('c-')}*")):
            address = f"evidence/c/{path.name}" + (
                ".txt" if path.suffix == ".log" else ""
            )
            assert tree[address].inlined(address) == path.read_bytes()
            assert hashlib.sha256(path.read_bytes()).hexdigest() in page
            assert f"../../{address}" in page
    for part in (
        "cooldown",
        "<td>60</td>",
        "<td>44</td>",
        "12.5 s",
        "measure: 45.0 s",
        "3 of 3",
    ):
        assert part in whole(tree, f"runs/{RUN}.md")
    assert 'id="L2"' in whole(tree, f"runs/{FAILED}.md")


def test_a_failed_run_says_why_and_is_in_no_figure(
    data: Path, options: SiteOptions, whole: Whole
) -> None:
    tree = build(load(data), options)
    assert "out of memory" in whole(tree, f"runs/{FAILED}.md")
    assert "out of memory" in whole(tree, "coverage/index.md")
    rows = json.loads(tree["charts/c-output-throughput.json"].data or b"")["rows"]
    assert len(rows) == 12


def test_figures_come_from_the_statistics(
    data: Path, options: SiteOptions, whole: Whole
) -> None:
    """Means of 100.1, 100.2, 100.3 and of 90.1, 90.2, 90.3: 10.00 tok/s lower, 10/100.2 = 9.98 %."""
    page = whole(build(load(data), options), "metrics/output-throughput.md")
    assert "\u221210.00 tok/s (\u221210.0\u00a0%)" in page


def test_the_answer_on_the_published_runs_is_what_their_order_can_bear(
    options: SiteOptions,
) -> None:
    """All native runs came before all runs in the container, so no difference can be told from a change over time."""
    publication = publish(load(ROOT / "data" / "comprehensive"), options)
    metric = METRICS["peak_memory_gib"]
    answer = sentences.differences(
        metric, publication.comparisons["phase1", metric.name]
    )
    assert answer == (
        "Peak memory (engine-profiled) cannot be compared for all 3 models: "
        "container and native ran in separate blocks of time."
    )


def test_a_comparison_that_answers_no_question_is_called_exploratory(
    data: Path, options: SiteOptions, whole: Whole
) -> None:
    """A temperature is a state of the machine; throughput is what was asked."""
    tree = build(load(data), options)
    assert ">exploratory<" in whole(tree, "metrics/gpu-temp-end.md")
    assert ">exploratory<" not in whole(tree, "metrics/output-throughput.md")


def test_what_a_record_says_is_never_markup(
    data: Path, options: SiteOptions, whole: Whole
) -> None:
    folder = data / "c"
    bad = run_of(
        "m",
        "native",
        5,
        status="failed",
        status_reason=HOSTILE,
        argv=["x", HOSTILE],
        exit_code=1,
        unavailable={"telemetry": HOSTILE},
        events=[{"at_seconds": 1.0, "kind": "note", "text": HOSTILE}],
    )
    write_run(folder, bad, {"log": f"{HOSTILE}\n".encode()})
    info = Campaign(
        campaign="c",
        title=HOSTILE,
        note=HOSTILE,
        licence=HOSTILE,
        quarantined=(Quarantine(run=RUN, reason=HOSTILE),),
    )
    (folder / "campaign.json").write_text(to_json(info), encoding="utf-8")
    tree = build(load(data), options)
    for uri, content in tree.items():
        if content.text is not None:
            text = whole(tree, uri)
            body = text.split("\n---", 1)[1] if text.startswith("---") else text
            html = markdown.markdown(
                body, extensions=["attr_list", "md_in_html", "tables", "toc"]
            )
            assert "<script>alert" not in html, uri
            assert "<img src=x" not in html, uri
            assert 'href="javascript' not in html, uri
    assert "<script>" not in (tree["feed.xml"].data or b"").decode()


def test_no_data_yet_looks_meant(
    tmp_path: Path, options: SiteOptions, whole: Whole
) -> None:
    (tmp_path / "none").mkdir()
    (options.sources / "blog" / "posts" / "first.md").unlink()
    tree = build(load(tmp_path / "none"), options)
    assert "nothing to show until something is measured" in whole(tree, "index.md")
    # No program takes the place of the words, so scripting must not hide them.
    assert "No run yet." in whole(tree, "runs/index.md")
    assert "data-sp-static" not in whole(tree, "runs/index.md")
    for uri, content in tree.items():
        assert content.text is None or whole(tree, uri)


def test_a_single_run_is_said_to_be_one(
    tmp_path: Path, options: SiteOptions, whole: Whole
) -> None:
    folder = tmp_path / "one" / "c"
    write_run(folder, run_of("m", "native", 1))
    (folder / "campaign.json").write_text(
        to_json(Campaign(campaign="c", title="One")), encoding="utf-8"
    )
    page = whole(build(load(tmp_path / "one"), options), "campaigns/c.md")
    assert "single runs say nothing about spread" in page
    assert "1 run</strong> of 1 model in 1 environment" in page
    assert "sp-filters" not in page


def test_a_metric_of_failed_runs_alone_draws_no_empty_charts(
    tmp_path: Path, options: SiteOptions, whole: Whole
) -> None:
    folder = tmp_path / "failed" / "c"
    write_run(
        folder,
        run_of(
            "m",
            "native",
            1,
            status="failed",
            status_reason="out of memory",
            exit_code=1,
        ),
    )
    (folder / "campaign.json").write_text(
        to_json(Campaign(campaign="c", title="One")), encoding="utf-8"
    )
    page = whole(
        build(load(tmp_path / "failed"), options), "metrics/output-throughput.md"
    )
    assert re.findall(r'<figure class="sp-figure" id="([^"]+)"', page) == [
        "c-output-throughput"
    ]


def test_a_page_draws_two_figures_and_names_files_for_the_others(
    data: Path, options: SiteOptions, whole: Whole
) -> None:
    tree = build(load(data), options)
    page = whole(tree, "metrics/output-throughput.md")
    drawn, named = (
        page.count('<div class="sp-wide"><svg'),
        re.findall(r'<div class="sp-wide"><img src="([^"]+)"', page),
    )
    assert drawn == 2
    assert len(named) > 1
    for address in named:
        svg = (tree[address.removeprefix("../../")].data or b"").decode()
        assert (
            f'src="{address}" {re.findall("width=.*? height=[^ ]+", svg)[0]} ' in page
        )


def test_the_page_of_a_model_lists_its_runs(
    data: Path, options: SiteOptions, whole: Whole
) -> None:
    dataset = load(data)
    page = whole(build(dataset, options), "models/m.md").partition("### Runs")[2]
    mine = {run.record.run_id for run in dataset.runs if run.record.model == "m"}
    assert set(re.findall(r'runs/([^/?"]+)/"', page)) == mine


def test_one_digit_changes_what_rests_on_it_and_nothing_else(
    data: Path, options: SiteOptions
) -> None:
    before = build(load(data), options)
    path = next((data / "c").glob("container_n_w_iter03_*.json"))
    path.write_text(path.read_text().replace("90.3", "91.3"))
    after = build(load(data), options)
    changed = {
        uri
        for uri in after
        if uri not in before or after[uri].inlined(uri) != before[uri].inlined(uri)
    }
    assert {
        "leaderboard/index.md",
        "campaigns/c.md",
        "models/n.md",
        "data/runs.csv",
        "charts/c-output-throughput.csv",
    } <= changed
    assert f"runs/c-{path.stem}.md" in changed
    assert {
        f"runs/{RUN}.md",
        "charts/c-peak-memory-m.svg",
        "charts/c-output-throughput-m.csv",
    } & changed == set()


def test_links_out_of_the_folders_are_not_followed(
    data: Path, options: SiteOptions, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    log = next((data / "c").glob("*.log"))
    log.unlink()
    log.symlink_to(secret)
    tree = build(load(data), options)
    assert not [uri for uri in tree if uri.endswith(".log.txt")]
    assert b"secret" not in b"".join(
        content.inlined(uri) for uri, content in tree.items() if uri.startswith("runs/")
    )
    (options.sources / "page.md").symlink_to(secret)
    with pytest.raises(SiteError, match="leads out of the folder of pages"):
        build(load(data), options)


def test_two_pages_never_share_an_address(data: Path, options: SiteOptions) -> None:
    path = next((data / "c").glob("native_m_w_iter01_*.json"))
    path.write_text(path.read_text().replace(f'"{RUN}"', '"index"'))
    with pytest.raises(SiteError, match=r"share the address runs/index\.md"):
        build(load(data), options)


def test_a_typed_figure_and_an_unanswered_error_are_refused(
    data: Path, options: SiteOptions
) -> None:
    (options.sources / "page.md").write_text("It takes 12 GiB.\n", encoding="utf-8")
    with pytest.raises(SiteError) as caught:
        refuse(load(data), options)
    assert any("unbound-number" in line for line in caught.value.lines())


def test_beyond_the_limit_the_browser_gets_the_data_of_a_run_in_place_of_its_drawing(
    data: Path, options: SiteOptions, whole: Whole
) -> None:
    drawn = build(load(data), options)
    tree = build(load(data), replace(options, max_run_pages=0))
    uri, chart = f"runs/{RUN}.md", f"charts/telemetry-{RUN}"
    assert f"{chart}.svg" in drawn
    assert drawn.keys() - tree.keys() == {
        f"{chart}.{suffix}" for suffix in ("svg", "csv", "json")
    }
    assert tree.keys() <= drawn.keys()
    before, after = whole(drawn, uri), whole(tree, uri)
    assert re.findall("^## .*", before, re.MULTILINE) == re.findall(
        "^## .*", after, re.MULTILINE
    )
    assert (before.count("data-sp-now"), after.count("data-sp-now")) == (0, 1)
    addresses = json.loads(
        html.unescape(re.findall('data-sp-data="([^"]*)"', after)[0])
    )
    samples = json.loads(tree[addresses["samples"].removeprefix("../../")].data or b"")
    assert [row["value"] for row in samples if row["signal"] == "GPU temperature"][
        :3
    ] == [40.0, 40.1, 40.2]
    specification = re.findall('data-sp-chart="../../([^"]*)"', after)[0]
    assert tree[f"{specification}.vega.json"] == drawn[f"{specification}.vega.json"]
    assert 'id="L2"' in whole(drawn, f"runs/{FAILED}.md")
    assert 'id="L2"' not in whole(tree, f"runs/{FAILED}.md")


def test_same_bytes_from_two_folders_and_two_hash_seeds(
    data: Path, sources: Path, tmp_path: Path
) -> None:
    trees = []
    for seed in ("1", "2"):
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
        done = subprocess.run(
            argv, cwd=home, env=place, capture_output=True, text=True, check=False
        )
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
