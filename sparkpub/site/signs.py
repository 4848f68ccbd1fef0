"""A word of direction beside an expression that says the other one: `falls by {{ ... }}` where the figure rose.

The words beside an expression are typed and its result is not, so that one can change without the other.
"""

import re
from collections.abc import Callable, Iterator

from sparkpub.record.metrics import METRICS

Render = Callable[[str], str | None]
"""An expression to what it says; None where it says nothing."""

_UP = r"(?:higher|more|larger|longer|faster|quicker)"
_DOWN = r"(?:lower|less|fewer|smaller|shorter|slower)"
_EXPRESSION = re.compile(r"\{\{[^{}]*\}\}")
_BESIDE = re.compile(rf"\s+(?:percent\s+)?({_UP}|{_DOWN})\b", re.IGNORECASE)
_BEFORE = re.compile(
    r"\b(?:(?P<up>ris(?:es?|en)|rose|gr[eo]w(?:s|n)?|gain(?:s|ed)?|increase[sd]?)"
    r"|(?P<down>f[ae]ll(?:s|en)?|drop(?:s|ped)?|sh?r[aiu]nk(?:s|en)?|los(?:es?|t)|decrease[sd]?))\s+(?:by\s+)?$",
    re.IGNORECASE,
)
_SIGNED = re.compile(r"^[+−]")
_METRIC = re.compile(r"[\"']([a-z0-9_]+)[\"']")
_WORD = 40
"""Letters in which a word before an expression is looked for."""


def against_sign(source: str, render: Render) -> Iterator[tuple[int, str]]:
    """`… lower` behind a difference above zero, `falls by …` before one: each place in a page, and what is wrong."""
    for found in _EXPRESSION.finditer(source):
        behind = _BESIDE.match(source, found.end())
        front = source[max(0, found.start() - _WORD) : found.start()]
        before = _BEFORE.search(front.replace("\n", " "))
        if before:
            is_up, word = before["up"] is not None, before[0].strip()
        elif behind:
            is_up, word = _is_up(behind[1], found[0]), behind[1]
        else:
            continue
        said = render(found[0]) or ""
        sign = _SIGNED.match(said)
        if sign and (sign[0] == "+") != is_up:
            what = f"The sentence says “{word}”, and the figure is {said}."
            yield found.start(), what


def _is_up(word: str, expression: str) -> bool:
    """Whether a word says that the metric of an expression is higher: of a time, `slower` does."""
    is_up = re.fullmatch(_UP, word, re.IGNORECASE) is not None
    metrics = [METRICS[name] for name in _METRIC.findall(expression) if name in METRICS]
    is_speed = word.lower() in ("faster", "quicker", "slower")
    if is_speed and metrics and metrics[0].direction == "lower":
        return not is_up
    return is_up
