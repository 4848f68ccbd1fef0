"""Whether runs that are pooled or compared are of one machine and one software."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.values import memory_gib
from sparkpub.review.checks.view import View, ids, label
from sparkpub.review.frame import Cell

_Read = Callable[[Record], object]
_POOLED: dict[str, tuple[bool, _Read]] = {
    "machine": (True, lambda record: record.machine.id),
    "GPU": (True, lambda record: ", ".join(gpu.name for gpu in record.machine.gpus) or None),
    "memory": (True, lambda record: (total := memory_gib(record)) and round(total)),
    "engine version": (True, lambda record: record.observed.engine_version),
    "container image": (True, lambda record: record.container.image_id if record.container else None),
    "driver": (False, lambda record: record.machine.driver),
    "kernel": (False, lambda record: record.machine.kernel),
    "power mode": (False, lambda record: record.machine.power_mode),
    "locked clock": (False, lambda record: record.machine.clocks_locked_mhz),
}  # fmt: skip
"""What runs of one cell must share: whether another value forbids pooling (else casts doubt), and where it is."""
_COMPARED = ("machine", "GPU", "memory", "engine version")
"""What cells that are compared must share too."""


def mixed_machines(view: View) -> Iterator[Finding]:
    """Cells that pool runs of different machines or software, and comparisons that are also between those."""
    groups: dict[tuple[str, str], dict[Cell, Sequence[Stored]]] = defaultdict(dict)
    for cell, runs in view.counted.items():
        groups[cell[0], cell[2]][cell] = runs
        for what, (fatal, read) in _POOLED.items():
            values = _distinct(runs, read)
            if len(values) > 1:
                text = f"The runs of {label(cell)} were pooled although their {what} differs: {' and '.join(values)}."
                yield view.finding("mixed-machines", "error" if fatal else "warning", text, cell=cell, runs=ids(runs),
                                   what=what, values=values)  # fmt: skip
    for (model, workload), cells in groups.items():
        for what in _COMPARED:
            each = {cell: _distinct(runs, _POOLED[what][1]) for cell, runs in cells.items()}
            values = sorted({value for own in each.values() for value in own})
            if len(values) > 1 and all(len(own) <= 1 for own in each.values()):
                text = (
                    f"The environments of {model}/{workload} differ in more than the environment: {what} is "
                    f"{' and '.join(values)}. The comparison is between those, too."
                )
                yield view.finding("mixed-machines", "warning", text, cells=[label(cell) for cell in each], what=what,
                                   values=values)  # fmt: skip


def _distinct(runs: Sequence[Stored], read: _Read) -> list[str]:
    return sorted({str(value) for stored in runs if (value := read(stored.record)) is not None})


CHECKS = (
    Check(
        "mixed-machines",
        "meaning",
        ("error", "warning"),
        "Is what was pooled and compared of one machine?",
        mixed_machines,
    ),
)
