"""The figures of a small campaign."""

from collections.abc import Mapping, Sequence

from sparkpub.record.record import Moment, Plan, Record, Requested
from sparkpub.review.reviewed import Cell
from sparkpub.site.build import publish
from sparkpub.site.content import SiteOptions
from sparkpub.site.figures.library import Library
from tests.building import a_record
from tests.leaderboards import dataset_of, published

THROUGHPUT, TTFT, MEMORY = (
    "output_throughput_tok_s",
    "ttft_p50_ms",
    "device_used_peak_gib",
)
TPOT = "tpot_p50_ms"
Runs = Mapping[Cell, Sequence[Mapping[str, float]]]
"""Model, environment and workload to the metrics of each run. A workload `c8` keeps eight requests in flight."""


def a_library(runs: Runs, options: SiteOptions) -> Library:
    """The figures of a campaign of these runs, named and not drawn."""
    records: list[Record] = []
    for (model, environment, workload), each in runs.items():
        more = {}
        if workload[1:].isdecimal() and workload[0] == "c":
            asked = {"type": "vllm-bench", "concurrency": int(workload[1:])}
            more["requested"] = Requested(
                model_id=f"x/{model}", workload=asked, environment={"type": "host"}
            )
        for iteration, metrics in enumerate(each, 1):
            hour, minute = divmod(len(records), 60)
            record = a_record(
                metrics,
                run_id=f"c-{environment}_{model}_{workload}_iter{iteration:02d}",
                model=model,
                environment=environment,
                workload=workload,
                iteration=iteration,
                started=Moment(
                    value=f"2026-11-20T{10 + hour}:{minute:02d}:00Z", zone="utc"
                ),
                plan=Plan(position=len(records), order="random"),
                **more,
            )
            records.append(published(record))
    return Library(publish(dataset_of(*records), options))
