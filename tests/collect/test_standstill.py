"""What clocks show of a run."""

import pytest

from sparkpub.collect.standstill import Clocks, clocks_parted

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
