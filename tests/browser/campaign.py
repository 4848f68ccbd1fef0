"""A campaign with everything a page can show: telemetry, logs, gates, phases, a failed run, and hostile text."""

import math
from pathlib import Path

from sparkpub.record.campaign import Campaign
from sparkpub.record.record import (
    Gate,
    Moment,
    Phase,
    Plan,
    Reading,
    Record,
    Requested,
)
from sparkpub.record.store import to_json
from tests.building import a_record
from tests.site.conftest import write_run

NAME = "bench"
HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=1</script>'
ENVIRONMENT = {
    "type": "host",
    "env": {"OPENBLAS_NUM_THREADS": "1", "LD_LIBRARY_PATH": "/usr/local/nvidia/lib64"},
}
FAILED = f"{NAME}-container_m_w_iter05"


def telemetry(seconds: int, level: float, position: int) -> str:
    """Ten readings a second would be the same picture: one a second of use, temperature and power. No two runs have
    the same."""
    lines = [
        "elapsed_seconds,gpu_utilization_percent,gpu_temp_celsius,gpu_power_watt,mem_available_gib"
    ]
    for t in range(-2, seconds):
        busy = 0 if t < 5 else level + 5 * math.sin(t + position)
        lines.append(
            f"{t},{busy:.1f},{40 + t / 4:.1f},{50 + busy:.1f},{100 - t / 10:.1f}"
        )
    return "\n".join(lines) + "\n"


def write(folder: Path) -> Path:
    """The campaign below `folder`, nine good runs and a failed one; returns `folder`."""
    place = folder / NAME
    place.mkdir(parents=True)
    campaign = Campaign(
        campaign=NAME, title="Two environments, with telemetry", note=HOSTILE
    )
    (place / "campaign.json").write_text(to_json(campaign))
    for position in range(10):
        environment, iteration = (
            ("native", "container")[position % 2],
            position // 2 + 1,
        )
        _write(place, _record(environment, iteration, position))
    return folder


def _record(environment: str, iteration: int, position: int) -> Record:
    failed = environment == "container" and iteration == 5
    run = f"{NAME}-{environment}_m_w_iter{iteration:02d}"
    slower = 0.97 if environment == "container" else 1.0
    # The difference changes sides from round to round, so that neighbouring rounds are not alike.
    wobble = math.sin(7 * position) / 3 + (
        1.5 * (-1) ** (position // 2) if environment == "native" else 0.0
    )
    metrics = {
        "output_throughput_tok_s": slower * (500 + wobble),
        "request_latency_p50_ms": (800 + 9 * math.cos(5 * position)) / slower,
        "system_peak_gib": 20 + position / 50,
        "gpu_temp_start_celsius": 41.0 + position / 10,
        "gpu_temp_end_celsius": 60.0,
    }
    return a_record(
        metrics,
        run_id=run,
        campaign=NAME,
        environment=environment,
        iteration=iteration,
        plan=Plan(position=position, order="interleaved", seed=42),
        started=Moment(value=f"2026-11-20T1{position}:00:00Z", zone="utc"),
        duration_seconds=90.0,
        # A tool that nothing here reads, so that its log is shown and not read anew.
        requested=Requested(
            model_id="x/m", workload={"type": "elsewhere"}, environment=ENVIRONMENT
        ),
        argv=("bench", "--prompt", HOSTILE),
        status="failed" if failed else "ok",
        exit_code=1 if failed else 0,
        status_reason=f"the engine ended early: {HOSTILE}" if failed else None,
        phases=(
            Phase(name="load", start_seconds=0, end_seconds=5),
            Phase(name="measure", start_seconds=5, end_seconds=80),
        ),
        gates=(
            Gate(
                name="cooldown",
                wanted=45.0,
                unit="°C",
                met=True,
                waited_seconds=12.0,
                readings=(
                    Reading(at_seconds=0, value=51.0),
                    Reading(at_seconds=12, value=45.0),
                ),
            ),
        ),
    )


def _write(place: Path, record: Record) -> None:
    level = 90.0 if record.environment == "native" else 80.0
    log = "".join(f"line {n}: {HOSTILE} {record.run_id}\n" for n in range(1, 261))
    seen = telemetry(85, level, record.plan.position)
    write_run(place, record, {"telemetry": seen.encode(), "log": log.encode()})
