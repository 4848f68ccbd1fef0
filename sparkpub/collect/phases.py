"""The stretches of a run: its start-up and its measured phase, in seconds since the launch.

A payload of ours times its phases itself. Other tools print a line with which the measurement begins, or one with
which it ends, and report how long it took.
"""

from sparkpub.plan.workloads.base import Answer
from sparkpub.record.record import Phase

STARTUP, MEASURE = "startup", "measure"
"""Names of phases; the payloads use the second, too."""
UNKNOWN = (
    "the measured phase is not known: nothing that was printed places it in the run"
)


def timed_by_payload(answer: Answer, launched_epoch: float) -> tuple[Phase, ...]:
    """The phases that a payload reports, moved to the run's clock: it counts from its own start, after the launch.

    `launched_epoch` is the UNIX time of the launch in seconds.
    """
    shift = 0.0
    if answer.phases_epoch is not None:
        shift = max(0.0, answer.phases_epoch - launched_epoch)
    return tuple(
        Phase(
            name=phase.name,
            start_seconds=phase.start_seconds + shift,
            end_seconds=phase.end_seconds + shift,
        )
        for phase in answer.phases
    )


def seen_in_log(
    answer: Answer, began: float | None, ended: float | None, duration: float
) -> tuple[Phase, ...]:
    """Start-up and measured phase by what was printed; empty where that does not place them.

    `began` and `ended` are when the lines that begin and end the measurement were printed. A measurement that has
    both lies between them, else the length that the tool reports reaches from the one that is there.
    """
    length = reported_seconds(answer)
    if began is None and ended is not None and length is not None:
        began = ended - length
    elif began is not None and ended is None:
        ended = duration if length is None else began + length
    if began is None or ended is None:
        return ()
    start = max(0.0, began)
    end = min(ended, duration)
    if end <= start:
        return ()
    return (
        Phase(name=STARTUP, start_seconds=0.0, end_seconds=start),
        Phase(name=MEASURE, start_seconds=start, end_seconds=end),
    )


def reported_seconds(answer: Answer) -> float | None:
    """How long the tool says that it measured, in seconds; None where it does not."""
    seconds = answer.observed.measured_seconds
    if (
        seconds is None
        and (metric := answer.metrics.get("measured_time_ms")) is not None
        and metric.value is not None
    ):
        seconds = metric.value / 1e3
    return seconds


def measured(phases: tuple[Phase, ...]) -> Phase | None:
    """The measured phase; None where it is not known."""
    return next((phase for phase in phases if phase.name == MEASURE), None)
