"""llama-bench's tests as runs, in every form that the tool writes: JSON, JSON lines, CSV and the Markdown table.

A file holds tests: `n_gen` > 0 with `n_prompt` = 0 is generation at batch 1, the other way round is prompt processing;
`n_depth` tokens are in the KV cache before either. One test of a prompt and one of generation with the same settings
make a run, as in our own runs of the tool; where a file has several lengths of either, each test is a run of its own,
because nothing says which belong together. Settings that change what is measured are part of the workload's key, so
that runs of one cell measured the same thing. Only JSON has the repetitions; the Markdown table has figures of two
decimals, and mostly no name of the model. Fields vary by build, so unknown ones are ignored.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from sparkpub.record import weights
from sparkpub.tools import forms, reading
from sparkpub.tools.forms import FileError, ResultFile
from sparkpub.tools.shapes.base import Document, ReportShape, ShapedRun

_SETTINGS: Mapping[str, tuple[str, tuple[object, ...]]] = {
    # Field -> letters in the workload's key, and the tool's defaults in some build.
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
_SHOWN = (*_SETTINGS, "model_type", "backends", "load_mode", "use_mmap")
_SWITCHES = ("no_kv_offload", "use_mmap")
_MODEL_TYPE = re.compile(r"\S+ \S*(?:B|M|K|\?) (?P<format>.+)")
"""`llama 8B F16`, `qwen2 7B Q4_K - Medium`: family, size, and format of the weights."""
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
_ROUNDED = ("size", "params", "test", "t/s")
"""Those that are left out: they are rounded to three digits, or said otherwise."""
_BUILD = re.compile(
    r"^build: (?P<build_commit>\S+) \((?P<build_number>\d+)\)$", re.MULTILINE
)
_MODEL_FLAG = re.compile(r"\bllama-bench\b[^\n]*?\s(?:-m|--model)[ =](\S+\.gguf)")
_COMMAND = re.compile(r"\bllama-bench [^\n]*")
_SERVERS = re.compile(r"\s--rpc[ =](\S+)")
"""The servers that compute parts of the model, as HOST:PORT."""
_ITSELF = {"127.0.0.1", "localhost"}
_DEVICES = re.compile(r"^ *Device \d+: .*$", re.MULTILINE)
"""The lines before the table that name the GPUs."""
_TEST = re.compile(
    r"(?:pp(?P<n_prompt>\d+))?\+?(?:tg(?P<n_gen>\d+))?(?: @ d(?P<n_depth>\d+))?"
)


def runs(file: ResultFile) -> list[ShapedRun]:
    """A run of each pair of tests. Raises FileError."""
    tests = _tests(file)
    alone = [test for test in tests if not all(_lengths(test))]
    found = []
    if len(alone) < len(tests):
        number = len(tests) - len(alone)
        what = (
            f"{number} tests mix prompt and generation (-pg): no rate of either alone"
        )
        found.append(ShapedRun({}, omitted=what))
    types = {test.get("model_type") for test in alone}
    of_all = {
        "devices": " ".join(_DEVICES.findall(file.text)),
        "nodes": _nodes(file.text),
    }
    for of_run in _together(alone):
        report = json.dumps(of_run, indent=1).encode()
        if len(of_run) == len(tests) and file.suffix in forms.JSON:
            report = file.content
        said = document(of_run) | of_all
        family = str(of_run[0].get("model_type")).replace(" - ", " ")
        files = {"report": report}
        run = ShapedRun(said, files, family=family, is_mixed=len(types) > 1)
        found.append(run)
    return found


def _nodes(text: str) -> int | None:
    """How many machines the command before the table names, its own among them; None where it names none, or there
    are several commands."""
    commands = _COMMAND.findall(text)
    named = _SERVERS.search(commands[0]) if len(commands) == 1 else None
    if named is None:
        return None
    hosts = {server.partition(":")[0] for server in named[1].split(",")}
    return 1 + len(hosts - _ITSELF)


def _together(tests: Sequence[Document]) -> Iterator[tuple[Document, ...]]:
    """Tests that make a run: those of one model and the same settings, where each kind has one length and they were
    made equally often."""
    groups: dict[str, list[Document]] = {}
    for test in tests:
        same = json.dumps([test.get("model_filename"), settings(test)])
        groups.setdefault(same, []).append(test)
    for group in groups.values():
        prompts = [test for test in group if _lengths(test)[0]]
        answers = [test for test in group if _lengths(test)[1]]
        lengths = len(set(map(_lengths, prompts))), len(set(map(_lengths, answers)))
        if lengths == (1, 1) and len(prompts) == len(answers):
            yield from zip(prompts, answers, strict=True)
        else:
            yield from ((test,) for test in group)


def _lengths(test: Document) -> tuple[int, int]:
    """Tokens of the prompt, and those generated."""
    prompt, generated = (
        reading.positive_int(test.get(name)) or 0 for name in ("n_prompt", "n_gen")
    )
    return prompt, generated


def settings(test: Document) -> str:
    """Settings that change what is measured, where they are not the tool's defaults: `d4096-k-q8-0-t8`."""
    found = []
    for name, (letters, defaults) in _SETTINGS.items():
        value = test.get(name)
        if value is not None and value not in defaults:
            found.append(f"{letters}{int(value) if value is True else value}")
    return "-".join(found)


# -- what the tests of a run say together ----------------------------------------------------------------------


def document(tests: Sequence[Document], warmup: int = 0) -> Document:
    """Of several tests of a kind the last one counts; `warmup` repetitions of each come first, and do not."""
    prompts = [test for test in tests if _lengths(test)[0] and not _lengths(test)[1]]
    answers = [test for test in tests if _lengths(test)[1] and not _lengths(test)[0]]
    prompt, answer = (last[-1] if last else {} for last in (prompts, answers))
    test = answer or prompt
    form = _MODEL_TYPE.fullmatch(reading.word(test.get("model_type")) or "")
    token_ns = _values(answer, "ns", warmup)
    samples = [item.get("samples_ns") for item in tests]
    counts = {len(values) for values in samples if isinstance(values, list)}
    started = [reading.word(item.get("test_time")) for item in tests]
    problems = []
    if max(len(answers), len(prompts)) > 1:
        problems.append(f"{len(tests)} tests in one run; the last of each kind counts")
    if not test:
        problems.append(
            "only tests that mix prompt and generation: no rate of either alone"
        )
    return {
        "tests": [*tests],
        "test": test,
        "prompt": _rates(prompt, warmup),
        "generation": _rates(answer, warmup),
        "prompt_tokens": _lengths(prompt)[0] or None,
        "output_tokens": _lengths(answer)[1] or None,
        "token_ms": [time / 1e6 / _lengths(answer)[1] for time in token_ns],
        "repetitions": counts.pop() if len(counts) == 1 else None,
        "settings": settings(test),
        "facts": {
            **(weights.facts(form["format"]) if form else {}),
            "engine": "llama.cpp",
            "engine_version": _version(test),
            "device": reading.word(test.get("gpu_info")) or test.get("cpu_info"),
            "requests": len(token_ns),
            "measured_seconds": sum(token_ns + _values(prompt, "ns", warmup)) / 1e9,
            "batch_size": 1,
            "settings": _shown(test),
        },
        "started": min(filter(None, started), default=None),
        "problems": problems,
        "rounded": any("rounded" in item for item in tests) or None,
    }


def _values(test: Document, kind: str, warmup: int) -> list[float]:
    return reading.numbers(test.get(f"samples_{kind}"))[warmup:]


def _rates(test: Document, warmup: int) -> Document:
    """Mean and repetitions in tok/s; the mean is the tool's own where there was no warm-up."""
    values = _values(test, "ts", warmup)
    mean = sum(values) / len(values) if values else None
    return {"mean": mean if warmup else test.get("avg_ts"), "values": values}


def _shown(test: Document) -> dict[str, str]:
    """A switch as JSON has it, which is a number in tables."""
    found = {name: test[name] for name in _SHOWN if test.get(name) is not None}
    found |= {name: bool(found[name]) for name in _SWITCHES if name in found}
    return {name: str(said) for name, said in found.items()}


def _version(test: Document) -> str | None:
    """`b6710 (8e6f8bc8)`; a build outside git knows no commit, or gives the number for it."""
    commit = reading.word(test.get("build_commit"))
    number = reading.positive_int(test.get("build_number"))
    if number is None:
        return commit
    if commit in (None, "unknown", f"b{number}"):
        return f"b{number}"
    return f"b{number} ({commit})"


# -- the forms of the tests ------------------------------------------------------------------------------------


def printed(log: bytes) -> list[Document]:
    """The tests in a document, or in the lines of a log that are JSON."""
    said = reading.json_value(log)
    if said is None:
        lines = (line for line in reading.lines(log) if line.startswith("{"))
        said = [reading.json_value(line.encode()) for line in lines]
    found = reading.objects(said if isinstance(said, list) else [said])
    return [test for test in found if "n_gen" in test]


def _tests(file: ResultFile) -> list[Document]:
    """The tests of a file, its form told by its content; none for anything else. Raises FileError."""
    start = file.text.lstrip()[:2000]
    if start.startswith("build_commit,"):
        rows = forms.of_csv(file.text)
        if not rows or not file.text.endswith("\n"):
            raise FileError("cut short: it does not end with a whole row")
        # A commit such as 12e34567 is no number.
        return [
            {name: forms.typed(cell or "") for name, cell in row.items()}
            | {"build_commit": row["build_commit"]}
            for row in rows
        ]
    if start.startswith(("[", "{")) or file.suffix in forms.JSON:
        is_result = file.suffix in forms.JSON or '"n_gen"' in file.text
        tests = forms.of_json(file.content) if is_result else []
        return [test for test in tests if "n_gen" in test and "avg_ts" in test]
    tables = forms.tables(file.text, "t/s")
    found = [rows for rows in tables if rows and [*rows[0]][-2:] == ["test", "t/s"]]
    return _of_table([row for rows in found for row in rows], file.text)


def _of_table(rows: Sequence[Mapping[str, str]], text: str) -> list[Document]:
    """The table that the tool prints; its last line names the build, and a command before it may name the model."""
    build = _BUILD.search(text)
    if not rows:
        return []
    if build is None:
        raise FileError("cut short: the table ends without the line `build:`")
    tests = [_row(row, build) for row in rows]
    named = {name for name in _MODEL_FLAG.findall(text) if "," not in name}
    if len(named) == 1 and len({test.get("model_type") for test in tests}) == 1:
        tests = [test | {"model_filename": min(named)} for test in tests]
    return tests


def _row(cells: Mapping[str, str], build: re.Match[str]) -> Document:
    """A row by the names of the JSON."""
    test = _TEST.fullmatch(cells["test"])
    rate = reading.number(cells["t/s"].partition("±")[0].strip())
    if test is None or rate is None:
        said = f"test {cells['test']!r}, t/s {cells['t/s']!r}"
        raise FileError(f"a row of the table cannot be read: {said}")
    named = {
        _COLUMNS.get(name, name): forms.typed(cell)
        for name, cell in cells.items()
        if name not in _ROUNDED
    }
    lengths = {name: int(length or 0) for name, length in test.groupdict().items()}
    about = {"build_commit": build[1], "build_number": int(build[2])}
    return {**named, **lengths, **about, "avg_ts": rate, "rounded": True}


SHAPE = ReportShape(runs, None)
