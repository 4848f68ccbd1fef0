"""Results of llama-bench in its five formats: what the tool wrote is what the records hold."""

import csv
import gzip
import json
import re
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
from sparkpub.review.checks import review
from sparkpub.review.dataset import load

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


def written(name: str) -> list[tuple[int, int, int, float]]:
    """Prompt, generated tokens, depth and mean rate of each test, read from the file by the shortest way."""
    text = (RESULTS / name).read_text()
    if name.endswith(".json"):
        rows = json.loads(text)
    elif name.endswith(".jsonl"):
        rows = [json.loads(line) for line in text.splitlines()]
    elif name.endswith(".csv"):
        rows = list(csv.DictReader(text.splitlines()))
    else:
        found = re.findall(r"\| +(pp|tg)(\d+)(?: @ d(\d+))? +\| +([\d.]+) ±", text)
        return [
            (
                int(size) if kind == "pp" else 0,
                int(size) if kind == "tg" else 0,
                int(depth or 0),
                float(rate),
            )
            for kind, size, depth, rate in found
        ]
    return [
        (
            int(row["n_prompt"]),
            int(row["n_gen"]),
            int(row["n_depth"]),
            float(row["avg_ts"]),
        )
        for row in rows
    ]


@pytest.mark.parametrize("suffix", ["json", "jsonl", "csv", "md"])
def test_each_test_of_a_sweep_is_a_record_with_the_rate_of_the_file(
    suffix: str, tmp_path: Path
) -> None:
    source = RESULTS / f"multi.{suffix}"
    model = "tiny-llama-f16"
    outcome, records = imported(
        source, tmp_path, model=model if suffix == "md" else None
    )
    tests = written(source.name)
    assert len(tests) == len(outcome.imported) == len(records) == 8
    assert not outcome.refused
    for prompt, generated, depth, rate in tests:
        shape = f"pp{prompt}" if prompt else f"tg{generated}"
        key = f"{shape}-d{depth}-t1" if depth else f"{shape}-t1"
        record = records[model, key]
        name = "prompt_throughput_tok_s" if prompt else "output_throughput_tok_s"
        assert figure(record) == {name: rate}
        assert record.status == "ok"
        assert record.observed.engine_version == "b11434"
        asked = record.requested.workload
        assert (asked["input_tokens"], asked["output_tokens"], asked["depth"]) == (
            prompt,
            generated,
            depth,
        )
        original = record.file("original")
        assert original is not None
        assert (tmp_path / "c" / original.path).read_bytes() == source.read_bytes()
        assert original.sha256 == file_sha256(source)
        assert original.path.endswith(f".original.{suffix}")
        assert ("started" in record.unavailable) == (suffix == "md")
        assert any("two decimals" in event.text for event in record.events) == (
            suffix == "md"
        )
        if suffix in ("json", "jsonl"):
            assert len(record.samples[name]) == asked["repetitions"] == 5
            # avg_ts is the mean of the repetitions' rates, which have six digits.
            assert sum(record.samples[name]) / 5 == pytest.approx(rate, rel=1e-5)
        else:
            assert record.samples == {}
            assert "repetitions" not in asked


def test_one_test_of_each_kind_is_one_record_and_the_file_its_report(
    tmp_path: Path,
) -> None:
    source = RESULTS / "warmup-r5.json"
    _, records = imported(source, tmp_path)
    assert set(records) == {("small-llama-q4-k-m", "pp32-tg8-t1")}
    record = records["small-llama-q4-k-m", "pp32-tg8-t1"]
    prompt, generation = json.loads(source.read_text())
    assert figure(record) == {
        "prompt_throughput_tok_s": prompt["avg_ts"],
        "output_throughput_tok_s": generation["avg_ts"],
    }
    assert list(record.samples["output_throughput_tok_s"]) == generation["samples_ts"]
    # Time per token is each repetition's time divided by its 8 tokens.
    mean = sum(generation["samples_ns"]) / 5 / 8 / 1e6
    assert record.value("tpot_mean_ms") == pytest.approx(mean)
    assert record.started.value == prompt["test_time"]
    assert record.observed.weight_bytes == prompt["model_size"]
    assert record.requested.model_path == prompt["model_filename"]
    assert [(item.role, item.sha256) for item in record.evidence] == [
        ("report", file_sha256(source))
    ]
    assert record.requested.environment == {"type": "unknown"}


def test_settings_and_models_are_cells_of_their_own(tmp_path: Path) -> None:
    _, records = imported(RESULTS / "kv-q8.json", tmp_path / "kv")
    model = "tiny-llama-q8-0"
    assert set(records) == {
        (model, "pp64-tg16-v-q8-0-fa1-t1"),
        (model, "pp64-tg16-k-q8-0-v-q8-0-fa1-t1"),
    }
    rates = [rate for *_, rate in written("kv-q8.json")]
    plain = records[model, "pp64-tg16-v-q8-0-fa1-t1"]
    assert figure(plain) == {
        "prompt_throughput_tok_s": rates[0],
        "output_throughput_tok_s": rates[1],
    }
    _, records = imported(RESULTS / "models.csv", tmp_path / "models")
    assert {model for model, _ in records} == {
        "tiny-llama-f16",
        "tiny-llama-q4-k-m",
        "small-llama-q4-k-m",
    }
    _, records = imported(RESULTS / "batch.md", tmp_path / "batch", model="m")
    keys = {
        f"pp128-b{batch}-ub{small}-t{threads}"
        for batch in (64, 128)
        for small in (32, 64)
        for threads in (1, 2)
    }
    assert {workload for _, workload in records} == keys
    # | 128 | 64 | pp128 | 627.52 ± 48.59 | with two threads is the table's last row.
    assert figure(records["m", "pp128-b128-ub64-t2"]) == {
        "prompt_throughput_tok_s": 627.52
    }
    assert (
        records["m", "pp128-b128-ub64-t2"].observed.weight_bytes is None
    )  # "14.92 MiB" is rounded
    _, records = imported(RESULTS / "kv-q8.md", tmp_path / "table", model="m")
    assert {workload for _, workload in records} == {
        "pp64-tg16-v-q8-0-fa1-t1",
        "pp64-tg16-k-q8-0-v-q8-0-fa1-t1",
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


@pytest.mark.parametrize("originals", [True, False])
def test_a_second_import_changes_nothing_and_a_new_file_is_the_next_iteration(
    originals: bool, tmp_path: Path
) -> None:
    folder, data = tmp_path / "in", tmp_path / "data"
    (folder / "day1").mkdir(parents=True)
    shutil.copy(RESULTS / "multi.json", folder / "day1/a.json")
    text = (RESULTS / "warmup-r5.json").read_bytes()
    (folder / "b.json").write_bytes(text)
    given = Given("c", environment="native")
    first = import_results("llama-bench", folder, data, given, originals=originals)
    assert len(first.imported) == 9
    before = {path.name: path.read_bytes() for path in (data / "c").iterdir()}
    (folder / "day1/copy.json.gz").write_bytes(gzip.compress(text))
    again = import_results("llama-bench", folder, data, given, originals=originals)
    assert again.imported == []
    assert len(again.skipped) == 10
    assert not again.refused
    assert {path.name: path.read_bytes() for path in (data / "c").iterdir()} == before
    # An earlier run of the same cell that is found later does not take the number of the one that is there.
    (folder / "c.json").write_bytes(
        text.replace(b"2026-11-21", b"2026-11-20").replace(
            b'"avg_ts": ', b'"avg_ts": 1'
        )
    )
    more = import_results("llama-bench", folder, data, given, originals=originals)
    assert len(more.imported) == 1
    assert "iter02_20261120" in more.imported[0]


def test_what_was_imported_passes_the_review(tmp_path: Path) -> None:
    imported(RESULTS / "warmup-r5.json", tmp_path)
    findings = review(load(tmp_path)).findings
    assert [finding.check for finding in findings if finding.severity == "error"] == []


def test_runs_that_began_in_the_same_second_are_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("multi.json", "kv-q8.json", "models.csv"):
        text = (RESULTS / name).read_text()
        (folder / name).write_text(
            re.sub(r"2026-11-21T15:\d\d:\d\dZ", "2026-11-21T15:00:00Z", text)
        )
    imported(folder, tmp_path / "data")
    texts = [finding.message for finding in review(load(tmp_path / "data")).findings]
    assert not [text for text in texts if "the plan puts earlier" in text]


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


def test_a_setting_that_is_no_single_value_fits_nothing(tmp_path: Path) -> None:
    rows = json.loads((RESULTS / "multi.json").read_text())
    for row in rows:
        row |= {"flash_attn": {"a": 1}, "split_mode": ["layer"]}
    (tmp_path / "r.json").write_text(json.dumps(rows))
    outcome, records = imported(tmp_path / "r.json", tmp_path / "data")
    assert len(records) == len(outcome.imported) > 0
