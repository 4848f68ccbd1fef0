"""Whether the GPU was free before a run began, whoever had used it."""

from collections.abc import Iterator
from statistics import median

from sparkpub.plan.requested import is_of_running_server
from sparkpub.record.store import Stored
from sparkpub.review.checks.evidence import Samples
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.rules import memory_gib
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import Case, View

TENANT_GIB = Threshold(
    "tenant gib",
    0.25,
    "GPU memory in use before a run, above the usual value of the campaign: a CUDA context alone takes this much.",
)
TENANT_SHARE = Threshold(
    "tenant share",
    0.05,
    "Share of GPU memory in use before a run from which another process holds it, even if it is so in every run. A "
    "driver alone uses less than 1 %.",
)
TENANT_LOAD_PERCENT = Threshold(
    "tenant load percent",
    10.0,
    "GPU utilisation before a run from which another process uses it.",
)


def foreign_tenant(view: View) -> Iterator[Finding]:
    """Runs before which memory or load was on the GPU."""
    # A server that lives for several runs has loaded its model before all but the first: that is no stranger. Nor is
    # one that ran before the campaign, or that an imported client measured.
    alone = [
        run
        for run in view.happened
        if "server" not in run.record.observed.settings
        and not is_of_running_server(run.record)
        and run.record.plan.order != "as-published"
    ]
    before = {run.record.run_id: _used_before(view, run) for run in alone}
    known = [used for used in before.values() if used is not None]
    usual = median(known) if known else 0.0
    found: list[Case] = []
    for stored in alone:
        record, samples = stored.record, view.evidence.of(stored).samples
        used, total = before[record.run_id], memory_gib(record)
        load = None if samples is None else _load_before(samples)
        problems = []
        if used is not None and not record.machine.unified_memory:
            if used > usual + TENANT_GIB:
                problems.append(
                    f"{used:.2f} GiB were in use before it, and {usual:.2f} GiB usually are"
                )
            elif total and used > TENANT_SHARE * total:
                problems.append(f"{used:.2f} of {total:.0f} GiB were in use before it")
        if load is not None and load >= TENANT_LOAD_PERCENT:
            problems.append(f"the GPU was {load:.0f} % busy before it")
        if problems:
            found.append((stored, "; ".join(problems)))
    yield from view.cases(
        "foreign-load",
        "warning",
        found,
        "began on a GPU that another process used",
        remedy="Free the GPU, set exclusive_gpu: and min_free_memory_percent: in gates:, and re-run.",
    )


def _load_before(samples: Samples) -> float | None:
    """The usual utilisation of the GPU before the launch; None where no sample was taken then."""
    idle = samples.known("gpu_utilization_percent", samples.times < 0)
    return median(idle.tolist()) if len(idle) else None


def _used_before(view: View, stored: Stored) -> float | None:
    """GPU memory in use before the run: by the samples, else by the memory ledger, else by the tool's own report."""
    record, samples = stored.record, view.evidence.of(stored).samples
    used = None if samples is None else samples.before("gpu_memory_used_gib")
    if used is not None:
        return used
    if record.memory is not None and record.memory.baseline.gpu_used_gib is not None:
        return record.memory.baseline.gpu_used_gib
    return record.value("device_used_before_gib")
