"""What the operator sees of a collection."""

from sparkpub.collect.progress import Progress


def test_that_the_clock_is_lowered_is_said_once_and_anything_else_each_time() -> None:
    said: list[str] = []
    progress = Progress("c", said.append)
    for run in ("a/b/c 1", "a/b/c 2"):
        progress.event(run, "throttle", "software power cap")
        progress.event(run, "leak", "1.00 GiB")
    assert [line.partition(":")[2].strip() for line in said] == [
        "throttle: software power cap (later runs: in their records)",
        "leak: 1.00 GiB",
        "leak: 1.00 GiB",
    ]
