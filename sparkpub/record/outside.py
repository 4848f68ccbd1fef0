"""Files that somebody else may have written, read within bounds: kind, size, depth, number of parts, characters.

Whatever comes from outside (matrices, records, claims, facts, pages, other tools' results) is opened here. What does
not fit is refused with one line that names the file.
"""

import gzip
import json
import math
import os
import re
import stat
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from sparkpub.record.errors import SparkpubError
from sparkpub.record.text import file_size

MOST_BYTES = 64 << 20
"""The largest file that is read, after decompression. Documents of people and records are far smaller."""
MOST_PAGE_BYTES = 1 << 20
"""The largest page or YAML file that is read."""
DEEPEST = 50
"""How deep lists and mappings may lie in each other."""
MOST_KEYS = 10_000
"""Keys of one mapping."""
MOST_DIGITS = 40
"""Digits of a whole number: 10**40 still fits into a float."""
LARGEST, SMALLEST = 1e30, 1e-30
"""The size of a figure of ours that is not 0: what follows from two of them is a number, too."""
WHOLE_BELOW = 10**18
"""Whole numbers of ours: below it they fit into 64 bits, also with a sign."""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that mean something to a terminal or turn text around, all but tab and line feed."""
_UNWANTED = re.compile(rf"{CONTROL.pattern}|[\ud800-\udfff]")
"""The same, and halves of characters, which UTF-8 does not have."""
_ESCAPED_CONTROL = re.compile(
    rb"\\u00(?:0[0-8b-f]|1[0-9a-f]|7f|[89][0-9a-f])|\\u20(?:2[89a-e]|6[6-9])|\\[bfr]"
    rb"|\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]|\xe2\x81[\xa6-\xa9]",
    re.IGNORECASE,
)
"""The same in the bytes of a JSON document; a carriage return is one of them."""


class UnfitError(ValueError):
    """A file or document that is not read; the text says why."""


def content(path: Path, most: int = MOST_BYTES) -> bytes:
    """The bytes of an ordinary file.

    Raises OSError where it cannot be opened, UnfitError where it is no file or larger than `most` bytes.
    """
    with opened(path) as file:
        return _bounded(file, most, os.fstat(file.fileno()).st_size)


def unpacked(path: Path, most: int = MOST_BYTES) -> bytes:
    """The same, decompressed where the name ends in `.gz`; `most` counts bytes after that. Raises UnfitError as well
    where the file is not whole as gzip."""
    if not path.name.endswith(".gz"):
        return content(path, most)
    try:
        with opened(path) as file, gzip.GzipFile(fileobj=file) as reader:
            return _bounded(reader, most)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnfitError(f"not whole as gzip: {error}") from None


def opened(path: Path, more: int = 0) -> IO[bytes]:
    """An ordinary file, open for reading; `more` are flags of `os.open`. Raises OSError where it cannot be opened,
    UnfitError where it is none."""
    # A named pipe would wait for a writer: it is opened without waiting, and then refused.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | more)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        kind = "folder" if stat.S_ISDIR(mode) else "device, pipe or socket"
        raise UnfitError(f"a {kind} and not a file")
    return os.fdopen(handle, "rb")


def _bounded(
    file: IO[bytes] | gzip.GzipFile, most: int, expected: int | None = None
) -> bytes:
    # Room is made for as many bytes as are asked for: one more than there should be shows a file that grows.
    first = most if expected is None else min(expected, most)
    data = file.read(first + 1)
    if first < len(data) <= most:
        data += file.read(most + 1 - len(data))
    if len(data) > most:
        raise UnfitError(f"larger than {file_size(most)}")
    return data


def text(
    path: Path, error: type[SparkpubError], remedy: str, most: int = MOST_PAGE_BYTES
) -> str:
    """The text of a UTF-8 file. Raises `error` with the file and the reason where it cannot be read."""
    try:
        return content(path, most).decode("utf-8")
    except OSError as problem:
        reason = problem.strerror or str(problem)
    except UnicodeDecodeError as problem:
        reason = f"not UTF-8 at byte {problem.start}"
    except UnfitError as problem:
        reason = str(problem)
    raise error(f"cannot be read: {reason}", where=str(path), remedy=remedy)


def json_document(data: bytes) -> Any:
    """A JSON document as strict as the standard: no key twice, no NaN, no infinity, within the bounds.

    Raises UnfitError, json.JSONDecodeError with line and column, or UnicodeDecodeError.
    """
    unwanted = _ESCAPED_CONTROL.search(data)
    if unwanted is not None:
        line = data.count(b"\n", 0, unwanted.start()) + 1
        raise UnfitError(f"a control character in line {line}")
    try:
        document = json.loads(
            data,
            parse_constant=_refuse_constant,
            parse_int=whole_number,
            parse_float=_finite_number,
            object_pairs_hook=mapping,
        )
    except RecursionError:
        raise too_deep() from None
    refuse_depth(document)
    return document


def refuse_depth(document: Any) -> None:
    """Raise UnfitError where lists and mappings lie deeper in each other than is read."""
    level: list[Any] = [[document]]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for part in level
            for inner in (part.values() if isinstance(part, dict) else part)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise too_deep()


def too_deep() -> UnfitError:
    """What is said of a document whose lists and mappings lie too deep in each other."""
    return UnfitError(f"nested deeper than {DEEPEST} levels")


def _refuse_constant(name: str) -> float:
    raise UnfitError(f"{name} is not JSON; write null with a reason")


def whole_number(digits: str) -> int:
    """A whole number of a JSON document. Raises UnfitError for one of too many digits."""
    if len(digits) > MOST_DIGITS:
        raise UnfitError(f"a number with {len(digits)} digits")
    return int(digits)


def _finite_number(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise UnfitError(f"{digits[:MOST_DIGITS]} is larger than any number here")
    return number


def is_figure(value: float) -> bool:
    """Whether a number is 0, or of a size that figures of ours have."""
    return value == 0 or SMALLEST <= abs(value) <= LARGEST


def figure(value: float) -> float:
    """The number. Raises ValueError where it is larger or smaller than any that is measured."""
    if is_figure(value):
        return value
    raise ValueError(f"a figure is 0, or {SMALLEST:g} to {LARGEST:g} in size")


def bounded(document: dict[str, Any]) -> dict[str, Any]:
    """A document of ours. Raises ValueError for the first number in it that is out of bounds."""
    for path, problem in unbounded_numbers(document):
        raise ValueError(f"{'.'.join(path)}: {problem}")
    return document


def unbounded_numbers(
    part: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The numbers of a document that are too large or too small for one of ours: where, and what is wrong."""
    if isinstance(part, dict):
        for name, inner in part.items():
            yield from unbounded_numbers(inner, (*path, str(name)))
    elif isinstance(part, list | tuple):
        for index, inner in enumerate(part):
            yield from unbounded_numbers(inner, (*path, str(index)))
    elif isinstance(part, int) and abs(part) >= WHOLE_BELOW:
        yield path, f"a whole number is below {WHOLE_BELOW:,}"
    elif isinstance(part, float) and not is_figure(part):
        yield path, f"a figure is 0, or {SMALLEST:g} to {LARGEST:g} in size"


def mapping(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping of a JSON document. Raises UnfitError for too many keys, or one that stands twice."""
    if len(pairs) > MOST_KEYS:
        raise UnfitError(f"a mapping with {len(pairs):,} keys")
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = counts.most_common(1)[0][0]
        raise UnfitError(f"key {twice[:80]!r} stands twice")
    return found


def plain(text: str) -> str:
    """Text without what a terminal would obey, or no file can hold: each such character becomes U+FFFD."""
    return _UNWANTED.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def without_controls(document: Any) -> Any:
    """A JSON document whose texts are `plain`."""
    if isinstance(document, str):
        return plain(document)
    if isinstance(document, list):
        return [without_controls(item) for item in document]
    if isinstance(document, dict):
        return {
            plain(name): without_controls(value) for name, value in document.items()
        }
    return document
