"""What looks like a secret is replaced: by its own shape, by the name beside it, or by where it stands in an address,
header or command."""

import re
from collections.abc import Callable, Container
from typing import Any

import re2

from sparkpub.record import assignments
from sparkpub.record.assignments import GAP
from sparkpub.record.tokens import SECRET, without_tokens

Replace = Callable[[re.Match[str]], str]

_SECRET_WORDS = re.compile(
    r"(?:.*(?:secret|password|passwd|passphrase|credential|apikey|accesskey|privatekey)"
    r"|(?:hf|hub|auth|access|api|bot|github|gitlab|git|my|bearer|session|refresh|id)?token"
    r"|auth|authorization|cookie|bearer|pass|pat|pw|pwd|jwt)s?"
)
"""A word of a name that holds a secret."""
_SECRET_KEY = re.compile(
    r"(?:api|access|private|secret|auth|account|signing|encryption|license|deploy|ssh|master)key"
)
_MODEL_WORDS = frozenset(
    (
        *("tokens", "tokenizer", "tokenization", "id", "ids", "count", "type", "num"),
        *("eos", "bos", "pad", "unk", "sep", "cls", "mask", "next", "image", "per"),
        *("output", "input", "prompt", "first", "new", "max", "min", "limit", "rate"),
        *("usage", "latency", "time", "times"),
    )
)
"""Words beside `token` or `key` that make it one of a language model, or of a mapping."""
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def is_secret_name(name: str) -> bool:
    """Whether a variable, option or field of this name holds a secret: `HF_TOKEN`, `--api-key`, `dbPass`."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if words[-1:] == ["stdin"]:
        return False  # it takes no value
    if words in (["pwd"], ["oldpwd"], ["old", "pwd"], ["key"], ["keys"]):
        return False
    if _SECRET_KEY.search("".join(words)):
        return True
    telling = [word for word in words if _SECRET_WORDS.fullmatch(word)]
    if not telling:
        return "key" in words and name.isupper()
    if set(telling) <= {"token", "tokens", "pass", "pat", "idtoken"}:
        return "tokens" not in words and _MODEL_WORDS.isdisjoint(words)
    return True


# -- places ------------------------------------------------------------------------------------------------

_ADDRESS = re.compile(
    r"(?P<before>(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,20}:(?:\\{0,7}/){2})(?!\[?[\w.-]*\]?:\d{1,5}(?:[/?#\s\"']|$))"
    r"(?:[^\s/:@\"'<>\\]*:[^\s\"'<>]+|[^\s/:@\"'<>]{16,})(?=@)"
)
"""User and password, or a token alone, in an address of any scheme."""
_BEFORE_AT = re.compile(r"(?<![^\s\"'<>])[^\s\"'<>]+@")
"""Where an address with a password can be: from the beginning of a word to its last `@`. Without its end known, each
beginning of an address would look for it again."""
_LOGIN = re.compile(
    r"(?<![\w.:/@-])[A-Za-z][\w.-]*:(?=[^\s:@/]*[^\s:@/\d.])[^\s:@/\"'<>]{6,}@(?!sha\d+:)(?=[\w(\[])"
)
"""`user:password@host` without a scheme; a tag before a digest is none."""
_PARAMETER = re.compile(
    r"(?P<before>[?&;](?:[\w.-]*(?:token|secret|passw(?:or)?d|api[_-]?key|signature|credential)|sig|key|auth|pwd|pass)=)"
    r"[^\s&\"'<>#]+",
    re.IGNORECASE,
)
_SCHEMES = r"(?:Bearer|Basic|Token|ApiKey|Digest|Negotiate|AWS4-HMAC-SHA256)"
_HEADER = re.compile(
    r"(?P<before>\b(?:(?:proxy-)?authorization|x-[\w-]{0,40}?(?:key|token|auth|secret)[\w-]{0,40}+|(?:set-)?cookie2?)"
    rf"[\"']?+\s*+[:=]\s*+[\"']?+(?>(?:{_SCHEMES}\s+)?+))(?!<secret>)[^\"'\r\n]+",
    re.IGNORECASE,
)
_BEARER = re.compile(
    r"(?P<before>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE
)
_SAID = re.compile(
    r"(?P<before>\b(?:password|passwd|passphrase|secret|credential|token"
    r"|(?:api|access|private|secret)[ _-]?key|pwd|pat)"
    r"\s+(?:(?:is|was|of|for|=|:)\s+)?[\"'`]?)"
    r"(?=[^\s\"'`]*\d)(?=[^\s\"'`]*[A-Za-z])(?P<value>[^\s\"'`,;<>()]{8,})",
    re.IGNORECASE,
)
"""`password is s3cret…`: a word of letters and digits beside one that tells."""
_USER = re.compile(
    r"(?P<before>(?<![\w-])(?:-u|--user|--proxy-user)[\"']?[\s,=]+[\"']?)"
    r"(?!\d+:\d+\b)[\w.@-]+:[^\s\"',]{8,}"
)
_TOOLS = ("sshpass", "mysql", "mariadb", "7z", "redis-cli", "wandb", "password-stdin")
_WORD = r"[^\s\"',<>\\-][^\s\"',<>\\]*"
_LOGIN_PASSWORD = re.compile(
    rf"(?P<before>\blogin\b[^\n;|&]{{0,200}}?(?<![\w-])-p(?:=|{GAP}|(?=[^\s\"',-]{{0,60}}\d))){_WORD}"
)
"""`docker login -p`, and of other registries and clouds."""
_TOOL_PASSWORD = re.compile(
    rf"(?P<before>\bsshpass{GAP}-p(?:{GAP})?"
    rf"|\b(?:mysql|mariadb|7z)[\w-]*\b[^\n;|&]{{0,200}}?[\s\"']-p[\"']?(?=[^\s\"']{{4}})"
    rf"|\bredis-cli\b[^\n;|&]{{0,200}}?[\s\"']-a{GAP}"
    rf"|\bwandb{GAP}login{GAP}(?:--[\w-]+{GAP})?(?=[0-9a-f]{{40}})"
    rf"|\becho{GAP}(?=[^\n|]{{1,200}}\|[^\n|]{{1,200}}--password-stdin)){_WORD}"
)
"""Passwords of tools that take them behind a letter, or from a pipe."""
_TOLD_BY = r"[\w:-]{0,40}(?:passw(?:or)?d|secret|(?:api|access|secret)[_-]?key)"
_PLACED = re.compile(
    rf"(?P<before>\|\s*{_TOLD_BY}\s*\|\s*(?=[^\s|]*\d)"
    rf"|\b{_TOLD_BY}\(\s*\\{{0,3}}[\"']"
    rf"|<{_TOLD_BY}\b[^<>\n]{{0,200}}?\bvalue=\\{{0,3}}[\"']{{1,2}})[^\s|\"'<>\\\n]{{8,}}",
    re.IGNORECASE,
)
"""A secret in the cell beside its name, in a call of its name, and in an element's attribute."""
_COOKIE = re.compile(
    r"(?P<before><(?:Cookie|Morsel:) [^\s=<>]{1,100}=|\bCookie\([^\n]{0,200}?\bvalue=[\"']"
    r"|\bcookies?\.set\(\s*[\"'][^\"'\n]{1,100}[\"'],\s*[\"'])[^\s;\"'<>]+"
)
"""A cookie as Python prints it."""
_COLOURS = re.compile(
    r"(?:[\x1b\ufffd]|\\{1,4}(?:u001[bB]|ufffd|x1[bB]|033|e))(?:\[[0-?]*[ -/]*[@-~]|\]|\\|[()][A-Z0-9])|\x07"
)
"""Codes of terminals, also as JSON and Python write them, and with U+FFFD, which takes the place of
control characters. What a code to set a title or link holds is kept."""
_LINE_BREAK = re.compile(r"\\{1,4}n")
_TELLING = (
    r"token|secret|pass|credential|auth|cookie|bearer|basic|login|morsel"
    r"|key|jwt|pwd|(?:pat|pw)(?:_|\b)|sig=|:/|:\\/|@|-u|mysql|mariadb|redis-cli|\b7z"
)
"""What tells of a secret by its name or place."""


def without_secrets(text: str) -> str:
    """The text with `<secret>` in place of whatever looks like one. Done twice it changes nothing more."""
    if not _COLOURS.search(text):
        return _without_secrets(text)
    plain = _COLOURS.sub("", text)
    clean = _without_secrets(plain)
    if clean == plain:
        return text
    lines, before, after = (part.split("\n") for part in (text, plain, clean))
    if len(after) != len(lines):
        return clean
    # Colours are lost only where a secret was.
    kept = [
        line if old == new else new
        for line, old, new in zip(lines, before, after, strict=True)
    ]
    return "\n".join(kept)


def unfinished(content: bytes) -> int:
    """Where in whole lines the line begins whose value may go on behind them; their length, where there is none."""
    if not _TELLING_LINES.search(content):
        return len(content)
    lines = content.decode("utf-8", "surrogateescape").splitlines(keepends=True)
    plain = [_COLOURS.sub("", line).rstrip("\r\n") for line in lines]
    names = _SecretNames()
    for number in range(len(lines)):
        # Would the value take one line more?
        below = [*plain[number:], _NEXT]
        if assignments.lines_of_values(below, 0, names) == len(below):
            before = "".join(lines[:number])
            return len(before.encode("utf-8", "surrogateescape"))
    return len(content)


_NEXT = " " * 80 + "next" + "]" * 9
"""A line that belongs to any value that is not closed: further in than its name, and with brackets enough."""


def _without_secrets(text: str) -> str:
    text = without_tokens(text)
    telling = _telling(text)
    return _lines(text, telling, _SecretNames()) if telling else text


def _lines(text: str, telling: Container[str], names: "_SecretNames") -> str:
    """The text without the secrets in lines that tell of one, and in lines below that belong to the same value."""
    lines, kept, number = text.split("\n"), [], 0
    known: dict[str, str] = {}
    while number < len(lines):
        line = lines[number]
        if line not in telling:
            kept.append(line)
            number += 1
            continue
        count = assignments.lines_of_values(lines, number, names)
        passage = "\n".join(lines[number : number + count])
        if passage not in known:
            known[passage] = _passage(passage, names)
        kept.append(known[passage])
        number += count
    return "\n".join(kept)


def _telling(text: str) -> set[str]:
    """The lines in which something tells of a secret. RE2 reads a text many times faster than a loop over its lines."""
    found = _TELLING_LINES.findall(text.encode("utf-8", "surrogatepass"))
    return {line.decode("utf-8", "surrogatepass") for line in found}


def _telling_lines() -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(rf"(?im)^[^\n]*(?:{_TELLING})[^\n]*$".encode(), options)


_TELLING_LINES = _telling_lines()


class _SecretNames(dict[str, bool]):
    """Whether a name is a secret's, for the names of one text: logs repeat a few thousands of times."""

    def __missing__(self, name: str) -> bool:
        self[name] = is_secret_name(name)
        return self[name]


def _passage(text: str, names: "_SecretNames") -> str:
    """A line, with those that belong to a value in it, without the secrets of which something in it tells."""
    text = assignments.without_flags(text, names)
    small = text.casefold()
    for pieces, pattern, replace in _PLACES:
        if not pieces or any(piece in small for piece in pieces):
            text = pattern.sub(replace, text)
    text = assignments.without_values(text, names)
    return "\n".join([_unfolded(line, names) for line in text.split("\n")])


def _unfolded(line: str, names: "_SecretNames") -> str:
    """The same for the lines of a text that JSON writes in one."""
    breaks = _LINE_BREAK.findall(line)
    if not breaks:
        return line
    text = _LINE_BREAK.sub("\n", line)
    parts = _lines(text, _telling(text), names).split("\n")
    if len(parts) != len(breaks) + 1:
        return line
    pairs = zip(parts, [*breaks, ""], strict=True)
    return "".join([part for pair in pairs for part in pair])


def _kept(found: re.Match[str]) -> str:
    return f"{found['before']}{SECRET}"


def _addressed(found: re.Match[str]) -> str:
    return _ADDRESS.sub(_kept, found[0])


def _said(found: re.Match[str]) -> str:
    least = 16 if found["before"].lower().startswith("token") else 8
    return _kept(found) if len(found["value"]) >= least else found[0]


_PLACES: tuple[tuple[tuple[str, ...], re.Pattern[str], str | Replace], ...] = (
    (("@",), _BEFORE_AT, _addressed),
    (("@",), _LOGIN, f"{SECRET}@"),
    (("=",), _PARAMETER, _kept),
    (("authorization", "x-", "cookie"), _HEADER, _kept),
    (("bearer", "basic"), _BEARER, _kept),
    (("-u",), _USER, _kept),
    (("login",), _LOGIN_PASSWORD, _kept),
    (_TOOLS, _TOOL_PASSWORD, _kept),
    (("cookie", "morsel"), _COOKIE, _kept),
    (("passw", "secret", "key"), _PLACED, _kept),
    ((), _SAID, _said),
)
"""What to look for in a line that tells of a secret, and pieces of which the line has one then, in small letters."""
