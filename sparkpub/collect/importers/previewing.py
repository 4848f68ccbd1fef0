"""What an import would write, for people: a line for each cell, and one for each of its metrics."""

from collections.abc import Iterator, Sequence

from sparkpub.record.record import Record, metric_of


def lines(records: Sequence[Record]) -> Iterator[str]:
    """The cells in order of their first run, with iterations, times, and the range of each metric."""
    cells: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        cells.setdefault(record.cell, []).append(record)
    for cell, runs in cells.items():
        yield f"{'/'.join(cell)}: {_runs(runs)}"
        for name in dict.fromkeys(name for run in runs for name in run.metrics):
            yield f"  {name}: {_figures(name, runs)}"


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
    example = next(run.metrics[name] for run in runs if name in run.metrics)
    metric = metric_of(name, example)
    text = metric.format(min(values))
    if min(values) != max(values):
        text = (
            f"{metric.format(min(values), unit=False)} to {metric.format(max(values))}"
        )
    missing = len(runs) - len(values)
    if missing:
        text += f" (no value in {missing})"
    return text
