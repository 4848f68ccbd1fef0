"""Many campaigns reviewed on every core, so that whoever asks next finds them in their memories.

A process of its own reads a campaign's files and reviews it; what it found goes through the user's cache folder, as
from one command to the next. No process holds the records of more than one campaign, however many there are. Few runs
are reviewed sooner than processes start.
"""

import concurrent.futures
import gc
import importlib
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

from sparkpub.record.record import Record
from sparkpub.record.store import campaign_folders
from sparkpub.review.checks import review
from sparkpub.review.dataset import Dataset, Loader
from sparkpub.review.export import campaign_table
from sparkpub.review.frame import Frame
from sparkpub.review.memory import Keeper
from sparkpub.review.statistics_json import texts_of_campaign
from sparkpub.review.summary import statistics_of

FEWEST_FILES = 1_000
"""Files of campaigns that are not known yet from which processes are worth their start: some 200 runs."""
Wanted = Literal["review", "figures", "figures as JSON", "table"]
"""What a command takes from every campaign."""
_WANTED: Mapping[Wanted, Callable[[Frame], object]] = {
    "review": lambda _: None,
    "figures": statistics_of,
    "figures as JSON": texts_of_campaign,
    "table": campaign_table,
}
"""What makes it, and keeps it."""
_ALLOCATED = 50_000
"""Objects after which a process looks for garbage again; Python's own number is 700."""
_NEEDED = ("scipy.special", "scipy.fft")
"""What every review imports at its first use: once here, and not in every process."""


def review_ahead(
    loader: Loader, keeper: Keeper, data: Sequence[Path], wanted: Wanted = "review"
) -> None:
    """Review the campaigns below the folders `data` that are not known yet, where they are many, and make what is
    `wanted` of each. Damage is left to the `loader`."""
    done = ("reviewed ahead", wanted)
    unknown: dict[Path, int] = {}
    for root in data:
        for folder in campaign_folders(root):
            memory = loader.memory(folder)
            if not memory.holds(done):
                unknown[folder] = len(memory.state)
    if len(unknown) == 1 or sum(unknown.values()) < FEWEST_FILES:
        return
    for name in _NEEDED:
        importlib.import_module(name)
    Record.model_rebuild()
    largest_first = sorted(unknown, key=lambda folder: -unknown[folder])
    work = partial(_review, keeper, wanted)
    cores = len(os.sched_getaffinity(0))
    if cores == 1:
        for folder in largest_first:
            work(
                folder
            )  # one at a time, so that the records of a few are held and not of all
        return
    with concurrent.futures.ProcessPoolExecutor(
        cores, mp_context=_splitting(), initializer=_begin
    ) as pool:
        for _ in pool.map(work, largest_first):
            pass


def _splitting() -> multiprocessing.context.BaseContext:
    """How processes begin: as copies of this one, which has imported what they need; where it runs threads, whose locks
    a copy would hold for ever, as copies of a fresh one."""
    if threading.active_count() == 1:
        return multiprocessing.get_context("fork")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *_NEEDED])
    return context


def _begin() -> None:
    """Look for garbage seldom, and never in what was imported before the process began: it was an eighth of the work,
    and found next to nothing."""
    gc.freeze()
    gc.set_threshold(_ALLOCATED)


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Look for garbage seldom meanwhile: the states and runs of many campaigns are made, and none of them is any."""
    before = gc.get_threshold()
    gc.set_threshold(_ALLOCATED)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _review(keeper: Keeper, wanted: Wanted, folder: Path) -> None:
    """Review one campaign and keep what was found; nothing where it is damaged, or where that was done before."""
    done = ("reviewed ahead", wanted)
    loader = Loader(keeper)
    if loader.memory(folder).data(done) is not None:
        return
    dataset = loader.load_campaign(folder)
    if dataset is None:
        return
    for frame in review(dataset).frames.values():
        _WANTED[wanted](frame)
        frame.campaign.memory.keep(done, True)


def load_known(
    data: Path,
    *more: Path,
    skip: Callable[[str], None] | None = None,
    wanted: Wanted = "review",
) -> Dataset:
    """Every campaign of the data folders, reviewed before where it is known; see `Loader.load`. What is `wanted` of
    many campaigns is made on every core, too."""
    keeper = Keeper.of_user()
    loader = Loader(keeper)
    with _seldom_collected():
        review_ahead(loader, keeper, [data, *more], wanted)
        return loader.load(data, *more, skip=skip)
