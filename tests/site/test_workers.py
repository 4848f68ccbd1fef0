"""Other processes of a build: they do the same, and nobody waits for what none has begun."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from operator import itemgetter
from pathlib import Path

import pytest

from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from sparkpub.review.results import Results
from sparkpub.review.tables.column import rows
from sparkpub.site import kept, workers
from sparkpub.site.build import publish
from sparkpub.site.cache import Cache
from sparkpub.site.content import SiteOptions
from sparkpub.site.pages import runs


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(workers, "_CORES", 2)
    workers.stop()
    yield
    workers.stop()


def test_what_nobody_has_begun_is_done_here(tmp_path: Path) -> None:
    """The other process waits at the first, and has been given one more."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    waiting = workers.begin(Path.read_text, fifo)
    _, *results = [workers.begin(os.getpid) for _ in range(3)]
    assert {result() for result in results} == {os.getpid()}
    fifo.write_text("go on")
    assert waiting() == "go on"


def test_a_build_that_is_killed_leaves_no_process() -> None:
    """The other one holds the pipe open for as long as it lives."""
    code = "import os; from sparkpub.site import workers; workers._CORES = 2; done = workers.begin(os.getpid)"
    code += "; import time; time.sleep(1); print(done(), flush=True); os.kill(os.getpid(), 9)"
    argv = [sys.executable, "-c", code]
    subprocess.run(argv, check=False, stdout=subprocess.PIPE, timeout=20)


def test_a_problem_elsewhere_is_a_problem_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Future, "cancel", lambda _: False)
    with pytest.raises(KeyError, match="nothing"):
        workers.begin(itemgetter("nothing"), {})()


def test_a_campaign_judged_elsewhere_is_judged_the_same(
    data: Path,
    options: SiteOptions,
    judged_here: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept, "AHEAD_FROM", 1)
    monkeypatch.setattr(Future, "cancel", lambda _: False)  # the other has begun it
    found = publish(load(data), options)
    assert judged_here == []
    whole = review(load(data))
    assert found.review.findings == whole.findings
    for name in ("runs", "cells", "comparisons"):
        assert rows(getattr(found.results, name)) == rows(getattr(Results(whole), name))


def test_pages_of_runs_made_elsewhere_are_the_same(
    data: Path, options: SiteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Future, "cancel", lambda _: False)  # the other has begun it
    published = publish(load(data), options)
    given = published.review, options, Cache(options.cache), published.names.models
    there = workers.begin(runs.files, *given)()
    assert there == runs.files(*given)
    assert len(there) > 12


def test_a_reviewed_campaign_goes_to_another_process_without_what_follows(
    data: Path, options: SiteOptions
) -> None:
    """Rows of its tables are of no class that another process could find."""
    [here] = publish(load(data), options).review.campaigns.values()
    assert here.cell_rows
    there = pickle.loads(pickle.dumps(here))
    assert there.cell_rows == here.cell_rows
