"""Tokens, webhooks and private keys that are known by their own shape, wherever they stand.

Most marks of vendors come from a kept list: `tokens.tsv`, which `scripts/tokens` writes. What that list lacks is here.
Detectors of mere randomness are not used: a log is full of digests.
"""

import re
from importlib import resources
from typing import Any

import re2

SECRET = "<secret>"  # noqa: S105 - the placeholder
LEAST = 16
"""Characters of a token that tell it from a word. Most vendors' are longer; a log may cut them."""
_LONG = 20
"""Letters that no word of a name has in one run."""
_LISTED = "tokens.tsv"
_MARKS = (
    *("fw_", "gsk_", "pcsk_", "ak-", "as-", "csk-"),
    *(
        "ghs_",
        "ghu_",
        "hvs.",
        "hvr.",
        "npm_",
        "sntryu_",
        "sntrys_",
        "tskey-",
        "prf_cli_",
    ),
    *("sk_live_", "sk_test_", "rk_live_", "rk_test_", "pk_live_", "whsec_", "sq0atp-"),
    *("sq0csp-", "sq0idp-", "glrtr-", "gloas-", "ya29.", "GOCSPX-", "pypi-", "ntn_"),
    *("secret_", "lin_api_", "AstraCS:", "bkua_", "cfat_", "cfut_", "sk-", "xoxe."),
)
"""Marks that the list lacks, or knows only in longer forms; `-` and `_` may follow each."""
_WORDS = ("ak-", "as-", "secret_", "pk_live_", "prf_cli_")
"""Marks that also begin words: only one run of letters and digits is a token behind them."""
_SHAPES = (
    r"xox[a-z]-[A-Za-z0-9-]{10,}",
    r"xapp-[A-Za-z0-9-]{10,}",
    r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,}",
    r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
    # Lambda, Telegram, Discord, Mailchimp, Twilio
    r"secret_[A-Za-z0-9-]{1,40}_[0-9a-f]{32}\.[A-Za-z0-9]{16,}",
    r"[0-9]{8,10}:[0-9A-Za-z_-]{35,}",
    r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}",
    r"[0-9a-f]{32}-us[0-9]{1,2}",
    r"(?:AC|SK)[0-9a-f]{32}",
)
"""Tokens that have more to them than a mark."""
_TELEGRAM = re.compile(r"[0-9]{8,10}:(?P<key>.*)")
_ARMOUR = re.compile(
    r"-----BEGIN (?P<kind>[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----"
    r"(?:(?:(?!-----BEGIN).){0,20000}?-----END (?P=kind)-----"
    r"|(?:(?:\\r|\\n|\s)*[A-Za-z0-9+/=:,-]{16,}(?: [A-Za-z0-9,-]+)?)*)",
    re.DOTALL,
)
"""A private key with its body; where its end is missing, the lines of base64 that follow."""
_ARMOUR_END = re.compile(
    r"(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/=]{16,}+(?:\\r|\\n|\s)++){1,200}+-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----"
)
"""The end of a private key whose beginning was cut."""
_PUTTY = re.compile(
    r"(?P<before>PuTTY-User-Key-File-\d)(?:(?!PuTTY).){0,20000}?Private-MAC: [0-9a-f]+",
    re.DOTALL,
)


def without_keys(text: str) -> str:
    """The text with `<secret>` in place of every private key."""
    if "PRIVATE KEY" in text:
        text = _ARMOUR_END.sub(SECRET, _ARMOUR.sub(SECRET, text))
    if "PuTTY" in text:
        text = _PUTTY.sub(rf"\g<before>{SECRET}", text)
    return text


def without_tokens(text: str) -> str:
    """The text with `<secret>` in place of every token."""
    content = _PATTERN.sub(_replaced, text.encode("utf-8", "surrogatepass"))
    return str(content.decode("utf-8", "surrogatepass"))


def _replaced(found: Any) -> bytes:
    """A token by what stands for it, behind the sign before it."""
    whole, word = bytes(found.group(0)), bytes(found.group(1))
    if not _is_token(word.decode()):
        return whole
    return whole.removesuffix(word) + SECRET.encode()


def _is_token(word: str) -> bool:
    """Whether what follows a mark is random: short words of names have small letters only."""
    telegram = _TELEGRAM.fullmatch(word)
    if telegram:
        return len(telegram["key"]) == 35
    mark = _MARK.match(word)
    if mark is None:
        return True
    body = word[mark.end() :]
    if re.search("[_-]", body):
        return re.search(r"\d", body) is not None
    return len(body) >= _LONG or re.search(r"[A-Z\d]", body) is not None


def _marks() -> dict[str, str]:
    """Mark to the signs that may follow it beside letters and digits."""
    marks = {mark: "" if mark in _WORDS else "_-" for mark in _MARKS}
    table = resources.files("sparkpub.record").joinpath(_LISTED)
    for line in table.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            mark, signs, _ = line.split("\t")
            marks[mark] = "".join(sorted({*marks.get(mark, ""), *signs}))
    return marks


def _either(marks: list[str]) -> str:
    return "|".join(map(re.escape, sorted(marks, key=len, reverse=True)))


def _pattern() -> Any:
    """One pattern of RE2 for all shapes: it reads a text once, however many marks there are.

    Before a token stands the beginning of the text, a sign, or a line break as JSON writes it.
    """
    by_signs: dict[str, list[str]] = {}
    for mark, signs in _marks().items():
        by_signs.setdefault(signs, []).append(mark)
    marked = [
        f"(?:{_either(marks)})[A-Za-z0-9{re.escape(signs)}]{{{LEAST},}}"
        for signs, marks in by_signs.items()
    ]
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes that are no text, too
    before = r"(?:^|[^A-Za-z0-9_]|\\[nrt])"
    return re2.compile(f"{before}({'|'.join([*marked, *_SHAPES])})".encode(), options)


_MARK = re.compile(_either([*_marks()]))
_PATTERN = _pattern()
