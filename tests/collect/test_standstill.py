"""What clocks and a missing heartbeat show of a run."""

import signal
import time
from pathlib import Path

import pytest

from sparkpub.collect.standstill import Clocks, Heart, clocks_parted
from tests.collect.collecting import a_matrix, records
from tests.collect.test_interruption import a_collector, running, until

BEGAN = Clocks(monotonic=100.0, boot=1100.0, wall=5000.0)


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (Clocks(160.0, 1160.0, 5060.0), []),
        (
            Clocks(160.0, 1161.0, 5061.0),
            [],
        ),  # a second is within what clocks may differ by
        (Clocks(160.0, 1460.0, 5360.0), ["the machine slept for 300 s"]),
        (Clocks(160.0, 1160.0, 8660.0), ["the machine's clock was set by +3600 s"]),
        (Clocks(160.0, 1160.0, 4960.0), ["the machine's clock was set by -100 s"]),
        (
            Clocks(160.0, 1460.0, 5060.0),
            ["the machine slept for 300 s", "the machine's clock was set by -300 s"],
        ),
    ],
)
def test_clocks_that_part_tell_a_sleep_from_a_clock_that_was_set(
    ended: Clocks, said: list[str]
) -> None:
    assert clocks_parted(BEGAN, ended) == said


def test_a_heart_keeps_its_longest_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    heart = Heart()
    began = heart.began.monotonic
    for later in (0.5, 1.0, 13.0, 13.5):
        monkeypatch.setattr(time, "monotonic", lambda later=later: began + later)
        heart.beat()
    assert heart.longest == pytest.approx(12.0)
    assert heart.findings()[0].startswith("the collector did not run for 12 s: ")


def test_a_collector_that_was_stopped_marks_its_run(tmp_path: Path) -> None:
    """The run ended meanwhile: its duration is that of the collector's pause. It lasts long enough to be stopped on a
    busy machine."""
    with a_collector(
        tmp_path, a_matrix("echo rate 5; sleep 5", iterations=1)
    ) as collector:
        until(lambda: running(tmp_path))
        collector.send_signal(signal.SIGSTOP)
        time.sleep(7)
        collector.send_signal(signal.SIGCONT)
        collector.communicate(timeout=30)
    (record,) = records(tmp_path)
    (note,) = [event.text for event in record.events if event.kind == "note"]
    assert note.startswith("the collector did not run for ")
