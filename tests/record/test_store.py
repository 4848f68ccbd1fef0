"""The data folder: damage is named, writing is all or nothing, and the committed campaign is the published one."""

import json
import os
from pathlib import Path

import pytest

from sparkpub.record import store
from sparkpub.record.campaign import Campaign, Quarantine
from sparkpub.record.errors import RecordError
from sparkpub.review.dataset import load
from tests.building import a_record

DATA = Path(__file__).parents[2] / "data" / "comprehensive"


def a_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "c"
    folder.mkdir()
    store.write_atomic(
        folder / "campaign.json", store.to_json(Campaign(campaign="c", title="t"))
    )
    record = a_record()
    store.write_atomic(folder / f"{record.stem}.json", store.to_json(record))
    return folder


def test_evidence_in_json_is_not_taken_for_a_record(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    (folder / f"{a_record().stem}.report.json").write_text("[]")
    assert len(load(tmp_path).runs) == 1


def test_damage_names_file_field_and_place(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    path = folder / f"{a_record().stem}.json"
    path.write_text('{"schema_version": 1,\n "run_id": }')
    with pytest.raises(RecordError, match=rf"not JSON.*{path.name}:2:12"):
        load(tmp_path)
    record = json.loads(store.to_json(a_record()))
    record["speed"] = record["started"]["speed"] = 1
    path.write_text(json.dumps(record))
    with pytest.raises(RecordError) as refused:
        load(tmp_path)
    told = [line.partition(",")[0] for line in refused.value.lines()]
    unknown = "speed: no field has this name"
    assert sorted(told) == [unknown, f"started.{unknown}"]
    path.write_text('{"schema_version": 1, "duration_seconds": NaN}')
    with pytest.raises(RecordError, match="NaN is not JSON"):
        load(tmp_path)


def test_a_record_lies_in_the_folder_of_its_campaign(tmp_path: Path) -> None:
    path = tmp_path / "elsewhere" / "run.json"
    path.parent.mkdir()
    path.write_text(store.to_json(a_record()))
    with pytest.raises(RecordError) as refused:
        store.read_record(path)
    said = f"campaign: 'c' lies in folder 'elsewhere', {path}; move the file to the folder of its campaign"
    assert refused.value.lines() == [said]


def test_a_record_of_another_version_is_refused(tmp_path: Path) -> None:
    path = a_folder(tmp_path) / "newer.json"
    document = json.loads(store.to_json(a_record()))
    path.write_text(json.dumps(document | {"schema_version": 9}))
    with pytest.raises(RecordError) as refused:
        store.read_record(path)
    said = f"schema_version: 9 is not known here (newest is 1), {path}; update sparkpub, or restore the file"
    assert refused.value.lines() == [said]


def test_only_what_is_to_last_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file, once all of it is there, and the folder that names it; a cache may be lost with the power."""
    waited: list[str] = []
    sizes: list[int] = []

    def noted(handle: int) -> None:
        waited.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        sizes.append(os.fstat(handle).st_size)

    monkeypatch.setattr(os, "fsync", noted)
    store.write_atomic(tmp_path / "x.json", "new")
    file, folder = waited
    assert file.startswith(".x.json.")
    assert sizes[0] == len("new")
    assert folder == tmp_path.name
    store.write_atomic(tmp_path / "y.json", "new", durable=False)
    assert len(waited) == 2


def test_a_quarantine_must_name_a_run(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    campaign = Campaign(
        campaign="c", title="t", quarantined=(Quarantine(run="nobody", reason="x"),)
    )
    store.write_atomic(folder / "campaign.json", store.to_json(campaign))
    with pytest.raises(RecordError, match="nobody is no run"):
        load(tmp_path)


def test_campaigns_of_two_folders_stand_side_by_side_and_names_must_differ(
    tmp_path: Path,
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    a_folder(here)
    assert list(load(DATA, here).campaigns) == [*load(DATA).campaigns, "c"]
    there.mkdir()
    a_folder(there)
    with pytest.raises(RecordError, match="campaign c lies in two data folders"):
        load(here, there)


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    store.write_atomic(path, "old")

    def full(_handle: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        store.write_atomic(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
