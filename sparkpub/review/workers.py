"""Many campaigns reviewed on every core, so that whoever asks next finds them in their memories.

A process of its own reads a campaign's files and reviews it; what it found goes through the user's cache folder, as
from one command to the next. Few runs are reviewed sooner than processes start.
"""

import concurrent.futures
import multiprocessing
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from sparkpub.record.store import campaign_folders
from sparkpub.review.checks import review
from sparkpub.review.dataset import Dataset, Loader
from sparkpub.review.memory import Keeper
from sparkpub.review.summary import statistics

FEWEST_FILES = 1_000
"""Files of campaigns that are not known yet from which processes are worth their start: some 200 runs."""
_NEEDED = ("scipy.stats",)
"""What every review imports sooner or later."""


def review_ahead(
    loader: Loader, keeper: Keeper, data: Sequence[Path], *, figures: bool = False
) -> None:
    """Review the campaigns below the folders `data` that are not known yet, where they are many; with `figures`, work
    out their statistics too. Damage is left to the `loader`."""
    done = ("reviewed ahead", figures)
    unknown: dict[Path, int] = {}
    for root in data:
        for folder in campaign_folders(root):
            memory = loader.memory(folder)
            if memory.data(done) is None:
                unknown[folder] = len(memory.state)
    cores = len(os.sched_getaffinity(0))
    if cores == 1 or len(unknown) == 1 or sum(unknown.values()) < FEWEST_FILES:
        return
    largest_first = sorted(unknown, key=lambda folder: -unknown[folder])
    # One process imports what the others need and splits into them. It runs no thread, and knows nothing of this one.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *_NEEDED])
    work = partial(_review, keeper, done)
    with concurrent.futures.ProcessPoolExecutor(cores, mp_context=context) as pool:
        for _ in pool.map(work, largest_first):
            pass


def _review(keeper: Keeper, done: tuple[str, bool], folder: Path) -> None:
    """Review one campaign and keep what was found; nothing where it is damaged."""
    dataset = Loader(keeper).load_campaign(folder)
    if dataset is None:
        return
    found = review(dataset)
    figures = done[1]
    if figures:
        statistics(dataset, found.frames)
    for campaign in dataset.campaigns.values():
        campaign.memory.keep(done, True)


def load_known(
    data: Path,
    *more: Path,
    skip: Callable[[str], None] | None = None,
    figures: bool = False,
) -> Dataset:
    """Every campaign of the data folders, reviewed before where it is known; see `Loader.load`."""
    keeper = Keeper.of_user()
    loader = Loader(keeper)
    review_ahead(loader, keeper, [data, *more], figures=figures)
    return loader.load(data, *more, skip=skip)
