"""Other processes that take work off a build, where the machine has cores for them."""

import atexit
import gc
import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from importlib import import_module
from threading import Thread
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
GARBAGE_FROM = 200_000
"""Objects after which Python looks for garbage."""
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
    # Here and now: by the time that the pool does it, this process goes on with what is given.
    begun = _pool().submit(_done, pickle.dumps(partial(work, *given, **named)))

    def result() -> T:
        if begun.cancel():
            return work(*given, **named)
        made: T = begun.result()
        return made

    return result


def _done(work: bytes) -> Any:
    """In the other process: the result of what `begin` was given."""
    return pickle.loads(work)()  # noqa: S301 - this program wrote it


def load(module: str) -> None:
    """Load a module, for `begin`: what another process needs next is there then."""
    import_module(module)


def stop() -> None:
    """End the other processes, without waiting for that. What none has begun is not done."""
    if _pool.cache_info().currsize:
        _pool().shutdown(wait=False, cancel_futures=True)
        _pool.cache_clear()


@cache
def _pool() -> ProcessPoolExecutor:
    """A process for every core but that of the build itself, each begun when there is work for it."""
    # A forked process hangs once V8 has started in its parent, so processes are spawned.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(_CORES - 1, mp_context=context, initializer=_prepare)


def _prepare() -> None:
    """Ctrl-C is for the build itself, and a build that is killed leaves nobody who waits for work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_build, daemon=True).start()
    spare_memory()


def _end_with_build() -> None:
    build = multiprocessing.parent_process()
    assert build is not None
    build.join()
    os._exit(1)


def spare_memory() -> None:
    """Nearly everything that a build makes lasts: looking for garbage among it every few hundred objects takes a tenth
    of the time, and never doing so twice the memory. What Arrow no longer needs goes back to the system. As Python ends
    it need not look at all."""
    import pyarrow  # noqa: PLC0415 - a build of what is unchanged does without

    gc.set_threshold(GARBAGE_FROM)
    atexit.register(gc.freeze)
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
