"""Values beside a name, in whatever language a log, a matrix or a report gives them to it.

`name = value`, `"name": "value"`, `NAME=value`, `--name value`, `('name', 'value')`, `<name>value</name>`,
`{"name": "NAME", "value": "value"}`, and lists, tables and blocks of values.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from sparkpub.record.tokens import SECRET

LONGEST, MOST_LINES = 4096, 50
"""Characters and lines that one value may have, with all that it holds."""

QUOTE = r"(?:\\{0,3}[\"']{1,2})"
"""A quote, also one in JSON that lies in JSON, or one that CSV writes twice."""
_BLANK = r"(?:\s|\\{1,2}[nrt])"
GAP = rf"{QUOTE}?(?:{_BLANK}|,){{1,12}}{QUOTE}?"
"""What stands between two words of a command line, also where it is a list of quoted words."""
_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_.-]{0,60}"
_NAME = re.compile(
    rf"(?<![A-Za-z0-9_.-])(?P<name>-{{0,2}}{_IDENTIFIER})(?P<close>{QUOTE}?)"
    r"[^\S\n]{0,3}(?::=|=>|=|:)[^\S\n]{0,3}"
)
_VALUE = re.compile(
    r"[bru]?(?P<quote>[\"']{2}(?=[^\s\"',:;}\]])|\\{0,3}[\"'])(?P<quoted>[^\"'\r\n\\]{1,2000})(?=\\{0,3}[\"'])"
    r"|(?P<bare>[^\s\"',;<>(){}\[\]\\]{4,2000})"
)
_MORE_VALUES = re.compile(
    r"(?P<before>,)(?=[^\s=,]*\d)(?=[^\s=,]*[A-Za-z])[^\s\"'=,;<>(){}\[\]\\]{8,2000}(?!=)"
)
"""Further values behind a comma: `API_KEYS=first,second`."""
_CALL = re.compile(r"[A-Za-z_.]{0,40}(?=[\[({])")
"""What may stand before a bracket: `SecretStr(`, `set(`."""
_BRACKET = re.compile(r"[\[({\])}]|([\"'])[^\"'\n]{0,2000}\1")
_KEY = re.compile(
    rf"(?:{QUOTE}(?P<quoted>[^\"'\n]{{1,60}}){QUOTE}|(?P<bare>{_IDENTIFIER}))[^\S\n]{{0,3}}[:=][^\S\n]{{0,3}}"
)
_BLOCK = re.compile(r"[|>]?[+-]?[^\S\n]*(?:#[^\n]*)?\r?\n")
"""The rest of a line whose value is on the lines below, in YAML."""
_ITEM_OF_BLOCK = re.compile(rf"[^\S\n]*(?:-[^\S\n]+)?(?P<key>{_IDENTIFIER}:[^\S\n]+)?")
_END_OF_ITEM = re.compile(r"\s*(?:[\"'\\]|\n|$)")
_SURE = re.compile(r"secret|passw|passphrase|credential|cookie", re.IGNORECASE)
"""Names of which each value is one of secrets."""
_FLAG = re.compile(
    rf"(?P<before>(?<![\w-])(?P<name>--?[A-Za-z][A-Za-z0-9_-]{{0,60}}){GAP})(?P<value>[^\s\"',<>\\-][^\s\"',<>\\]*)"
    rf"(?P<more>(?:{GAP}(?=[^\s\"',<>]*\d)(?=[^\s\"',<>]*[A-Za-z])[^\s\"',<>/\\-][^\s\"',<>/\\]{{7,}}(?![\w/]))*)"
)
"""`--token value`, the same in a list of quoted words, and more words that look like keys: `--api-key one two`."""
_ANOTHER = re.compile(rf"(?P<before>{GAP})[^\s\"',<>/\\]+")
_FLAG_AT_END = re.compile(
    rf"(?:^|\s){QUOTE}?(?P<name>--?[A-Za-z][A-Za-z0-9_-]{{0,60}}){QUOTE}?[, \t\\]*$"
)
_PAIR = re.compile(
    rf"(?P<before>(?P<open>[\[(])\s{{0,3}}[bru]?{QUOTE}(?P<name>{_IDENTIFIER}){QUOTE}\s{{0,3}},\s{{0,3}}[bru]?{QUOTE})"
    rf"(?P<value>[^\"'\r\n\\]{{1,2000}})(?={QUOTE}\s{{0,3}}[\])])"
)
"""`('name', 'value')`."""
_ELEMENT = re.compile(
    rf"(?P<before><(?P<tag>(?:[\w-]+:)?(?P<name>{_IDENTIFIER}))(?:\s[^<>]{{0,200}})?>\s*)"
    r"(?P<value>[^<>\s][^<>]{0,2000}?)(?=\s*</(?P=tag)\s*>)"
)
"""`<name>value</name>`."""
_ENTRY = re.compile(
    rf"(?P<before>\b(?:name|key){QUOTE}?[^\S\n]{{0,3}}[:=][^\S\n]{{0,3}}{QUOTE}?(?P<name>{_IDENTIFIER}){QUOTE}?"
    rf"[\s,]{{1,40}}{QUOTE}?value{QUOTE}?[^\S\n]{{0,3}}[:=][^\S\n]{{0,3}}{QUOTE}?)"
    r"(?P<value>[^\s\"',<>\\]+)",
    re.IGNORECASE,
)
"""`"name": "NAME", "value": "value"`, as tables of variables have it, in JSON, YAML and XML."""
_ENTRY_AT_END = re.compile(
    rf"\b(?:name|key){QUOTE}?[^\S\n]{{0,3}}[:=][^\S\n]{{0,3}}{QUOTE}?(?P<name>{_IDENTIFIER}){QUOTE}?,?$",
    re.IGNORECASE,
)
_ELEMENT_AT_END = re.compile(rf"<(?:[\w-]+:)?(?P<name>{_IDENTIFIER})>$")
_LONGEST_END = 200
_GOES_ON = ("[", "(", "{", ":", "=", "|", ">", "|-", "|+", ">-", ">+")
_BRACKETS = (("[", "]"), ("(", ")"), ("{", "}"))
_CLOSING_QUOTE = re.compile(r"\\{0,3}[\"']{0,2}")

SecretNames = Mapping[str, bool]
"""Whether a name is a secret's."""


def without_flags(text: str, names: SecretNames) -> str:
    """The text with `<secret>` in place of what follows flags of secrets' names."""

    def replaced(found: re.Match[str]) -> str:
        if not names[found["name"]]:
            return found[0]
        # `--api-key` takes several; behind another flag's value stands what is no secret.
        more = found["more"] if "key" in found["name"].lower() else ""
        rest = found["more"][len(more) :]
        return f"{found['before']}{SECRET}{_ANOTHER.sub(_kept, more)}{rest}"

    return _FLAG.sub(replaced, text)


def without_values(text: str, names: SecretNames) -> str:
    """The text with `<secret>` in place of the values of secrets' names."""

    def replaced(found: re.Match[str]) -> str:
        return _kept(found) if names[found["name"]] else found[0]

    def pair(found: re.Match[str]) -> str:
        clear = found["open"] == "(" or _looks_random(found["value"])
        return replaced(found) if clear else found[0]

    if "</" in text:
        text = _ELEMENT.sub(replaced, text)
    text = _PAIR.sub(pair, text)
    if "value" in text.lower():
        text = _ENTRY.sub(replaced, text)
    kept, done = [], 0
    for start, end in _spans(text, names):
        if start >= done:
            kept += [text[done:start], SECRET]
            done = end
    return "".join([*kept, text[done:]])


def lines_of_values(lines: Sequence[str], start: int, names: SecretNames) -> int:
    """How many lines the values take that begin in this line: 1, or more where they go on below."""
    count = 1
    while start + count <= len(lines):
        # Where one value ends, another may begin.
        more = _lines_of_value(lines, start + count - 1, names) - 1
        if more == 0:
            break
        count += more
    return count


def _lines_of_value(lines: Sequence[str], start: int, names: SecretNames) -> int:
    line = lines[start].rstrip()
    tail = max(0, len(line) - _LONGEST_END)
    flag = _FLAG_AT_END.search(line, tail)
    if flag and names[flag["name"]]:
        return 1 + _lines_of_flag(lines, start + 1)
    most = 1
    for pattern, count in ((_ENTRY_AT_END, 2), (_ELEMENT_AT_END, 3)):
        found = pattern.search(line, tail)
        if found and names[found["name"]]:
            most = count
    if line.endswith(_GOES_ON) or any(
        line.count(a) > line.count(b) for a, b in _BRACKETS
    ):
        below = "\n".join(lines[start : start + MOST_LINES])
        last = 0
        for name in _NAME.finditer(line):
            if name.start() >= last and names[name["name"]]:
                last = max(last, _end(below, name) - 1)
        most = max(most, 1 + below.count("\n", 0, last))
    return min(most, len(lines) - start)


def _lines_of_flag(lines: Sequence[str], start: int) -> int:
    """Lines of a list of words, up to the next flag or the end of the list."""
    count = 0
    for line in islice(lines, start, start + MOST_LINES):
        word = line.strip().lstrip("\"'")
        if count and (not word or word[0] in "-]),}"):
            break
        count += 1
        if word and not line.rstrip().endswith((",", "\\")):
            break
    return count


def _kept(found: re.Match[str]) -> str:
    return f"{found['before']}{SECRET}"


def _spans(text: str, names: SecretNames) -> Iterator[tuple[int, int]]:
    """Where the values of secrets' names stand."""
    covered = 0
    for name in _NAME.finditer(text):
        if not names[name["name"]] or name["name"].lower() == "authorization":
            continue
        if name.start() < covered and _CALL.match(text, name.end()):
            continue  # its values were looked at with those around them
        end = _end(text, name)
        if end > name.end():
            yield from _items(text, name, end)
            covered = end
            continue
        value = _VALUE.match(text, name.end())
        if value is None or not _is_secret(name, value):
            continue
        yield _span(value)
        more = _MORE_VALUES.match(text, value.end())
        while value["bare"] and more:
            yield more.start() + 1, more.end()
            more = _MORE_VALUES.match(text, more.end())


def _span(value: re.Match[str]) -> tuple[int, int]:
    return value.span("bare" if value["quoted"] is None else "quoted")


def _end(text: str, name: re.Match[str]) -> int:
    """Where a list, a table or a block beside a name ends; where the name ends, if its value is a single one."""
    call = _CALL.match(text, name.end())
    if call:
        return _closed(text, call.end())
    if _BLOCK.match(text, name.end()) and not name["close"]:
        return _below(text, name)
    return name.end()


def _closed(text: str, start: int) -> int:
    """Behind the bracket that closes the one here; the end of the line, where none does."""
    depth = 0
    for found in _BRACKET.finditer(text, start, start + LONGEST):
        if found[0] in ("[", "(", "{"):
            depth += 1
        elif found[0] in ("]", ")", "}"):
            depth -= 1
        if depth == 0:
            return found.end()
    line = text.find("\n", start)
    return line if line >= 0 else len(text)


def _below(text: str, name: re.Match[str]) -> int:
    """The end of the lines that belong to a name of YAML: those further in, and items of a list."""
    begin = text.rfind("\n", 0, name.start()) + 1
    before = text[begin : name.start()]
    alone = not before.strip(" -\t\"'")
    own = len(before) if alone else len(before) - len(before.lstrip())
    if before.endswith(('"', "'")):
        own, alone = 0, True  # a text begins here
    first = text.find("\n", name.end()) + 1
    end = first
    for line in text[first : first + LONGEST].splitlines(keepends=True):
        content = line.strip()
        indent = len(line) - len(line.lstrip())
        is_item = alone and content.startswith("- ") and indent >= own
        if content and indent <= own and not is_item:
            break
        end += len(line)
    return end


def _items(text: str, name: re.Match[str], end: int) -> Iterator[tuple[int, int]]:
    """Where the values in a list, a table or a block stand."""
    in_block = _CALL.match(text, name.end()) is None
    place = name.end()
    while place < end:
        key = _ITEM_OF_BLOCK.match(text, place, end) if in_block else None
        if key and (key.start() == 0 or text[key.start() - 1] == "\n"):
            place = key.end()
        keyed = _KEY.match(text, place, end)
        if keyed:
            place = keyed.end()
        value = _VALUE.match(text, place, end)
        if value is None:
            place += 1
            continue
        whole = not in_block or value["quoted"] or _END_OF_ITEM.match(text, value.end())
        if whole and _is_item(name, value, keyed=bool(keyed or (key and key["key"]))):
            yield _span(value)
        place = value.end()
        if value["quoted"] is not None:
            closing = _CLOSING_QUOTE.match(text, place)
            place = closing.end() if closing else place


def _is_item(name: re.Match[str], value: re.Match[str], *, keyed: bool) -> bool:
    """Whether a value in a list, a table or a block is a secret."""
    if not _is_secret(name, value):
        return False
    word = value["quoted"] or value["bare"]
    if keyed:
        sure = _SURE.search(name["name"]) is not None
        return len(word) >= 8 and (sure or _looks_random(word))
    return value["quoted"] is not None or _looks_random(word)


def _looks_random(word: str) -> bool:
    return (
        len(word) >= 8
        and re.search(r"\d", word) is not None
        and re.search("[A-Za-z]", word) is not None
    )


def _is_secret(name: re.Match[str], value: re.Match[str]) -> bool:
    """Whether what stands beside a secret's name is one: no version, number, constant or path."""
    word = name["name"]
    password = re.search("pass|pwd", word, re.IGNORECASE) is not None
    quoted, bare = value["quoted"], value["bare"]
    if SECRET in (quoted, bare):
        return False
    if not password and re.fullmatch(r"[\d.]*", quoted or bare):
        return False
    if quoted is not None:
        return True
    if name["close"] or bare.startswith(("$", "/")):
        return False  # a number or a constant of JSON, a variable, a file
    if password or word.isupper():
        return True
    return len(bare) >= (16 if word.lower() == "token" else 8)
