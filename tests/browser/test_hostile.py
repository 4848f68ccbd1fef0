"""Hostile text in every field that takes text: on no page does any of it become more than text.

The pages are visited without their policy, so that nothing but escaping holds.
"""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from sparkpub.record.campaign import Acknowledgement, Campaign, Origin, Quarantine
from sparkpub.record.record import Record
from sparkpub.record.store import record_paths, to_json
from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from tests.browser.conftest import Host, served
from tests.published import MEASURED

HOSTILE = (
    "</title></script></textarea>--><img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)>"
    "\" onmouseover=alert(4) autofocus onfocus=alert(5) x=\"' onfocus=alert(6) x='"
    "[link](javascript:alert(7)) ![](http://elsewhere.invalid/i.png) <http://elsewhere.invalid/> `c` {: onclick=x }"
    ' {{ 7*7 }} \ue000/ <div data-sp-block="aaaaaaaaaaaaaaaa"></div> &lt;script&gt;alert(8)&lt;/script&gt;'
)
SITE = """
site_name: hostile
docs_dir: docs
theme: {name: material, font: false, features: [search.suggest, search.highlight]}
plugins: [search, {sparkpub: {folders: data}}, {blog: {authors: false}}, tags]
markdown_extensions: [attr_list, md_in_html, tables, toc]
"""


TABS = 6
LOOK = """() => {
  const elements = [...document.querySelectorAll('*')];
  const hostile = /^\\s*javascript:|elsewhere\\.invalid/i;
  const handled = ({attributes}) => [...attributes].some(({name}) => /^on/.test(name));
  const leads = (element) => hostile.test(element.getAttribute('href') ?? element.getAttribute('src') ?? '');
  return {
    handlers: elements.filter(handled).length,
    links: elements.filter(leads).length,
    scripts: [...document.scripts].filter(({textContent}) => textContent.includes('alert(')).length,
    images: document.querySelectorAll('img[src=x]').length,
    text: document.body.innerText.includes('<script>alert(2)</script>'),
    whole: document.querySelector('footer, #place-in-the-plan') !== null,
  };
}"""


def leaves(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every text in a document."""
    if isinstance(node, str):
        yield path
    elif isinstance(node, dict):
        for name, value in node.items():
            yield from leaves(value, (*path, name))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from leaves(value, (*path, index))


def replaced(document: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    place: Any = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = HOSTILE
    return changed


def hostile_record(document: dict[str, Any]) -> Record:
    """The record with hostile text wherever its schema takes any."""
    for path in list(leaves(document)):
        if "binds" in path:
            continue  # paths, of which each is looked at as in a matrix
        try:
            changed = replaced(document, path)
            Record.model_validate_json(json.dumps(changed))
        except ValidationError:
            continue
        document = changed
    return Record.model_validate_json(json.dumps(document))


@pytest.fixture(scope="module")
def hostile(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A site of two runs that happened, every text of theirs made hostile, and one left out with a hostile reason."""
    project = tmp_path_factory.mktemp("hostile")
    folder = project / "data" / "c"
    folder.mkdir(parents=True)
    paths = list(record_paths(MEASURED / "h200"))
    for path in sorted(paths)[:4]:
        document = json.loads(path.read_text()) | {
            "campaign": "c",
            "evidence": [],
            "status_reason": HOSTILE,
        }
        document["unavailable"] = dict.fromkeys(("telemetry", "log", "gates"), HOSTILE)
        document["events"] = [{"at_seconds": 1.0, "kind": "note", "text": HOSTILE}]
        (folder / path.name).write_text(to_json(hostile_record(document)))
    runs = [json.loads(path.read_text())["run_id"] for path in record_paths(folder)]
    campaign = Campaign(
        campaign="c",
        title=HOSTILE[:300],  # the longest title there may be
        note=HOSTILE,
        licence=HOSTILE,
        origin=Origin(title=HOSTILE, url=HOSTILE),
        quarantined=(Quarantine(run=runs[0], reason=HOSTILE),),
    )
    (folder / "campaign.json").write_text(to_json(campaign))
    checks = {
        finding.check
        for finding in review(load(project / "data")).findings
        if finding.severity == "error"
    }
    answers = tuple(
        Acknowledgement(check=check, reason=HOSTILE) for check in sorted(checks)
    )
    (folder / "campaign.json").write_text(
        to_json(campaign.model_copy(update={"acknowledged": answers}))
    )
    blog = project / "docs" / "blog"
    (blog / "posts").mkdir(parents=True)
    (blog / "index.md").write_text("# Blog\n")
    # Without the private character and the expression, for which a page of people is refused.
    words = HOSTILE.replace("\ue000", "").replace("{{ 7*7 }}", "")
    front: dict[str, Any] = {"title": words, "description": words, "authors": [words]}
    lines = "\n".join(f"{name}: {json.dumps(said)}" for name, said in front.items())
    post = f"---\n{lines}\nslug: p\ndate: 2026-01-01\n---\n\n# P\n\nText.\n"
    (blog / "posts" / "p.md").write_text(post)
    (project / "mkdocs.yml").write_text(SITE)
    argv = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--quiet",
        "--site-dir",
        project / "site",
    ]
    subprocess.run(
        argv, cwd=project, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True
    )
    yield from served(chromium, project / "site")


def test_hostile_text_stays_text_on_every_page_without_the_policy(
    hostile: Host,
) -> None:
    found_pages = (
        path.relative_to(hostile.folder).as_posix()
        for path in hostile.folder.rglob("*.html")
    )
    pages = [
        uri for uri in found_pages if uri != "404.html"
    ]  # its addresses begin at a root that is not known here
    assert len(pages) > 20
    visits = [hostile.open("index.html", bypass_csp=True) for _ in range(TABS)]
    dialogs: list[str] = []
    for visit in visits:
        visit.page.on(
            "dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss())
        )
    shown = 0
    waiting = sorted(pages)
    while waiting:
        # Side by side: each page is still only after half a second in which nothing was loaded.
        opened, waiting = waiting[:TABS], waiting[TABS:]
        for visit, uri in zip(visits, opened, strict=False):
            visit.page.goto(hostile.address + uri, wait_until="commit")
        for visit, uri in zip(visits, opened, strict=False):
            visit.page.wait_for_load_state("networkidle")
            found = visit.page.evaluate(LOOK)
            shown += found.pop("text")
            assert found == {
                "handlers": 0,
                "links": 0,
                "scripts": 0,
                "images": 0,
                # The shell into which a run is put has no foot of its own.
                "whole": uri != "runs/view/index.html",
            }, uri
    assert dialogs == []
    assert [visit.elsewhere for visit in visits] == [[]] * TABS
    assert shown > 5


def test_search_shows_hostile_titles_as_text(hostile: Host) -> None:
    visit = hostile.open("index.html", bypass_csp=True)
    dialogs: list[str] = []
    visit.page.on(
        "dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss())
    )
    visit.page.locator("[data-md-component=search-query]").press_sequentially(
        "campaign"
    )
    visit.page.wait_for_selector(".md-search-result__item")
    settled = visit.page.locator(".md-search-result__list").inner_text()
    assert settled
    assert (
        visit.page.locator(
            ".md-search-result__list img, .md-search-result__list svg[onload]"
        ).count()
        == 0
    )
    assert dialogs == []
