"""What a secret looks like: by its own shape, by the name beside it, or by where it stands in an address or header.

The shapes of vendors' tokens are those of detect-secrets, and some that it lacks. Its detectors of mere randomness are
not used: a log is full of digests.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from detect_secrets.plugins.artifactory import ArtifactoryDetector
from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.cloudant import CloudantDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.ibm_cloud_iam import IbmCloudIamDetector
from detect_secrets.plugins.ibm_cos_hmac import IbmCosHmacDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.softlayer import SoftlayerDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector

SECRET = "<secret>"  # noqa: S105 - the placeholder
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


# -- shapes ------------------------------------------------------------------------------------------------

_TELEGRAM = re.compile(r":[0-9A-Za-z_-]{35}")
"""What every token of Telegram has behind its number; it is found sooner than a number."""
_DETECTORS: dict[type[RegexBasedDetector], tuple[str | re.Pattern[str], ...]] = {
    ArtifactoryDetector: ("AKC", "AP"),
    AWSKeyDetector: ("A3T", "ABIA", "ACCA", "AKIA", "ASIA", "aws"),
    AzureStorageKeyDetector: ("AccountKey=",),
    CloudantDetector: ("cl", "CL"),
    DiscordBotTokenDetector: (".",),
    GitHubTokenDetector: ("gh",),
    GitLabTokenDetector: ("gl", "GR1348941"),
    IbmCloudIamDetector: ("ibm", "IBM", "iam", "IAM"),
    IbmCosHmacDetector: ("secret", "SECRET"),
    MailchimpDetector: ("-us",),
    PypiTokenDetector: ("pypi-",),
    SendGridDetector: ("SG.",),
    SlackDetector: ("xox", "hooks.slack.com"),
    SoftlayerDetector: ("softlayer", "SOFTLAYER", "sl_", "SL_"),
    SquareOAuthDetector: ("sq0csp-",),
    StripeDetector: ("k_live_",),
    TelegramBotTokenDetector: (_TELEGRAM,),
    TwilioKeyDetector: ("AC", "SK"),
}
"""A detector, and pieces of text of which every secret that it knows has one: looking for them is cheap."""
_BY_NAME = (CloudantDetector, IbmCloudIamDetector, SoftlayerDetector)
"""Those that also look for a key or password beside its name, which can only be in a line that tells of one."""


def _foreign(
    *, by_name: bool
) -> Iterator[tuple[tuple[str | re.Pattern[str], ...], re.Pattern[str]]]:
    """The detectors' patterns, each with its pieces: those that look beside a name, or all others."""
    for detector, pieces in _DETECTORS.items():
        for pattern in detector().denylist:
            beside = detector in _BY_NAME and "pass" in pattern.pattern
            if beside is by_name:
                yield pieces, pattern


_SHAPED = tuple(_foreign(by_name=False))
_NAMED = tuple(_foreign(by_name=True))
_OWN = re.compile(
    r"(?<![A-Za-z0-9_])(?:"
    r"hf_[A-Za-z0-9]{16,}|api_org_[A-Za-z0-9]{16,}|nvapi-[A-Za-z0-9_-]{16,}"
    r"|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}"
    r"|gl(?:pat|dt|ft|soat|rt|ptt|agent|oas)-[A-Za-z0-9_-]{16,}"
    r"|sk-[A-Za-z0-9_-]{16,}|gsk_[A-Za-z0-9]{16,}|xai-[A-Za-z0-9]{16,}|r8_[A-Za-z0-9]{16,}"
    r"|xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}|ABSK[A-Za-z0-9+/=]{16,}"
    r"|(?<!-)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"
    r"|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}|GOCSPX-[A-Za-z0-9_-]{16,}"
    r"|dckr_(?:pat|oat)_[A-Za-z0-9_-]{16,}|npm_[A-Za-z0-9]{16,}|pypi-[A-Za-z0-9_-]{16,}"
    r"|(?:dop|doo|dor)_v1_[a-f0-9]{16,}|hv[sbr]\.[A-Za-z0-9_-]{16,}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{16,}"
    r"|gl(?:c|sa)_[A-Za-z0-9+/=_]{16,}|tskey-[A-Za-z0-9-]{16,}|sntry[su]_[A-Za-z0-9+/=_-]{16,}"
    r"|(?:sk|rk|pk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,}|lin_api_[A-Za-z0-9]{16,}|ntn_[A-Za-z0-9]{16,}"
    r"|sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{16,}|AGE-SECRET-KEY-1[A-Z0-9]{16,}"
    r")"
)
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

# -- places ------------------------------------------------------------------------------------------------

_QUOTE = r"(?:\\{0,3}[\"']{1,2})"
"""A quote, also one in JSON that lies in JSON, or one that CSV writes twice."""
_BLANK = r"(?:\s|\\{1,2}[nrt])"
_ADDRESS = re.compile(
    r"(?P<before>(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,20}:(?:\\{0,3}/){2})(?!\[?[\w.-]*\]?:\d{1,5}(?:[/?#\s\"']|$))"
    r"(?:[^\s/:@\"'<>\\]*:[^\s\"'<>]+|[^\s/:@\"'<>]{16,})(?=@)"
)
"""User and password, or a token alone, in an address of any scheme."""
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
_NAME = re.compile(
    rf"(?<![A-Za-z0-9_.-])(?P<name>-{{0,2}}[A-Za-z_][A-Za-z0-9_.-]{{0,60}})(?P<close>{_QUOTE}?)"
    r"\s{0,3}(?::=|=>|=|:)\s{0,3}"
)
_VALUE = re.compile(
    r"(?P<quote>[\"']{2}(?=[^\s\"',:;}\]])|\\{0,3}[\"'])(?P<quoted>[^\"'\r\n\\]{1,2000})(?=\\{0,3}[\"'])"
    r"|(?P<bare>[^\s\"',;<>(){}\[\]\\]{4,2000})"
)
"""`name = value`, `"name": "value"`, `NAME=value`: a name, and the value right after it."""
_FLAG = re.compile(
    r"(?P<before>(?<![\w-])(?P<name>--?[A-Za-z][A-Za-z0-9_-]{0,60})"
    rf"{_QUOTE}?(?:{_BLANK}|,){{1,12}}{_QUOTE}?)(?P<value>[^\s\"',<>\\-][^\s\"',<>\\]*)"
)
"""`--token value`, and the same in a list of quoted words."""
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
_TELLING = (
    *("token", "secret", "pass", "credential", "auth", "cookie", "bearer", "basic"),
    *("key", "jwt", "pwd", "pat_", "pw_", "sig=", ":/", ":\\/", "@", "-u"),
)
_TELLING_END = re.compile(r"(?:pat|pw)\b")
"""What tells of a secret by its name or place, in small letters."""


def without_secrets(text: str) -> str:
    """The text with `<secret>` in place of whatever looks like one. Done twice it changes nothing more."""
    if "PRIVATE KEY" in text:
        text = _ARMOUR_END.sub(SECRET, _ARMOUR.sub(SECRET, text))
    if "PuTTY" in text:
        text = _PUTTY.sub(_kept, text)
    text = _OWN.sub(SECRET, text)
    for pieces, pattern in _SHAPED:
        if _has_any(text, pieces):
            text = pattern.sub(_shaped, text)
    text = _FLAG.sub(_flag, text)
    names = _Names()
    return "\n".join([_line(line, names) for line in text.split("\n")])


def _has_any(text: str, pieces: Iterable[str | re.Pattern[str]]) -> bool:
    for piece in pieces:
        if isinstance(piece, str) and piece in text:
            return True
        if isinstance(piece, re.Pattern) and piece.search(text):
            return True
    return False


def _line(line: str, names: "_Names") -> str:
    """A line without the secrets of which something in it tells by a name or a place."""
    small = line.casefold()
    if not _has_any(small, _TELLING) and not _TELLING_END.search(small):
        return line
    for pieces, pattern in _NAMED:
        if _has_any(line, pieces):
            line = pattern.sub(_shaped, line)
    for pieces, pattern, replace in _PLACES:
        if not pieces or _has_any(small, pieces):
            line = pattern.sub(replace, line)
    return _without_named(line, names)


class _Names(dict[str, bool]):
    """Whether a name is a secret's, for the names of one text: logs repeat a few thousands of times."""

    def __missing__(self, name: str) -> bool:
        self[name] = is_secret_name(name)
        return self[name]


def _kept(found: re.Match[str]) -> str:
    return f"{found['before']}{SECRET}"


def _shaped(found: re.Match[str]) -> str:
    """A detector's match: its last group is the secret where there is one, and else a vendor's short mark."""
    groups = [group for group in found.groups() if group and len(group) >= 16]
    if not groups:
        return SECRET if found[0].strip() == found[0] else f" {SECRET} "
    return found[0].replace(groups[-1], SECRET)


def _without_named(text: str, names: _Names) -> str:
    """The text without the values of telling names."""
    kept, done = [], 0
    for name in _NAME.finditer(text):
        if name.start() < done or name["name"].lower() == "authorization":
            continue
        value = names[name["name"]] and _VALUE.match(text, name.end())
        if value and _is_secret_value(name, value):
            kept += [text[done : name.end()], value["quote"] or "", SECRET]
            done = value.end()
    return "".join([*kept, text[done:]])


def _is_secret_value(name: re.Match[str], value: re.Match[str]) -> bool:
    """Whether what stands beside a telling name is a secret: no version, number, constant or path."""
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


def _flag(found: re.Match[str]) -> str:
    return _kept(found) if is_secret_name(found["name"]) else found[0]


def _said(found: re.Match[str]) -> str:
    least = 16 if found["before"].lower().startswith("token") else 8
    return _kept(found) if len(found["value"]) >= least else found[0]


_PLACES: tuple[tuple[tuple[str, ...], re.Pattern[str], str | Replace], ...] = (
    (("@",), _ADDRESS, _kept),
    (("@",), _LOGIN, f"{SECRET}@"),
    (("=",), _PARAMETER, _kept),
    (("authorization", "x-", "cookie"), _HEADER, _kept),
    (("bearer", "basic"), _BEARER, _kept),
    (("-u",), _USER, _kept),
    ((), _SAID, _said),
)
"""What to look for in a line that tells of a secret, and pieces of which the line has one then, in small letters."""
