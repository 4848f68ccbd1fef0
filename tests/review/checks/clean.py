"""A clean campaign with real evidence, to be damaged by one documented change at a time.

Two models whose facts are known, two environments, interleaved, on a DGX Spark. The figures are made up within the
physics of that machine: 8 sequences at 27.5 and 10 steps per second read 165 and 168 GB/s of 273. Logs, reports and
telemetry are written as trtllm-bench and the sampler write them, and records take their metrics from the parser.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from sparkpub.plan.workloads import WORKLOADS
from sparkpub.record.campaign import Campaign
from sparkpub.record.record import (
    Analysis,
    Architecture,
    Event,
    Evidence,
    Gate,
    Gpu,
    Machine,
    MetricValue,
    Moment,
    Observed,
    Phase,
    Plan,
    Record,
    Requested,
)
from sparkpub.record.store import CAMPAIGN_FILE, to_json

START = datetime(2026, 11, 20, 22, tzinfo=UTC)
DENSE = Architecture(
    source="matrix",
    weight_bytes=6_500_000_000,
    dense_bytes_per_step=6_000_000_000,
    expert_bytes=0,
    kv_bytes_per_token=28_672,
)
MODELS: dict[str, dict[str, Any]] = {
    "dense": {
        "id": "example/dense-3b",
        "architecture": DENSE,
        "tok_s": 220.0,
        "weights": 6.05,
        "kv_bytes": 28_672,
    },
    "sparse": {
        "id": "openai/gpt-oss-120b",
        "architecture": None,
        "tok_s": 80.0,
        "weights": 63.32,
        "kv_bytes": 73_728,
    },
}
WORKLOAD = {
    "type": "trtllm-bench",
    "requests": 128,
    "input_tokens": 512,
    "output_tokens": 128,
    "max_batch_size": 8,
    "concurrency": 8,
}
DECLARED = Analysis(primary=(), margin_percent=1.0)
MACHINE = Machine(
    id="m1",
    kind="dgx-spark",
    memory_total_gib=119.7,
    unified_memory=True,
    driver="580.95.05",
    gpus=(Gpu(name="NVIDIA GB10", clock_max_sm_mhz=3003),),
)
INTERVAL = 5.0


@dataclass
class Run:
    """One run before it is written; every fault is a change to these fields."""

    model: str
    environment: str
    iteration: int
    position: int
    tok_s: float
    peak_gib: float
    p50_factor: float
    kv_gib: float = 10.0
    kv_bytes: int = 0
    weights_gib: float = 0.0
    shown: dict[str, str] = field(default_factory=dict)
    """What the run shows of its model besides."""
    started: datetime = START
    status: str = "ok"
    roles: tuple[str, ...] = ("log", "report", "telemetry")
    gates: tuple[Gate, ...] = ()
    events: tuple[Event, ...] = ()
    machine: Machine = MACHINE
    analysis: Analysis | None = DECLARED
    columns: dict[str, str] = field(default_factory=dict)
    """Telemetry column to the value that all samples get instead."""
    before: dict[str, str] = field(default_factory=dict)
    """The same for the samples before the launch."""
    silent: tuple[float, float] = (0.0, 0.0)
    """Seconds between which there are no samples."""
    change_report: Callable[[dict[str, Any]], None] = lambda _: None
    change_metrics: Callable[[dict[str, MetricValue]], None] = lambda _: None
    fields: dict[str, Any] = field(default_factory=dict)
    """Fields of the record that replace the usual ones."""

    @property
    def seconds(self) -> float:
        """Of the measured phase."""
        return 128 * 128 / self.tok_s

    @property
    def run_id(self) -> str:
        return f"clean-{self.environment}_{self.model}_iter{self.iteration:02d}_{self.started:%Y%m%dT%H%M%SZ}"

    def log(self) -> bytes:
        tokens = int(self.kv_gib * 2**30 / self.kv_bytes)
        lines = [
            "[TensorRT-LLM] TensorRT-LLM version: 1.1.0rc3",
            f"[11/20/2026-22:00:00] [TRT-LLM] [I] Use {self.weights_gib:.2f} GB for model weights.",
            "[11/20/2026-22:00:09] [TRT-LLM] [I] Peak memory during memory usage profiling (torch + non-torch): "
            f"{self.peak_gib:.2f} GiB, available KV cache memory when calculating max tokens: {self.kv_gib:.2f} GiB, "
            f"fraction is set 0.9, kv size is {self.kv_bytes}. device total memory 119.70 GiB, , tmp kv_mem 0.56 GiB",
            f"[TensorRT-LLM][INFO] [MemUsageChange] Allocated {self.kv_gib:.2f} GiB for max tokens in paged KV cache "
            f"({tokens}).",
        ]
        return "\n".join(line for line in lines if "Use 0.00 GB" not in line).encode()

    def report(self) -> bytes:
        mean = 8 * 1e3 * self.seconds / 128
        middle = mean * self.p50_factor
        latency = {
            "average": mean,
            "minimum": 0.8 * mean,
            "p50": middle,
            "p90": 1.1 * mean,
            "p95": 1.13 * mean,
            "p99": 1.15 * mean,
            "maximum": 1.2 * mean,
        }
        report: dict[str, Any] = {
            "engine": {
                "model": MODELS[self.model]["id"],
                "version": "1.1.0rc3",
                "backend": "Pytorch",
            },
            "world_info": {"max_batch_size": 8, "max_num_tokens": 8192},
            "request_info": {
                "num_requests": 128,
                "avg_num_concurrent_requests": 8.0,
                "avg_input_length": 512.0,
                "avg_output_length": 128.0,
            },
            "performance": {
                "total_latency_ms": 1e3 * self.seconds,
                "request_throughput_req_s": self.tok_s / 128,
                "system_output_throughput_tok_s": self.tok_s,
                "system_total_throughput_tok_s": 5 * self.tok_s,
                "request_latency_percentiles_ms": latency,
            },
        }
        self.change_report(report)
        return json.dumps(report, indent=1).encode()

    def telemetry(self) -> bytes:
        usual = {
            "gpu_utilization_percent": "96",
            "gpu_temp_celsius": "62",
            "gpu_clock_sm_mhz": "2411",
            "gpu_throttle_reasons": "0x0000000000000000",
            "gpu_foreign_processes": "0",
        }
        idle = {"gpu_utilization_percent": "0", "gpu_temp_celsius": "40"}
        busy = usual | self.columns
        rows = {
            True: ",".join((busy | idle | self.before).values()),
            False: ",".join(busy.values()),
        }
        times = np.arange(-10, self.seconds + 20, INTERVAL)
        kept = [time for time in times if not self.silent[0] < time < self.silent[1]]
        power = np.random.default_rng(int(self.started.timestamp())).normal(
            80, 2, len(kept)
        )
        samples = [
            f"{time:.1f},{watt:.3f},{rows[bool(time < 0)]}"
            for time, watt in zip(kept, power, strict=True)
        ]
        return "\n".join(
            [f"elapsed_seconds,gpu_power_watt,{','.join(busy)}", *samples, ""]
        ).encode()

    def write(self, folder: Path) -> Path:
        """Record and evidence, into the campaign's folder."""
        files = {
            "log": self.log(),
            "report": self.report(),
            "telemetry": self.telemetry(),
        }
        suffixes = {
            "log": ".log",
            "report": ".report.json",
            "telemetry": ".telemetry.csv",
        }
        answer = WORKLOADS["trtllm-bench"].parse(
            files["log"], {"report": files["report"]}, None
        )
        metrics = dict(answer.metrics)
        metrics["gpu_temp_start_celsius"] = MetricValue(
            value=40.0, unit="°C", source="sampler"
        )
        self.change_metrics(metrics)
        model = MODELS[self.model]
        usual: dict[str, Any] = {
            "requested": Requested(
                model_id=model["id"],
                architecture=model["architecture"],
                workload=WORKLOAD,
                environment={"type": "host"},
            ),
            "observed": answer.observed.model_copy(update=self.shown),
            "metrics": metrics,
            "evidence": tuple(
                Evidence(
                    role=role,
                    path=f"{self.run_id}{suffixes[role]}",
                    bytes=len(files[role]),
                    sha256=hashlib.sha256(files[role]).hexdigest(),
                )
                for role in self.roles
            ),
        }
        if self.status != "ok":
            usual |= {
                "metrics": {},
                "observed": Observed(),
                "evidence": (),
                "status_reason": "killed by signal 9",
            }
        record = Record(
            run_id=self.run_id,
            campaign=folder.name,
            model=self.model,
            environment=self.environment,
            workload="w",
            iteration=self.iteration,
            status=self.status,
            plan=Plan(
                position=self.position,
                order="interleaved",
                analysis=self.analysis,
            ),
            started=Moment.at(self.started),
            ended=Moment.at(self.started + timedelta(seconds=self.seconds + 15)),
            phases=(
                Phase(name="measure", start_seconds=10, end_seconds=10 + self.seconds),
            ),
            exit_code=0 if self.status == "ok" else 137,
            duration_seconds=self.seconds + 15,
            gates=self.gates,
            events=self.events,
            machine=self.machine,
            **(usual | self.fields),
        )
        for item in record.evidence:
            (folder / item.path).write_bytes(files[item.role])
        path = folder / f"{record.stem}.json"
        path.write_text(to_json(record))
        return path


def clean_runs(seed: int = 0, iterations: int = 10) -> list[Run]:
    """Independent normal noise: 0.5 % on throughput and memory, 0.4 % on the median of latency beside its mean."""
    draw = np.random.default_rng(seed)
    runs = []
    for iteration in range(1, iterations + 1):
        environments = (
            ["native", "container"] if iteration % 2 else ["container", "native"]
        )
        for model, facts in MODELS.items():
            for environment in environments:
                noise = draw.normal(size=3)
                started = START + timedelta(minutes=10 * len(runs))
                runs.append(
                    Run(
                        model,
                        environment,
                        iteration,
                        len(runs),
                        facts["tok_s"] * (1 + 0.005 * noise[0]),
                        90 * (1 + 0.005 * noise[1]),
                        1.01 + 0.004 * noise[2],
                        kv_bytes=facts["kv_bytes"],
                        weights_gib=facts["weights"],
                        started=started,
                    )
                )
    return runs


def matrix(iterations: int = 10) -> dict[str, Any]:
    """The matrix of the campaign, as campaign.json carries it."""
    return {
        "campaign": "clean",
        "title": "A clean campaign",
        "models": {name: {"id": facts["id"]} for name, facts in MODELS.items()},
        "environments": {"native": {"type": "host"}, "container": {"type": "host"}},
        "workloads": {"w": WORKLOAD},
        "iterations": iterations,
        "telemetry": {"interval": INTERVAL},
    }


def write(data: Path, runs: Iterable[Run], iterations: int = 10, **fields: Any) -> Path:
    """The campaign's folder in a data folder."""
    folder = data / "clean"
    folder.mkdir(parents=True)
    for run in runs:
        run.write(folder)
    info = Campaign(
        campaign="clean", title="A clean campaign", matrix=matrix(iterations), **fields
    )
    (folder / CAMPAIGN_FILE).write_text(to_json(info))
    return folder
