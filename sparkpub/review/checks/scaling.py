"""Whether more requests at once cost something: a machine that serves more of them makes more tokens in all, or lets
each wait longer. Loads of which neither holds are not what they are called."""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from sparkpub.plan.requested import load_of, options_of
from sparkpub.plan.workloads.load import BATCH, IN_FLIGHT, REQUESTS
from sparkpub.record.record import Record
from sparkpub.record.text import counted
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View, label
from sparkpub.review.physics import THROUGHPUT
from sparkpub.review.reviewed import Cell

LESS_SHARE = Threshold(
    "less share",
    0.05,
    "Relative fall, in throughput and in TTFT alike, from a load to the next larger one. In 664 such pairs of vLLM and "
    "llama.cpp, nearly all with twice as many requests, one of both always rose by 32 % or more; with their names "
    "swapped, 90 of 100 pairs fall by more than this.",
)


class LoadedCell(NamedTuple):
    """A cell with its requests at once and what it got."""

    at_once: int
    cell: Cell
    throughput: float
    first_token: float


def swapped_loads(view: View) -> Iterator[Finding]:
    """Loads of one kind that got less throughput and a shorter TTFT than the next smaller one."""
    kinds: dict[object, list[LoadedCell]] = defaultdict(list)
    for cell, runs in view.counted.items():
        throughput = view.figures(cell, THROUGHPUT)
        first = view.figures(cell, "ttft_mean_ms")
        if not throughput or not first:
            continue
        load = load_of(runs[0].record)
        if load.at_once is not None and load.request_rate is None:
            found = LoadedCell(load.at_once, cell, fmean(throughput), fmean(first))
            kinds[cell[0], cell[1], _kind(runs[0].record)].append(found)
    swapped = [pair for loads in kinds.values() for pair in _impossible(loads)]
    if swapped:
        yield _finding(view, swapped)


def _kind(record: Record) -> tuple[tuple[str, str], ...]:
    """What a load is, but for how many requests there are. Imports may tell a part of it by its name alone."""
    asked = options_of(record).items()
    how_many = ("warmup", *IN_FLIGHT, *REQUESTS, *BATCH)
    name = ("name", re.sub(r"\d+", "", record.workload))
    kept = sorted((key, str(value)) for key, value in asked if key not in how_many)
    return (name, *kept)


def _impossible(loads: list[LoadedCell]) -> Iterator[tuple[LoadedCell, LoadedCell]]:
    share = 1 - LESS_SHARE
    for small, large in pairwise(sorted(loads)):
        slower = large.throughput < share * small.throughput
        sooner = large.first_token < share * small.first_token
        if slower and sooner:
            yield small, large


def _finding(view: View, swapped: list[tuple[LoadedCell, LoadedCell]]) -> Finding:
    small, large = swapped[0]
    text = (
        "The loads may be swapped: more requests at once got fewer tokens and waited less for the first. "
        f"{_got(small)}; {_got(large)}."
    )
    cells = [load.cell for pair in swapped for load in pair]
    return view.concerning("swapped-loads", "warning", text, cells, cases=len(swapped))


def _got(load: LoadedCell) -> str:
    sent = counted(load.at_once, "request")
    return f"{label(load.cell)}: {sent}, {load.throughput:.4g} tok/s, TTFT {load.first_token:.4g} ms"


CHECKS = (
    Check(
        "swapped-loads",
        "meaning",
        ("warning",),
        "Do more requests at once cost something?",
        swapped_loads,
        thresholds=(LESS_SHARE,),
        remedy="Compare the number of requests in the client's log with the name of the load.",
    ),
)
