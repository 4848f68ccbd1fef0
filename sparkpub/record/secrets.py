"""What looks like a secret is replaced: by its own shape (`tokens`), by the name beside it, or by where it stands in
an address, header or command.

A text is read once for lines that tell of a secret. These, with the lines below that may belong to them, are compared
with one table of places, and then with names and their values, in whatever language a log or a report has them:
`name = value`, `"name": ["value", "value"]`, `--name value`, `('name', 'value')`, `<name>value</name>`, blocks of YAML.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import re2

from sparkpub.record.tokens import SECRET, without_keys, without_tokens

LONGEST = 4096
"""Characters that the list or block of one name may have."""

# -- names -------------------------------------------------------------------------------------------------

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


@lru_cache(maxsize=10_000)
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
        return _MODEL_WORDS.isdisjoint(words)
    return True


# -- places ------------------------------------------------------------------------------------------------

_QUOTE = r"(?:\\{0,3}[\"']{1,2})"
"""A quote, also one in JSON that lies in JSON, or one that CSV writes twice."""
_GAP = rf"{_QUOTE}?(?:\s|\\{{1,2}}[nrt]|,){{1,12}}{_QUOTE}?"
"""What stands between two words of a command line, also where it is a list of quoted words."""
_WORD = r"[^\s\"',<>\\-][^\s\"',<>\\]*"
_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_.-]{0,60}"
_RANDOM = r"(?=[^\s\"',<>]*\d)(?=[^\s\"',<>]*[A-Za-z])[^\s\"',<>/\\-][^\s\"',<>/\\]{7,}"
"""A word of letters and digits."""
_VARIABLE = r"(?!\$[A-Za-z_]\w*(?:[\s\"']|$))"
"""Before a word that is none that a shell fills in."""
_TOLD_BY = r"[\w:-]{0,40}(?:passw(?:or)?d|secret|(?:api|access|secret)[_-]?key)"
_SCHEMES = r"(?:Bearer|Basic|Token|ApiKey|Digest|Negotiate|AWS4-HMAC-SHA256)"

_PLACES = (
    # User and password, or a token alone, in an address of any scheme.
    r"(?P<before>(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,20}:(?:\\{0,7}/){2})"
    r"(?!\[?[\w.-]*\]?:\d{1,5}(?:[/?#\s\"']|$))"
    r"(?:[^\s/:@\"'<>\\]{0,100}:[^\s\"'<>]{1,300}|[^\s/:@\"'<>]{16,300})(?=@)",
    # `user:password@host` without a scheme; a tag before a digest is none.
    r"(?P<before>)(?<![\w.:/@-])[A-Za-z][\w.-]{0,100}:(?=[^\s:@/]{0,300}[^\s:@/\d.])"
    r"[^\s:@/\"'<>]{6,300}(?=@(?!sha\d+:)[\w(\[])",
    r"(?i)(?P<before>[?&;](?:[\w.-]{0,40}(?:token|secret|passw(?:or)?d|api[_-]?key|signature|credential)"
    r"|sig|key|auth|pwd|pass)=)[^\s&\"'<>#]+",
    # Headers.
    r"(?i)(?P<before>\b(?:(?:proxy-)?authorization|x-[\w-]{0,40}?(?:key|token|auth|secret)[\w-]{0,40}+|(?:set-)?cookie2?)"
    rf"[\"']?+\s*+[:=]\s*+[\"']?+(?>(?:{_SCHEMES}\s+)?+))(?!<secret>)[^\"'\r\n]+",
    r"(?i)(?P<before>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}",
    # A cookie as Python prints it.
    r"(?P<before><(?:Cookie|Morsel:) [^\s=<>]{1,100}=|\bCookie\([^\n]{0,200}?\bvalue=[\"']"
    r"|\bcookies?\.set\(\s*[\"'][^\"'\n]{1,100}[\"'],\s*[\"'])[^\s;\"'<>]+",
    # Commands: `curl -u`, `docker login -p`, and tools that take passwords behind a letter, or from a pipe.
    r"(?P<before>(?<![\w-])(?:-u|--user|--proxy-user)[\"']?[\s,=]+[\"']?)(?!\d+:\d+\b)[\w.@-]+:[^\s\"',]{8,}",
    rf"(?P<before>\blogin\b[^\n;|&]{{0,200}}?(?<![\w-])-p(?:=|{_GAP}|(?=[^\s\"',-]{{0,60}}\d))){_WORD}",
    rf"(?P<before>\bsshpass{_GAP}-p(?:{_GAP})?"
    rf"|\b(?:mysql|mariadb|7z)[\w-]*\b[^\n;|&]{{0,200}}?[\s\"']-p[\"']?(?=[^\s\"']{{4}})"
    rf"|\bredis-cli\b[^\n;|&]{{0,200}}?[\s\"']-a{_GAP}"
    rf"|\bwandb{_GAP}login{_GAP}(?:--[\w-]+{_GAP})?(?=[0-9a-f]{{40}})"
    rf"|\becho{_GAP}(?=[^\n|]{{1,200}}\|[^\n|]{{1,200}}--password-stdin)){_WORD}",
    # The cell beside a name, a call of it, an attribute of its element.
    rf"(?i)(?P<before>\|\s*{_TOLD_BY}\s*\|\s*(?=[^\s|]*\d)|\b{_TOLD_BY}\(\s*\\{{0,3}}[\"']"
    rf"|<{_TOLD_BY}\b[^<>\n]{{0,200}}?\bvalue=\\{{0,3}}[\"']{{1,2}})[^\s|\"'<>\\\n]{{8,}}",
    # `password is s3cret…`: a word of letters and digits beside one that tells.
    r"(?i)(?P<before>\b(?:password|passwd|passphrase|secret|credential|(?P<token>token)"
    r"|(?:api|access|private|secret)[ _-]?key|pwd|pat)\s+(?:(?:is|was|of|for|=|:)\s+)?[\"'`]?)"
    r"(?=[^\s\"'`]*\d)(?=[^\s\"'`]*[A-Za-z])[^\s\"'`,;<>()]{8,}(?(token)(?<=[^\s\"'`,;<>()]{16}))",
    # `--api-key one two`, which may take several, and `--token value`.
    rf"(?P<before>(?<![\w-])(?P<name>--?[A-Za-z][\w-]{{0,40}}){_GAP}){_VARIABLE}{_WORD}",
    rf"(?P<before>(?<![\w-])--?[\w-]{{0,40}}key[\w-]{{0,20}}(?:{_GAP}<secret>)+{_GAP}){_RANDOM}(?![\w/])",
    # `('name', 'value')`.
    rf"(?P<before>(?:\(|(?P<list>\[))\s{{0,3}}[bru]?{_QUOTE}(?P<name>{_IDENTIFIER}){_QUOTE}\s{{0,3}},"
    rf"\s{{0,3}}[bru]?{_QUOTE})(?(list)(?={_RANDOM}))[^\"'\r\n\\]{{1,2000}}(?={_QUOTE}\s{{0,3}}[\])])",
    # `<name>value</name>`.
    rf"(?P<before><(?P<tag>(?:[\w-]+:)?(?P<name>{_IDENTIFIER}))(?:\s[^<>]{{0,200}})?>\s*)"
    r"[^<>\s][^<>]{0,2000}?(?=\s*</(?P=tag)\s*>)",
    # `"name": "NAME", "value": "value"`, as tables of variables have it, in JSON, YAML and XML.
    rf"(?i)(?P<before>\b(?:name|key){_QUOTE}?[^\S\n]{{0,3}}[:=][^\S\n]{{0,3}}{_QUOTE}?(?P<name>{_IDENTIFIER}){_QUOTE}?"
    rf"[\s,]{{1,40}}{_QUOTE}?value{_QUOTE}?[^\S\n]{{0,3}}[:=][^\S\n]{{0,3}}{_QUOTE}?)[^\s\"',<>\\]+",
)
"""Where secrets stand: what is kept before one, and the secret; where it has a `name`, that has to be a secret's."""


def _replaced(found: re.Match[str]) -> str:
    name = found.groupdict().get("name")
    if name is not None and not is_secret_name(name):
        return found[0]
    return f"{found['before']}{SECRET}"


# -- values beside a name ----------------------------------------------------------------------------------

_NAME = re.compile(
    rf"(?<![A-Za-z0-9_.-])(?P<name>-{{0,2}}{_IDENTIFIER})(?P<close>{_QUOTE}?)"
    r"[^\S\n]{0,3}(?::=|=>|=|:)[^\S\n]{0,3}"
)
_VALUE = (
    r"[bru]?(?:(?:[\"']{2}(?=[^\s\"',:;}\]])|\\{0,3}[\"'])(?P<quoted>[^\"'\r\n\\]{1,2000})\\{0,3}[\"']{1,2}"
    r"|(?P<bare>[^\s\"',;<>(){}\[\]\\]{4,2000}+))"
)
_KEY = rf"(?:{_QUOTE}[^\"'\n]{{1,60}}{_QUOTE}|{_IDENTIFIER})[^\S\n]{{0,3}}[:=][^\S\n]{{0,3}}"
_ONE = re.compile(_VALUE)
_MORE = re.compile(rf",(?P<bare>{_RANDOM})(?!=)")
"""A further value behind a comma: `API_KEYS=first,second`."""
_ITEM = re.compile(rf"(?P<key>{_KEY})?{_VALUE}(?!\s{{0,3}}[:=])")
_LINE = re.compile(
    rf"(?m)^[^\S\n]*(?:-[^\S\n]+)?(?P<key>{_IDENTIFIER}:[^\S\n]+)?{_VALUE}(?=\s*(?:[\"'\\]|$))"
)
"""A value in a list or table, and one on a line of its own."""
_CALL = re.compile(r"[A-Za-z_.]{0,40}(?=[\[({])")
"""What may stand before a bracket: `SecretStr(`, `set(`."""
_BRACKET = re.compile(r"[\[({\])}]|([\"'])[^\"'\n]{0,2000}\1")
_BLOCK = re.compile(r"[|>]?[+-]?[^\S\n]*(?:#[^\n]*)?\r?\n")
"""The rest of a line whose value is on the lines below, in YAML."""
_SURE = re.compile(r"secret|passw|passphrase|credential|cookie", re.IGNORECASE)
"""Names of which each value is one of secrets."""
_PASSWORD = re.compile(r"pass|pwd", re.IGNORECASE)


def _without_values(text: str) -> str:
    """The text without the values of secrets' names."""
    kept, done = [], 0
    for start, end in _spans(text):
        if start >= done:
            kept += [text[done:start], SECRET]
            done = end
    return "".join([*kept, text[done:]])


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the values of secrets' names stand."""
    covered = 0
    for name in _NAME.finditer(text):
        if not is_secret_name(name["name"]) or name["name"].lower() == "authorization":
            continue
        start = name.end()
        if call := _CALL.match(text, start):
            end, item = _closed(text, call.end()), _ITEM
        elif _BLOCK.match(text, start) and not name["close"]:
            start = text.index("\n", start) + 1
            end, item = _below(text, name, start), _LINE
        else:
            yield from _single(text, name)
            continue
        if name.start() >= covered:  # else its values were looked at before
            covered = end
            for value in item.finditer(text, start, end):
                if _is_item(name, value):
                    yield _span(value)


def _single(text: str, name: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Where the value beside a name stands, and those behind it."""
    value = _ONE.match(text, name.end())
    if value is None or not _is_secret(name, value):
        return
    yield _span(value)
    while value and value["bare"]:
        value = _MORE.match(text, value.end())
        if value:
            yield _span(value)


def _span(value: re.Match[str]) -> tuple[int, int]:
    return value.span(value.lastgroup or 0)


def _closed(text: str, start: int) -> int:
    """Behind the bracket that closes the one here; the end of the line, where none does."""
    depth = 0
    for found in _BRACKET.finditer(text, start, start + LONGEST):
        depth += (found[0] in "[({") - (found[0] in "])}")
        if depth == 0:
            return found.end()
    line = text.find("\n", start)
    return line if line >= 0 else len(text)


def _below(text: str, name: re.Match[str], start: int) -> int:
    """The end of the lines that belong to a name alone on its line: those further in, and items of a list."""
    begins = max(text.rfind(sign, 0, name.start()) for sign in "\r\n")
    before = text[begins + 1 : name.start()]
    own = len(before)
    if before.endswith(('"', "'")):
        own = 0  # a text begins here
    elif before.strip(" -\t"):
        return start
    end = start
    for line in text[start : start + LONGEST].splitlines(keepends=True):
        content = line.lstrip()
        indent = len(line) - len(content)
        if content and indent < own + 1 - content.startswith("- "):
            break
        end += len(line)
    return end


def _is_item(name: re.Match[str], value: re.Match[str]) -> bool:
    """Whether a value in a list, a table or a block is a secret."""
    if not _is_secret(name, value):
        return False
    word = value["quoted"] or value["bare"]
    is_random = re.fullmatch(_RANDOM, word) is not None
    if value["key"]:
        return is_random or (len(word) >= 8 and bool(_SURE.search(name["name"])))
    return is_random or value["quoted"] is not None


def _is_secret(name: re.Match[str], value: re.Match[str]) -> bool:
    """Whether what stands beside a secret's name is one: no version, number, constant or path."""
    word = name["name"]
    is_password = _PASSWORD.search(word) is not None
    quoted, bare = value["quoted"], value["bare"]
    if SECRET in (quoted, bare):
        return False
    if not is_password and re.fullmatch(r"[\d.]*", quoted or bare):
        return False
    if quoted is not None:
        return True
    if name["close"] or bare.startswith(("$", "/")):
        return False  # a number or a constant of JSON, a variable, a file
    if is_password or word.isupper():
        return True
    return len(bare) >= (16 if word.lower() == "token" else 8)


# -- texts -------------------------------------------------------------------------------------------------

_COLOURS = re.compile(
    r"(?:[\x1b\ufffd]|\\{1,4}(?:u001[bB]|ufffd|x1[bB]|033|e))(?:\[[0-?]*[ -/]*[@-~]|\]|\\|[()][A-Z0-9])|\x07"
)
"""Codes of terminals, also as JSON and Python write them, and with U+FFFD, which takes the place of control characters.
What a code to set a title or link holds is kept."""
_LINE_BREAK = re.compile(r"\\{1,4}n")
_TELLING = (
    r"token|secret|pass|credential|auth|cookie|bearer|basic|login|morsel"
    r"|key|jwt|pwd|(?:pat|pw)(?:_|\b)|sig=|:/|:\\/|@|-u|mysql|mariadb|redis-cli|\b7z|\x1b|\x07|\xef\xbf\xbd"
    r"|\\(?:u001b|ufffd|x1b|033|e)\["
)
"""What tells of a secret by its name or place, and codes of terminals, which may stand within one."""
_GOES_ON = r"[ \t\"'\])}<-][^\n]*"
"""How lines begin that may belong to a value above them."""


def without_secrets(text: str) -> str:
    """The text with `<secret>` in place of whatever looks like one. Done twice it changes nothing more."""
    content = without_keys(text).encode("utf-8", "surrogatepass")
    clean: bytes = _PASSAGES.sub(_passage, content)
    return without_tokens(clean.decode("utf-8", "surrogatepass"))


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(f"(?im)^[^\n]*(?:{_TELLING}){pattern}".encode(), options)


_PASSAGES = _compiled(rf"[^\n]*(?:\n{_GOES_ON})*")
"""RE2 reads a text many times faster than a loop over its lines, in time that grows with the text alone."""


def _passage(found: Any) -> bytes:
    """Lines of which one tells of a secret, without it. Colours are lost only where a secret was."""
    content: bytes = found.group(0)
    text = content.decode("utf-8", "surrogatepass")
    plain = _COLOURS.sub("", text)
    clean = _cleaned(plain)
    return content if clean == plain else clean.encode("utf-8", "surrogatepass")


def _cleaned(text: str) -> str:
    text = without_tokens(text)
    for pattern in _PLACES:
        text = re.sub(pattern, _replaced, text)
    text = _without_values(text)
    return "\n".join([_unfolded(line) for line in text.split("\n")])


def _unfolded(line: str) -> str:
    """The same for the lines of a text that JSON writes in one."""
    breaks = _LINE_BREAK.findall(line)
    if not breaks:
        return line
    parts = _cleaned(_LINE_BREAK.sub("\n", line)).split("\n")
    if len(parts) != len(breaks) + 1:
        return line
    pairs = zip(parts, [*breaks, ""], strict=True)
    return "".join([part for pair in pairs for part in pair])
