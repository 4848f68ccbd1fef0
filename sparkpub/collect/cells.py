"""What the cells show while the machine is still warm; `sparkpub check` judges later, by the same outlier test."""

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev

from sparkpub.record.record import Record, metric_of
from sparkpub.review.statistics.estimate import POOR_VARIATION_PERCENT
from sparkpub.review.statistics.series import grubbs

_LEAST_RUNS = 3
"""With fewer a spread says nothing."""


def look(records: Sequence[Record]) -> Iterator[str]:
    """A line for each cell that has enough good runs: mean, variation and outliers of what it is about."""
    for cell in dict.fromkeys(record.cell for record in records):
        good = _good(records, cell)
        name = headline(good)
        values = _values(good, name)
        if len(values) < _LEAST_RUNS:
            continue
        mean = fmean(values)
        if mean == 0:
            continue
        cv_percent = 100 * stdev(values) / abs(mean)
        line = (
            f"{'/'.join(cell)}: {name} mean {mean:g} over {len(values)} runs, "
            f"variation {cv_percent:.2f} %"
        )
        if cv_percent > POOR_VARIATION_PERCENT:
            line += f", over {POOR_VARIATION_PERCENT:g} %: inspect these runs"
        if len(values) == len(good):
            odd = [good[index].run_id for index in grubbs(values)]
            if odd:
                line += f", outliers {', '.join(odd)}"
        yield line


def outliers(
    records: Sequence[Record], cell: tuple[str, str, str], metric: str
) -> list[Record]:
    """Runs of a cell that Grubbs' test flags by a metric; repeats are not looked at."""
    first = [record for record in _good(records, cell) if record.repeat_of is None]
    known = [record for record in first if record.value(metric) is not None]
    return [known[index] for index in grubbs(_values(known, metric))]


def _good(records: Sequence[Record], cell: tuple[str, str, str]) -> list[Record]:
    return [
        record for record in records if record.cell == cell and record.status == "ok"
    ]


def _values(records: Sequence[Record], metric: str) -> list[float]:
    """The values of those records that have one."""
    found = (record.value(metric) for record in records)
    return [value for value in found if value is not None]


def headline(records: Sequence[Record]) -> str:
    """The first metric with which the workload itself answers a question of the study, memory last: a run is not
    about that. Never a sensor's, nor what describes the model, such as its weights. Empty where there is none."""
    answers = []
    for record in records:
        for name, item in record.metrics.items():
            metric = metric_of(name, item)
            measured = item.source != "sampler" and item.value is not None
            if measured and metric.role == "primary":
                answers.append(metric)
    answers.sort(key=lambda metric: metric.memory_of is not None)
    return answers[0].name if answers else ""
