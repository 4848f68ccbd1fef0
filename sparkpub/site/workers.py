"""Other processes that take work off a build, where the machine has cores for them."""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_CORES = len(os.sched_getaffinity(0))


class Workers(ExitStack):
    """A process for every core but that of the build itself, begun when one is first asked.

    with Workers() as workers:
        results = [workers.begin(work, item) for item in items]
        for result in reversed(results):  # from the end that nobody has begun
            result()
    """

    def __init__(self) -> None:
        super().__init__()
        self._pool: ProcessPoolExecutor | None = None

    def begin(
        self, work: Callable[P, T], *given: P.args, **named: P.kwargs
    ) -> Callable[[], T]:
        """What gives the result of `work`, a function of a module: it waits for the process that does it, and does here
        what none has begun."""
        if _CORES == 1:
            return partial(work, *given, **named)
        if self._pool is None:
            # A forked process hangs once V8 has started in its parent, so processes are spawned.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(_CORES - 1, mp_context=context)
            self.callback(self._pool.shutdown, cancel_futures=True)
        begun = self._pool.submit(work, *given, **named)

        def result() -> T:
            return work(*given, **named) if begun.cancel() else begun.result()

        return result
