"""Data sets of any size with logs, reports and telemetry: committed runs, drawn anew.

A run of the template keeps what it is (cell, order, gates, machine) and gets figures of its own: every time in its
report and its requests is scaled by one random factor, every reading of power gets a random last digit, and the
record's figures are read again from these files. So every file of every run has a content of its own, and each record
agrees with its evidence. The same seed gives the same bytes.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

from sparkpub.plan.workloads import WORKLOADS
from sparkpub.plan.workloads.base import Answer
from sparkpub.record import telemetry
from sparkpub.record.settings import DEFAULT_DATA
from sparkpub.record.store import CAMPAIGN_FILE, record_paths

TEMPLATE = DEFAULT_DATA / "h200"
RUNS_OF_A_CAMPAIGN = 60
SPREAD = 0.004
"""Standard deviation of the factor on all times of a run."""
_TIME, _RATE = re.compile(r"_ms$"), re.compile(r"_s$")
_PRINTED_RATE = re.compile(r"[\d.]+(?= (?:output tokens/s|GFLOP/s))")
_PRINTED = ("output_throughput_tok_s", "matmul_gflop_s")
_NOT_SCALED = frozenset({"start_seconds", "end_seconds", "packages", "phases"})


@dataclass(frozen=True)
class Run:
    """A run of the template: its record and the bytes of its evidence by role."""

    stem: str
    document: Mapping[str, Any]
    files: Mapping[str, bytes]


def template(folder: Path = TEMPLATE, runs: int = RUNS_OF_A_CAMPAIGN) -> list[Run]:
    """The first good runs of a committed campaign, in the order in which they ran."""
    found = [_run(path) for path in record_paths(folder)]
    good = [run for run in found if run.document["status"] == "ok"]
    return sorted(good, key=lambda run: str(run.document["started"]["value"]))[:runs]


def _run(path: Path) -> Run:
    document = json.loads(path.read_text())
    files = {
        item["role"]: (path.parent / item["path"]).read_bytes()
        for item in document["evidence"]
    }
    return Run(path.stem, document, files)


def write(data: Path, runs: int, *, folder: Path = TEMPLATE, seed: int = 1) -> None:
    """Write `runs` runs below `data`, in campaigns as large as the template, on all processors: each run has random
    numbers of its own."""
    models = template(folder)
    declared = json.loads((folder / CAMPAIGN_FILE).read_text())
    declared.pop("acknowledged", None)
    declared.pop("quarantined", None)
    work = partial(_write_campaign, data, runs, models, declared, seed)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for _ in pool.map(work, range(0, runs, len(models))):
            pass


def _write_campaign(
    data: Path,
    runs: int,
    models: Sequence[Run],
    declared: dict[str, Any],
    seed: int,
    first: int,
) -> None:
    """Write the campaign that begins with the run of number `first`."""
    name = f"copy{first // len(models)}"
    place = data / name
    place.mkdir(parents=True)
    declared["campaign"] = name
    if declared.get("matrix"):
        declared["matrix"]["campaign"] = name
    (place / CAMPAIGN_FILE).write_text(json.dumps(declared))
    for offset, model in enumerate(models[: runs - first]):
        _write_run(model, place, Random(f"{seed}-{first + offset}"))


def _write_run(model: Run, place: Path, random: Random) -> None:
    factor = random.gauss(1, SPREAD)
    document = json.loads(json.dumps(model.document))
    document["campaign"] = place.name
    document["run_id"] = f"{place.name}-{model.stem}"
    document["plan"].pop("attempt", None)
    # Each campaign ran on a machine of its own: they all ran at the same times.
    document["machine"]["id"] = hashlib.sha256(place.name.encode()).hexdigest()[:16]
    files = {
        role: _drawn(role, content, factor, random)
        for role, content in model.files.items()
    }
    _read_again(document, files)
    for item in document["evidence"]:
        content = files[item["role"]]
        item["sha256"] = hashlib.sha256(content).hexdigest()
        item["bytes"] = len(content)
        (place / item["path"]).write_bytes(content)
    (place / f"{model.stem}.json").write_text(json.dumps(document, indent=1))


def _drawn(role: str, content: bytes, factor: float, random: Random) -> bytes:
    """Telemetry, report or requests of another run; the log as it is."""
    if role == "telemetry":
        return _other_power(content.decode(), random).encode()
    if role in ("report", "requests"):
        return json.dumps(_scaled(json.loads(content), "", factor)).encode()
    return content


def _scaled(value: Any, name: str, factor: float) -> Any:
    """JSON with every time multiplied by `factor` and every rate divided by it, told by the ends of their names."""
    if isinstance(value, dict):
        return {
            key: item if key in _NOT_SCALED else _scaled(item, key, factor)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_scaled(item, name, factor) for item in value]
    if not isinstance(value, float):
        return value
    if _TIME.search(name):
        return value * factor
    return value / factor if _RATE.search(name) else value


def _other_power(text: str, random: Random) -> str:
    """Telemetry in which each reading of power has another third decimal, and came some microseconds later."""
    lines = text.splitlines()
    place, moment = -1, -1
    for number, line in enumerate(lines):
        if line.startswith("#"):
            continue
        cells = line.split(",")
        if place < 0:
            place, moment = map(cells.index, ("gpu_power_watt", "elapsed_seconds"))
            continue
        cells[moment] = f"{float(cells[moment]) + random.randrange(100) / 1e6:.6f}"
        if cells[place]:
            cells[place] = f"{float(cells[place]) + random.randrange(1000) / 1e3:.3f}"
        lines[number] = ",".join(cells)
    return "\n".join(lines) + "\n"


def _printed(log: bytes, answer: Answer) -> bytes:
    """The log with the rate that the report has, rounded as the payload prints it."""
    rates = [
        found.value
        for name, found in answer.metrics.items()
        if name in _PRINTED and found.value is not None
    ]
    return _PRINTED_RATE.sub(f"{rates[0]:.1f}", log.decode()).encode()


def _read_again(document: dict[str, Any], files: dict[str, bytes]) -> None:
    """Take the figures of a record from its files, as the collector does."""
    workload = WORKLOADS[document["requested"]["workload"]["type"]]
    given = dict(document["requested"]["workload"])
    if "type" not in workload.options.model_fields:
        given.pop("type")
    options = workload.options.model_validate(given)
    beside = {role: content for role, content in files.items() if role != "log"}
    answer = workload.parse(files["log"], beside, options)
    metrics = document["metrics"]
    files["log"] = _printed(files["log"], answer)
    for name, found in answer.metrics.items():
        if name in metrics and found.value is not None:
            metrics[name]["value"] = found.value
    if "measured_seconds" in document["observed"]:
        document["observed"]["measured_seconds"] = answer.observed.measured_seconds
    if "gpu_power_mean_watt" in metrics:
        table = telemetry.parse(files["telemetry"].decode())
        pairs = zip(
            table.numbers("elapsed_seconds"),
            table.numbers("gpu_power_watt"),
            strict=True,
        )
        drawn = [
            watt
            for moment, watt in pairs
            if moment is not None and watt is not None and moment >= 0
        ]
        metrics["gpu_power_mean_watt"]["value"] = fmean(drawn)
