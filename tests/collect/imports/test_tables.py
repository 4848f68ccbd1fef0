"""Tables of anybody's: what their mapping says, what a bad cell says, and back from what `export` writes."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkpub.collect.imports import import_results
from sparkpub.collect.imports.facts import counted
from sparkpub.collect.imports.given import Given, read_about
from sparkpub.collect.imports.outcome import ImportOutcome
from sparkpub.plan.matrix import Matrix
from sparkpub.record.catalogue import machine_of
from sparkpub.record.metrics import FACTORS, METRICS
from sparkpub.record.record import Record
from sparkpub.review import dataset
from sparkpub.review.checks import review
from sparkpub.review.setup import setup_of
from sparkpub.site import manual
from sparkpub.tools.language import read_mappings
from tests.collect.imports.importing import records_in
from tests.review.checks.planted import IMPORTS

GUIDE = Path(manual.__file__).parent

TABLE = """\
Model;where;clients;when;tok/s;ttft s;Score
Qwen/Qwen3-8B;native;8;2026-03-01 10:00:00;1,204.5;0.31;7
Qwen/Qwen3-8B;native;8;2026-03-01T10:10:00+01:00;1210.5;0.30;8
Qwen/Qwen3-8B;container;8;2026-03-02;1190;;8
"""
MAPPING = """\
run:
  model: Model
  environment: where
  started: when
same: {engine: vllm, weights: fp8}
load:
  concurrency: clients
metrics:
  output_throughput_tok_s: {at: tok/s}
  ttft_p50_ms: {at: ttft s, unit: s}
  judge_score: {at: Score, unit: points, direction: higher, label: Judge score, definition: Mean grade of a judge.}
"""


def imported(
    folder: Path,
    content: str | bytes = TABLE,
    mapping: str | None = MAPPING,
    *,
    name: str = "runs.csv",
    preview: bool = False,
    **given: Any,
) -> ImportOutcome:
    """Import a table with a mapping into `folder/data/c`."""
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    declared = None
    if mapping is not None:
        declared = folder / "map.yaml"
        declared.write_text(mapping)
    told = Given("c", mapping=declared, **given)
    return import_results(file, folder / "data", told, preview=preview)


def records(folder: Path) -> list[Record]:
    return records_in(folder / "data")


def refusal(folder: Path, *args: Any, **given: Any) -> str:
    """The only thing that was refused, as a line."""
    (left,) = imported(folder, *args, **given).refused
    return f"{left.source}: {left.reason}"


def values(record: Record) -> Mapping[str, float | None]:
    return {name: value.value for name, value in record.metrics.items()}


def test_a_second_import_adds_what_is_new_and_refuses_what_changed(
    tmp_path: Path,
) -> None:
    imported(tmp_path)
    again = imported(tmp_path)
    assert (again.imported, len(again.skipped), again.refused) == ([], 3, [])
    longer = TABLE + "Qwen/Qwen3-8B;native;8;2026-03-03 10:00:00;1300;0.3;9\n"
    more = imported(tmp_path, longer)
    assert (len(more.imported), len(more.skipped)) == (1, 3)
    assert "_iter03_" in more.imported[0]
    changed = imported(tmp_path, TABLE.replace("1210.5", "1310.5"))
    assert (changed.imported, len(changed.skipped), len(changed.refused)) == ([], 2, 1)
    assert changed.refused[0].source == "runs.csv, run 2"


def test_a_preview_says_each_run_and_writes_nothing(tmp_path: Path) -> None:
    """Whoever reads it must see what a mapping took for the figures."""
    outcome = imported(tmp_path, preview=True)
    assert not (tmp_path / "data").exists()
    # 0.31 s are 310 ms.
    assert outcome.lines()[1:] == [
        "qwen3-8b/native/concurrency8 1, 2026-03-01T10:00:00, ok: "
        "output_throughput_tok_s 1204, ttft_p50_ms 310, judge_score 7",
        "qwen3-8b/container/concurrency8 1, 2026-03-02T00:00:00, ok: "
        "output_throughput_tok_s 1190, judge_score 8",
        "3 would be imported, 0 skipped, 0 refused",
    ]
    assert outcome.document()["preview"] is True


def test_the_mappings_and_layouts_of_the_guide_are_right(tmp_path: Path) -> None:
    text = "\n".join(path.read_text() for path in (GUIDE / "guide").glob("*.md"))
    blocks = re.findall(r"(?s)```yaml\n(.*?)```", text)
    blocks += re.findall(r"(?s)<<'END'\n(run:.*?)END\n", text)
    mappings = [block for block in blocks if re.match("run:|tool:", block)]
    layouts = [block for block in blocks if block.startswith("layout:")]
    assert (len(mappings), len(layouts)) == (4, 1)
    file = tmp_path / "x.yaml"
    for block in mappings:
        file.write_text(block)
        assert all(each.declared.metrics for each in read_mappings(file))
    file.write_text(layouts[0])
    assert read_about(file).layout is not None


CONVERSIONS = {
    # One of the one unit in the other: by the definitions of SI and IEC prefixes.
    ("s", "ms"): 1000,
    ("us", "ms"): 0.001,
    ("µs", "ms"): 0.001,
    ("ns", "ms"): 0.000001,
    ("min", "s"): 60,
    ("ms", "s"): 0.001,
    ("B", "GiB"): 1 / 1073741824,
    ("KiB", "GiB"): 1 / 1048576,
    ("MiB", "GiB"): 1 / 1024,
    ("TiB", "GiB"): 1024,
    ("MB", "GiB"): 1000000 / 1073741824,
    ("GB", "GiB"): 1000000000 / 1073741824,
    ("mW", "W"): 0.001,
    ("kW", "W"): 1000,
    ("kJ", "J"): 1000,
    ("Wh", "J"): 3600,
    ("GHz", "MHz"): 1000,
    ("tokens/s", "tok/s"): 1,
    ("t/s", "tok/s"): 1,
    ("requests/s", "req/s"): 1,
    ("C", "°C"): 1,
    ("TFLOP/s", "GFLOP/s"): 1000,
    ("ratio", "%"): 100,
}


def test_units_are_converted_by_their_definitions() -> None:
    assert pytest.approx(CONVERSIONS) == dict(FACTORS)
    assert {unit for _, unit in FACTORS} <= {metric.unit for metric in METRICS.values()}


# -- harnesses of people's own -----------------------------------------------------------------------------------


def proposed(folder: Path, name: str, content: str) -> str:
    """The mapping to begin with, for a file."""
    (folder / name).write_text(content)
    file = folder / name
    outcome = import_results(file, folder / "data", Given("c"), preview=True)
    return "\n".join(outcome.lines())


def test_a_preview_of_a_table_without_a_mapping_is_a_mapping_to_begin_with(
    tmp_path: Path,
) -> None:
    """With the name of the place given it reads the table."""
    table = "Model,clients,date,tok/s,TTFT (s),note\nm,4,2026-03-01,70,0.5,x\n"
    text = proposed(tmp_path, "runs.csv", table)
    first, *_, last = text.splitlines()[1:]
    assert first == "# file runs.csv with output_throughput_tok_s, ttft_mean_ms"
    assert last == "# not used: note"
    assert yaml.safe_load(text) == {
        "run": {"model": "Model", "started": "date"},
        "load": {"concurrency": "clients"},
        "metrics": {
            "output_throughput_tok_s": "tok/s",
            "ttft_mean_ms": {"at": "TTFT (s)", "unit": "s"},
        },
    }
    imported(tmp_path, table, text, environment="native")
    (record,) = records(tmp_path)
    assert values(record) == {"output_throughput_tok_s": 70.0, "ttft_mean_ms": 500.0}


def test_a_preview_is_a_mapping_where_a_known_tools_results_lie_beside(
    tmp_path: Path,
) -> None:
    """It reads each rate as what the row says it is of."""
    shutil.copy(IMPORTS / "llama-bench" / "warmup-r5.json", tmp_path)
    rows = "model,metric,tps\nm1,pp512,100\nm2,tg128,200\n"
    (tmp_path / "runs.csv").write_text(rows)
    given = Given("c", environment="native")
    outcome = import_results(tmp_path, tmp_path / "data", given, preview=True)
    imported(tmp_path, rows, "\n".join(outcome.lines()), environment="native")
    assert [values(each) for each in records(tmp_path)] == [
        {"prompt_throughput_tok_s": 100.0},
        {"output_throughput_tok_s": 200.0},
    ]


@pytest.mark.parametrize(
    ("text", "number", "kind"),
    [
        ("4x NVIDIA GB10 DGX Spark, TP=4", 4, "dgx-spark"),
        ("GLM-5.3-Flash-EXL3-2x-DGX-Sparks", 2, "dgx-spark"),
        ("mimo-dual-2xspark", 2, None),
        ("Dual DGX Spark", 2, "dgx-spark"),
        ("DGX Spark NVIDIA GB10 128GB", None, "dgx-spark"),
        ("results/2026-08-18-spark", None, None),
    ],
)
def test_a_name_may_count_the_machines(
    text: str, number: int | None, kind: str | None
) -> None:
    assert (counted(text), machine_of(text)) == (number, kind)


@pytest.mark.parametrize(
    ("machine", "errors"), [("RTX 3090", ["unit"]), ("4x RTX 3090", [])]
)
def test_memory_and_power_are_held_against_all_gpus_of_a_machine(
    machine: str, errors: list[str], tmp_path: Path
) -> None:
    """A card has 24 GiB and takes 350 W."""
    rows = "model,rate,vram_peak_mib,avg_power_w\nm,35.6,86387,705\n"
    mapping = (
        "run: {model: model}\n"
        "metrics: {output_throughput_tok_s: rate, peak_memory_gib: {at: vram_peak_mib, unit: MiB},"
        " gpu_power_mean_watt: avg_power_w}\n"
    )
    imported(tmp_path, rows, mapping, machine=machine, environment="native")
    found = review(dataset.load(tmp_path / "data"))
    assert {each.check for each in found.findings if each.severity == "error"} == {
        *errors
    }
    (record,) = records(tmp_path)
    assert setup_of(record).machine_in_short.endswith("GeForce RTX 3090")
    assert len(record.machine.gpus) == (4 if errors == [] else 1)


def test_the_only_workload_of_a_matrix_stands_for_one_load(tmp_path: Path) -> None:
    """Else what 1 user and 8 users get would be repetitions of one cell."""
    cell = {
        "models": {"m": {"id": "o/m"}},
        "environments": {"native": {"type": "host"}},
        "workloads": {"w": {"type": "matmul"}},
    }
    matrix = Matrix.model_validate({"campaign": "c", "title": "T", **cell})
    mapping = (
        "run: {model: model}\nload: {concurrency: users}\n"
        "metrics: {output_throughput_tok_s: rate}\n"
    )
    rows = "model,users,rate\nm,1,35.6\nm,1,35.7\nm,8,201\n"
    said = refusal(tmp_path, rows, mapping, matrix=matrix, environment="native")
    assert "concurrency8 is another load than concurrency1" in said
    assert [(run.workload, run.iteration) for run in records(tmp_path)] == [
        ("w", 1),
        ("w", 2),
    ]
