"""The loop, with real processes on this machine."""

import json
import signal
from pathlib import Path

import pytest

from sparkpub.collect import journal
from sparkpub.collect.choice import axes
from sparkpub.collect.overview import plan_document
from sparkpub.record.errors import CollectError, UsageError
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import file_sha256, read_campaign
from sparkpub.record.telemetry import parse
from tests.collect.collecting import (
    OPEN_GATES,
    a_command,
    a_matrix,
    measured,
    records,
    run,
    text_of,
)


def test_a_campaign_becomes_records_with_logs_and_telemetry(tmp_path: Path) -> None:
    matrix = a_matrix("echo rate 5; sleep 0.2", equivalence_margin_percent=2)
    outcome = run(matrix, tmp_path)
    assert (outcome.measured, outcome.failed, outcome.left, outcome.exit_code) == (
        2,
        0,
        0,
        0,
    )
    first, second = records(tmp_path)
    assert [first.status, second.status] == ["ok", "ok"]
    assert [first.iteration, second.iteration] == [1, 2]
    assert first.value("rate") == 5
    assert 0.2 <= (first.duration_seconds or 0) < 10
    folder = tmp_path / "small"
    assert {item.role for item in first.evidence} == {"log", "telemetry"}
    for item in first.evidence:
        assert file_sha256(folder / item.path) == item.sha256
    log, telemetry = first.file("log"), first.file("telemetry")
    assert log is not None
    assert telemetry is not None
    assert (folder / log.path).read_text() == "rate 5\n"
    times = parse((folder / telemetry.path).read_text()).numbers("elapsed_seconds")
    assert times[0] is not None
    assert times[0] < 0
    assert len(times) >= 4
    assert sorted(path.name for path in folder.glob(".*")) == []
    assert read_campaign(folder).matrix == matrix.document()
    # The margin as it was declared when the run began.
    assert first.plan.analysis is not None
    assert first.plan.analysis.margin_percent == 2


def test_resume_runs_only_what_is_missing(tmp_path: Path) -> None:
    """Their records count, whatever the files are called."""
    matrix = a_matrix()
    first = run(matrix, tmp_path, max_runs=1)
    for index, path in enumerate(sorted((tmp_path / "small").glob("native*Z.json"))):
        path.rename(path.with_name(f"renamed{index}.json"))
    assert (first.left, first.exit_code) == (1, 0)  # it did what was asked
    (done,) = records(tmp_path)
    outcome = run(matrix, tmp_path)
    assert outcome.measured == 1
    assert [record.iteration for record in records(tmp_path)] == [1, 2]
    assert done in records(tmp_path)
    assert run(matrix, tmp_path).measured == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("colour=red", "axis=value"),
        ("iteration=9", "there are: 1, 2"),
    ],
)
def test_a_wrong_only_says_what_there_is(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        axes([text], a_matrix())
    assert words in caught.value.lines()[0]


def test_a_run_that_goes_wrong_is_recorded_with_its_reason_and_stops_no_other(
    tmp_path: Path,
) -> None:
    """What a command said before it was killed counts for nothing; one that measured nothing is invalid."""
    workloads = {
        "fails": a_command("echo oops; exit 7"),
        "killed": a_command("echo rate 5; kill -KILL $$"),
        "silent": a_command("echo done"),
        "gone": a_command("") | {"argv": ["/no/such/program"]},
        "good": a_command("echo rate 1"),
    }
    matrix = a_matrix(workloads=workloads, iterations=1, retries=1)
    outcome = run(matrix, tmp_path)
    last = {record.workload: record for record in records(tmp_path)}
    found = {name: (item.status, item.exit_code) for name, item in last.items()}
    assert found == {
        "fails": ("failed", 7),
        "killed": ("failed", -signal.SIGKILL),
        "silent": ("invalid", 0),
        "gone": ("failed", None),
        "good": ("ok", 0),
    }
    reasons = [last[name].status_reason for name in ("fails", "killed", "silent")]
    assert reasons == [
        "exit status 7; rate was not found in the log",
        "ended by SIGKILL",
        "rate was not found in the log",
    ]
    tried = [item for item in records(tmp_path) if item.workload == "fails"]
    assert [item.plan.attempt for item in tried] == [1, 2]
    assert len({item.run_id for item in tried}) == 2
    assert (outcome.lacking, outcome.exit_code) == (4, 1)
    assert run(matrix, tmp_path).measured == 0


def test_a_replicated_campaign_is_measured_here_whatever_another_machine_has(
    tmp_path: Path,
) -> None:
    matrix = a_matrix(machines="replicate", iterations=1)
    assert run(matrix, tmp_path).measured == 1
    assert run(matrix, tmp_path).measured == 0
    (first,) = (tmp_path / "small").glob("native*.json")
    document = json.loads(first.read_text())
    document["machine"]["id"] = "another"
    first.write_text(json.dumps(document))
    outcome = run(matrix, tmp_path)
    assert (outcome.measured, outcome.lacking) == (1, 0)
    assert [record.plan.attempt for record in records(tmp_path)] == [1, 1]


def test_a_timeout_ends_the_run_and_says_so(tmp_path: Path) -> None:
    record = measured(
        a_matrix("echo rate 5; exec sleep 600", iterations=1, timeout=0.5), tmp_path
    )
    assert record.status == "timeout"
    assert [event.kind for event in record.events] == ["timeout"]
    assert text_of(record, tmp_path) == "rate 5\n"


def test_the_memory_floor_ends_a_run_before_the_machine_wedges(tmp_path: Path) -> None:
    """No machine has so much memory: the first sample is below the floor."""
    gates = OPEN_GATES | {"min_available_memory_gib": 1e6}
    record = measured(
        a_matrix("echo rate 5; exec sleep 600", iterations=1, gates=gates), tmp_path
    )
    assert record.status == "failed"
    assert [event.kind for event in record.events] == ["memory-floor"]
    reason = record.status_reason or ""
    assert reason.startswith("MemAvailable fell to ")
    assert reason.endswith(" GiB, below the floor of 1e+06 GiB")
    low = OPEN_GATES | {"min_available_memory_gib": 0}
    run(
        a_matrix("echo rate 5; sleep 0.3", iterations=1, gates=low, campaign="low"),
        tmp_path,
    )
    assert [record.status for record in records(tmp_path, "low")] == ["ok"]


def test_telemetry_that_stops_early_is_noted_on_the_run(tmp_path: Path) -> None:
    """The command kills the sampler, which is a child of the collector as it is itself."""
    script = "echo rate 5; sleep 0.5; pkill -KILL -P $PPID -f [s]parkpub.collect.sampler; sleep 1"
    record = measured(a_matrix(script, iterations=1), tmp_path)
    assert record.status == "ok"
    (note,) = [event for event in record.events if event.kind == "note"]
    assert note.text == "the sampler ended before the run; telemetry stops there"
    assert note.at_seconds is not None
    assert 0.5 <= note.at_seconds < (record.duration_seconds or 0)


def test_a_cell_without_a_good_run_may_be_respecified(tmp_path: Path) -> None:
    """What failed as it was specified before is no attempt at the new specification, and stays."""
    run(a_matrix("echo rate 5 | grep 6", iterations=1), tmp_path)
    assert [record.status for record in records(tmp_path)] == ["failed"]
    outcome = run(a_matrix("echo rate 6", iterations=1), tmp_path)
    assert (outcome.measured, outcome.exit_code) == (1, 0)
    found = records(tmp_path)
    # All may have begun within one second.
    statuses = sorted(record.status for record in found)
    assert statuses == ["failed", "ok"]
    assert len({record.run_id for record in found}) == 2
    # One good run is enough to refuse a third specification, also for the iteration that has none.
    with pytest.raises(CollectError, match="another specification"):
        run(a_matrix("echo rate 7", iterations=2), tmp_path)


def test_a_name_that_belongs_to_other_runs_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(a_matrix(iterations=1), tmp_path)
    kept = (tmp_path / "small/campaign.json").read_bytes()
    other = a_matrix(models={"other": {"id": "x/o"}})
    with pytest.raises(
        CollectError,
        match="is there already with other cells than the matrix declares, as m/native/w",
    ) as refused:
        run(other, tmp_path)
    assert "--data" in refused.value.remedy
    with pytest.raises(CollectError, match="other cells"):
        plan_document(other, tmp_path)
    assert (tmp_path / "small/campaign.json").read_bytes() == kept
    capsys.readouterr()
    # A matrix that keeps a cell changes the campaign, and that is said.
    run(
        a_matrix(models={"m": {"id": "x/m"}, "other": {"id": "x/o"}}),
        tmp_path,
        max_runs=1,
    )
    assert "declares the changed matrix from now on" in capsys.readouterr().out


def test_secrets_and_places_do_not_reach_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hush-hush-4711")
    monkeypatch.setenv("PASSWORD_OF_MINE", "sesame-open-99")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    script = 'echo "rate 1 $HF_TOKEN $OWN_PASSWORD $HOME/x /home/khan/y on $(uname -n)"'
    environments = {
        "native": {"type": "host", "env": {"OWN_PASSWORD": "$PASSWORD_OF_MINE"}}
    }
    matrix = a_matrix(script, environments=environments, iterations=1)
    run(matrix, tmp_path)
    files = {path.name: path for path in (tmp_path / "small").iterdir()}
    # The matrix is public as it is written.
    assert read_campaign(tmp_path / "small").matrix == matrix.document()
    del files["campaign.json"]
    everything = b"".join(path.read_bytes() for path in files.values()).decode()
    for secret in ("hush-hush-4711", "sesame-open-99", "/home/khan"):
        assert secret not in everything
    (record,) = records(tmp_path)
    log = record.file("log")
    assert log is not None
    text = (tmp_path / "small" / log.path).read_text()
    assert text == "rate 1 <secret> <secret> <home>/x <home>/y on <host>\n"
    assert record.reproducibility is not None
    assert record.reproducibility.variables["CUDA_VISIBLE_DEVICES"] == "0"
    assert "HF_TOKEN" not in record.reproducibility.variables
    assert record.requested.environment["env"] == {"OWN_PASSWORD": "$PASSWORD_OF_MINE"}


def test_gates_that_are_not_met_can_skip_or_stop_or_run(tmp_path: Path) -> None:
    never = OPEN_GATES | {"min_free_disk_gib": 1e9}
    ran = run(
        a_matrix(iterations=1, gates=never | {"on_unmet": "run"}), tmp_path / "run"
    )
    assert ran.measured == 1
    (record,) = records(tmp_path / "run")
    gate = next(gate for gate in record.gates if gate.name == "min_free_disk_gib")
    assert gate.met is False
    assert gate.readings[0].value is not None
    skipped = run(
        a_matrix(iterations=2, retries=1, gates=never | {"on_unmet": "skip"}),
        tmp_path / "skip",
    )
    # A run that was skipped is not tried again: the collection would not end.
    assert (skipped.measured, skipped.left, skipped.exit_code) == (0, 2, 1)
    assert skipped.stopped == "2 runs skipped because a gate was not met"
    with pytest.raises(CollectError, match="min_free_disk_gib"):
        run(
            a_matrix(iterations=1, gates=never | {"on_unmet": "stop"}),
            tmp_path / "stop",
        )


def test_what_was_torn_or_half_sealed_when_the_collector_died_is_made_whole(
    tmp_path: Path,
) -> None:
    """The collector died after its evidence was in place and before its record was: nothing is lost or left over."""
    matrix = a_matrix(iterations=1)
    run(matrix, tmp_path)
    folder = tmp_path / "small"
    (record,) = records(tmp_path)
    draft = record.model_copy(
        update={"status": "interrupted", "status_reason": "killed", "evidence": ()}
    )
    (folder / f"{record.stem}.json").unlink()
    place = journal.begin(folder, draft, {"report": "report.json"}, Redactor())
    (place / "log").write_text("rate 5\n")
    (place / "work" / "report.json").write_text("{}\n")
    (folder / ".campaign.json.4711.tmp").write_text("torn")
    assert run(matrix, tmp_path).measured == 1
    interrupted = next(
        item for item in records(tmp_path) if item.status == "interrupted"
    )
    assert {item.role for item in interrupted.evidence} == {
        "log",
        "telemetry",
        "report",
    }
    assert list(folder.glob(".*")) == []


def test_what_people_decided_stays_in_campaign_json(tmp_path: Path) -> None:
    run(a_matrix(iterations=1), tmp_path)
    path = tmp_path / "small" / "campaign.json"
    document = json.loads(path.read_text())
    document["acknowledged"] = [{"check": "small-sample", "reason": "a trial"}]
    path.write_text(json.dumps(document))
    run(a_matrix(iterations=2), tmp_path)
    campaign = read_campaign(tmp_path / "small")
    assert [item.check for item in campaign.acknowledged] == ["small-sample"]
    assert (campaign.matrix or {})["iterations"] == 2
