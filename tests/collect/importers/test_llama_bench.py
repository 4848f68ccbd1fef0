"""Results of llama-bench in its five formats: what the tool wrote is what the records hold."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect.importers import import_results
from sparkpub.collect.importers.base import (
    Given,
)
from sparkpub.collect.importers.writing import ImportOutcome
from sparkpub.record.errors import UsageError
from sparkpub.record.record import Record
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import file_sha256, read_folder

RESULTS = Path(__file__).parents[2] / "data/imports/llama-bench"


def imported(
    source: Path, data: Path, **given: Any
) -> tuple[ImportOutcome, dict[tuple[str, str], Record]]:
    """What became of a file, and its records by model and workload."""
    outcome = import_results(
        "llama-bench", source, data, Given("c", **({"environment": "native"} | given))
    )
    stored = read_folder(data / "c") if (data / "c").is_dir() else []
    return outcome, {
        (item.record.model, item.record.workload): item.record for item in stored
    }


def figure(record: Record) -> dict[str, float | None]:
    """The rates of a record."""
    return {
        name: value.value
        for name, value in record.metrics.items()
        if name.endswith("_tok_s")
    }


def test_tests_that_mix_prompt_and_generation_are_passed_over_in_sight(
    tmp_path: Path,
) -> None:
    outcome, records = imported(RESULTS / "pg.json", tmp_path)
    assert [left.reason.partition(" (")[0] for left in outcome.skipped] == [
        "2 tests mix prompt and generation"
    ]
    assert set(records) == {("tiny-llama-f16", "pp64-tg16-t1")}
    assert (
        records["tiny-llama-f16", "pp64-tg16-t1"].file("original") is not None
    )  # the report alone has four tests


def test_what_the_table_does_not_say_is_not_guessed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--environment"):
        imported(RESULTS / "multi.json", tmp_path, environment=None)
    _, records = imported(RESULTS / "multi.md", tmp_path / "type")
    assert {model for model, _ in records} == {"llama-b-f16"}  # llama ?B F16
    table = tmp_path / "printed.txt"
    table.write_text(
        "$ ./llama-bench -m models/Tiny-F16.gguf -p 32\n"
        "  Device 0: NVIDIA GB10, compute capability 12.1, VMM: yes\n"
        + (RESULTS / "multi.md").read_text()
    )
    _, records = imported(table, tmp_path / "command")
    assert {model for model, _ in records} == {"tiny-f16"}
    assert {run.machine.kind for run in records.values()} == {"dgx-spark"}
    outcome, records = imported(RESULTS / "models.md", tmp_path / "m", model="tiny")
    assert outcome.refused == []  # one name does not fit all three
    assert {model for model, _ in records} == {
        "llama-b-f16",
        "llama-b-q4-k-medium",
        "llama-1b-q4-k-medium",
    }
    _, records = imported(RESULTS / "warmup-r5.json", tmp_path, model="tiny")
    assert {model for model, _ in records} == {
        "small-llama-q4-k-m"
    }  # what the file names is not overridden


def test_a_name_for_the_workload_stands_for_one_shape(tmp_path: Path) -> None:
    outcome, records = imported(RESULTS / "kv-q8.json", tmp_path, workload="w")
    assert set(records) == {("tiny-llama-q8-0", "w")}
    assert len(outcome.refused) == 1
    assert "is another load than" in outcome.refused[0].reason


def cut(name: str, characters: int) -> str:
    return (RESULTS / name).read_text()[:-characters]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("no-end.json", (RESULTS / "second-model-missing.json").read_text()),
        ("a.json", cut("multi.json", 40)),
        ("a.jsonl", cut("multi.jsonl", 40)),
        ("a.csv", cut("multi.csv", 40)),
        ("in-last-figure.csv", cut("multi.csv", 3)),
        ("a.md", cut("multi.md", 40)),
        (
            "header-alone.csv",
            (RESULTS / "multi.csv").read_text().splitlines()[0] + "\n",
        ),
    ],
)
def test_a_file_that_was_cut_is_refused_whole_and_the_others_go_on(
    name: str, content: str, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / name).write_text(content)
    shutil.copy(RESULTS / "warmup-r5.json", folder / "z.json")
    outcome, records = imported(folder, tmp_path / "data", model="m")
    assert [left.source for left in outcome.refused] == [name]
    assert len(outcome.lines()) == 2
    assert len(records) == 1


def test_a_file_of_many_runs_is_redacted_and_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for each run, half a megabyte with thousands of rows took more than ten minutes."""
    redacted: list[bytes] = []
    content = Redactor.content

    def seen(self: Redactor, part: bytes) -> bytes:
        redacted.append(part)
        return content(self, part)

    monkeypatch.setattr(Redactor, "content", seen)
    source = RESULTS / "multi.json"
    _, records = imported(source, tmp_path)
    assert len(records) > 2
    assert redacted.count(source.read_bytes()) == 1
    for record in records.values():
        (item,) = [item for item in record.evidence if item.role == "original"]
        assert file_sha256(tmp_path / "c" / item.path) == item.sha256
