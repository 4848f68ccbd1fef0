"""Faults in the clean campaign: one documented change per check. Prose has its own tests."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from sparkpub.record.record import Event, Gate, MetricValue, Reading, Requested
from tests.review.checks.clean import (
    DENSE,
    MACHINE,
    START,
    WORKLOAD,
    Run,
    clean_runs,
    write,
)


@dataclass(frozen=True)
class Fault:
    """A change to the runs of the clean campaign before they are written, and one to the folder after."""

    check: str
    what: str
    plant: Callable[[list[Run]], Any] = lambda _: None
    damage: Callable[[Path], Any] = lambda _: None
    iterations: int = 10

    alone = True
    """Nothing but its check, and what that implies, finds it."""
    is_possible = True
    of = "clean"
    """The campaign in which it is planted."""

    def bring(self, data: Path, *, planted: bool) -> None:
        """The campaign as it is, with ten runs of each cell, or with the fault."""
        if not planted:
            write(data, clean_runs(seed=7))
            return
        runs = clean_runs(seed=7, iterations=self.iterations)
        self.plant(runs)
        self.damage(write(data, runs, self.iterations))


def cell(
    runs: list[Run], model: str = "dense", environment: str = "native"
) -> list[Run]:
    return [run for run in runs if (run.model, run.environment) == (model, environment)]


def setting(**fields: Any) -> Callable[[list[Run]], None]:
    """The fields of the fourth run of a cell."""

    def plant(runs: list[Run]) -> None:
        for name, value in fields.items():
            setattr(cell(runs)[3], name, value)

    return plant


def first_file(folder: Path, pattern: str) -> Path:
    return sorted(folder.glob(pattern))[0]


def cut_a_record(folder: Path) -> None:
    path = first_file(folder, "container_dense_*iter02*.json")
    path.write_text(path.read_text()[:200])


def link_a_log(folder: Path) -> None:
    (folder / "more.log").symlink_to(next(folder.glob("*.log")).name)


def change_a_log(folder: Path) -> None:
    path = first_file(folder, "*.log")
    path.write_bytes(path.read_bytes().replace(b"22:00:09", b"22:00:08"))


def misreport(metrics: dict[str, MetricValue]) -> None:
    metrics["peak_memory_gib"] = replace(metrics["peak_memory_gib"], value=90.5)


def twice(runs: list[Run]) -> None:
    again = cell(runs)[3]
    runs.append(
        Run(
            **(
                vars(again)
                | {
                    "started": again.started + timedelta(days=1),
                    "tok_s": again.tok_s * 1.001,
                    "p50_factor": again.p50_factor * 1.001,
                }
            )
        )
    )


def without_a_cell(runs: list[Run]) -> None:
    runs[:] = [
        run for run in runs if (run.model, run.environment) != ("dense", "container")
    ]


def unpinned_cache(runs: list[Run]) -> None:
    for run in runs:
        run.peak_gib = round(run.peak_gib, 2)
        run.kv_gib = round(0.9 * (119.7 - run.peak_gib), 2)


def blocks(runs: list[Run]) -> None:
    for index, run in enumerate(
        sorted(
            cell(runs) + cell(runs, environment="container"),
            key=lambda r: r.environment,
        )
    ):
        run.started = START + timedelta(days=1, minutes=10 * index)


def ramp(runs: list[Run]) -> None:
    for index, run in enumerate(cell(runs)):
        run.tok_s *= 1 - 0.006 * index


def cold_starts(runs: list[Run]) -> None:
    for environment in ("native", "container"):
        for model in ("dense", "sparse"):
            first, *others = cell(runs, model, environment)
            first.peak_gib = 0.3 + max(run.peak_gib for run in others)


def slow(runs: list[Run]) -> None:
    cell(runs)[3].tok_s *= 0.95


def two_slow(runs: list[Run]) -> None:
    for run in cell(runs)[3:14:9]:
        run.tok_s *= 0.94


def scattered(runs: list[Run]) -> None:
    draw = np.random.default_rng(4).permutation(np.linspace(-0.09, 0.09, 10))
    for run, share in zip(cell(runs), draw, strict=True):
        run.peak_gib *= 1 + share


def same(runs: list[Run]) -> None:
    for run in runs:
        if run.model == "dense":
            run.tok_s *= 80 / 220


def disorder(report: dict[str, Any]) -> None:
    percentiles = report["performance"]["request_latency_percentiles_ms"]
    percentiles["p90"], percentiles["p95"] = percentiles["p95"], percentiles["p90"]


def heavy(runs: list[Run]) -> None:
    large = DENSE.model_copy(update={"weight_bytes": 145_412_407_296})
    asked = Requested(
        model_id="example/dense-3b",
        architecture=large,
        workload=WORKLOAD,
        environment={"type": "host"},
    )
    for run in cell(runs):
        run.weights_gib, run.fields = 0.0, {"requested": asked}


def overlapping(runs: list[Run]) -> None:
    later = sorted(runs, key=lambda run: run.started)[5]
    later.started -= timedelta(minutes=9, seconds=30)


def copied(runs: list[Run]) -> None:
    one, other = cell(runs)[3:5]
    other.tok_s, other.peak_gib, other.p50_factor = (
        one.tok_s,
        one.peak_gib,
        one.p50_factor,
    )


def longer(report: dict[str, Any]) -> None:
    report["request_info"]["avg_input_length"] = 1024.0
    # Of prompts of 1024 tokens and answers of 128 there are nine tokens for each of the answer.
    performance = report["performance"]
    output = performance["system_output_throughput_tok_s"]
    performance["system_total_throughput_tok_s"] = 9 * output


def in_gigabytes(metrics: dict[str, MetricValue]) -> None:
    weights = metrics["weights_gib"]
    assert weights.value is not None
    metrics["weights_gib"] = MetricValue(
        value=weights.value * 2**30 / 1e9, unit="GiB", source="sampler"
    )


HOT = Gate(
    name="max_start_temp_celsius",
    wanted=45.0,
    unit="°C",
    met=False,
    waited_seconds=1800.0,
    readings=(Reading(at_seconds=1800.0, value=51.0),),
)


LEAK = Event(
    at_seconds=45.0,
    kind="leak",
    text="GPU memory in use grew steadily by 1.00 GiB in the last 30 s",
)
XID = Event(
    at_seconds=12.0,
    kind="xid",
    text="NVRM: Xid (PCI:000f:01:00): 13, Graphics Exception",
)

FAULTS = [
    Fault("schema", "a record is cut short", damage=cut_a_record),
    Fault("checksum", "one byte of a log differs", damage=change_a_log),
    Fault("foreign-file", "a link lies beside the records", damage=link_a_log),
    Fault("exit-status", "a run was killed", setting(status="failed")),
    Fault(
        "missing-report",
        "the report of a run is gone, its figures stay",
        setting(roles=("log", "telemetry")),
    ),
    Fault("missing-log", "a run has no log", setting(roles=("report", "telemetry"))),
    Fault(
        "metric-mismatch",
        "a recorded peak differs from the log",
        setting(change_metrics=misreport),
    ),
    Fault(
        "identity",
        "the log shows the KV bytes per token of another model",
        setting(kv_bytes=57_344),
    ),
    Fault(
        "does-not-fit",
        "the model has 135 GiB of weights, of which the log says nothing",
        heavy,
    ),
    Fault(
        "same-numbers", "two models of 6 and 17 GB per step both give 80 tok/s", same
    ),
    Fault("duplicate-iteration", "an iteration is recorded twice", twice),
    Fault("missing-cell", "a declared cell was never run", without_a_cell),
    Fault(
        "unbalanced",
        "the last run of a cell is missing",
        lambda runs: runs.remove(cell(runs)[-1]),
    ),
    Fault(
        "dependent-metrics",
        "the KV cache is nine tenths of what the peak leaves",
        unpinned_cache,
    ),
    Fault("drift", "throughput falls by 0.6 % with every run of a cell", ramp),
    Fault(
        "drift", "peak memory is highest in the first run of every cell", cold_starts
    ),
    Fault("order-confound", "one environment ran after the other", blocks),
    Fault("outlier", "one run is 5 % slower", slow),
    Fault("outlier", "two runs of 24 are 6 % slower", two_slow, iterations=24),
    Fault("high-variation", "peak memory of a cell scatters by 6 %", scattered),
    Fault("small-sample", "three runs per cell", iterations=3),
    Fault("thermal-gate", "a run started at 51 °C", setting(gates=(HOT,))),
    Fault(
        "throttled",
        "heat slowed a run down",
        setting(columns={"gpu_throttle_reasons": "0x0000000000000020"}),
    ),
    Fault(
        "slow-clock",
        "the SM clock was stuck at 611 MHz",
        setting(columns={"gpu_clock_sm_mhz": "611"}),
    ),
    Fault(
        "foreign-load",
        "another process was on the GPU",
        setting(columns={"gpu_foreign_processes": "1"}),
    ),
    Fault("leak", "memory grew while the run was measured", setting(events=(LEAK,))),
    Fault("kernel-warning", "the driver reported an Xid", setting(events=(XID,))),
    Fault(
        "telemetry-gap",
        "the sampler was silent for a minute",
        setting(silent=(5.0, 66.0)),
    ),
    Fault(
        "inconsistent-report",
        "P90 and P95 of a report are exchanged",
        setting(change_report=disorder),
    ),
    Fault(
        "mixed-machines",
        "one run of a cell is from another machine",
        setting(machine=MACHINE.model_copy(update={"id": "m2"})),
    ),
    Fault(
        "time-consistency", "a run began while the one before it was on", overlapping
    ),
    Fault("copied-evidence", "a run has the times of the run before it", copied),
    Fault(
        "not-as-requested",
        "prompts were twice as long as asked for",
        setting(change_report=longer),
    ),
    Fault(
        "foreign-load",
        "the GPU was busy before a run",
        setting(before={"gpu_utilization_percent": "60"}),
    ),
    Fault(
        "memory-bookkeeping",
        "the weights are in GB",
        setting(change_metrics=in_gigabytes),
    ),
]
