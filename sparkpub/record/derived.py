"""Metrics that follow from others of the same run, and that no record holds: worked out wherever runs are read.

`derived(record)` gives their values by name; what they are stands in metrics.toml. Whoever describes or compares runs
asks `values_of`, which treats them like those that the record holds.
"""

from sparkpub.record.record import Record

PHASE_TOLERANCE = 0.02
"""How much longer than the requests that count a measured phase may last, relatively, for its energy to be theirs."""
_JOULE_PER_WATT_HOUR = 3600
DERIVED = ("output_tokens_per_joule", "energy_per_million_tokens_wh")
"""Names of all of them."""


def values_of(record: Record) -> dict[str, float]:
    """Metric to value, of everything that is known of a run."""
    held: dict[str, float] = {
        name: metric.value
        for name, metric in record.metrics.items()
        if metric.value is not None
    }
    return held | derived(record)


def derived(record: Record) -> dict[str, float]:
    """Metric to value, for those whose sources the run has and which the record does not hold itself."""
    joule, tokens = _energy_of_output(record), _output_tokens(record)
    if joule is None or tokens is None:
        return {}
    watt_hours = joule / _JOULE_PER_WATT_HOUR
    values = (tokens / joule, 1e6 * watt_hours / tokens)
    found = zip(DERIVED, values, strict=True)
    return {name: value for name, value in found if name not in record.metrics}


def _output_tokens(record: Record) -> float | None:
    """The tokens that a run generated in its measured phase; None where it does not say."""
    requests, length = record.observed.requests, record.observed.output_tokens_mean
    if not requests or not length:
        return None
    return requests * length


def _energy_of_output(record: Record) -> float | None:
    """The GPU energy in joule that went into the tokens that count; None where more went into it, or nothing says it.

    A run without a start-up time has its energy over the whole run, and llama-bench warms up and fills its context
    within the phase that its log shows: what that energy was spent on is not only the tokens that count.
    """
    if record.value("startup_seconds") is None or not _nothing_else(record):
        return None
    return record.value("gpu_energy_joule") or None


def _nothing_else(record: Record) -> bool:
    """Whether the measured phase lasted as long as the requests that count, so that its energy is theirs."""
    counted = record.observed.measured_seconds
    phase = next((phase for phase in record.phases if phase.name == "measure"), None)
    if counted is None or phase is None:
        return False
    return phase.end_seconds - phase.start_seconds <= counted * (1 + PHASE_TOLERANCE)
