"""Ways in which people, programs and attackers damage a file: its bytes, the values of a document."""

import copy
import json
import re
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

Place = tuple[Any, Any]
"""A list or mapping, and an index or key of it."""

LONGEST = 200_000
"""Bytes of an input before it is damaged."""

TOKENS: tuple[bytes, ...] = (
    *(b"", b" ", b"\n", b"\r", b"\t", b"\0", b"\x1b[31m", b"\x7f", b"\xff", b"\xc3"),
    *(b"0", b"-1", b"1e999", b"-1e-999", b"NaN", b"Infinity", b".inf", b"9" * 400),
    *(b"9" * 5000, b"0x" + b"f" * 300, b"1:59:59", b"null", b"true", b"2024-13-45"),
    *(b"[" * 200, b"{" * 200, b"]", b"}", b'"', b"'", b",", b":", b"- ", b"? ", b"| "),
    *(
        b"&a ",
        b"*a",
        b"<<: *a",
        b"!!python/name:os.system ",
        b"!!binary ",
        b"%YAML 9.9",
    ),
    *(
        b"{{ value( }}",
        b"{% for a in b %}",
        b"{{ 1/0 }}",
        b"{#",
        b"{{ [[[ }}",
        b"---\n",
    ),
    *(b"<script>", b"](javascript:1)", b"[[[[", b"![](", b"```\n", b"| a |\n|---|\n"),
    *(b"\\ud800", b"\\u0000", b"\xe2\x80\xae", b"\xef\xbb\xbf", "é\U0001f600".encode()),
    *(
        b"../../etc/passwd",
        b"/dev/zero",
        b"C:\\x",
        b"a" * 10_000,
        b"(a+)+$",
        b"(" * 300,
    ),
    *(b"hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345", b"password=hunter2hunter2", b"://a:b@"),
    *(
        b"index",
        b"type",
        b"command",
        b"host",
        b"native",
        b'{"a": 1, "a": 2}',
        b"id: id",
    ),
)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_WORD = re.compile(rb"[A-Za-z_]{3,}")


def damaged(content: bytes, random: Random) -> bytes:
    """The content with one to four things wrong with it."""
    for _ in range(random.randint(1, 4)):
        content = random.choice(_DAMAGES)(content, random)
    return content[: 4 * LONGEST]


def _place(content: bytes, random: Random) -> int:
    return random.randint(0, len(content))


def _inserted(content: bytes, random: Random) -> bytes:
    place = _place(content, random)
    return content[:place] + random.choice(TOKENS) + content[place:]


def _cut(content: bytes, random: Random) -> bytes:
    return content[: _place(content, random)]


def _without_part(content: bytes, random: Random) -> bytes:
    start, end = sorted((_place(content, random), _place(content, random)))
    return content[:start] + content[end:]


def _repeated(content: bytes, random: Random) -> bytes:
    start = _place(content, random)
    part = content[start : start + random.choice((1, 10, 1000))]
    return content[:start] + part * random.choice((2, 50, 500)) + content[start:]


def _flipped(content: bytes, random: Random) -> bytes:
    changed = bytearray(content)
    for _ in range(random.choice((1, 5, 50)) if changed else 0):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _replaced(pattern: re.Pattern[bytes]) -> Callable[[bytes, Random], bytes]:
    def replace(content: bytes, random: Random) -> bytes:
        found = list(pattern.finditer(content))
        if not found:
            return content
        chosen = random.choice(found)
        return (
            content[: chosen.start()] + random.choice(TOKENS) + content[chosen.end() :]
        )

    return replace


def _lines_mixed(content: bytes, random: Random) -> bytes:
    lines = content.split(b"\n")
    for _ in range(random.choice((1, 3, 20))):
        one, other = random.randrange(len(lines)), random.randrange(len(lines))
        lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _in_another_coding(content: bytes, random: Random) -> bytes:
    coding = random.choice(("utf-16", "utf-16-le", "utf-32", "latin-1"))
    return content.decode(errors="ignore").encode(coding, errors="ignore")


_DAMAGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_inserted, _inserted, _cut, _without_part, _repeated, _flipped, _lines_mixed),
    *(_replaced(_NUMBER), _replaced(_NUMBER), _replaced(_WORD), _replaced(_WORD)),
    _in_another_coding,
)


# -- documents -----------------------------------------------------------------------------------------------

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 7, 0.5, -0.0, 1e-320, 1e308, -1e308, 10**39),
    *(
        "",
        " ",
        "0",
        "1e999",
        "nan",
        "ok",
        "native",
        "higher",
        "a/b",
        "..",
        "a" * 10_000,
    ),
    *("../../etc/passwd", "/dev/zero", "<script>alert(1)</script>", "{{ 1/0 }}"),
    *("javascript:alert(1)", "](javascript:1)", "`|*_[", "\ue000/\ue000", "\u00ad"),
    *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2024-02-30", "utc", "(a+)+$"),
    *([], {}, [[]], [None], {"": None}, {"a": {"a": {"a": 1}}}, [1, "a", None, {}]),
    [[[[[[[[[[[]]]]]]]]]]],
)
"""What may stand in place of a value; all of it is JSON."""


def with_other_values(content: bytes, random: Random) -> bytes:
    """A JSON document with one to four of its values or keys changed: it stays JSON, so that what follows has to cope.
    Anything else is damaged as bytes."""
    try:
        document = json.loads(content)
    except ValueError:
        return damaged(content, random)
    for _ in range(random.randint(1, 4)):
        places = list(_places(document))
        if not places:
            break
        random.choice(_CHANGES)(*random.choice(places), random, places)
    return json.dumps(document).encode()


def _places(part: Any) -> Iterator[Place]:
    """Every list or mapping within a document, with each of its keys."""
    if isinstance(part, dict):
        keys: list[Any] = list(part)
    elif isinstance(part, list):
        keys = list(range(len(part)))
    else:
        return
    for key in keys:
        yield part, key
        yield from _places(part[key])


def _another_value(part: Any, key: Any, random: Random, _: Sequence[Place]) -> None:
    part[key] = copy.deepcopy(random.choice(VALUES))


def _another_size(part: Any, key: Any, random: Random, _: Sequence[Place]) -> None:
    value = part[key]
    if isinstance(value, int | float) and not isinstance(value, bool):
        part[key] = value * random.choice((-1, 0, 1e-9, 1000, 1e9, 1e300))
    elif isinstance(value, str):
        part[key] = value * random.choice((2, 50, 3000))
    elif isinstance(value, list):
        part[key] = value * random.choice((0, 2, 300))


def _removed(part: Any, key: Any, _: Random, __: Sequence[Place]) -> None:
    del part[key]


def _renamed(part: Any, key: Any, random: Random, _: Sequence[Place]) -> None:
    name = random.choice([value for value in VALUES if isinstance(value, str)])
    if isinstance(part, dict):
        part[name] = part.pop(key)


def _value_of_another(
    part: Any, key: Any, random: Random, places: Sequence[Place]
) -> None:
    there, name = random.choice(places)
    part[key] = copy.deepcopy(there[name])


_CHANGES: tuple[Callable[[Any, Any, Random, Sequence[Place]], None], ...] = (
    *(_another_value, _another_value, _another_size, _removed, _renamed),
    _value_of_another,
)
