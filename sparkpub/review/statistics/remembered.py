"""Answers of this package, kept on disk: what the same figures say is worked out once, and SciPy, which takes longer to
load than a site to build, is not loaded where nothing is new.

    with memory.kept(cache / "statistics.json"):
        ...  # functions marked `@remembered` answer from there
"""

import functools
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from types import GenericAlias
from typing import Any, ParamSpec, TypeVar, get_type_hints

from pydantic import TypeAdapter

from sparkpub.record.store import write_atomic

P = ParamSpec("P")
R = TypeVar("R")


class _Memory:
    """The answers in a file, by function and by a digest of what was asked."""

    def __init__(self, place: Path) -> None:
        self._place, self._code = place, _code()
        self._written: dict[str, dict[str, Any]] = {}
        self._known: dict[str, dict[str, Any]] = {}
        self._used: dict[str, dict[str, Any]] = {}
        self._adapters: dict[str, TypeAdapter[dict[str, Any]]] = {}
        try:
            document = json.loads(place.read_text(encoding="utf-8"))
            if document["code"] == self._code:
                self._written = document["answers"]
        except (OSError, ValueError, KeyError, TypeError):
            pass  # a memory that cannot be read knows nothing

    def answer(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """What the function said before, or says now."""
        if name not in self._used:
            answers: Any = GenericAlias(dict, (str, get_type_hints(function)["return"]))
            self._adapters[name] = TypeAdapter(answers)
            self._known[name] = self._adapters[name].validate_python(self._written.get(name, {}))
            self._used[name] = {}
        known, used = self._known[name], self._used[name]
        key = hashlib.blake2b(json.dumps((args, kwargs), sort_keys=True).encode(), digest_size=12).hexdigest()
        if key not in used:
            used[key] = known[key] if key in known else function(*args, **kwargs)
        return used[key]

    def save(self) -> None:
        """Write what this process asked, if that is not what the file says."""
        if any(used.keys() != self._written.get(name, {}).keys() for name, used in self._used.items()):
            self._written = {name: self._adapters[name].dump_python(used, mode="json")
                             for name, used in self._used.items()}  # fmt: skip
            self._place.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self._place, json.dumps({"code": self._code, "answers": self._written}), durable=False)


_memory: _Memory | None = None
_known: dict[Path, _Memory] = {}


@contextmanager
def kept(place: Path) -> Iterator[None]:
    """Within, functions that are `remembered` answer from a file, which then holds what this process asked."""
    global _memory  # noqa: PLW0603 - a pure function has no other place to remember in
    if place not in _known:
        _known[place] = _Memory(place)
    _memory = _known[place]
    try:
        yield
        _memory.save()
    finally:
        _memory = None


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """A pure function of numbers and words; its answer must be made of plain values and dataclasses of them."""
    name = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def answer(*args: P.args, **kwargs: P.kwargs) -> R:
        if _memory is None:
            return function(*args, **kwargs)
        found: R = _memory.answer(name, function, args, kwargs)
        return found

    return answer


def _code() -> str:
    """A digest of this package's code and of the libraries that compute."""
    parts = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    versions = [metadata.version(name).encode() for name in ("numpy", "scipy")]
    return hashlib.sha256(b"\0".join([*parts, *versions])).hexdigest()
