"""What an import would write, for people: a line for each run, or for each build where they are many."""

from collections.abc import Iterator, Sequence

from sparkpub.record.record import Record
from sparkpub.record.text import counted

_MOST_RUNS = 30
"""Runs that are shown one by one."""
_SHOWN = ("output_throughput_tok_s", "ttft_p50_ms", "ttft_mean_ms")


def lines(records: Sequence[Record], *, verbose: bool = False) -> Iterator[str]:
    """The runs in order of time: cell, iteration, start, status and every figure; of many the number, the format of the
    weights, the engine and the ranges of the first figures of each build."""
    if verbose or len(records) <= _MOST_RUNS:
        for record in records:
            figures = (
                f"{name} {'none' if metric.value is None else f'{metric.value:.4g}'}"
                for name, metric in record.metrics.items()
            )
            said = f"{'/'.join(record.cell)} {record.iteration}, {record.started.value}"
            yield f"{said}, {record.status}: {', '.join(figures)}"
        return
    builds: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        builds.setdefault(record.cell[:2], []).append(record)
    for build, runs in builds.items():
        seen = runs[0].observed
        loads = len({run.workload for run in runs})
        engine = " ".join(filter(None, (seen.engine, seen.engine_version)))
        number = f"{counted(len(runs), 'run')} of {counted(loads, 'load')}"
        ranges = filter(None, (_range(name, runs) for name in _SHOWN))
        parts = filter(None, (number, seen.quantization, engine, *ranges))
        yield f"{'/'.join(build)}: {', '.join(parts)}"


def _range(name: str, runs: Sequence[Record]) -> str:
    """`output_throughput_tok_s 36.2 to 38.1`; empty where nobody says it."""
    values = [value for run in runs if (value := run.value(name)) is not None]
    return f"{name} {min(values):.4g} to {max(values):.4g}" if values else ""
