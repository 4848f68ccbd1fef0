"""Runs that are no measurement of their own: copies of others, and those beside which another one ran."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.record import Evidence, Gpu, Machine, Plan
from sparkpub.record.store import Stored
from sparkpub.review.checks import Finding, review
from sparkpub.review.checks.copies import dependent, trace
from sparkpub.review.dataset import load
from tests.review.checks.in_memory import a_run
from tests.review.test_changes import a_folder

TPUT = "output_throughput_tok_s"
PUBLISHED = Plan(position=0, order="as-published")


def filed(role: Any, sha256: str = "a", size: int = 4096) -> dict[str, Any]:
    path = f"{role}-{sha256}.txt"
    item = Evidence(role=role, path=path, sha256=sha256 * 64, bytes=size)
    return {"evidence": (item,)}


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
    found = list(dependent([*map(trace, runs)]))
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
    found = list(dependent([trace(first), trace(second)]))
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
