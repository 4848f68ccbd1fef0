"""A small campaign on disk, and pages around it: what the site is made of."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.campaign import Campaign
from sparkpub.record.record import Evidence, Gate, Phase, Reading, Record
from sparkpub.record.store import to_json
from sparkpub.review.checks.reviewing import Judged, judged
from sparkpub.review.dataset import Dataset, load
from sparkpub.site import kept
from sparkpub.site.build import build
from sparkpub.site.content import SiteOptions
from sparkpub.site.disk import contents
from tests.building import a_record

POST = """---
title: First
slug: first
date: 2026-01-02
description: What was found.
tags: [memory]
---

# First

{{ figure("output-throughput", campaign="c") }}
"""


def run_of(model: str, environment: str, iteration: int, **fields: Any) -> Record:
    """One run; the container is 10 % slower, and each iteration a little faster than the one before."""
    speed = {"native": 100.0, "container": 90.0}[environment] + iteration / 10
    minute = (
        10 * iteration
        + {"native": 0, "container": 1}[environment]
        + {"m": 0, "n": 2}[model]
    )
    started = {"value": f"2026-01-01T10:{minute:02d}:00Z", "zone": "utc"}
    stem = f"{environment}_{model}_w_iter{iteration:02d}_20260101T10{minute:02d}00Z"
    metrics = {
        "output_throughput_tok_s": speed,
        "peak_memory_gib": 10 + iteration,
        "gpu_temp_end_celsius": 50,
    }
    known: dict[str, Any] = {
        "run_id": f"c-{stem}",
        "model": model,
        "environment": environment,
        "iteration": iteration,
    }
    base = a_record(metrics)
    document = base.model_dump(mode="json") | known | {"started": started} | fields
    # As a matrix may have it, which is kept as it was written.
    document["requested"]["workload"] = {"type": "command", "measured_from": None}
    for value in document["metrics"].values():
        value["source"] = "published"
    return Record.model_validate_json(json.dumps(document))


def write_run(
    folder: Path, record: Record, files: Mapping[str, bytes] | None = None
) -> Path:
    """Put a record, and evidence by role, on disk as the collector does."""
    folder.mkdir(parents=True, exist_ok=True)
    suffixes = {"log": ".log", "telemetry": ".telemetry.csv"}
    found = []
    for role, data in (files or {}).items():
        name = record.stem + suffixes[role]
        (folder / name).write_bytes(data)
        found.append(
            Evidence(
                role=role,
                path=name,
                sha256=hashlib.sha256(data).hexdigest(),
                bytes=len(data),
            )
        )  # type: ignore[arg-type]
    path = folder / f"{record.stem}.json"
    path.write_text(
        to_json(record.model_copy(update={"evidence": tuple(found)})), encoding="utf-8"
    )
    return path


def telemetry_csv() -> bytes:
    """A minute of two signals, one sample a second."""
    rows = [f"{t},{t % 100},{40 + t / 10}" for t in range(60)]
    return "\n".join(
        ["elapsed_seconds,gpu_utilization_percent,gpu_temp_celsius", *rows, ""]
    ).encode()


def write_data(data: Path) -> Path:
    """Two models, two environments, three iterations; one run with telemetry and gates, one failed with its log."""
    folder = data / "c"
    gate = Gate(
        name="cooldown",
        wanted=45.0,
        unit="°C",
        met=True,
        waited_seconds=12.5,
        readings=(
            Reading(at_seconds=0, value=60.0),
            Reading(at_seconds=12.5, value=44.0),
        ),
    )
    for model in ("m", "n"):
        for environment in ("native", "container"):
            for iteration in (1, 2, 3):
                whole = (model, environment, iteration) == ("m", "native", 1)
                record = run_of(model, environment, iteration)
                if whole:
                    phases = (Phase(name="measure", start_seconds=5, end_seconds=50),)
                    record = record.model_copy(
                        update={"gates": (gate,), "phases": phases}
                    )
                write_run(
                    folder, record, {"telemetry": telemetry_csv()} if whole else None
                )
    failed = run_of(
        "m",
        "native",
        4,
        status="failed",
        status_reason="out of memory",
        exit_code=137,
        metrics={},
    )
    write_run(folder, failed, {"log": b"one\ntwo\n"})
    (folder / "campaign.json").write_text(
        to_json(Campaign(campaign="c", title="A small campaign")), encoding="utf-8"
    )
    return data


def write_sources(pages: Path) -> Path:
    """The pages of a small site: a blog with one post."""
    posts = pages / "blog" / "posts"
    posts.mkdir(parents=True)
    (posts.parent / "index.md").write_text("# Blog\n", encoding="utf-8")
    (posts / "first.md").write_text(POST, encoding="utf-8")
    return pages


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The small campaign, for a test that changes it or its site."""
    return write_data(tmp_path / "data")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """The pages, for a test that changes them."""
    return write_sources(tmp_path / "pages")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests, as a preview has one for all rebuilds; processes beside each other share it."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    (folder / "cache-of-sites").mkdir(exist_ok=True)
    return folder / "cache-of-sites"


def options_of(folder: Path, cache: Path) -> SiteOptions:
    """Options of a site whose pages are below a folder."""
    return SiteOptions(
        sources=folder / "pages",
        cache=cache,
        repository=folder,
        name="test",
        url="https://site.test/x/",
    )


@pytest.fixture
def options(sources: Path, tmp_path: Path, cache: Path) -> SiteOptions:
    """Options of a site below the test's own folder."""
    return options_of(tmp_path, cache)


@pytest.fixture
def judged_here(data: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Campaigns that this process judges, in that order; nothing that another test kept is used."""
    names: list[str] = []

    def counting(dataset: Dataset, name: str) -> Judged:
        names.append(name)
        return judged(dataset, name)

    monkeypatch.setattr(kept, "judged", counting)
    monkeypatch.setattr(kept, "program", lambda: str(data))
    return names


Tree = Mapping[str, bytes]


def tree_of(data: Path, options: SiteOptions) -> Tree:
    """Every file of a site."""
    return dict(contents(build(load(data), options)))


@dataclass(frozen=True)
class Built:
    """A site that was built once: its data and every file of it."""

    data: Path
    tree: Tree


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Built:
    """The site of the small campaign as it is, for reading only."""
    folder = tmp_path_factory.mktemp("built")
    data = write_data(folder / "data")
    write_sources(folder / "pages")
    return Built(data, tree_of(data, options_of(folder, cache)))


def whole(tree: Tree, uri: str) -> str:
    """A page with its figures and tables in place."""
    return tree[uri].decode()
