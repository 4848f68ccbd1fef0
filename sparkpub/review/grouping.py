"""Things that belong together, by what they share."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

K = TypeVar("K")
T = TypeVar("T")


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Key to the items that have it, keys and items in the order met: `itertools.groupby` wants them sorted first."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


class RowList(list[T]):
    """Rows in their order: the one way to ask for some of them is `where`."""

    def __init__(self, rows: Iterable[T]) -> None:
        super().__init__(rows)
        self._by: dict[tuple[str, ...], dict[Any, list[T]]] = {}

    def where(self, **wanted: Any) -> Sequence[T]:
        """Those that have these values: `where(campaign="h200", metric="ttft_p50_ms")`."""
        names = (*wanted,)
        if names not in self._by:
            self._by[names] = grouped(
                self, lambda row: tuple(getattr(row, name) for name in names)
            )
        return self._by[names].get((*wanted.values(),), ())
