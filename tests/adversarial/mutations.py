"""Ways in which people and programs damage a file: its bytes, the values of a document."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

LONGEST = 200_000
"""Bytes of an input before it is damaged."""

TOKENS: tuple[bytes, ...] = (
    *(b" ", b"\n", b"\t", b"\0", b"\x1b[31m", b"\xff", b"\xe2\x80\xae", b"---\n"),
    *(b"-1", b"1e999", b"NaN", b".inf", b"9" * 400, b"null", b"2024-13-45"),
    *(b"[" * 200, b"]", b"}", b'"', b",", b": ", b"- ", b"| ", b"&a ", b"*a"),
    *(b"!!python/name:os.system ", b"{{ 1/0 }}", b"{% for a in b %}", b"<script>"),
    *(b"../../etc/passwd", b"a" * 10_000, b"(a+)+$", b'{"a": 1, "a": 2}'),
)


def damaged(content: bytes, random: Random) -> bytes:
    """The content with one to four things wrong with it: something put in, taken out or repeated."""
    for _ in range(random.randint(1, 4)):
        start, end = sorted(random.choices(range(len(content) + 1), k=2))
        part = random.choice((random.choice(TOKENS), b"", content[start:end] * 3))
        end = random.choice((start, start + 3, end))
        content = content[:start] + part[:LONGEST] + content[end:]
    return content[: 4 * LONGEST]


VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 7, 0.5, 1e-320, 1e308, 10**39, "", "0", "nan", "ok", ".."),
    *("native", "a" * 10_000, "<script>alert(1)</script>", "9999-12-31T23:59:59Z"),
    *([], {}, [None], {"a": {"a": 1}}, [1, "a", {}]),
)
"""What may stand in place of a value; all of it is JSON."""


def with_other_values(content: bytes, random: Random) -> bytes:
    """A JSON document with one to four of its values changed: it stays JSON, so that what follows has to cope. Anything
    else is damaged as bytes."""
    try:
        document = json.loads(content)
    except ValueError:
        return damaged(content, random)
    for _ in range(random.randint(1, 4)):
        part, key = random.choice(list(_places(document)) or [([0], 0)])
        part[key] = random.choice(VALUES)
    return json.dumps(document).encode()


def _places(part: Any) -> Iterator[tuple[Any, Any]]:
    """Every list or mapping within a document, with each of its keys."""
    keys: list[Any] = list(part) if isinstance(part, dict) else []
    if isinstance(part, list):
        keys = list(range(len(part)))
    for key in keys:
        yield part, key
        yield from _places(part[key])
