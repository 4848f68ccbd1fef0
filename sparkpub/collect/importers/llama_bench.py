"""Results of `llama-bench` in every format that it writes: JSON, JSON lines, CSV and the Markdown table.

A file holds tests. One test of a prompt and one of generation with the same settings make a run, as in our own runs of
the tool; where a file has several lengths of either, each test is a run of its own, because nothing says which belong
together. Settings that change what is measured are part of the workload's key, so that runs of one cell measured the
same thing. Only JSON has the repetitions; the Markdown table has figures of two decimals, and no name of the model.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sparkpub.collect.importers.base import (
    Draft,
    Given,
    Left,
)
from sparkpub.collect.importers.files import (
    FileError,
    ResultFile,
    documents,
)
from sparkpub.collect.importers.formats import FileReader
from sparkpub.collect.importers.layout import machine_named
from sparkpub.collect.importers.sidecars import Sidecars
from sparkpub.plan.workloads import WORKLOADS
from sparkpub.record.record import Moment
from sparkpub.tools import reading
from sparkpub.tools.asked import as_key

TestFields = dict[str, Any]
"""A test with the names of the JSON format."""

_DEFAULTS: Mapping[str, tuple[str, tuple[object, ...]]] = {
    # Field -> letters in the workload's key, and the values that are the tool's defaults in some build.
    "n_depth": ("d", (0,)),
    "n_batch": ("b", (2048,)),
    "n_ubatch": ("ub", (512,)),
    "type_k": ("k-", ("f16",)),
    "type_v": ("v-", ("f16",)),
    "flash_attn": ("fa", (-1, 0, False, "auto")),
    "n_gpu_layers": ("ngl", (-1, 99)),
    "n_cpu_moe": ("ncmoe", (0,)),
    "split_mode": ("sm-", ("layer",)),
    "no_kv_offload": ("nkvo", (0, False)),
    "n_threads": ("t", ()),
}
_COLUMNS = {
    "threads": "n_threads",
    "fa": "flash_attn",
    "ngl": "n_gpu_layers",
    "sm": "split_mode",
    "nkvo": "no_kv_offload",
    "backend": "backends",
    "model": "model_type",
}
"""Columns of the Markdown table that the JSON names otherwise."""
_TEXTS = (
    "build_commit",
    "cpu_info",
    "gpu_info",
    "backends",
    "model_filename",
    "model_type",
    "type_k",
    "type_v",
)
_TABLE = re.compile(r"^\| *model +\|.*\| *test +\| *t/s +\|$", re.MULTILINE)
_BUILD = re.compile(r"^build: (?P<commit>\S+) \((?P<number>\d+)\)$", re.MULTILINE)
_MODEL_FLAG = re.compile(r"\bllama-bench\b[^\n]*?\s(?:-m|--model)[ =](\S+\.gguf)")
_DEVICES = re.compile(r"^ *Device \d+: .*$", re.MULTILINE)
"""The lines before the table that name the GPUs."""
_TEST = re.compile(
    r"(?:pp(?P<prompt>\d+))?\+?(?:tg(?P<generated>\d+))?(?: @ d(?P<depth>\d+))?"
)


@dataclass(frozen=True)
class _TestsOfRun:
    """The tests of one run and its workload's key."""

    tests: tuple[TestFields, ...]
    workload: str


class LlamaBench(FileReader):
    """Reads files of the tool."""

    tool = "llama-bench"

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._named: dict[str, str] = {}

    def takes(self, file: ResultFile) -> bool:
        """Whether a file holds tests. Raises FileError."""
        rows = _rows(file)
        if rows is None:
            return False
        self._found += _drafts(file, rows, self._given, self._named)
        return True


def _drafts(
    file: ResultFile, rows: list[TestFields], given: Given, named: dict[str, str]
) -> Iterator[Draft | Left]:
    """The runs of one file. `named` is the shape that `--workload` stands for, once a run has shown it."""
    mixed = [row for row in rows if _length(row, "n_prompt") and _length(row, "n_gen")]
    if mixed:
        reason = f"{len(mixed)} tests mix prompt and generation (-pg): no rate of either alone"
        yield Left(file.source, reason, refused=False)
    alone = [row for row in rows if row not in mixed]
    facts = Sidecars.of(file, given.layouts).facts
    seen = machine_named(" ".join(_DEVICES.findall(reading.text(file.content))))
    if facts.machine is None and seen is not None:
        facts = replace(facts, machine=seen)
    types = {str(row.get("model_type")) for row in alone}
    said = given.model or (None if facts.model_id is None else as_key(facts.model_id))
    if len(types) > 1:
        said = (
            None  # one name does not fit several models, and the table has their types
        )
    for run in _runs(alone):
        workload = given.workload or run.workload
        if named.setdefault(workload, run.workload) != run.workload:
            reason = f"{run.workload} is another test than {named[workload]}, which --workload names; leave it out"
            yield Left(file.source, reason)
            continue
        draft = _draft(
            file, run, workload, given, said, alone_in_file=len(run.tests) == len(rows)
        )
        yield replace(draft, facts=facts)


def _runs(rows: list[TestFields]) -> Iterator[_TestsOfRun]:
    """Tests that make a run together: those of the same model and settings, a prompt and a generation."""
    groups: dict[str, list[TestFields]] = {}
    for row in rows:
        groups.setdefault(
            json.dumps([row.get("model_filename"), _settings(row)]), []
        ).append(row)
    for group in groups.values():
        settings = _settings(group[0])
        prompts = [row for row in group if _length(row, "n_prompt")]
        generations = [row for row in group if _length(row, "n_gen")]
        if _pairable(prompts, generations):
            together: list[tuple[TestFields, ...]] = list(
                zip(prompts, generations, strict=True)
            )
        else:
            together = [(row,) for row in group]
        for tests in together:
            yield _TestsOfRun(tests, as_key("-".join([_shape(tests), *settings])))


def _pairable(prompts: list[TestFields], generations: list[TestFields]) -> bool:
    """Whether each has one length, and the tests were made equally often."""
    lengths = {_length(row, "n_prompt") for row in prompts}
    outputs = {_length(row, "n_gen") for row in generations}
    return len(lengths) == len(outputs) == 1 and len(prompts) == len(generations)


def _shape(tests: tuple[TestFields, ...]) -> str:
    """`pp512-tg128`."""
    prompt = sum(_length(row, "n_prompt") for row in tests)
    generated = sum(_length(row, "n_gen") for row in tests)
    parts = [f"pp{prompt}"] if prompt else []
    return "-".join([*parts, f"tg{generated}"] if generated else parts)


def _settings(row: TestFields) -> list[str]:
    """Settings that change what is measured, where they are not the tool's defaults: `d4096`, `k-q8-0`, `t8`."""
    found = []
    for name, (letters, defaults) in _DEFAULTS.items():
        value = row.get(name)
        if value is not None and value not in defaults:
            found.append(
                f"{letters}{int(value) if isinstance(value, bool) else value}".replace(
                    "_", "-"
                )
            )
    return found


def _length(row: TestFields, name: str) -> int:
    return reading.positive_int(row.get(name)) or 0


def _draft(
    file: ResultFile,
    run: _TestsOfRun,
    workload: str,
    given: Given,
    said: str | None,
    *,
    alone_in_file: bool,
) -> Draft:
    """A run as the workload reads its tests. A file with more than one run is kept whole besides them."""
    excerpt = json.dumps(run.tests, indent=1).encode()
    is_report = alone_in_file and file.suffix in (".json", ".jsonl")
    report = file.content if is_report else excerpt
    answer = WORKLOADS["llama-bench"].parse(b"", {"report": report}, None)
    first = run.tests[0]
    filename = reading.word(first.get("model_filename"))
    missing = {"log": "not part of what llama-bench writes"}
    started = _started(run.tests)
    if started is None:
        started = file.modified
        missing["started"] = (
            "the table holds no date; the time is the file's last modification"
        )
    notes = answer.problems
    if "rounded" in first:
        notes = (
            *notes,
            "the Markdown table gives figures of two decimals, and no repetitions",
        )
    model_id = None
    if filename is not None:
        model_id = filename.replace("\\", "/").rpartition("/")[2]
    return Draft(
        source=file.source,
        tool="llama-bench",
        model=_model_key(filename, given) or said or _type_key(first),
        model_id=model_id,
        model_path=filename,
        environment=given.environment,
        iteration=None,
        started=started,
        metrics=answer.metrics,
        asked=_asked(run.tests),
        fits=_fits(run.tests[0]),
        workload=workload,
        samples=answer.samples,
        observed=answer.observed,
        files={"report": report},
        originals=() if is_report else ((file.content, file.suffix or ".txt"),),
        unavailable=missing,
        status="ok" if answer.complete else "invalid",
        status_reason=None if answer.complete else "; ".join(answer.problems),
        notes=notes if answer.complete else (),
    )


def _model_key(filename: str | None, given: Given) -> str | None:
    """The matrix's key of the model with that file, else the file's name in the form of a key; None where the results
    name no file."""
    if filename is None:
        return None
    path = filename.replace("\\", "/")
    for name in (filename, path.rpartition("/")[2]):
        key = given.model_key(name)
        if key is not None:
            return key
    return as_key(path.removesuffix(".gguf"))


def _type_key(row: TestFields) -> str:
    """`llama 7B Q4_K - Medium` as a key."""
    return as_key(str(row.get("model_type")).replace(" - ", " "))


def _started(tests: tuple[TestFields, ...]) -> Moment | None:
    """When the first test began; the tool writes UTC."""
    times = [
        str(row["test_time"]) for row in tests if reading.word(row.get("test_time"))
    ]
    try:
        return Moment(value=min(times), zone="utc") if times else None
    except ValueError:
        return None


def _asked(tests: tuple[TestFields, ...]) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "type": "llama-bench",
        "input_tokens": sum(_length(row, "n_prompt") for row in tests),
        "output_tokens": sum(_length(row, "n_gen") for row in tests),
        "depth": _length(tests[0], "n_depth"),
        "warmup": 0,
    }
    repetitions = {
        len(row["samples_ns"])
        for row in tests
        if isinstance(row.get("samples_ns"), list)
    }
    if len(repetitions) == 1:
        asked["repetitions"] = repetitions.pop()
    return asked


def _fits(row: TestFields) -> dict[str, tuple[object, ...]]:
    """What a matrix may say of the settings: none where a value is the tool's default, besides the value itself. A
    setting that no option has fits nothing."""
    found: dict[str, tuple[object, ...]] = {}
    for name, (_, defaults) in _DEFAULTS.items():
        value = row.get(name)
        option = _OPTIONS.get(name)
        if value is None or option == "depth" or isinstance(value, dict | list):
            continue  # the tool writes lists and mappings for none of these
        # The tool always says how many threads it took; which number is its own choice depends on the machine.
        is_default = value in defaults or name == "n_threads"
        if option == "flash_attention":
            found[option] = _FLASH_ATTENTION.get(value, (value,))
        elif option is not None:
            found[option] = (value, None, *defaults) if is_default else (value,)
        elif not is_default:
            found[name] = (value,)
    return found


_OPTIONS = {
    "n_depth": "depth",
    "n_batch": "n_batch",
    "n_ubatch": "n_ubatch",
    "type_k": "cache_type_k",
    "type_v": "cache_type_v",
    "flash_attn": "flash_attention",
    "n_gpu_layers": "gpu_layers",
    "n_threads": "threads",
}
"""Settings of a row, and the options of our workload that they are."""
_FLASH_ATTENTION: Mapping[object, tuple[object, ...]] = {
    -1: (None,),
    "auto": (None,),
    0: (False, None),
    1: (True,),
}
"""What a row says of it, and the options that lead there: once the build's default was 0."""

# -- formats -----------------------------------------------------------------------------------------------


def _rows(file: ResultFile) -> list[TestFields] | None:
    """The tests of a file, its format told by its content; None for anything else. Raises FileError."""
    text = reading.text(file.content)
    start = text.lstrip()[:2000]
    if start.startswith("build_commit,") and "n_gen" in start:
        return _csv(text)
    if _TABLE.search(text):
        return _table(text)
    if file.suffix in (".json", ".jsonl") or (
        start.startswith(("[", "{")) and '"n_gen"' in text
    ):
        return _json(file)
    return None


def _json(file: ResultFile) -> list[TestFields] | None:
    """An array, or an object on each line."""
    rows = [item for item in documents(file) if "n_gen" in item and "avg_ts" in item]
    return rows or None


def _csv(text: str) -> list[TestFields]:
    reader = csv.DictReader(io.StringIO(text), strict=True)
    try:
        rows = list(reader)
    except csv.Error as error:
        raise FileError(f"not CSV, or cut short: {error}") from None
    for number, row in enumerate(rows, 1):
        if None in row or None in row.values():
            raise FileError(
                f"cut short: row {number} has other columns than the header"
            )
    if not rows or not text.endswith("\n"):
        raise FileError("cut short: it does not end with a whole row")
    return [{name: _typed(name, value) for name, value in row.items()} for row in rows]


def _typed(name: str, value: str) -> str | int | float:
    """A number where the JSON has one."""
    if name in _TEXTS:
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def _table(text: str) -> list[TestFields]:
    """The table that the tool prints; its last line names the build."""
    build = _BUILD.search(text)
    if build is None:
        raise FileError("cut short: the table ends without the line `build:`")
    filename = _filename(text)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    header, _, *bodies = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines
    ]
    rows = [
        _table_row(dict(zip(header, cells, strict=False)), build) for cells in bodies
    ]
    if not rows:
        raise FileError("no test in it")
    if filename is not None and len({row.get("model_type") for row in rows}) == 1:
        rows = [row | {"model_filename": filename} for row in rows]
    return rows


def _filename(text: str) -> str | None:
    """The model's file, where the command stands before the table and names one."""
    named = {name for name in _MODEL_FLAG.findall(text) if "," not in name}
    return named.pop() if len(named) == 1 else None


def _table_row(cells: Mapping[str, str], build: re.Match[str]) -> TestFields:
    """A row with the names of the JSON. Size and parameters are left out: they are rounded to three digits."""
    test = _TEST.fullmatch(cells.get("test", ""))
    rate = reading.number(cells.get("t/s", "").partition("±")[0].strip())
    if test is None or rate is None:
        raise FileError(
            f"a row of the table cannot be read: test {cells.get('test')!r}, t/s {cells.get('t/s')!r}"
        )
    names = {_COLUMNS.get(name, name): value for name, value in cells.items()}
    row: TestFields = {
        name: _typed(name, value)
        for name, value in names.items()
        if name not in _LEFT_OUT
    }
    row |= {f"n_{name}": int(test[group] or 0) for name, group in _LENGTHS.items()}
    row |= {"build_commit": build["commit"], "build_number": int(build["number"])}
    return row | {"avg_ts": rate, "rounded": True}


_LEFT_OUT = ("size", "params", "test", "t/s")
_LENGTHS = {"prompt": "prompt", "gen": "generated", "depth": "depth"}
