"""Other processes that take work off a build, where the machine has cores for them."""

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_CORES = len(os.sched_getaffinity(0))


def begin(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> Callable[[], T]:
    """What gives the result of `work`, a function of a module: it waits for the process that does it, and does here
    what none has begun.

    results = [begin(work, item) for item in items]
    for result in reversed(results):  # from the end that nobody has begun
        result()
    """
    if _CORES == 1 or multiprocessing.parent_process() is not None:
        return partial(work, *given, **named)
    begun = _pool().submit(work, *given, **named)

    def result() -> T:
        return work(*given, **named) if begun.cancel() else begun.result()

    return result


def stop() -> None:
    """End the other processes. What none has begun is not done."""
    if _pool.cache_info().currsize:
        _pool().shutdown(cancel_futures=True)
        _pool.cache_clear()


@cache
def _pool() -> ProcessPoolExecutor:
    """A process for every core but that of the build itself, each begun when there is work for it."""
    # A forked process hangs once V8 has started in its parent, so processes are spawned.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(_CORES - 1, mp_context=context, initializer=_prepare)


def _prepare() -> None:
    """Ctrl-C is for the build itself. What is loaded here lasts: see `mkdocs._build`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
