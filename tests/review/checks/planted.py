"""Faults of operators, servers and clients, planted in copies of real records.

A copy is the first rounds of one cell of a committed campaign in both environments, with log, report, requests and
telemetry: one model's decoding with our own payload (h200), llama-bench (h200-llama), or a vLLM server and its client
(h200-vllm). Sums of files are made anew, so that only the contents can tell. A client's fault is in its report, in the
table that it prints, and in the record that is made of both.
"""

import hashlib
import json
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic_core import to_jsonable_python

from sparkpub.plan.workloads import WORKLOADS
from sparkpub.plan.workloads.base import Answer

DATA = Path(__file__).parents[3] / "data" / "comprehensive"
IMPORTS = Path(__file__).parents[2] / "data" / "imports"
LLAMA, VLLM = "h200-llama", "h200-vllm"
PATTERNS = {
    "h200": "*_dense7b_decode_iter0[123]_*Z.json",
    LLAMA: "*_d0_iter0[123]_*Z.json",
    VLLM: "*_serve-c8_iter0[123]_*Z.json",
}
"""Campaign to the records that a copy holds."""
Document = dict[str, Any]


class Copy:
    """A campaign in memory: `info` is campaign.json, `runs` the records in order of time, `files` their evidence."""

    def __init__(self, campaign: str = "h200") -> None:
        self.name = campaign
        source = DATA / campaign
        self.info: Document = json.loads((source / "campaign.json").read_text())
        paths = source.glob(PATTERNS[campaign])
        self.runs: list[Document] = [json.loads(path.read_text()) for path in paths]
        self.runs.sort(key=lambda run: str(run["started"]["value"]))
        matrix = self.info["matrix"]
        for run in self.runs:  # as today's collector records it
            run["plan"]["analysis"] = {
                "primary": matrix.get("primary", []),
                "margin_percent": matrix.get("equivalence_margin_percent", 1.0),
            }
        items = [item for run in self.runs for item in run["evidence"]]
        self.files = {
            item["path"]: (source / item["path"]).read_bytes() for item in items
        }

    def of(self, *environments: str) -> list[Document]:
        """The runs of these environments, or all, in order of time."""
        return [
            run
            for run in self.runs
            if run["environment"] in (environments or [run["environment"]])
        ]

    def read(self, run: Document, role: str) -> str:
        (path,) = [item["path"] for item in run["evidence"] if item["role"] == role]
        return self.files[path].decode()

    def put(self, run: Document, role: str, text: str) -> None:
        """Other contents, with sums made anew."""
        content = text.encode()
        (item,) = [item for item in run["evidence"] if item["role"] == role]
        self.files[item["path"]] = content
        digest = hashlib.sha256(content).hexdigest()
        item |= {"sha256": digest, "bytes": len(content)}

    def write(self, data: Path) -> Path:
        folder = data / self.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "campaign.json").write_text(json.dumps(self.info))
        for run in self.runs:
            (folder / f"{run['run_id']}.json").write_text(json.dumps(run))
            for item in run["evidence"]:
                (folder / item["path"]).write_bytes(self.files[item["path"]])
        return folder


Plant = Callable[[Copy], None]
Changes = Mapping[str, Any]
"""Places in a document, as a pattern of `machine.gpus.0.id`, with what is there now, or what makes it of what was."""


@dataclass(frozen=True)
class Planted:
    """A fault in a copy of a committed campaign, and the check that finds it."""

    check: str
    what: str
    plant: Plant
    campaign: str = "h200"
    committed: bool = False
    """Whether the campaign had been committed as it was."""
    alone = False

    @property
    def of(self) -> str:
        """What is copied."""
        return f"{self.campaign} committed={self.committed}"

    @property
    def is_possible(self) -> bool:
        """Whether the campaign is there."""
        return (DATA / self.campaign).is_dir()

    def bring(self, data: Path, *, planted: bool) -> None:
        """The campaign as it is, or with the fault."""
        copy = Copy(self.campaign)
        if self.committed:
            folder = copy.write(data)
            _commit(folder)
            for file in folder.glob("*.*"):
                if file.is_file():
                    file.unlink()
        if planted:
            self.plant(copy)
        copy.write(data)


def _commit(folder: Path) -> None:
    """The folder as the first commit of a repository."""
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "runs"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True)


# -- how copies and files are changed ------------------------------------------------------------------------------


def change(part: Any, changes: Changes, place: str = "") -> Any:
    """A document with other values in some places."""
    for pattern, value in changes.items():
        if place and re.fullmatch(pattern, place):
            return value(part) if callable(value) else value
    dot = place and f"{place}."
    if isinstance(part, list):
        return [change(each, changes, f"{dot}{at}") for at, each in enumerate(part)]
    if isinstance(part, dict):
        names = [*part, *(name for name in _new(changes, dot) if name not in part)]
        return {name: change(part.get(name), changes, f"{dot}{name}") for name in names}
    return part


def _new(changes: Changes, dot: str) -> list[str]:
    """The names that are written out in full for a place."""
    rests = [each.removeprefix(dot) for each in changes if each.startswith(dot)]
    return [rest for rest in rests if rest.isidentifier()]


def times(factor: float) -> Callable[[Any], Any]:
    """A figure multiplied; what counts things stays a whole number."""

    def scale(value: Any) -> Any:
        if isinstance(value, int):
            return round(factor * value)
        return factor * value if isinstance(value, float) else value

    return scale


def flag(name: str, value: str) -> Callable[[list[str]], list[str]]:
    """A command line with another value of an option."""

    def set_it(argv: list[str]) -> list[str]:
        at = argv.index(name) + 1
        return [*argv[:at], value, *argv[at + 1 :]]

    return set_it


ALL = slice(None)
LATER = slice(2, None)
"""The runs after the first round."""


def recorded(changes: Changes, *sides: str, runs: slice = ALL) -> Plant:
    """Other facts in records."""

    def plant(copy: Copy) -> None:
        for run in copy.of(*sides)[runs]:
            run.update(change(run, changes))

    return plant


def declared(changes: Changes) -> Plant:
    """Something else in campaign.json."""

    def plant(copy: Copy) -> None:
        copy.info = change(copy.info, changes)

    return plant


def logged(old: str, new: str, *sides: str, runs: slice = ALL) -> Plant:
    """Another line in logs."""

    def plant(copy: Copy) -> None:
        for run in copy.of(*sides)[runs]:
            copy.put(run, "log", re.sub(old, new, copy.read(run, "log")))

    return plant


def sampled(column: str, value: float | Callable[[float], float], *sides: str) -> Plant:
    """Other values in a column of the telemetry."""

    def plant(copy: Copy) -> None:
        for run in copy.of(*sides):
            header, *lines = copy.read(run, "telemetry").splitlines()
            at = header.split(",").index(column)
            rows = [line.split(",") for line in lines]
            for row in rows:
                if len(row) > at and row[at]:
                    told = value(float(row[at])) if callable(value) else value
                    row[at] = f"{told:.6g}"
            copy.put(run, "telemetry", "\n".join([header, *map(",".join, rows), ""]))

    return plant


def together(*plants: Plant) -> Plant:
    def plant(copy: Copy) -> None:
        for each in plants:
            each(copy)

    return plant


def _read_again(run: Document, answer: Answer) -> None:
    """What a collector would have made of a tool's answer."""
    for name, value in answer.metrics.items():
        if value.value is not None:
            run["metrics"][name] = to_jsonable_python(value, exclude_none=True)
    if run.get("samples"):
        run["samples"] = {name: [*values] for name, values in answer.samples.items()}
    run["observed"] |= answer.observed.model_dump(mode="json", exclude_none=True)


PRINTED = re.compile(r"^[A-Z][\w ()/-]*: +[\d.]+ *$", re.M)
"""A line of the table that the client of vLLM prints."""


def client(changes: Changes, *sides: str) -> Plant:
    """The runs as their client would have reported them, with rates of its totals where these are others."""
    workload = WORKLOADS["vllm-bench"]

    def plant(copy: Copy) -> None:
        for run in copy.of(*sides):
            report = change(json.loads(copy.read(run, "report")), changes)
            if changes.keys() & {"duration", "completed", "total_output_tokens"}:
                report |= _rates(report)
            log = PRINTED.sub("", copy.read(run, "log"))
            copy.put(run, "log", log)
            copy.put(run, "report", json.dumps(report))
            options = workload.options.model_validate(run["requested"]["workload"])
            files = {"report": json.dumps(report).encode()}
            _read_again(run, workload.parse(log.encode(), files, options))

    return plant


def _rates(report: Document) -> Document:
    tokens = report["total_input_tokens"] + report["total_output_tokens"]
    amounts = {
        "request_throughput": report["completed"],
        "output_throughput": report["total_output_tokens"],
        "total_token_throughput": tokens,
    }
    return {name: amount / report["duration"] for name, amount in amounts.items()}


def llama(changes: Changes, *sides: str) -> Plant:
    """The tests as llama-bench would have printed them, with averages of other samples, and the record made of them."""
    workload = WORKLOADS["llama-bench"]

    def told(line: str) -> str:
        if not line.startswith("{"):
            return line
        test = change(json.loads(line), changes)
        if any(place.startswith("samples") for place in changes):
            taken, tokens = test["samples_ns"], test["n_prompt"] + test["n_gen"]
            rates = [round(tokens / each * 1e9, 4) for each in taken]
            test |= {"samples_ts": rates, "avg_ts": fmean(rates)}
            test["avg_ns"] = round(fmean(taken))
        return json.dumps(test)

    def plant(copy: Copy) -> None:
        for run in copy.of(*sides):
            log = "\n".join(map(told, copy.read(run, "log").splitlines()))
            copy.put(run, "log", log)
            options = workload.options.model_validate(run["requested"]["workload"])
            _read_again(run, workload.parse(log.encode(), {}, options))

    return plant


def loaded(gib: float) -> Plant:
    """Another model than the name says, in log and record."""
    weights = {"observed.weight_bytes": round(gib * 2**30)}
    return together(
        logged(r"Model loading took [\d.]+ GiB", f"Model loading took {gib} GiB"),
        recorded(weights | {"metrics.weights_gib.value": gib}),
    )


def last_round_declared_away(copy: Copy) -> None:
    """The matrix asks for one round less, so that nothing is missing."""
    copy.runs = [run for run in copy.runs if run["iteration"] < 3]
    copy.info["matrix"]["iterations"] = 2


def client_of_the_other_server(copy: Copy) -> None:
    """The container's server was never stopped, and the native client talked to it."""
    source = copy.of("container")[0]["observed"]["settings"]["server"]
    recorded({"observed.settings.server": source}, "native")(copy)


WARNED = "(EngineCore pid=61) WARNING 11-21 16:01:33"
COMPILED = rf"""{WARNED} [jit_monitor.py:106] Triton kernel JIT compilation during inference: _k. This causes a spike.
Successful requests:"""
FELL_BACK = rf"""{WARNED} [autotuner.py:88] Autotuning failed, falling back to default kernels.
Starting initial single prompt test run"""
GPU = "machine.gpus.0"
OTHER_ID, OTHER_SUM = "0123456789abcdef", 64 * "a"
REPORT, UNEQUAL = "inconsistent-report", "unequal-environments"
REQUESTED = "not-as-requested"
BLANKET = [
    {"check": check, "cell": "*", "reason": "known"}
    for check in ("exit-status", "metric-mismatch", "copied-evidence", "roofline")
]

OF_OURS: tuple[tuple[str, str, Plant], ...] = (
    (
        "time-consistency",
        "runs are shorter than from start to end",
        recorded({"duration_seconds": 1.0}, "native"),
    ),
    (
        "mixed-machines",
        "a part of a cell ran in another image",
        recorded(
            {"container.image_id": f"sha256:{OTHER_SUM}"}, "container", runs=LATER
        ),
    ),
    (
        "mixed-machines",
        "another machine in one environment",
        recorded({"machine.id": OTHER_ID}, "container"),
    ),
    (
        REQUESTED,
        "another batch size was observed",
        recorded({"observed.batch_size": 16}, "container"),
    ),
    (
        REQUESTED,
        "the matrix was changed afterwards",
        declared({"matrix.workloads.decode.output_tokens": 64}),
    ),
    (
        UNEQUAL,
        "no warming up, by the command line",
        recorded({"argv": flag("--warmup", "0")}, "native"),
    ),
    (
        UNEQUAL,
        "one environment began 15 °C warmer",
        recorded(
            {"metrics.gpu_temp_start_celsius.value": lambda heat: heat + 15},
            "container",
        ),
    ),
    (
        UNEQUAL,
        "a tenth less clock in one environment",
        sampled("gpu_clock_sm_mhz", times(0.9), "container"),
    ),
    (
        "identity",
        "another model in one environment",
        recorded({"observed.config_sha256": OTHER_SUM}, "container"),
    ),
    (
        "acknowledgement",
        "everything acknowledged beforehand",
        declared({"acknowledged": BLANKET}),
    ),
)

OF_LLAMA_BENCH: tuple[tuple[str, str, Plant], ...] = (
    (UNEQUAL, "no flash attention", llama({"flash_attn": 0}, "container")),
    (
        UNEQUAL,
        "a quantized file under the name of f16",
        llama({"model_type": "llama 8B Q8_0", "model_size": 8532934656}, "native"),
    ),
    (
        REQUESTED,
        "a depth that was not reached",
        together(
            recorded({"requested.workload.depth": 8192}),
            declared({"matrix.workloads.d0.depth": 8192}),
        ),
    ),
    (
        "warmed-up",
        "the first repetition takes twice as long",
        llama({r"samples_ns\.1": times(2)}),
    ),
)

OF_CLIENTS: tuple[tuple[str, str, Plant], ...] = (
    (REPORT, "a client that starves the server", client({"duration": times(1.5)})),
    (
        REPORT,
        "duration until the last request started",
        client({"duration": times(0.87)}),
    ),
    (REPORT, "seconds for milliseconds", client({".*_ms": times(1e-3)})),
    (
        REPORT,
        "throughput without the first tokens' time",
        client({"output_throughput": times(1.12)}),
    ),
    (
        REPORT,
        "total throughput without the input",
        client({"total_token_throughput": times(0.2)}),
    ),
    (REPORT, "the first token in TPOT", client({".*_tpot_ms": times(1.2)})),
    (
        REPORT,
        "requests that are lost",
        client({"completed": 60, "total_output_tokens": 60 * 128}),
    ),
    (
        REQUESTED,
        "tokens of retried requests",
        client({"total_output_tokens": times(1.019)}, "container"),
    ),
    ("roofline", "the first chunk has no token", client({".*_ttft_ms": times(0.02)})),
    (
        "prefix-cache",
        "cached prefixes",
        recorded(
            {
                "metrics.prefix_cache_hit_percent": {
                    "value": 97.3,
                    "unit": "%",
                    "source": "sampler",
                }
            }
        ),
    ),
    ("identity", "14.99 GiB in the log of a model of 14.29", loaded(14.99)),
    (
        UNEQUAL,
        "slower memory on one side",
        sampled("gpu_clock_mem_mhz", 2619.0, "container"),
    ),
    (
        UNEQUAL,
        "another attention backend",
        logged(
            "Using FLASH_ATTN attention", "Using TRITON_ATTN attention", "container"
        ),
    ),
    (
        UNEQUAL,
        "speculative decoding",
        logged(
            "speculative_config=None",
            "speculative_config=SpeculativeConfig(method='ngram', num_spec_tokens=4)",
            "container",
        ),
    ),
    (
        UNEQUAL,
        "default kernels",
        logged("Starting initial single prompt test run", FELL_BACK, "container"),
    ),
    (
        REQUESTED,
        "a client that talked to the other server",
        client_of_the_other_server,
    ),
    (
        REQUESTED,
        "a wider margin afterwards",
        declared({"matrix.equivalence_margin_percent": 5}),
    ),
    (
        "engine-warning",
        "kernels compiled while measuring",
        logged("Successful requests:", COMPILED, "container"),
    ),
    (
        "foreign-telemetry",
        "a GPU that idles while it serves",
        sampled("gpu_utilization_percent", 2.0, "container"),
    ),
    (
        "throttled",
        "a lowered power limit on both sides",
        recorded(
            {f"{GPU}.power_limit_watt": 450.0, f"{GPU}.power_default_watt": 700.0}
        ),
    ),
    (
        "foreign-load",
        "a download beside both sides",
        sampled("pressure_io_some_percent", 38.0),
    ),
)
AFTERWARDS: tuple[tuple[str, str, Plant], ...] = (
    (
        "time-consistency",
        "a record changed after it was committed",
        recorded({"machine.memory_total_gib": 64.0}, "container"),
    ),
    (
        "time-consistency",
        "the last round deleted, and declared away",
        last_round_declared_away,
    ),
    (
        "time-consistency",
        "a wider margin afterwards, in every record",
        together(
            declared({"matrix.equivalence_margin_percent": 5}),
            recorded({"plan.analysis.margin_percent": 5}),
        ),
    ),
)
PLANTED = (
    *(Planted(*fault) for fault in OF_OURS),
    *(Planted(*fault, LLAMA) for fault in OF_LLAMA_BENCH),
    *(Planted(*fault, VLLM) for fault in OF_CLIENTS),
    *(Planted(*fault, VLLM, committed=True) for fault in AFTERWARDS),
)
