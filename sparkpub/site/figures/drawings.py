"""The drawings of a build: from the cache where they were made before, else compiled while pages are being made."""

import concurrent.futures
import multiprocessing
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic_core import from_json, to_json

from sparkpub.record.errors import SiteError
from sparkpub.site import cache
from sparkpub.site.cache import Cache
from sparkpub.site.figures.compile import Compiled, Job, compile_chart
from sparkpub.site.figures.converter import LEVEL, VEGA_LITE, VERSION, png

POOL_FROM = 24
"""Cold charts from which other processes pay for their start."""
CHUNK = 4
"""Charts that travel to another process at once."""
MOST_SENT = 16
"""Chunks that wait for a process or were drawn and not taken yet: each holds the rows of its charts."""
MOST_HELD = 300
"""Drawings that stay in memory. A site with many campaigns has more; the cache holds those."""
_CORES = len(os.sched_getaffinity(0))
_SOURCES = Path(__file__).parent
"""Where the code is that decides a drawing."""


class Drawings:
    """Compiles charts while their pages are still being made.

    What the cache holds is there at once. The first `POOL_FROM` others wait for the end, in case they are all; beyond
    that, other processes begin to compile.

        with Drawings(cache) as drawings:
            drawings.want(job)  # as often as there are charts
            compiled = drawings.finished()
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._versions = _versions()
        self._names: dict[str, str] = {}
        self._found: dict[str, Compiled] = {}
        self._waiting: list[Job] = []
        self._sent: deque[concurrent.futures.Future[list[Compiled]]] = deque()
        self._pool: concurrent.futures.ProcessPoolExecutor | None = None
        if cache.empty and _CORES > 1:
            self._start()  # with nothing known there will be work, and starting takes a second

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def want(self, job: Job) -> None:
        """Have a chart compiled. Jobs of one key are one chart."""
        if job.key in self._names:
            return
        name = self._name(job)
        self._names[job.key] = name
        entry = self._cache.get(name)
        if entry is not None:
            self._hold(Compiled(*from_json(entry)))
            return
        self._waiting.append(job)
        enough = CHUNK
        if self._pool is None:
            enough = POOL_FROM
        if len(self._waiting) >= enough and _CORES > 1:
            self._send(self._pool or self._start())

    def finished(self) -> "Finished":
        """Key to chart, for every chart wanted. Raises SiteError naming one that cannot be compiled."""
        if self._pool is not None:
            self._send(self._pool)
        self._take(compile_all(self._waiting))
        while self._sent:
            self._take(self._sent.popleft().result())
        return Finished(self._names, self._found, self._cache)

    def _take(self, drawn: Sequence[Compiled]) -> None:
        """Keep what was drawn, in memory at least where the cache cannot."""
        for compiled in drawn:
            name = self._names[compiled.key]
            self._cache.put(name, to_json(astuple(compiled)))
            if self._cache.get(name) is None:
                self._found[compiled.key] = compiled
            else:
                self._hold(compiled)

    def _hold(self, compiled: Compiled) -> None:
        """Keep a drawing that the cache has in memory too, as long as there are few."""
        if len(self._found) < MOST_HELD:
            self._found[compiled.key] = compiled

    def _name(self, job: Job) -> str:
        """The key in the cache: charts, data, and everything that compiles them."""
        return cache.key(
            "chart",
            job.key,
            job.chart.identity,
            job.data,
            self._versions,
        )

    def _start(self) -> concurrent.futures.ProcessPoolExecutor:
        # A forked process hangs once V8 has started in its parent, so processes are spawned.
        context = multiprocessing.get_context("spawn")
        self._pool = concurrent.futures.ProcessPoolExecutor(_CORES, mp_context=context)
        self._sent += [self._pool.submit(compile_all, []) for _ in range(_CORES)]
        return self._pool

    def _send(self, pool: concurrent.futures.ProcessPoolExecutor) -> None:
        for start in range(0, len(self._waiting), CHUNK):
            self._sent.append(
                pool.submit(compile_all, self._waiting[start : start + CHUNK])
            )
        self._waiting = []
        while len(self._sent) > MOST_SENT:
            self._take(self._sent.popleft().result())


class Finished(Mapping[str, Compiled]):
    """Key to chart: those that are not in memory are read from the cache as they are asked for."""

    def __init__(
        self, names: Mapping[str, str], held: Mapping[str, Compiled], cache: Cache
    ) -> None:
        self._names = names
        self._held = held
        self._cache = cache

    def __getitem__(self, key: str) -> Compiled:
        held = self._held.get(key)
        if held is not None:
            return held
        entry = self._cache.get(self._names[key])
        if entry is None:
            raise SiteError(
                f"the drawing of chart {key!r} was deleted from the cache while the site was being built",
                remedy="build again",
            )
        return Compiled(*from_json(entry))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def compile_all(jobs: Sequence[Job]) -> list[Compiled]:
    """Compile the jobs one after the other."""
    return [compile_chart(job) for job in jobs]


def as_png(svg: str, kept: Cache, *, scale: float = 1.0) -> bytes:
    """A drawing as PNG, from the cache where it was made before."""
    name = cache.key("picture", VERSION, LEVEL, scale, svg)
    picture = kept.get(name)
    if picture is None:
        picture = png(svg, scale=scale)
        kept.put(name, picture)
    return picture


def _versions() -> list[str]:
    return [metadata.version("altair"), VERSION, VEGA_LITE, cache.code(_SOURCES)]
