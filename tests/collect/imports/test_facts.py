"""Folders as owners keep them: formats found file by file, and the facts that lie beside the results."""

import csv
import hashlib
import json
import shutil
from pathlib import Path

import pytest

from sparkpub.collect.imports import import_results
from sparkpub.collect.imports.facts import of_the_server
from sparkpub.collect.imports.given import Given
from sparkpub.collect.imports.outcome import ImportOutcome
from sparkpub.record.record import Record
from sparkpub.record.store import read_folder

FOLDER = Path(__file__).parents[2] / "data/imports/bench-spark"
GRANITE = FOLDER / "results/granite-4.1/granite-4.1-8b/bf16"
MUSE = FOLDER / "results/muse-glimmer/muse-glimmer-30b"
"""A row of llama-benchy's Markdown: the first figure is the rate, the last one the time to the first token."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[ImportOutcome, Path]:
    """The folder, imported without a word about where it ran."""
    data = tmp_path_factory.mktemp("whole")
    return import_results(FOLDER, data, Given("c")), data


@pytest.fixture(scope="module")
def records(whole: tuple[ImportOutcome, Path]) -> dict[tuple[str, str, str], Record]:
    stored = read_folder(whole[1] / "c")
    return {item.record.cell: item.record for item in stored}


def test_every_result_comes_in_and_what_is_none_is_counted_by_reason(
    whole: tuple[ImportOutcome, Path],
) -> None:
    """3 + 3 + 1 loads of llama-benchy for Granite, 3 for each build of Muse, and 8 files of `vllm bench serve`."""
    outcome, _ = whole
    assert (len(outcome.imported), outcome.refused) == (3 + 3 + 1 + 2 * 3 + 8, [])
    assert outcome.lines() == [
        "skipped 2, e.g. README.md: not a result of a known tool",
        "21 imported, 2 skipped, 0 refused",
        "not read: file results/granite-4.1/granite-4.1-8b/bf16/11-rate-sweep.json "
        "with ttft_p50_ms, ttft_p95_ms, ttft_p99_ms, …",
        "--preview prints a mapping for them, to import with --mapping",
    ]
    assert outcome.lines(verbose=True)[1].startswith(
        "skipped results/granite-4.1/granite-4.1-8b/bf16/11-rate-sweep.json: "
    )
    assert [*outcome.on_machines(None)] == []


def test_runs_of_one_call_share_its_log_and_have_the_tokenizer_that_it_names(
    tmp_path: Path,
) -> None:
    """What the tool printed for all loads of a table is the evidence of each. Prompts cut by another tokenizer than
    the model's have another length than their name says."""
    results = tmp_path / "results"
    results.mkdir()
    shutil.copy(GRANITE / "01-chat.md", results)
    printed = (
        b"Falling back to 'gpt2' tokenizer as approximation.\n"
        b"Loading text from cache: /home/someone/.cache/llama-benchy/book.txt\n"
    )
    (results / "01-chat.log").write_bytes(printed)
    given = Given("c", environment="container")
    import_results(results, tmp_path / "data", given)
    stored = read_folder(tmp_path / "data/c")
    logs = [item.record.file("log") for item in stored]
    (name,) = {log.path for log in logs if log is not None}
    assert len(logs) == 3
    assert "/home/someone" not in (tmp_path / "data/c" / name).read_text()
    for item in stored:
        assert "log" not in item.record.unavailable
        assert item.record.observed.settings["tokenizer"].startswith("gpt2, ")
    again = import_results(results, tmp_path / "data", given)
    assert again.imported == []


def test_a_log_keeps_a_redrawn_line_as_it_last_stood(tmp_path: Path) -> None:
    """And says so, with the digest of what was imported."""
    folder = tmp_path / "results"
    folder.mkdir()
    for name in ("meta.json", "08-sharegpt.json"):
        shutil.copy(GRANITE / name, folder / name)
    printed = b"begin\n 1%\r50%\r100%\nof another system\r\n"
    (folder / "08-sharegpt.log").write_bytes(printed)
    import_results(folder, tmp_path / "data", Given("c"))
    (stored,) = read_folder(tmp_path / "data/c")
    log = stored.record.file("log")
    assert log is not None
    kept = (stored.path.parent / log.path).read_bytes()
    assert kept == b"begin\n100%\nof another system\r\n"
    digest = hashlib.sha256(printed).hexdigest()
    assert any(digest in event.text for event in stored.record.events)


def test_what_lies_beside_the_results_says_what_ran(
    records: dict[tuple[str, str, str], Record],
) -> None:
    cell = ("muse-glimmer-30b", "container-bf16-spec", "pp1024-tg1024-c1")
    record = records[cell]
    noted = json.loads((MUSE / "bf16-spec/meta.json").read_text())
    assert record.requested.model_id == noted["model"]
    assert record.requested.environment == {
        "type": "docker",
        "image": noted["vllm_image"],
    }
    seen = record.observed
    assert (seen.engine, seen.engine_version, seen.quantization) == (
        "vLLM",
        noted["vllm_version_reported"],
        "bf16",
    )
    assert (seen.kv_cache_dtype, seen.speculative_decoding) == ("auto", True)
    assert seen.settings["max_num_seqs"] == "256"
    assert json.loads(seen.settings["speculative_config"])["method"] == "dflash"
    machine = record.machine
    assert (machine.kind, machine.driver) == ("dgx-spark", noted["driver_version"])
    assert machine.gpus[0].vbios == noted["vbios_version"]
    answer = " ".join((MUSE / "bf16-spec/_sanity.txt").read_text().split())
    assert any(answer in event.text for event in record.events)


def test_telemetry_of_a_test_belongs_to_its_only_run(
    records: dict[tuple[str, str, str], Record],
) -> None:
    """Telemetry every ten seconds ends with the measurement: the mean of the rows of its last 1,108.75 s."""
    peak = "serve-openai-chat-in4000-out500-range0.9-c25-rate1.5-n300"
    record = records["granite-4.1-8b", "container", peak]
    with (GRANITE / "10-telemetry.csv").open() as file:
        rows = [
            (float(row["elapsed_s"]), float(row["power_w"]))
            for row in csv.DictReader(file)
        ]
    begin = rows[-1][0] - (record.observed.measured_seconds or 0)
    watts = [watt for time, watt in rows if time >= begin]
    mean = sum(watts) / len(watts)
    # The program weighs each reading by its time; at even intervals that is the mean, but for the two at the ends.
    assert record.value("gpu_power_mean_watt") == pytest.approx(mean, rel=0.01)
    stress = records["granite-4.1-8b", "container", "pp25000-tg256-c20"]
    assert stress.file("telemetry") is not None
    assert all(
        record.file("telemetry") is None
        for (_, _, workload), record in records.items()
        if workload.endswith("n100")
    )


# -- layouts of other people ------------------------------------------------------------------------------------


def test_how_a_client_cut_its_prompts_makes_no_other_build() -> None:
    """Else the runs of two clients of one server would lie in two environments."""
    cut = of_the_server({"max_num_seqs": "256", "tokenizer": "gpt2"})
    assert cut == of_the_server({"max_num_seqs": "256"})


def test_a_build_with_another_image_is_another_environment_and_keeps_its_name(
    tmp_path: Path,
) -> None:
    """The second build comes later; the first keeps the plain name, also when both are read again."""

    def imported(*images: str) -> set[tuple[str, int]]:
        for image in images:
            folder = tmp_path / image
            folder.mkdir(exist_ok=True)
            shutil.copy2(FOLDER.parent / "vllm-bench/serve-c4.json", folder)
            (folder / "meta.json").write_text(json.dumps({"image": image}))
            import_results(folder, tmp_path / "d", Given("c"))
        stored = read_folder(tmp_path / "d/c")
        return {(item.record.environment, item.record.iteration) for item in stored}

    assert imported("one") == {("container", 1)}
    both = {("container", 1), ("container-2", 1)}
    assert imported("two") == both
    assert imported("two", "one") == both
