"""Tables of anybody's: what their mapping says, what a bad cell says, and back from what `export` writes."""

import json
import re
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkpub.collect.imports import import_results
from sparkpub.collect.imports.facts import counted, machine_named
from sparkpub.collect.imports.given import Given, Left, read_about
from sparkpub.collect.imports.writing import ImportOutcome
from sparkpub.record.errors import ImportFormatError, UsageError
from sparkpub.record.metrics import FACTORS, METRICS
from sparkpub.record.record import MetricValue, Moment, Record, Spread
from sparkpub.record.store import to_json
from sparkpub.review import dataset
from sparkpub.review.checks import review
from sparkpub.review.results import load
from sparkpub.review.setup import setup_of
from sparkpub.review.tables import column
from sparkpub.review.told import FORMATS
from sparkpub.site import manual
from sparkpub.tools.language import read_mapping
from tests.building import a_record
from tests.collect.imports.importing import records_in

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
    return import_results(
        "table",
        file,
        folder / "data",
        Given("c", mapping=declared, **given),
        preview=preview,
    )


def records(folder: Path) -> list[Record]:
    return records_in(folder / "data")


def refusal(folder: Path, *args: Any, **given: Any) -> str:
    """The only thing that was refused, as a line."""
    (left,) = imported(folder, *args, **given).refused
    return f"{left.source}: {left.reason}"


def values(record: Record) -> Mapping[str, float | None]:
    return {name: value.value for name, value in record.metrics.items()}


def test_each_row_becomes_a_run_with_its_names_time_load_and_figures(
    tmp_path: Path,
) -> None:
    outcome = imported(tmp_path)
    assert (len(outcome.imported), outcome.skipped, outcome.refused) == (3, [], [])
    first, second, third = records(tmp_path)
    assert first.cell == ("qwen3-8b", "native", "concurrency8")
    assert first.requested.model_id == "Qwen/Qwen3-8B"
    assert first.requested.workload == {"type": "table", "concurrency": 8}
    assert (first.observed.engine, first.observed.quantization) == ("vLLM", "fp8")
    # Rows are numbered in their order within a cell, which is not the order of all rows. 10:10 at +01:00 is 09:10 UTC.
    assert [
        (run.environment, run.iteration, run.started.value, run.started.zone)
        for run in (first, second, third)
    ] == [
        ("native", 2, "2026-03-01T09:10:00Z", "utc"),
        ("native", 1, "2026-03-01T10:00:00", "unknown"),
        ("container", 1, "2026-03-02T00:00:00", "unknown"),
    ]
    # 0.31 s are 310 ms.
    assert values(second) == {
        "output_throughput_tok_s": 1204.5,
        "ttft_p50_ms": pytest.approx(310.0),
        "judge_score": 7.0,
    }
    assert third.metrics["ttft_p50_ms"].reason == "the table has no value"
    assert {value.source for value in first.metrics.values()} == {"published"}


def test_the_rows_the_table_and_the_mapping_are_kept_as_evidence(
    tmp_path: Path,
) -> None:
    imported(tmp_path)
    folder = tmp_path / "data/c"
    first = records(tmp_path)[1]
    kept = {item.role: item.path for item in first.evidence}
    rows = (folder / kept["output"]).read_text().splitlines()
    assert json.loads(rows[0]) == {"iteration": 1}
    assert json.loads(rows[1])["tok/s"] == "1,204.5"
    originals = {
        (folder / item.path).read_text()
        for item in first.evidence
        if item.role == "original"
    }
    assert originals == {TABLE, MAPPING}
    assert not [
        finding
        for finding in review(dataset.load(tmp_path / "data")).findings
        if finding.severity == "error"
    ]


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
    assert changed.refused[0].source == "runs.csv line 3"


def test_a_preview_says_each_run_and_writes_nothing(tmp_path: Path) -> None:
    """Whoever reads it must see what a mapping took for the figures."""
    outcome = imported(tmp_path, preview=True)
    assert not (tmp_path / "data").exists()
    # 0.31 s are 310 ms.
    assert outcome.lines()[1:] == [
        "qwen3-8b/native/concurrency8 1, 2026-03-01T10:00:00, ok: "
        "output_throughput_tok_s 1204, ttft_p50_ms 310, judge_score 7",
        "qwen3-8b/container/concurrency8 1, 2026-03-02T00:00:00, ok: "
        "output_throughput_tok_s 1190, ttft_p50_ms none, judge_score 8",
        "3 would be imported, 0 skipped, 0 refused",
    ]
    assert outcome.document()["preview"] is True


CELLS = {
    "decimal-comma": (
        "1,204.5",
        "12,5",
        "line 2: column 'tok/s' has '12,5'; write a number, as 1234.5",
    ),
    "words": (
        "1,204.5",
        "fast",
        "line 2: column 'tok/s' has 'fast'; write a number, as 1234.5",
    ),
    "impossible": (
        "1,204.5",
        "-3",
        "line 2: column 'tok/s' gives -3 tok/s, and output_throughput_tok_s can be 0 to inf; correct cell or unit",
    ),
    "no-model": (
        "Qwen/Qwen3-8B;native;8;2026-03-01 10",
        ";native;8;2026-03-01 10",
        "line 2: column 'Model' is empty; fill it in",
    ),
    "bad-time": (
        "2026-03-02",
        "yesterday",
        "line 4: started is 'yesterday'; write a time as 2026-11-21T18:30:00Z",
    ),
    "cells": (
        "1190;;8",
        "1190;8",
        "line 4: 6 cells under 7 columns; correct the row",
    ),
    "letters": (
        "1,204.5",
        "x" * 70_000,
        "line 2: column 'tok/s' has a cell of 70,000 letters; 5,000 are the most",
    ),
    "option": (
        ";8;2026-03-02",
        ";1e300;2026-03-02",
        "line 4: column 'clients' has '1e300'; correct it",
    ),
    "same-key": (
        "Qwen/Qwen3-8B;container",
        "qwen3 8b;container",
        "line 4: the models 'Qwen/Qwen3-8B' and 'qwen3 8b' would both be qwen3-8b; rename one",
    ),
}


@pytest.mark.parametrize("case", CELLS)
def test_a_bad_cell_is_one_line_and_the_other_rows_go_on(
    case: str, tmp_path: Path
) -> None:
    before, after, line = CELLS[case]
    assert TABLE.count(before) == 1
    outcome = imported(tmp_path, TABLE.replace(before, after))
    (left,) = outcome.refused
    assert f"{left.source}: {left.reason}" == f"runs.csv {line}"
    assert len(outcome.imported) == 2


@pytest.mark.parametrize(
    ("written", "figures"),
    [
        # 12,26 can only be decimals, so that 1,204 and 1.204,5 are, too.
        (["12,26", "1,204", "1.204,5"], [12.26, 1.204, 1204.5]),
        # 1,204.5 can only be thousands, so that 1,204 is, too.
        (["1,204.5", "1,204", "12.26"], [1204.5, 1204.0, 12.26]),
        (["0,310", "1,204", "7"], [0.31, 1.204, 7.0]),
        # Where a comma may mean either, or both, no such cell is a figure.
        (["1,204", "1,310", "990"], [None, None, 990.0]),
        (["12,26", "1,204.5", "12.26"], [None, None, 12.26]),
        (["1,204", "1.310", "7"], [None, 1.31, 7.0]),
    ],
)
def test_what_a_comma_means_is_seen_by_the_whole_column(
    written: list[str], figures: list[float | None], tmp_path: Path
) -> None:
    outcome = imported(tmp_path, table_with(written))
    found = {record.value("output_throughput_tok_s") for record in records(tmp_path)}
    assert found == {*figures} - {None}
    assert [left.reason for left in outcome.refused] == [
        f"column 'tok/s' has '{cell}'; write a number, as 1234.5"
        for cell, figure in zip(written, figures, strict=True)
        if figure is None
    ]


def table_with(written: list[str]) -> str:
    """The table with other figures in `tok/s`."""
    first, second, third = written
    table = TABLE.replace("1,204.5", first).replace("1210.5", second)
    return table.replace("1190", third)


COPIES = """\
Model,when,tok/s
m,2026-03-01T10:00:00Z,36.2
m,2026-03-01T10:00:00Z,36.2
m,2026-03-01T11:00:00Z,38.1
m,2026-03-01T10:00:00Z,36.20
m,2026-03-01T11:00:00Z, 38.1
"""
COPIES_MAPPING = (
    "run: {model: Model, started: when}\n"
    "same: {environment: native, workload: w}\n"
    "metrics: {output_throughput_tok_s: {at: tok/s}}\n"
)


def test_identical_rows_are_one_run_unless_the_mapping_says_otherwise(
    tmp_path: Path,
) -> None:
    """36.2 and 36.20 are written differently: the review sees what the import leaves."""
    outcome = imported(tmp_path, COPIES, COPIES_MAPPING)
    assert outcome.lines() == [
        "skipped runs.csv: 2 lines repeat earlier ones, the first is line 3; for runs of their own, add repeats: true "
        "to the mapping",
        "3 imported, 2 skipped, 0 refused",
    ]
    again = imported(tmp_path / "a", COPIES, COPIES_MAPPING + "repeats: true\n")
    assert (len(again.imported), again.skipped) == (5, [])


MAPPINGS = {
    "unknown-key": ("environment: where", "enviroment: where", 3, "did you mean"),
    "no-such-column": ("tok/s}", "toks}", 9, "has no column 'toks'"),
    "column-and-same": ("engine: vllm", "model: x", 5, "keep one"),
    "not-convertible": ("unit: s}", "unit: MB}", 10, "give scale: in place of unit:"),
    "fixed": ("unit: s}", "unit: s, label: x}", 10, "its label is fixed"),
    "no-direction": (
        "direction: higher, ",
        "",
        11,
        "sparkpub does not know the metric judge_score, {}; add direction",
    ),
    "misspelt": ("ttft_p50_ms", "ttft_p50_mss", 10, "did you mean ttft_p50_ms?"),
    "unit-and-name": ("judge_score", "judge_ms", 11, "its unit is points"),
    "another-word": ("load:", "options:", 6, "write load: in its place"),
    "word-within": ("at: tok/s", "column: tok/s", 9, "write at: in its place"),
    "of-a-tool": (
        "  environment: where",
        "  ended: where",
        3,
        "run.ended is for the reports of a tool",
    ),
    "no-option": (
        "concurrency: clients",
        "concurrency: [clients]",
        6,
        "concurrency needs the name of a column",
    ),
    "no-column": ("at: tok/s", "scale: 2", 9, "add at:"),
    "twice": ("  environment: where", "  model: where", 3, "stands twice"),
    "no-yaml": ("  started: when", "  started: ]", 4, "not YAML"),
}


@pytest.mark.parametrize("case", MAPPINGS)
def test_a_bad_mapping_is_a_line_with_its_place(case: str, tmp_path: Path) -> None:
    before, after, line, text = MAPPINGS[case]
    assert MAPPING.count(before) == 1
    with pytest.raises(ImportFormatError) as problem:
        imported(tmp_path, mapping=MAPPING.replace(before, after))
    place = f"{tmp_path / 'map.yaml'}:{line}"
    found = [said for said in problem.value.lines() if place in said]
    assert text.format(place) in found[0]
    assert not (tmp_path / "data").exists()


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
        assert read_mapping(file).declared.metrics
    file.write_text(layouts[0])
    assert read_about(file).layout is not None


@pytest.mark.parametrize(
    ("mapping", "text"),
    [
        ("run: {model: Model}\n", "name the columns of the figures"),
        ("- model\n", "begin with run: and metrics:"),
        (None, "--mapping FILE"),
    ],
)
def test_a_table_needs_a_mapping_that_names_figures(
    mapping: str | None, text: str, tmp_path: Path
) -> None:
    with pytest.raises(ImportFormatError, match=text):
        imported(tmp_path, mapping=mapping)


def test_a_mapping_is_for_tables_alone(tmp_path: Path) -> None:
    given = Given("c", environment="native", mapping=tmp_path / "map.yaml")
    with pytest.raises(UsageError, match="needs no mapping"):
        import_results("vllm-bench", tmp_path, tmp_path / "data", given)


SMALL = "model,environment,started,tok\na,native,2026-03-01,5\n"
PLAIN = (
    "run: {model: model, environment: environment, started: started}\n"
    "same: {workload: w}\n"
    "metrics: {output_throughput_tok_s: tok}\n"
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", SMALL),
        ("t.csv", "\ufeff" + SMALL.replace("\n", "\r\n")),
        ("t.tsv", SMALL.replace(",", "\t")),
        (
            "t.csv",
            'model,environment,started,tok\n"a","native","2026-03-01","5"\n\n,,,\n',
        ),
        (
            "t.json",
            '[{"model": "a", "environment": "native", "started": "2026-03-01", "tok": 5}]',
        ),
        (
            "t.jsonl",
            '{"model": "a", "environment": "native", "started": "2026-03-01", "tok": 5.0}\n\n',
        ),
    ],
)
def test_the_same_table_in_any_form(name: str, content: str, tmp_path: Path) -> None:
    outcome = imported(tmp_path, content, PLAIN, name=name)
    assert outcome.refused == []
    (run,) = records(tmp_path)
    assert run.run_id == "c-native_a_w_iter01_20260301T000000"
    assert values(run) == {"output_throughput_tok_s": 5.0}


def packed(folder: Path, table: pa.Table) -> bytes:
    pq.write_table(table, folder / "packed.parquet", compression="zstd")
    return (folder / "packed.parquet").read_bytes()


def test_parquet_with_types_of_its_own(tmp_path: Path) -> None:
    table = pa.table(
        {
            "model": ["a"],
            "environment": ["native"],
            "started": [datetime(2026, 3, 1, 10, tzinfo=UTC)],
            "tok": pa.array([5.5], type=pa.float32()),
        }
    )
    imported(tmp_path, packed(tmp_path, table), PLAIN, name="t.parquet")
    (run,) = records(tmp_path)
    assert (run.started.value, values(run)) == (
        "2026-03-01T10:00:00Z",
        {"output_throughput_tok_s": 5.5},
    )
    assert "not Parquet" in refusal(tmp_path, b"PAR1 no", PLAIN, name="t.parquet")


@pytest.mark.parametrize(
    ("letters", "rows", "said"),
    [
        (1, 10_000_001, "more than 10,000,000 cells"),
        (1000, 70_000, "larger than 64.0 MiB when unpacked"),
    ],
)
def test_a_small_file_with_a_large_table_is_refused(
    letters: int, rows: int, said: str, tmp_path: Path
) -> None:
    """One value in so many rows: the file holds it once, and memory would hold each."""
    column = pa.array(["a" * letters]).take(pa.array([0] * rows))
    content = packed(tmp_path, pa.table({"Model": column}))
    assert len(content) < 2_000_000
    assert said in refusal(tmp_path, content, name="bomb.parquet")


def test_parquet_that_ends_its_reader_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for Arrow ends its process as Arrow does over some damaged files."""
    (tmp_path / "pyarrow").mkdir()
    (tmp_path / "pyarrow/__init__.py").write_text("import os; os.abort()")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert refusal(tmp_path, b"PAR1", PLAIN, name="t.parquet") == (
        "t.parquet: not Parquet: its reader ended over it"
    )


def test_parquet_without_arrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert refusal(tmp_path, b"PAR1", PLAIN, name="t.parquet") == (
        "t.parquet: reading Parquet needs pyarrow; pip install 'sparkpub[site]', or write the table as CSV"
    )


FILES = {
    "empty": ("t.csv", "", "it has no header; name the columns in the first line"),
    "twice": (
        "t.csv",
        "a,a\n1,2\n",
        "column 'a' stands twice in the header; rename one",
    ),
    "nameless": (
        "t.csv",
        "a,,\n1,2,3\n",
        "two columns have no name in the header; rename one",
    ),
    "quote": ("t.csv", 'a,b\n"1,2\n', "not CSV: unexpected end of data, line 2"),
    "no-objects": ("t.json", "[1, 2]", "no JSON objects in it; write one for each row"),
    "key-twice": ("t.json", '[{"a": 1, "a": 2}]', "key 'a' stands twice"),
    "key-twice-within": ("t.jsonl", '{"a": {"b": 1, "b": 2}}', "key 'b' stands twice"),
    "path-twice": (
        "t.json",
        '{"a.b": 1, "a": {"b": 2}}',
        "column 'a.b' stands twice; rename one",
    ),
    "digits": ("t.json", '{"a": 1%s}' % ("0" * 40), "a number with 41 digits"),
    "cut": ("t.json", '[{"a": 1}', "no JSON objects in it; write one for each row"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_is_no_table_is_one_line(case: str, tmp_path: Path) -> None:
    name, content, reason = FILES[case]
    assert refusal(tmp_path, content, PLAIN, name=name) == f"{name}: {reason}"


def test_what_is_wrong_with_many_rows_is_said_in_time(tmp_path: Path) -> None:
    table = "a,b\n" + "1\n" * 30_000
    began = time.monotonic()
    outcome = imported(tmp_path, table, "run: {model: a}\nmetrics: {ttft_p50_ms: b}\n")
    assert time.monotonic() - began < 10
    assert outcome.refused[0].source == "runs.csv line 2"
    assert len(outcome.lines()) == 2
    assert len(outcome.lines(verbose=True)) == 30_001


def test_verbose_lines_are_told_one_by_one() -> None:
    left = Left("a.json", "it is no result", refused=False)
    outcome = ImportOutcome(skipped=[left, left])
    told = "skipped a.json: it is no result"
    assert outcome.lines(verbose=True)[:-1] == [told, told]
    assert outcome.lines()[0] == "skipped 2, e.g. a.json: it is no result"


def test_the_table_numbers_its_runs(tmp_path: Path) -> None:
    mapping = PLAIN.replace("run: {", "run: {iteration: n, ")
    text = "model,environment,started,tok,n\na,x,2026-03-01,5,7\na,x,2026-03-02,6,{}\n"
    imported(tmp_path, text.format(3), mapping)
    assert [run.iteration for run in records(tmp_path)] == [7, 3]
    assert refusal(tmp_path / "a", text.format(7), mapping) == (
        "runs.csv line 3: iteration 7 of a/x/w is in runs.csv line 2, too; "
        "number them apart, or choose rows with when:"
    )
    for wrong in ("0", "1.5", "first", ""):
        said = refusal(tmp_path / "b", text.format(wrong), mapping)
        assert said.endswith("number the runs of a cell from 1")


@pytest.fixture(autouse=True)
def folders(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()


LONG = (
    "run: {model: model, environment: env, started: at}\n"
    "same: {workload: w}\n"
    "long: {metric: what, value: is, unit: in}\n"
    "metrics: {joy: {unit: smiles, direction: higher, label: Joy, definition: Smiles seen., scale: 3}}\n"
)
TALL = (
    "model,env,at,what,is,in\n"
    "a,n,2026-03-01,ttft_p50_ms,2,s\n"
    "a,n,2026-03-01,peak_memory_gib,512,MiB\n"
    "a,n,2026-03-01,joy,4,\n"
    "b,n,2026-03-01,ttft_p50_ms,70,ms\n"
)


def test_rows_of_a_run_are_taken_together_and_their_units_converted(
    tmp_path: Path,
) -> None:
    imported(tmp_path, TALL, LONG)
    first, second = records(tmp_path)
    # 2 s are 2,000 ms, 512 MiB half a GiB, and 4 times the scale of 3 is 12.
    assert values(first) == {
        "ttft_p50_ms": 2000.0,
        "peak_memory_gib": 0.5,
        "joy": 12.0,
    }
    assert values(second) == {"ttft_p50_ms": 70.0}


LONG_FAULTS = {
    "twice": (
        "peak_memory_gib,512,MiB",
        "ttft_p50_ms,5,s",
        "its run has ttft_p50_ms twice; keep one",
    ),
    "unknown": (
        "joy,4,",
        "jay,4,",
        "sparkpub does not know the metric 'jay'; declare it under metrics:",
    ),
    "near": (
        "peak_memory_gib,512",
        "peak_memory_gb,512",
        "or did you mean peak_memory_gib?",
    ),
    "unit": (
        "512,MiB",
        "512,pages",
        "peak_memory_gib is in 'pages' in place of 'GiB'; give its scale: in the mapping",
    ),
}


@pytest.mark.parametrize("case", LONG_FAULTS)
def test_a_bad_row_of_a_long_table_leaves_its_run_out(
    case: str, tmp_path: Path
) -> None:
    before, after, text = LONG_FAULTS[case]
    assert text in refusal(tmp_path, TALL.replace(before, after), LONG)
    assert [run.model for run in records(tmp_path)] == ["b"]


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


# -- back from an export ---------------------------------------------------------------------------------------

JOY = MetricValue(
    value=3.0, unit="smiles", source="log", label="Joy", direction="higher"
)
OWN = "metrics: {joy: {unit: smiles, direction: higher, label: Joy, definition: Smiles seen.}}\n"


def exported(folder: Path, form: str) -> bytes:
    """The table of a campaign with a good run, a failed one without a figure, a repeat, and a quarantined one."""
    from sparkpub.record.campaign import Campaign, Quarantine

    def run(number: int, **fields: Any) -> Record:
        made = a_record({"output_throughput_tok_s": 0.1 + number, "ttft_p50_ms": 1 / 3})
        known = {
            "run_id": f"c-native_m_w_iter0{number}_20260101T00000{number}Z",
            "iteration": number,
            "started": Moment(value=f"2026-01-01T00:00:0{number}Z", zone="utc"),
            "metrics": {**made.metrics, "joy": JOY},
        }
        return made.model_copy(update={**known, **fields})

    empty = MetricValue(value=None, unit="ms", source="log", reason="not printed")
    runs = [
        run(1),
        run(2, status="failed", status_reason="x", metrics={"ttft_p50_ms": empty}),
        run(3),
        run(4, repeat_of="c-native_m_w_iter01_20260101T000001Z"),
    ]
    away = folder / "source/c"
    away.mkdir(parents=True)
    quarantined = (Quarantine(run=runs[2].run_id, reason="hot"),)
    campaign = Campaign(campaign="c", title="C", quarantined=quarantined)
    (away / "campaign.json").write_text(to_json(campaign))
    for record in runs:
        (away / f"{record.stem}.json").write_text(to_json(record))
    return FORMATS[form](load(folder / "source").runs)


KEPT = ("model", "environment", "workload", "iteration", "started", "metric", "value")
KEPT += ("unit", "reason")


def rows(folder: Path) -> list[tuple[object, ...]]:
    found = column.rows(load(folder).runs)
    kept = [row for row in found if row.repeat_of is None]
    return [tuple(getattr(row, name) for name in KEPT) for row in kept]


@pytest.mark.parametrize("form", FORMATS)
def test_what_export_writes_comes_back_the_same(form: str, tmp_path: Path) -> None:
    content = exported(tmp_path, form)
    outcome = imported(tmp_path, content, OWN, name=f"runs.{form}")
    assert outcome.refused == []
    assert [left.reason for left in outcome.skipped] == ["it repeats another run"]
    assert rows(tmp_path / "data") == rows(tmp_path / "source")
    assert [(run.status, run.status_reason) for run in records(tmp_path)] == [
        ("ok", None),
        ("failed", "failed, as the table says"),
        ("invalid", "excluded where the table comes from"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (",ok,", ",fine,", "status is 'fine'; write one of ok, failed, timeout"),
        (",False,", ",maybe,", "quarantined is 'maybe'; write true or false"),
    ],
)
def test_words_that_are_no_state_are_refused(
    before: str, after: str, text: str, tmp_path: Path
) -> None:
    content = exported(tmp_path, "csv").decode().replace(before, after)
    assert any(text in left.reason for left in imported(tmp_path, content, OWN).refused)


# -- harnesses of people's own -----------------------------------------------------------------------------------


HARNESS: dict[str, Any] = {
    "date": 1_772_355_600,
    "model": {"repo": "owner/Model"},
    "settings": [{"not": "a cell"}],
    "concurrency": [
        {"c": 1, "agg_tok_s_runs": [30.0, 31.0, 35.0], "ttft_p50_ms": 250, "n": 3},
        {"c": 8, "agg_tok_s_runs": [200.0], "ttft_p50_ms": 500, "n": 3},
    ],
}
NESTED = """\
run: {model: model.repo, started: date}
same: {environment: native}
rows: concurrency
load: {concurrency: concurrency.c}
metrics:
  output_throughput_tok_s: {at: concurrency.agg_tok_s_runs}
  ttft_p50_ms: {at: concurrency.ttft_p50_ms}
"""


def test_a_list_within_json_is_a_run_each_and_a_list_of_figures_its_repetitions(
    tmp_path: Path,
) -> None:
    imported(tmp_path, json.dumps(HARNESS), NESTED, name="t.json")
    one, eight = records(tmp_path)
    assert (one.model, one.workload, eight.workload) == (
        "model",
        "concurrency1",
        "concurrency8",
    )
    # (30 + 31 + 35) / 3 = 32; 1,772,355,600 s after 1970 are 2026-03-01T09:00:00Z.
    assert one.value("output_throughput_tok_s") == 32
    assert one.samples == {"output_throughput_tok_s": (30.0, 31.0, 35.0)}
    assert eight.samples == {}
    assert one.started.value == "2026-03-01T09:00:00Z"


def test_a_mapping_with_a_tool_reads_its_reports_and_their_notes(
    tmp_path: Path,
) -> None:
    """Any tool is one file: its figures are those of a report, null where it has none, and its name is that of its
    terms. The second document is of another tool."""
    mapping = """\
tool: mine
when: [kind=load|kind=sweep, cases]
rows: cases
run: {model: setup.model, environment: setup.where, started: at, weights: cases.dtype}
same: {engine: vllm}
load:
  - {key: mine, says: ""}
  - {at: "cases.clients[role=user].count", as: count, key: c, option: concurrency}
  - {at: cases.cached, as: mark, key: cached, unless: [false, null]}
metrics:
  output_throughput_tok_s: cases.rate|cases.tok_s
  ttft_mean_ms: {at: cases.ttft, unit: s}
requests: {tpot: {at: cases.answers.*.tpot_s, unit: s}}
"""
    clients = [{"role": "probe", "count": 1}, {"role": "user", "count": 8}]
    first = {"clients": clients, "rate": 200.5, "ttft": "n/a", "dtype": "fp8"}
    second = {
        "tok_s": 30,
        "dtype": "fp8",
        "cached": True,
        "answers": [{"tpot_s": 0.01}, {"tpot_s": 0.03}],
    }
    document = {
        "kind": "load",
        "at": "2026-03-01T10:00:00Z",
        "setup": {"model": "o/m", "where": "native"},
        "cases": [first, second],
    }
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(document))
    (folder / "other.json").write_text(json.dumps(document | {"kind": "else"}))
    declared = tmp_path / "map.yaml"
    declared.write_text(mapping)
    given = Given("c", mapping=declared)
    outcome = import_results(None, folder, tmp_path / "data", given)
    assert (len(outcome.imported), outcome.refused) == (2, [])
    assert [left.reason for left in outcome.skipped] == ["not a result of mine"]
    found = {record.workload: record for record in records(tmp_path)}
    users, cached = found["mine-c8"], found["mine-cached"]
    assert users.cell == ("m", "native", "mine-c8")
    assert users.requested.workload == {"type": "mine", "concurrency": 8}
    assert (users.observed.engine, users.observed.quantization) == ("vLLM", "fp8")
    assert values(users) == {"output_throughput_tok_s": 200.5, "ttft_mean_ms": None}
    assert users.metrics["ttft_mean_ms"].reason == "the report gives 'n/a'"
    # The mean of 10 and 30 ms.
    assert cached.value("tpot_mean_ms") == pytest.approx(20)
    assert cached.metrics["tpot_mean_ms"].source == "report"
    kept = [item.path for item in users.evidence if item.role == "report"]
    alone = json.loads((tmp_path / "data/c" / kept[0]).read_text())
    assert alone == document | {"cases": [first]}


@pytest.mark.parametrize(
    ("mapping", "text"),
    [
        ("reads: aiperff\n", "aiperff is no workload"),
        ("long: {metric: a, value: b}\n", "long is for tables"),
        ("run: {model: m, status: i}\n", "run.status is for tables"),
        ("when: []\n", "nothing says which documents are reports"),
    ],
)
def test_a_mapping_of_a_tool_that_cannot_work_is_one_line(
    mapping: str, text: str, tmp_path: Path
) -> None:
    rest = {
        "tool": "tool: mine\n",
        "run": "run: {model: m}\n",
        "when": "when: [m]\n",
        "metrics": "metrics: {output_throughput_tok_s: rate}\n",
    }
    own = mapping.partition(":")[0]
    whole = "".join(line for name, line in rest.items() if name != own) + mapping
    with pytest.raises(ImportFormatError) as problem:
        imported(tmp_path, "{}", whole, name="t.json")
    (line,) = problem.value.lines()
    assert text in line


def test_names_of_a_mapping_are_a_column(tmp_path: Path) -> None:
    loads = {"prose": {"t": "22.5 ± 1.5", "n": 5}, "code": {"t": "40 ± 2", "n": 5}}
    mapping = (
        "run: {model: name, workload: by_load.key}\nsame: {environment: native}\nrows: by_load.*\n"
        "metrics: {output_throughput_tok_s: {at: by_load.t, repetitions: by_load.n, scale: 2}}\n"
    )
    document = json.dumps({"name": "m", "by_load": loads})
    imported(tmp_path, document, mapping, name="t.json")
    found = {record.workload: record for record in records(tmp_path)}
    # Both figures are doubled: 2 × 22.5 and 2 × 1.5.
    assert found["prose"].value("output_throughput_tok_s") == 45
    assert found["prose"].spreads["output_throughput_tok_s"] == Spread(
        repetitions=5, deviation=3.0, divisor=None
    )
    assert set(found) == {"prose", "code"}
    assert "last modification" in found["code"].unavailable["started"]


def test_the_path_of_a_file_says_model_and_clients(tmp_path: Path) -> None:
    folder = tmp_path / "in/qwen/fp8"
    folder.mkdir(parents=True)
    (folder / "c4.csv").write_text("tok,sd\n100,2.5\n")
    (folder / "other.csv").write_text("tok,sd\n1,1\n")
    mapping = tmp_path / "map.yaml"
    mapping.write_text(
        "run: {model: path.model, weights: path.weights}\nsame: {environment: native, started: 2026-03-01}\n"
        "path: '{model}/{weights}/c{clients}.csv'\nload: {concurrency: path.clients}\n"
        "metrics: {output_throughput_tok_s: {at: tok, deviation: sd}}\n"
    )
    given = Given("c", mapping=mapping)
    outcome = import_results(None, tmp_path / "in", tmp_path / "data", given)
    (left,) = outcome.skipped
    assert "its path is not {model}/{weights}/c{clients}.csv" in left.reason
    (record,) = records(tmp_path)
    assert (record.model, record.workload) == ("qwen", "concurrency4")
    assert record.observed.quantization == "fp8"
    assert record.spreads["output_throughput_tok_s"].deviation == 2.5


def test_a_list_of_the_times_of_requests_is_a_distribution(tmp_path: Path) -> None:
    mapping = (
        "run: {model: m}\nsame: {environment: native, workload: w, started: 2026-03-01}\n"
        "requests: {ttft: {at: first, unit: s}}\n"
    )
    document = json.dumps({"m": "m", "first": [0.1, 0.3, 0.2]})
    imported(tmp_path, document, mapping, name="t.json")
    (record,) = records(tmp_path)
    # Of 100, 200 and 300 ms.
    assert record.value("ttft_mean_ms") == pytest.approx(200)
    assert record.value("ttft_p50_ms") == pytest.approx(200)
    assert record.value("ttft_max_ms") == pytest.approx(300)
    wrong = mapping.replace("ttft:", "tttt:").replace("unit: s", "unit: MB")
    with pytest.raises(ImportFormatError) as problem:
        imported(tmp_path, document, wrong, name="t.json")
    assert [line.partition(", ")[0] for line in problem.value.lines()] == [
        "requests.tttt is no time of a request",
        "MB cannot be converted to ms",
    ]


def test_what_lies_beside_a_table_says_what_ran(tmp_path: Path) -> None:
    mapping = (
        "run: {started: when}\nsame: {workload: w}\n"
        "metrics: {output_throughput_tok_s: tok}\n"
    )
    notes = {"model_id": "o/m", "image": "box:1", "engine": "vLLM", "driver": "580"}
    (tmp_path / "metadata.json").write_text(json.dumps(notes))
    imported(tmp_path, "when,tok\n2026-03-01,5\n", mapping)
    (record,) = records(tmp_path)
    assert record.cell == ("m", "container", "w")
    assert (record.observed.engine, record.machine.driver) == ("vLLM", "580")


def test_a_preview_of_a_table_without_a_mapping_is_a_mapping_to_begin_with(
    tmp_path: Path,
) -> None:
    """With the name of the place given it reads the table."""
    file = tmp_path / "runs.csv"
    file.write_text("Model,clients,date,tok/s,TTFT (s),note\nm,4,2026-03-01,70,0.5,x\n")
    outcome = import_results(None, file, tmp_path / "data", Given("c"), preview=True)
    lines = outcome.lines()
    assert lines[1:] == [
        "run:",
        '  model: "Model"',
        '  started: "date"',
        "load:",
        '  concurrency: "clients"',
        "metrics:",
        '  output_throughput_tok_s: "tok/s"',
        '  ttft_mean_ms: {at: "TTFT (s)", unit: s}',
        "# not used: note",
    ]
    imported(tmp_path, file.read_text(), "\n".join(lines), environment="native")
    (record,) = records(tmp_path)
    assert values(record) == {"output_throughput_tok_s": 70.0, "ttft_mean_ms": 500.0}


OWNERS = {
    # One file per model with a list of loads, as owners' harnesses write them: series.points of jvr0x/dgx-spark-bench,
    # cases of MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark, and runs of each load.
    "a-dual-spark.json": {
        "run": {"timestamp": "2026-07-19T14:24:39Z", "hardware": {"name": "DGX Spark"}},
        "series": [
            {
                "model": "A",
                "backend": "vLLM 0.25 (patched, TP=2)",
                "quant": "GGUF Q4_K_XL",
                "points": [
                    {
                        "concurrency": 1,
                        "agg_tok_s": 86.8,
                        "ttft_ms": {"p50": 177, "p95": 189},
                    },
                    {"concurrency": 8, "agg_tok_s": 300.5, "ttft_ms": {"p50": 400}},
                ],
            }
        ],
    },
    "b.json": {
        "run": {"timestamp": None, "hardware": {"name": "DGX Spark"}},
        "series": [
            {
                "model": "B",
                "backend": "llama.cpp",
                "quant": "BF16",
                "points": [
                    {
                        "concurrency": 1,
                        "agg_tok_s": [20, 22],
                        "ttft_ms": {"p50": 100, "p95": 110},
                    }
                ],
            }
        ],
    },
    "notes.json": {"prompts": ["a", "b"]},
}


def test_the_preview_of_an_owners_folder_is_a_mapping_that_reads_it(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, document in OWNERS.items():
        (folder / name).write_text(json.dumps(document))
    data = tmp_path / "data"
    with pytest.raises(ImportFormatError, match="--preview prints a mapping"):
        import_results(None, folder, data, Given("c"))
    starter = import_results(None, folder, data, Given("c"), preview=True)
    mapping = tmp_path / "map.yaml"
    mapping.write_text("\n".join(starter.lines()))
    given = Given("c", mapping=mapping, environment="native")
    outcome = import_results(None, folder, data, given)
    assert (outcome.refused, [item.source for item in outcome.skipped]) == (
        [],
        ["notes.json"],
    )
    found = {
        (run.model, run.requested.workload["concurrency"]): run
        for run in records(tmp_path)
    }
    two, one = found["a", 8], found["b", 1]
    assert values(two) == {
        "output_throughput_tok_s": 300.5,
        "ttft_p50_ms": 400.0,
        "ttft_p95_ms": None,
    }
    seen = two.observed
    assert (seen.engine, seen.engine_version) == ("vLLM", "0.25")
    assert (seen.quantization, one.observed.quantization) == ("q4_k_xl", "bf16")
    assert (two.machine.kind, two.machine.count) == ("dgx-spark", 2)
    assert (one.machine.kind, one.machine.count) == ("dgx-spark", None)
    assert (setup_of(two).machine, setup_of(one).machine) == (
        "2 × NVIDIA DGX Spark (GB10)",
        "NVIDIA DGX Spark (GB10)",
    )
    assert one.samples["output_throughput_tok_s"] == (20.0, 22.0)
    assert "modification" in one.unavailable["started"]


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
    assert (counted(text), machine_named(text)) == (number, kind)
