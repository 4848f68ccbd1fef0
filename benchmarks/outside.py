"""`python -m benchmarks.outside`: what comes from outside, tried: damaged inputs of every kind, and planted secrets.

Inputs and forms of secrets are those of `tests/adversarial`, many more of them. A traceback is anything but a result or
an error in lines; a hang is an input that takes more than five seconds of the processor; memory is the largest that the
process had.
"""

import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from types import FrameType

from benchmarks import harness
from benchmarks.harness import Row, row
from tests.adversarial import inputs
from tests.adversarial.inputs import Kind
from tests.adversarial.secrets import FORMS
from tests.adversarial.test_secrets import PLACES, seen

EACH = 600
"""Inputs of each kind."""
HANG_SECONDS = 5.0
SEED = 100_000


class HangError(BaseException):
    """An input took too long."""


def _ring(_signal: int, _frame: FrameType | None) -> None:
    raise HangError


def tried(name: str, kind: Kind, count: int) -> tuple[int, int, float]:
    """Tracebacks, hangs and the longest time of one input, in seconds of the processor."""
    tracebacks, hangs, longest = 0, 0, 0.0
    for seed, file, content in inputs.inputs(kind, SEED, count):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            signal.setitimer(signal.ITIMER_VIRTUAL, HANG_SECONDS, 1.0)
            began = time.process_time()
            try:
                problem = inputs.outcome(kind, file, content, Path(folder))
            except HangError as error:
                problem = error
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            longest = max(longest, time.process_time() - began)
        if isinstance(problem, HangError):
            hangs += 1
        elif problem is not None:
            tracebacks += 1
        if problem is not None:
            print(f"{name}, seed {seed}, {file}: {problem!r}"[:300], file=sys.stderr)
    return tracebacks, hangs, longest


def fuzzed(count: int) -> list[Row]:
    """Inputs of every kind."""
    signal.signal(signal.SIGVTALRM, _ring)
    rows = []
    total = tracebacks = hangs = 0
    slowest = 0.0
    kinds = inputs.kinds()
    for name, kind in kinds.items():
        failed, hung, longest = tried(name, kind, count)
        print(f"{name}: {count} inputs, {failed} tracebacks, {hung} hangs", flush=True)
        total += count
        tracebacks += failed
        hangs += hung
        slowest = max(slowest, longest)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    of_kinds = f"damaged inputs of {len(kinds)} kinds"
    rows.append(row(of_kinds, [total], "inputs", goal=-10_000))
    rows.append(row("tracebacks", [tracebacks], "inputs", goal=0))
    rows.append(row("hangs over 5 s", [hangs], "inputs", goal=0))
    rows.append(row("the slowest input", [slowest], "s of a core"))
    rows.append(row("peak memory", [memory], "GiB"))
    return rows


def planted(rounds: int) -> list[Row]:
    """Every form of a secret in every place."""
    count = left = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            for name, form in FORMS.items():
                for place, keep in PLACES.items():
                    if place == "long-line" and name.startswith(("key-", "lines-")):
                        continue
                    item = form(Random(number))
                    count += 1
                    left += bool(seen(item, keep(item.text, Path(folder))))
    what = f"secrets planted, {len(FORMS)} forms in {len(PLACES)} places"
    return [
        row(what, [count], "secrets"),
        row("secrets left", [left], "secrets", goal=0),
    ]


def main() -> None:
    """Measure and write the result."""
    parser = harness.parser(__doc__)
    parser.add_argument(
        "count", nargs="?", type=int, default=EACH, help="inputs of each kind"
    )
    count: int = parser.parse_args().count
    rows = [*fuzzed(count), *planted(3)]
    notes = [
        "Kinds: " + "; ".join(inputs.kinds()) + ".",
        f"Seeds {SEED:,} to {SEED + count - 1:,} of tests/adversarial/mutations.py: "
        "insertions, cuts, repetitions, changed bytes, numbers and words, other codings; "
        "other values and keys in documents that stay whole (values). "
        "Runs and evidence are reviewed, summed up and exported, too.",
    ]
    question = "Does anything that comes from outside crash or hang a command, or leave a secret in a file?"
    harness.save(
        "outside",
        title="What comes from outside",
        question=question,
        rows=rows,
        notes=notes,
        packages=["google-re2"],
    )


if __name__ == "__main__":
    main()
