"""What a sentence says otherwise than the expression in it: direction, unit, model or environment.

The words beside an expression are typed and its result is not, so that one can change without the other. A sentence is
read only as far as it is plain: words of both directions in it, or the names of two models, are left to its author.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

from sparkpub.record.metrics import METRICS
from sparkpub.review.claims.ledger import Claim
from sparkpub.review.dataset import Dataset
from sparkpub.review.names import Names
from sparkpub.site import sentences
from sparkpub.site.prose import UNITS

Render = Callable[[str], str | None]
"""An expression to what it says; None where it says nothing."""
Contradiction = tuple[int, str]
"""Where in the source, and what is wrong."""

_UP = r"(?:higher|more|larger|longer|faster|quicker)"
_DOWN = r"(?:lower|less|fewer|smaller|shorter|slower)"
_EXPRESSION = re.compile(r"\{\{[^{}]*\}\}")
_SENTENCE = re.compile(r"(?:[^.!?|{}\n]|\{\{[^{}]*\}\}|[.!?](?!\s)|\n(?!\s*\n))+")
"""Up to a full stop, the end of a paragraph or of a cell."""
_ROW = re.compile(r"^\|.*\|[ \t]*$", re.MULTILINE)
_BESIDE = re.compile(rf"\s+(?:percent\s+)?({_UP}|{_DOWN})\b", re.IGNORECASE)
_BEFORE = re.compile(
    r"\b(?:(?P<up>ris(?:es?|en)|rose|gr[eo]w(?:s|n)?|gain(?:s|ed)?|increase[sd]?)"
    r"|(?P<down>f[ae]ll(?:s|en)?|drop(?:s|ped)?|sh?r[aiu]nk(?:s|en)?|los(?:es?|t)|decrease[sd]?))\s+(?:by\s+)?$",
    re.IGNORECASE,
)
_SIGNED = re.compile(r"^[+−]")
_METRIC = re.compile(r"[\"']([a-z0-9_]+)[\"']")
_JUDGED = re.compile(r"\b(?:verdict|claim)\(\s*[\"']([\w-]+)[\"']\s*\)")
_COMPARED = re.compile(r"\bcompare\(\s*[\"']verdict[\"']")
_WITH_UNIT = re.compile(r"\d\s*\S*[^\W\d_]\S*$|\d\s*%$")
_UNIT = re.compile(
    r"\s*(per second|a second"
    rf"|{'|'.join(re.escape(unit) for unit in sorted(UNITS, key=len, reverse=True) if unit != 'x')})(?![\w/])"
)
_ARGUMENT = r"\b{}=[\"']([^\"']+)[\"']"
_SIZED = re.compile(r"\S*\d+(?:\.\d+)?B(?=-)")
"""A model's name up to its size: `Qwen2.5-72B` of `Qwen2.5-72B-Instruct`."""
_WORD = 40
"""Letters in which a word before an expression is looked for."""
AXES = ("model", "environment")


def contradictions(
    source: str,
    render: Render,
    claims: Mapping[str, Claim],
    dataset: Dataset,
    campaign: str | None,
) -> Iterator[Contradiction]:
    """Everything that a page says against its own expressions, with its place. `campaign` is that of the page."""
    for found in _EXPRESSION.finditer(source):
        yield from _against_sign(source, found, render)
        yield from _against_unit(source, found, render)
    passages = [*_SENTENCE.finditer(source), *_ROW.finditer(source)]
    for passage in passages:
        expressions = _EXPRESSION.findall(passage[0])
        if not expressions:
            continue
        told = _EXPRESSION.sub(" ", passage[0])
        for expression in expressions:
            for text in (
                _against_verdict(told, expression, render, claims),
                _against_names(told, expression, dataset, campaign),
            ):
                if text:
                    yield passage.start() + passage[0].find(expression), text


def _against_sign(
    source: str, found: re.Match[str], render: Render
) -> Iterator[Contradiction]:
    """`… lower` behind a difference above zero, `falls by …` before one."""
    behind = _BESIDE.match(source, found.end())
    front = source[max(0, found.start() - _WORD) : found.start()]
    before = _BEFORE.search(front.replace("\n", " "))
    word = None
    if before:
        is_up, word = before["up"] is not None, before[0].strip()
    elif behind:
        is_up, word = _is_up(behind[1], found[0]), behind[1]
    if word is None:
        return
    said = render(found[0]) or ""
    sign = _SIGNED.match(said)
    if sign and (sign[0] == "+") != is_up:
        yield found.start(), f"The sentence says “{word}”, and the figure is {said}."


def _is_up(word: str, expression: str) -> bool:
    """Whether a word says that the metric of an expression is higher: of a time, `slower` does."""
    is_up = re.fullmatch(_UP, word, re.IGNORECASE) is not None
    metrics = [METRICS[name] for name in _METRIC.findall(expression) if name in METRICS]
    is_speed = word.lower() in ("faster", "quicker", "slower")
    if is_speed and metrics and metrics[0].direction == "lower":
        return not is_up
    return is_up


def _against_unit(
    source: str, found: re.Match[str], render: Render
) -> Iterator[Contradiction]:
    """A unit behind a figure that has its own."""
    unit = _UNIT.match(source, found.end())
    if unit is None:
        return
    said = render(found[0]) or ""
    if _WITH_UNIT.search(said):
        yield (
            found.start(),
            f"The figure is {said}, and the sentence goes on with “{unit[1]}”.",
        )


def _against_verdict(
    told: str, expression: str, render: Render, claims: Mapping[str, Claim]
) -> str | None:
    """A sentence whose only word of direction is the other one than that of the verdict that it carries."""
    judged = _JUDGED.search(expression)
    direction = None
    if _COMPARED.search(expression):
        direction = render(expression)
    elif judged and judged[1] in claims and claims[judged[1]].recorded == "supported":
        claim = claims[judged[1]]
        direction = claim.expect.direction if claim.expect is not None else None
        expression += f' "{claim.metric}"'
    if direction not in ("higher", "lower"):
        return None
    words = re.findall(rf"\b({_UP}|{_DOWN})\b", told, re.IGNORECASE)
    says = {_is_up(word, expression) for word in words}
    if len(says) == 1 and (direction == "higher") not in says:
        return (
            f"The sentence says “{words[0]}”, and the verdict in it is of {direction}."
        )
    return None


def _against_names(
    told: str, expression: str, dataset: Dataset, campaign: str | None
) -> str | None:
    """A sentence that names one model or environment and carries the figure of another."""
    of = re.search(_ARGUMENT.format("campaign"), expression)
    name = of[1] if of else campaign
    if name is None or name not in dataset.campaigns:
        return None
    for axis in AXES:
        own = re.search(_ARGUMENT.format(axis), expression)
        if own is None:
            continue
        called = _called(dataset, name, axis)
        named = [key for key, words in called.items() if _names_one(told, words)]
        if named and own[1] in called and own[1] not in named:
            meant = sorted(called[own[1]], key=len)[0]
            return f"The sentence names {called[named[0]][0]}, and the figure in it is of {meant}."
    return None


@lru_cache(maxsize=64)
def _called(dataset: Dataset, campaign: str, axis: str) -> Mapping[str, Sequence[str]]:
    """Key of a model or an environment to all that readers call it."""
    names = Names(dataset)
    found: dict[str, Sequence[str]] = {}
    for record in dataset.campaign(campaign).records:
        key = getattr(record, axis)
        if key in found:
            continue
        if axis == "model":
            says = partial(names.model, campaign)
            words = [says(key), names.short_model(campaign, key)]
            words += [names.entity(record).name, key]
            words += [size[0] for size in map(_SIZED.match, words) if size]
        else:
            name = names.environment(campaign, key)
            words = [name, key, *map(sentences.in_environment, (name, key))]
        found[key] = list(dict.fromkeys(words))
    return found


def _names_one(told: str, words: Sequence[str]) -> bool:
    """Whether a text has one of the words, as a word of its own."""
    either = "|".join(map(re.escape, words))
    return re.search(rf"(?<![\w.-])(?:{either})(?![\w-])", told) is not None
