"""Whether a run happened, and is itself: its files, its log and report against its record, and no copy of another."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.campaign import Acknowledgement
from sparkpub.record.record import (
    Evidence,
    Gpu,
    Machine,
    MetricValue,
    Observed,
    Plan,
)
from sparkpub.record.store import Stored
from sparkpub.review.checks import CHECKS, Finding, Review, review
from sparkpub.review.checks.acknowledging import covers
from sparkpub.review.checks.copies import dependent
from sparkpub.review.checks.evidence import FileSum
from sparkpub.review.checks.view import View
from sparkpub.review.dataset import Dataset, load
from tests.review.checks.in_memory import (
    a_run,
    a_view,
    answered,
    said,
    told,
    with_metrics,
)
from tests.review.test_changes import a_folder

TPUT = "output_throughput_tok_s"
PUBLISHED = Plan(position=0, order="as-published")


def filed(role: Any, sha256: str = "a", size: int = 4096) -> dict[str, Any]:
    path = f"{role}-{sha256}.txt"
    item = Evidence(role=role, path=path, sha256=sha256 * 64, bytes=size)
    return {"evidence": (item,)}


@pytest.mark.parametrize(
    ("size", "sha256", "words"),
    [
        (4096, "a" * 64, None),
        (None, None, "gone or changed: the log log-a.txt is missing."),
        (4096, "b" * 64, "the log log-a.txt has other content."),
    ],
)
def test_evidence_that_is_gone_or_changed_is_told(
    size: int | None, sha256: str | None, words: str | None
) -> None:
    view = a_view(a_run(**filed("log")))
    view.evidence.sums["log-a.txt"] = FileSum(size, sha256)  # type: ignore[attr-defined]
    said("checksum", view, words)


def valued(value: float | None, source: Any, **fields: Any) -> Stored:
    metric = MetricValue(
        value=value, unit="tok/s", source=source, reason=None if value else "x"
    )
    return with_metrics({TPUT: metric}, **fields)


@pytest.mark.parametrize(
    ("run", "severities"),
    [
        (a_run(), ["error"]),
        (a_run(**filed("log")), []),
        (valued(1.0, "published"), ["warning"]),
        # A report that somebody handed over without its log.
        (a_run(plan=PUBLISHED, **filed("report")), ["warning"]),
    ],
)
def test_a_log_is_missing_more_or_less(run: Stored, severities: list[str]) -> None:
    found = told("missing-log", a_view(run))
    assert [line.partition(":")[0] for line in found] == severities


@pytest.mark.parametrize(
    ("run", "answer", "words"),
    [
        (a_run(), {}, None),
        (valued(None, "log"), {}, "exit code 0 but has no figures"),
        (valued(1.0, "report"), {}, "coming from a report, but there is none"),
        (a_run(), {"complete": False, "problems": ("half a table",)}, "half a table"),
        (a_run(), {"complete": False, "truncated": True}, None),
    ],
)
def test_a_result_is_missing(
    run: Stored, answer: dict[str, Any], words: str | None
) -> None:
    said("missing-report", a_view(run, answer=answered(**answer)), words)


@pytest.mark.parametrize(
    ("answer", "is_found"),
    [
        ({"values": {TPUT: 100.0 * (1 + 0.9e-6)}}, False),
        ({"values": {TPUT: 100.0 * (1 + 1.2e-6)}}, True),
        ({"values": {}}, True),
        ({"values": {}, "truncated": True}, False),
        ({"values": {TPUT: 101.0}, "complete": False}, False),
        ({"values": {TPUT: 100.0}, "printed": {TPUT: (100.5, 0.5)}}, False),
        ({"values": {TPUT: 100.0}, "printed": {TPUT: (100.6, 0.5)}}, True),
    ],
)
def test_a_figure_is_that_of_its_log(answer: dict[str, Any], is_found: bool) -> None:
    view = a_view(a_run(), answer=answered(**answer))
    said("metric-mismatch", view, "" if is_found else None)


@pytest.mark.parametrize(
    ("said", "found", "words"),
    [
        ({"engine": "a"}, {"engine": "b"}, "engine: a in the record, and b in the"),
        ({"engine": "a"}, {}, None),
        ({"settings": {"x": "1"}}, {"settings": {"x": "2"}}, "x: 1 in the record"),
        ({}, {"device": "NVIDIA H100"}, "GPU: NVIDIA GB10 in the record"),
    ],
)
def test_facts_are_those_of_the_log(
    said: dict[str, Any], found: dict[str, Any], words: str | None
) -> None:
    machine = Machine(gpus=(Gpu(name="NVIDIA GB10"),))
    run = a_run(observed=Observed(**said), machine=machine)
    for truncated in (False, True):
        answer = answered(observed=Observed(**found), truncated=truncated)
        view = a_view(run, answer=answer)
        lines = [found.message for found in mistaken(view)]
        assert len(lines) == (words is not None and not truncated)
        assert all((words or "") in line for line in lines)


def mistaken(view: View) -> list[Finding]:
    """What `metric-mismatch` finds in runs that count."""
    check = CHECKS["metric-mismatch"]
    return list(check.ask(view, takes_out=False))


def test_what_was_acknowledged_as_a_fact_mismatch_is_a_metric_mismatch() -> None:
    """Its run counts as before, and claims that rest on it are void as before."""
    run = a_run(observed=Observed(engine="a"))
    view = a_view(run, answer=answered(observed=Observed(engine="b")))
    (found,) = mistaken(view)
    assert covers(Acknowledgement(check="fact-mismatch", reason="an alias"), found)
    campaigns = {"c": view.reviewed}
    assert Review(Dataset(Path(), {}), campaigns, (found,)).voiding("c") == (found,)


# -- independent runs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "shared"),
    [
        (filed("log", size=2048), "their log"),
        (filed("log", size=2047), None),
        (filed("report", size=1), "their report"),
        (filed("output"), None),
        (filed("report") | {"plan": PUBLISHED}, None),
        # Behind their third digit these have 3 + 2 and 3 + 1.
        ({"metrics": {TPUT: 123.456, "ttft_p50_ms": 23.456}}, "all their figures"),
        ({"metrics": {TPUT: 123.456, "ttft_p50_ms": 23.45}}, None),
    ],
)
def test_no_two_runs_share_a_file_or_all_their_figures(
    fields: dict[str, Any], shared: str | None
) -> None:
    runs = [a_run(**fields, iteration=number) for number in (1, 2)]
    found = list(dependent(runs))
    assert [finding.check for finding in found] == ["copied-evidence"] * bool(shared)
    assert all(f"shares {shared}" in finding.message for finding in found)
    assert all(len(finding.runs) == 2 for finding in found)


def lasting(minute: int, seconds: float | None, **fields: Any) -> Stored:
    """A run on a GPU, in its minute, of so many seconds."""
    machine = Machine(id="m1", gpus=(Gpu(name="G", id="g"),))
    given = {"machine": machine, "duration_seconds": seconds} | fields
    return a_run(iteration=minute + 1, minute=minute, **given)


OTHER = Machine(id="m1", gpus=(Gpu(name="G", id="h"),))


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (lasting(0, 63.0), lasting(1, 9.0), None),
        (lasting(0, 64.0), lasting(1, 9.0), "it started 4 s before c-native_m_1_0"),
        (lasting(0, 64.0), lasting(1, 9.0, machine=OTHER), None),
        (lasting(0, 64.0), lasting(1, 9.0, machine=Machine()), None),
    ],
)
def test_runs_on_one_gpu_do_not_overlap(
    first: Stored, second: Stored, words: str | None
) -> None:
    found = list(dependent([first, second]))
    assert [finding.check for finding in found] == ["time-consistency"] * bool(words)
    assert all((words or "") in finding.message for finding in found)


def commit(place: Path) -> None:
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for argv in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "runs"]):
        subprocess.run(["git", *argv], cwd=place, check=True)


def copies(data: Path) -> list[Finding]:
    findings = review(load(data)).findings
    return [finding for finding in findings if finding.check == "copied-evidence"]


def test_the_copy_is_what_came_to_the_branch_later_whatever_its_names_say(
    tmp_path: Path,
) -> None:
    """Results of a campaign are imported again under another name, as if measured earlier."""
    data = tmp_path / "data"
    figures = {"native": [1508.2514, 1511.9021], "container": [1499.1187, 1502.4432]}
    a_folder(data, figures, "published")
    commit(tmp_path)
    shutil.copytree(data / "published", data / "again")
    for path in (data / "again").glob("*.json"):
        document = json.loads(path.read_text())
        document["campaign"] = "again"
        if "run_id" in document:
            document["run_id"] = f"again-{document['run_id']}"
            document["environment"] = f"{document['environment']}-of-mine"
            started = document["started"]
            started["value"] = started["value"].replace("2026", "2025", 1)
        path.write_text(json.dumps(document))
    (not_committed,) = copies(data)
    commit(tmp_path)
    (committed,) = copies(data)
    for finding in (not_committed, committed):
        assert (finding.campaign, len(finding.runs)) == ("again", 4)
        text = "Copied from published, so that they replicate nothing: 4 runs of again."
        assert finding.message.startswith(text)
    shutil.rmtree(tmp_path / ".git")
    (either,) = copies(data)
    assert either.message.endswith("git does not know which of them came first.")
