"""Faults that hit both sides of a comparison, or whole campaigns, planted in copies of real records."""

import json
import re
from collections.abc import Callable
from functools import partial

from tests.review.checks.planted import (
    Copy,
    Document,
    Planted,
    edit_all_evidence_of_one_run,
    shift,
)
from tests.review.checks.planted_clients import both_sides, every_log, of_client
from tests.review.checks.planted_unread import telemetry_column

Change = Callable[[Document], None]


def runs_where(
    change: Change, wanted: Callable[[Document], bool]
) -> Callable[[Copy], None]:
    """A change to the records of some runs."""

    def plant(copy: Copy) -> None:
        for run in filter(wanted, copy.runs):
            change(run)

    return plant


def everywhere(change: Change) -> Callable[[Copy], None]:
    return runs_where(change, lambda _: True)


def in_container(change: Change) -> Callable[[Copy], None]:
    return runs_where(change, lambda run: bool(run["environment"] == "container"))


def from_round_2(change: Change) -> Callable[[Copy], None]:
    return runs_where(change, lambda run: bool(run["iteration"] > 1))


def log_of_container(old: str, new: str) -> Callable[[Copy], None]:
    """Another line in the log of each server in the container."""

    def plant(copy: Copy) -> None:
        for run in copy.of("container"):
            log = copy.read(run, "log").decode()
            assert re.search(old, log) or run["status"] != "ok"
            copy.put(run, "log", re.sub(old, new, log).encode())

    return plant


# -- what reached the engine -------------------------------------------------------------------------------------


def variable(name: str, value: str) -> Change:
    def change(run: Document) -> None:
        run["reproducibility"]["variables"][name] = value

    return change


def weights_of_four_bits(copy: Copy) -> None:
    """A folder of 16-bit weights by its config.json, of which the engine says that they are AWQ."""
    every_log("quantization=None", "quantization=awq_marlin")(copy)
    for run in copy.runs:
        run["observed"]["quantization"] = "awq_marlin"


# -- the GPU and what was beside it ------------------------------------------------------------------------------


def gpu(**fields: object) -> Change:
    def change(run: Document) -> None:
        run["machine"]["gpus"][0] |= fields

    return change


def clocked(column: str, mhz: float, copy: Copy) -> None:
    """Locked by hand: nothing in the samples says why."""
    for run in copy.runs:
        telemetry_column(copy, run, column, lambda _time, _value: mhz)


def governor_of_container(copy: Copy) -> None:
    for run in copy.runs:
        of_native = run["environment"] == "native"
        run["machine"]["governor"] = "performance" if of_native else "powersave"


def waiting_for(column: str, copy: Copy) -> None:
    for run in copy.runs:
        telemetry_column(copy, run, column, lambda _time, _value: 38.0)


# -- runs that nobody measured -----------------------------------------------------------------------------------


def under_another_name(copy: Copy, **later: float) -> Copy:
    """The campaign once more, with names and times of its own."""
    again = Copy(copy.name)
    again.runs = [run for run in again.runs if run["iteration"] <= 2]
    again.name = "again"
    again.info["campaign"] = again.info["matrix"]["campaign"] = "again"
    for run in again.runs:
        run["campaign"] = "again"
        shift(run, **later)
        again.rename(run)
    copy.others.append(again)
    return again


def scattered_power(copy: Copy, run: Document, factor: float) -> None:
    telemetry_column(
        copy,
        run,
        "gpu_power_watt",
        lambda time, watt: watt * (factor + 1e-3 * (time % 0.7)),
    )


def campaign_copied_with_other_files(copy: Copy) -> None:
    again = under_another_name(copy, days=1)
    for number, run in enumerate(again.runs):
        scattered_power(again, run, 1 + 1e-3 * number)
        for item in run["evidence"]:
            if item["role"] != "telemetry":
                again.put(run, item["role"], again.read(run, item["role"]) + b"\n")


def two_campaigns_at_once(copy: Copy) -> None:
    under_another_name(copy, seconds=15)


def nothing_warmed_up(copy: Copy) -> None:
    """Nobody asked for a warm-up, and the first of 64 requests wait for kernels to be compiled."""
    copy.info["matrix"]["workloads"]["serve-c8"]["warmup"] = 0
    for run in copy.runs:
        run["requested"]["workload"]["warmup"] = 0
        argv = run["argv"]
        argv[argv.index("--num-warmups") + 1] = "0"
    both_sides(lambda report: report.update(p99_ttft_ms=1310.0))(copy)


def an_error_page(copy: Copy) -> None:
    for run in copy.runs:
        run["requested"]["random_weights"] = run["observed"]["random_weights"] = False
        page = json.dumps({"error": {"message": "The model does not exist"}})
        note = f"the model answered before the test: {page}"
        run["events"].append({"at_seconds": None, "kind": "note", "text": note})


COMMON: tuple[Planted, ...] = (
    of_client(
        "decoding without CUDA graphs in one log",
        log_of_container(
            r"CUDAGraphMode\.FULL_AND_PIECEWISE", "CUDAGraphMode.PIECEWISE"
        ),
        check="unequal-environments",
    ),
    of_client(
        "a model's folder of another configuration",
        in_container(
            lambda run: run["requested"]["architecture"].update(config_sha256=64 * "a")
        ),
        check="unequal-environments",
    ),
    of_client(
        "a debugging variable left over on both sides",
        everywhere(variable("CUDA_LAUNCH_BLOCKING", "1")),
        check="not-as-requested",
    ),
    of_client(
        "a variable left over from the second round on",
        from_round_2(variable("VLLM_USE_V1", "0")),
        check="mixed-machines",
    ),
    of_client(
        "an AWQ model in a folder of 16 bits", weights_of_four_bits, check="identity"
    ),
    of_client(
        "a lowered power limit on both sides",
        everywhere(gpu(power_limit_watt=450.0, power_default_watt=700.0)),
        check="throttled",
    ),
    of_client(
        "another governor of the processors on one side",
        governor_of_container,
        check="unequal-environments",
    ),
    of_client(
        "processors of the GPU locked to 1,200 of 1,980 MHz on both sides",
        partial(clocked, "gpu_clock_sm_mhz", 1200.0),
        "h200-llama",
        check="slow-clock",
    ),
    of_client(
        "a slower memory on both sides",
        partial(clocked, "gpu_clock_mem_mhz", 2619.0),
        check="slow-clock",
    ),
    of_client(
        "a download beside both sides",
        partial(waiting_for, "pressure_io_some_percent"),
        check="foreign-load",
    ),
    of_client(
        "a campaign under another name, with other files",
        campaign_copied_with_other_files,
        check="copied-evidence",
    ),
    of_client(
        "two campaigns on one GPU at once",
        two_campaigns_at_once,
        check="time-consistency",
    ),
    Planted(
        "everything of one run, after it was committed",
        "time-consistency",
        edit_all_evidence_of_one_run,
        committed=True,
    ),
    of_client("an error page for an answer", an_error_page, check="sanity"),
    of_client("no warm-up on both sides", nothing_warmed_up, check="warmed-up"),
)
