"""The figures of small campaigns."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sparkpub.record.record import Moment, Plan, Record
from sparkpub.site.build import publish
from sparkpub.site.content import SiteOptions
from sparkpub.site.figures.library import Library
from tests.leaderboards import LOAD, TPUT, dataset_of, published, runs_of

Values = Mapping[str, Sequence[float]]
"""A cell, `model/environment/load`, to the value of each of its runs; a load `c8` keeps eight requests in flight."""


def a_library(values: Values, options: SiteOptions, *metrics: str) -> Library:
    """The figures of a campaign of these runs, named and not drawn; each of the metrics has the values."""
    records: list[Record] = []
    for cell, each in values.items():
        model, environment, workload = cell.split("/")
        users = workload.removeprefix("c")
        asked = LOAD | ({"concurrency": int(users)} if users.isdecimal() else {})
        for number, value in enumerate(each, 1):
            (record,) = runs_of(
                model,
                [value],
                metric=TPUT if not metrics else metrics[0],
                metrics=dict.fromkeys(metrics[1:], value),
                load=asked,
                environment=environment,
                workload=workload,
            )
            minute = len(records)
            moment = f"2026-11-20T{10 + minute // 60}:{minute % 60:02d}:00Z"
            records.append(
                published(
                    record,
                    run_id=f"c-{environment}_{model}_{workload}_iter{number:02d}",
                    iteration=number,
                    started=Moment(value=moment, zone="utc"),
                    plan=Plan(position=minute, order="random"),
                )
            )
    return Library(publish(dataset_of(*records), options))


def line(values: Mapping[int, float], model: str = "m", runs: int = 1) -> Values:
    """Some runs at each concurrency."""
    return {f"{model}/native/c{users}": [mean] * runs for users, mean in values.items()}


RATES = (0.1, 0.5, 1.0)


def bears(builds: Mapping[str, Sequence[float]], sources: Path) -> Library:
    """A run of each build at each rate, with so many seconds to the first token."""
    records = []
    for model, waits in builds.items():
        for rate, wait in zip(RATES, waits, strict=False):
            load = {**LOAD, "request_rate": rate}
            del load["concurrency"]
            (record,) = runs_of(
                model,
                [1000 * wait],
                metric="ttft_p95_ms",
                metrics={"tpot_p95_ms": 50.0},
                load=load,
                workload=f"rate{rate:g}",
            )
            records.append(published(record, run_id=f"c-{model}-{rate:g}"))
    return Library(publish(dataset_of(*records), SiteOptions(sources)))
