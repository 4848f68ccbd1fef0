"""Tables of anybody's: what their mapping says, what a bad cell says, and back from what `export` writes."""

import json
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
from sparkpub.record.errors import ImportFormatError
from sparkpub.record.metrics import FACTORS, METRICS
from sparkpub.record.record import Record, Spread
from sparkpub.review import dataset
from sparkpub.review.checks import review
from sparkpub.review.setup import setup_of
from sparkpub.site import manual
from sparkpub.tools.language import read_mappings
from sparkpub.tools.where import at
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


def test_each_row_becomes_a_run_and_table_row_and_mapping_are_its_evidence(
    tmp_path: Path,
) -> None:
    outcome = imported(tmp_path, machine="Strix Halo")
    assert (len(outcome.imported), outcome.skipped, outcome.refused) == (3, [], [])
    first, second, third = records(tmp_path)
    assert first.cell == ("qwen3-8b", "native", "concurrency8")
    assert first.requested.model_id == "Qwen/Qwen3-8B"
    assert first.machine.kind == "strix-halo"  # which no catalogue knows
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
    assert "ttft_p50_ms" not in third.metrics
    assert {value.source for value in first.metrics.values()} == {"published"}
    kept = {
        (item.role, (tmp_path / "data/c" / item.path).read_text())
        for item in second.evidence
    }
    (row,) = (json.loads(text) for role, text in kept if role == "report")
    assert row["tok/s"] == "1,204.5"
    assert {("original", TABLE), ("original", MAPPING)} <= kept
    findings = review(dataset.load(tmp_path / "data")).findings
    assert [item for item in findings if item.severity == "error"] == []


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


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        # A comma may stand before decimals or between thousands: nobody can tell which.
        ("1,204.5", "1,204", "output_throughput_tok_s is published as '1,204'; write"),
        ("1,204.5", "fast", "output_throughput_tok_s is published as 'fast'; write"),
        ("1,204.5", "-3", "output_throughput_tok_s is published as -3.0; write"),
        (
            "Qwen/Qwen3-8B;native;8;2026-03-01 10",
            ";native;8;2026-03-01 10",
            "it does not name the model",
        ),
    ],
)
def test_a_bad_cell_is_one_line_and_the_other_rows_go_on(
    before: str, after: str, line: str, tmp_path: Path
) -> None:
    assert TABLE.count(before) == 1
    outcome = imported(tmp_path, TABLE.replace(before, after))
    (left,) = outcome.refused
    assert f"{left.source}: {left.reason}".startswith(f"runs.csv, run 1: {line}")
    assert len(outcome.imported) == 2


@pytest.mark.parametrize(
    ("before", "after", "line", "text"),
    [
        ("environment: where", "enviroment: where", 3, "did you mean"),
        ("tok/s}", "toks}", 9, "no file has 'toks', {}; did you mean tok/s?"),
        ("engine: vllm", "model: x", 5, "keep one"),
        ("unit: s}", "unit: MB}", 10, "give scale: in place of unit:"),
        ("direction: higher, ", "", 11, "does not know the metric judge_score, {}"),
        ("ttft_p50_ms", "ttft_p50_mss", 10, "did you mean ttft_p50_ms?"),
        ("concurrency: clients", "concurrency: [clients]", 6, "the name of a column"),
        ("at: tok/s", "scale: 2", 9, "add at:"),
        ("  environment: where", "  model: where", 3, "stands twice"),
        ("  started: when", "  started: ]", 4, "not YAML"),
        (MAPPING, "run: {model: Model}\n", 1, "name the columns of the figures"),
        (MAPPING, "- model\n", None, "begin with run: and metrics:"),
        (MAPPING, "requests: {tttt: m}\n", 1, "requests.tttt is no time of a request"),
    ],
    ids=range(13),
)
def test_a_bad_mapping_is_a_line_with_its_place(
    before: str, after: str, line: int | None, text: str, tmp_path: Path
) -> None:
    assert MAPPING.count(before) == 1
    with pytest.raises(ImportFormatError) as problem:
        imported(tmp_path, mapping=MAPPING.replace(before, after))
    place = f"{tmp_path / 'map.yaml'}" + (f":{line}" if line else "")
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
        assert all(each.declared.metrics for each in read_mappings(file))
    file.write_text(layouts[0])
    assert read_about(file).layout is not None


SMALL = "model,environment,started,tok\na,native,2026-03-01,5\n"
PLAIN = (
    "run: {model: model, environment: environment, started: started}\n"
    "same: {workload: w}\n"
    "metrics: {output_throughput_tok_s: tok}\n"
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "\ufeff" + SMALL.replace("\n", "\r\n")),
        ("t.tsv", SMALL.replace(",", "\t")),
        (
            "t.csv",
            '"model","environment",started,tok\n"a","native","2026-03-01","5"\n\n,,,\n',
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
    ids=range(5),
)
def test_the_same_table_in_any_form(name: str, content: str, tmp_path: Path) -> None:
    outcome = imported(tmp_path, content, PLAIN, name=name)
    assert outcome.refused == []
    (run,) = records(tmp_path)
    assert (run.cell, run.started.value[:19]) == (
        ("a", "native", "w"),
        "2026-03-01T00:00:00",
    )
    assert values(run) == {"output_throughput_tok_s": 5.0}


def test_a_row_with_more_cells_is_refused_by_its_line_and_uneven_ends_are_said_once(
    tmp_path: Path,
) -> None:
    """The second row ends early, and the third after its last cell."""
    table = "model,environment,started,tok,note\n"
    for end in ("10,x", "20", "30,x,,", "40,x,y", "50,x"):
        table += f"a,native,2026-03-01,{end}\n"
    said: list[str] = []
    assert refusal(tmp_path, table, PLAIN, say=said.append) == (
        "runs.csv: line 5 has more cells than the header; correct it"
    )
    rates = [run.value("output_throughput_tok_s") for run in records(tmp_path)]
    assert rates == [10, 20, 30, 50]
    assert [line[:30] for line in said if "cells" in line] == [
        "runs.csv: 2 rows with fewer ce"
    ]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("t.csv", "a,a\n1,2\n", "two columns of the header have the same name"),
        ("t.csv", 'a,b\n"1,2\n', "not CSV, or cut short: unexpected end of data"),
        ("t.json", '[{"a": 1, "a": 2}]', "key 'a' stands twice"),
        ("t.json", '[{"a": 1}', "not JSON, or cut short"),
    ],
    ids=range(4),
)
def test_a_file_that_is_no_table_is_one_line(
    name: str, content: str, reason: str, tmp_path: Path
) -> None:
    assert refusal(tmp_path, content, PLAIN, name=name).startswith(f"{name}: {reason}")


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
    outcome = import_results(folder, tmp_path / "data", given)
    assert (len(outcome.imported), outcome.refused) == (2, [])
    assert [left.reason for left in outcome.skipped] == [
        "not a result that the mapping reads"
    ]
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
    """And a list of the times of requests is a distribution."""
    folder = tmp_path / "in/qwen/fp8"
    folder.mkdir(parents=True)
    (folder / "c4.json").write_text('{"tok": 100, "sd": 2.5, "first": [0.1, 0.3, 0.2]}')
    (folder / "other.json").write_text('{"tok": 1, "sd": 1}')
    mapping = tmp_path / "map.yaml"
    mapping.write_text(
        "run: {model: path.model, weights: path.weights}\nsame: {environment: native, started: 2026-03-01}\n"
        "path: '{model}/{weights}/c{clients}.json'\nload: {concurrency: path.clients}\n"
        "metrics: {output_throughput_tok_s: {at: tok, deviation: sd}}\n"
        "requests: {ttft: {at: first, unit: s}}\n"
    )
    given = Given("c", mapping=mapping)
    outcome = import_results(tmp_path / "in", tmp_path / "data", given)
    assert [left.source for left in outcome.skipped] == ["qwen/fp8/other.json"]
    (record,) = records(tmp_path)
    assert (record.model, record.workload) == ("qwen", "concurrency4")
    assert record.observed.quantization == "fp8"
    assert record.spreads["output_throughput_tok_s"].deviation == 2.5
    # Of 100, 200 and 300 ms.
    assert record.value("ttft_mean_ms") == pytest.approx(200)
    assert record.value("ttft_max_ms") == pytest.approx(300)


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


OUTPUT, PROMPT = "metrics.output_throughput_tok_s", "metrics.prompt_throughput_tok_s"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        # Parallel in tensors and in a pipeline, and no prompt of two tokens; 96,448 MiB and no GiB.
        (
            "run.json",
            {"tp": 4, "pp": 2, "prompt_tokens": 512, "vram_peak_mib": 96448},
            {
                "load.input_tokens": "prompt_tokens",
                "metrics.peak_memory_gib": {"at": "vram_peak_mib", "unit": "MiB"},
            },
        ),
        (
            "run.json",
            {"by_load": {"1": {"tok/s": 10}, "4": {"tok/s": 30, "note": "x"}}},
            {"rows": "by_load.*", "load.concurrency": "by_load.key"},
        ),
        # No first token comes within a millisecond.
        (
            "run.json",
            {"mean_ttft": 0.8},
            {"metrics.ttft_mean_ms": {"at": "mean_ttft", "unit": "s"}},
        ),
        # The most that was drawn is no mean, wherever the word stands, and a change is no time.
        (
            "run.json",
            {"max_power_w": 120, "avg_power_w": 60, "latency_change_percent": -20},
            {
                "metrics.gpu_power_mean_watt": "avg_power_w",
                "metrics.request_latency_mean_ms": None,
            },
        ),
        # But for a unit that stands beside it, as in aiperf's profile_export.jsonl.
        (
            "run.json",
            {"metrics": {"time_to_first_token": {"value": 5.2, "unit": "ms"}}},
            {"metrics.ttft_mean_ms": "metrics.time_to_first_token.value"},
        ),
        # A column may say of what each rate is, unless it has other words, too.
        (
            "runs.csv",
            "model,phase,tps\na,prefill,9\nb,decode,8\n",
            {
                PROMPT: {"at": "tps", "when": ["phase=prefill*"]},
                OUTPUT: {"at": "tps", "when": ["phase=decode*"]},
            },
        ),
        (
            "runs.csv",
            "model,metric,tps\na,pp512,9\nb,other,8\n",
            {PROMPT: None, OUTPUT: "tps"},
        ),
        # The only rate of a file of prompts would else lead the leaderboard: 1,054 tokens of a prompt in a second.
        ("prefill-ladder.csv", "model,tok_s\nm,1054.4\n", {PROMPT: "tok_s"}),
        ("prefill-x.csv", "model,decode_tok_s\nm,9\n", {OUTPUT: "decode_tok_s"}),
        ("prefill-and-decode.csv", "model,tok_s\nm,9\n", {OUTPUT: "tok_s"}),
    ],
    ids=range(10),
)
def test_a_preview_says_what_the_names_of_columns_mean(
    name: str, content: Any, expected: dict[str, Any], tmp_path: Path
) -> None:
    if not isinstance(content, str):
        content = json.dumps({"model": "m", "tok/s": 5, **content})
    document = yaml.safe_load(proposed(tmp_path, name, content))
    assert {where: at(document, where) for where in expected} == expected


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


def owners(model: str, backend: str, quant: str, *points: Any) -> dict[str, Any]:
    """One file per model with a list of loads, as owners' harnesses write them: series.points of jvr0x/dgx-spark-bench,
    cases of MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark."""
    series = {"model": model, "backend": backend, "quant": quant, "points": points}
    return {"run": {"hardware": {"name": "DGX Spark"}}, "series": [series]}


OWNERS = {
    "a-dual-spark.json": owners(
        "A",
        "vLLM 0.25 (patched, TP=2)",
        "GGUF Q4_K_XL",
        {"concurrency": 1, "agg_tok_s": 86.8, "vram_peak_mib": 96448},
        {"concurrency": 8, "agg_tok_s": 300.5, "ttft_ms": {"p50": 400}},
    ),
    "b.json": owners(
        "B",
        "llama.cpp",
        "BF16",
        {"concurrency": 1, "agg_tok_s": [20, 22], "ttft_ms": {"p50": 100, "p95": 110}},
    ),
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
        import_results(folder, data, Given("c"))
    starter = import_results(folder, data, Given("c"), preview=True)
    mapping = tmp_path / "map.yaml"
    mapping.write_text("\n".join(starter.lines()))
    given = Given("c", mapping=mapping, environment="native")
    outcome = import_results(folder, data, given)
    assert (outcome.refused, [item.source for item in outcome.skipped]) == (
        [],
        ["notes.json"],
    )
    found = {
        (run.model, run.requested.workload["concurrency"]): run
        for run in records(tmp_path)
    }
    two, one = found["a", 8], found["b", 1]
    # 96,448 MiB are 94.1875 GiB.
    assert found["a", 1].value("peak_memory_gib") == 94.1875
    assert values(two) == {
        "output_throughput_tok_s": 300.5,
        "ttft_p50_ms": 400.0,
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


def test_rows_that_are_the_same_in_every_cell_count_once(tmp_path: Path) -> None:
    rows = "model,rate\nm,36.2\nm,36.2\nm,38.1\n"
    mapping = "run: {model: model}\nmetrics: {output_throughput_tok_s: rate}\n"
    outcome = imported(tmp_path, rows, mapping, environment="native")
    assert len(outcome.imported) == 2
    (left,) = outcome.skipped
    assert left.reason == "the same as runs.csv, run 1"


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


def test_builds_that_differ_in_their_machines_alone_are_called_so(
    tmp_path: Path,
) -> None:
    rows = "model,rate,nodes\nm,35.6,1\nm,60.1,2\n"
    mapping = (
        "run: {model: model, nodes: nodes}\nmetrics: {output_throughput_tok_s: rate}\n"
    )
    imported(tmp_path, rows, mapping, environment="native")
    names = {run.environment for run in records(tmp_path)}
    assert names == {"native-1-machine", "native-2-machines"}
