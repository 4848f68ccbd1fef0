"""`python -m benchmarks.preview`: from saving a file to the open page that shows it. Needs Chromium.

A page of `mkdocs serve` stays open in a browser, and nobody touches it. The time ends when the page, reloaded by
itself, shows the new text.
"""

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks import harness
from benchmarks.build import ONE, copy, one_campaign
from benchmarks.harness import Row, row
from benchmarks.pages import FLAGS, chromium
from benchmarks.serving import served
from sparkpub.record.settings import DEFAULT_DATA
from sparkpub.record.store import CAMPAIGN_FILE, record_paths

REPEATS = 3
"""A record that changed redraws the charts of its campaign: each such save takes many seconds."""
RELOAD_SECONDS = 120
POST = """---
date: 2026-01-01
slug: written
title: Written
description: A post that is being written.
---

# Written

{text}
"""


@dataclass(frozen=True)
class Edit:
    """What is saved, and the page that is open. `save` writes a new state and returns the text that shows it."""

    what: str
    page: str
    save: Callable[[int], str]


def edits(project: Path) -> list[Edit]:
    """A post, a record, and a campaign with its matrix."""
    post = project / "site_src" / "blog" / "posts" / "written.md"
    post.parent.mkdir(parents=True, exist_ok=True)
    post.write_text(POST.format(text="Not yet."))
    folder = project / DEFAULT_DATA / ONE
    record = next(
        path
        for path in record_paths(folder)
        if '"output_throughput_tok_s"' in path.read_text()
    )
    document = json.loads(record.read_text())
    campaign = folder / CAMPAIGN_FILE
    described = json.loads(campaign.read_text())

    def save_post(number: int) -> str:
        text = f"Saved for the {number}th time."
        post.write_text(POST.format(text=text))
        return text

    def save_record(number: int) -> str:
        value = 7000.11 + number  # no other figure of the page is like it
        document["metrics"]["output_throughput_tok_s"]["value"] = value
        record.write_text(json.dumps(document, indent=1))
        return f"{value:,.2f}"

    def save_campaign(number: int) -> str:
        described["title"] = f"Title number {number}"
        campaign.write_text(json.dumps(described, indent=1))
        return str(described["title"])

    return [
        Edit("a post", "blog/written/", save_post),
        Edit("a record", f"runs/{document['run_id']}/", save_record),
        Edit("a campaign.json", f"campaigns/{ONE}/", save_campaign),
    ]


def times(page: Any, address: str, edit: Edit) -> list[float]:
    """Seconds from each save to the page that shows it."""
    page.goto(address + edit.page)
    found = []
    for number in range(1, REPEATS + 1):
        start = time.perf_counter()
        text = edit.save(number)
        page.get_by_text(text).first.wait_for(timeout=RELOAD_SECONDS * 1000)
        found.append(time.perf_counter() - start)
    return found


def rows(project: Path, what: str, wanted: Sequence[Edit]) -> list[Row]:
    """A line for each edit, all under one server."""
    found = []
    with sync_playwright() as playwright, served(project) as address:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page()
        for edit in wanted:
            title = f"{what}: {edit.what} saved, until the open page shows it"
            found.append(row(title, times(page, address, edit), "s", goal=5.0))
            print(found[-1], flush=True)
        browser.close()
    return found


def main() -> None:
    harness.parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as made:
        one = one_campaign(Path(made, "one"))
        everything = copy(Path(made, "all"))
        every_kind = edits(one)
        post_and_record = edits(everything)[:2]
        found = [
            *rows(one, "60 runs", every_kind),
            *rows(everything, "all runs", post_and_record),
        ]
    harness.save(
        "preview",
        title="Previewing a change",
        question="How long after saving does the open page of `mkdocs serve` show it, in Chromium?",
        rows=found,
        notes=[
            "MkDocs looks for changes every half second and waits a tenth of a second for more.",
            "A changed record is judged with its campaign anew, and all pages but those of other runs are made again.",
        ],
        packages=["mkdocs", "mkdocs-material", "playwright"],
    )


if __name__ == "__main__":
    main()
