"""The line on what records do not tell."""

from sparkpub.record.record import Machine, Observed
from sparkpub.review.checks.happened import unrecorded
from tests.review.checks.in_memory import a_run, a_view


def test_each_fact_that_runs_lack_is_told_with_their_number() -> None:
    whole = {
        "machine": Machine(id="m1"),
        "observed": Observed(engine="e", engine_version="1"),
    }
    found = unrecorded(a_view(a_run(**whole), a_run(iteration=2)).campaign)
    assert sorted(found) == [
        "the log, the telemetry, when the measured phase began and ended, the command line of the tool (2 of 2 runs)",
        "the machine, the engine's version (1 of 2 runs)",
    ]
