"""What an import would write, for people: a line for each cell, and one for each of its metrics."""

from collections.abc import Iterator, Sequence

from sparkpub.record.record import Record, metric_of
from sparkpub.record.text import counted

_MOST_CELLS = 12
"""Cells that are shown one by one."""
_SHOWN = ("output_throughput_tok_s", "ttft_p50_ms", "ttft_mean_ms")
"""Metrics of builds with many cells."""


def lines(records: Sequence[Record], *, verbose: bool = False) -> Iterator[str]:
    """The cells in order of their first run, with iterations, times, and the range of each metric; where they are many,
    a line for each build."""
    cells: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        cells.setdefault(record.cell, []).append(record)
    if len(cells) > _MOST_CELLS and not verbose:
        yield from _builds(records)
        return
    for cell, runs in cells.items():
        yield f"{'/'.join(cell)}: {_runs(runs)}"
        for name in dict.fromkeys(name for run in runs for name in run.metrics):
            yield f"  {name}: {_figures(name, runs)}"


def _builds(records: Sequence[Record]) -> Iterator[str]:
    """`qwen3-8b/container: 35 runs of 35 loads, BF16, vLLM 0.26.0, output_throughput_tok_s 32 to 447 tok/s`."""
    builds: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        builds.setdefault(record.cell[:2], []).append(record)
    for build, runs in builds.items():
        seen = runs[0].observed
        loads = len({run.workload for run in runs})
        engine = " ".join(filter(None, (seen.engine, seen.engine_version)))
        parts = [
            f"{counted(len(runs), 'run')} of {counted(loads, 'load')}",
            seen.quantization,
            engine,
        ]
        for name in _SHOWN:
            if any(run.value(name) is not None for run in runs):
                parts.append(f"{name} {_range(name, runs)}")
        yield f"{'/'.join(build)}: {', '.join(filter(None, parts))}"


def _runs(runs: Sequence[Record]) -> str:
    """`5 runs, iterations 1 to 5, from 2025-11-08T19:51:54 to ...`, with those that are not ok."""
    iterations = sorted(run.iteration for run in runs)
    times = sorted(run.started.value for run in runs)
    parts = [f"{len(runs)} runs, iterations {iterations[0]} to {iterations[-1]}"]
    if len(runs) == 1:
        parts = [f"1 run, iteration {iterations[0]}"]
    parts.append(f"started {times[0]}")
    if times[0] != times[-1]:
        parts[-1] += f" to {times[-1]}"
    bad = sum(run.status != "ok" for run in runs)
    if bad:
        parts.append(f"{bad} not ok")
    return ", ".join(parts)


def _figures(name: str, runs: Sequence[Record]) -> str:
    """`36.2 to 38.1 tok/s`, and in how many of the runs there is none."""
    values = [value for run in runs if (value := run.value(name)) is not None]
    if not values:
        return "no value"
    text = _range(name, runs)
    missing = len(runs) - len(values)
    if missing:
        text += f" (no value in {missing})"
    return text


def _range(name: str, runs: Sequence[Record]) -> str:
    """`36.2 to 38.1 tok/s`."""
    values = [value for run in runs if (value := run.value(name)) is not None]
    example = next(run.metrics[name] for run in runs if name in run.metrics)
    metric = metric_of(name, example)
    text = metric.format(min(values))
    if min(values) != max(values):
        text = (
            f"{metric.format(min(values), unit=False)} to {metric.format(max(values))}"
        )
    return text
