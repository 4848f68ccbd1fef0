"""The expressions in a page: `{{ value("mean", "peak_memory_gib", model="small") }}` is a call with constants.

No template engine reads what people wrote: nothing in it can run, loop, nest or be typed arithmetic. What stands
between `{% raw %}` and `{% endraw %}` stays as it is.
"""

import ast
import re
from collections.abc import Callable, Mapping

from sparkpub.record.errors import ClaimError, SparkpubError

Vocabulary = Mapping[str, Callable[..., object]]
"""What a page may call, by name."""
MOST_CHARACTERS = 10_000_000
"""Characters that a page may become."""
LONGEST_CALL, LARGEST_NUMBER = 5000, 1_000_000
"""Characters of a call, and of what is written as an argument in it."""
_LONGEST_MESSAGE = 300
_OWNER = re.compile(r"^\S+\.(?=\w+\(\) )")
"""What Python names before a function that is given other arguments than it takes."""
_PLAIN = (ast.List, ast.Tuple, ast.Load, ast.UnaryOp, ast.USub)
"""What an argument may be made of, besides texts and numbers."""
_PART = re.compile(
    r"\{% raw %\}(?P<raw>.*?)\{% endraw %\}|\{\{(?P<call>.*?)\}\}|\{[{%]", re.DOTALL
)


def render(words: Vocabulary, text: str, uri: str, offset: int) -> str:
    """The text with what each call says in its place; `offset` lines of the file stand before it. Raises ClaimError
    with file and line, whatever goes wrong in it."""
    pieces: list[str] = []
    end = length = 0
    for found in _PART.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        said = found["raw"]
        if said is None:
            said = _said(words, found["call"], f"{uri}:{line + offset}")
        pieces += [text[end : found.start()], said]
        length += len(said)
        if length > MOST_CHARACTERS:
            what = f"the page becomes longer than {MOST_CHARACTERS:,} signs"
            raise ClaimError(what, where=f"{uri}:{line + offset}", remedy="shorten it")
        end = found.end()
    return "".join([*pieces, text[end:]])


def _said(words: Vocabulary, call: str | None, where: str) -> str:
    remedy = "see the page on writing for the arguments"
    try:
        name, given, scope = parsed(call)
        return str(_word(words, name)(*given, **scope))
    except SparkpubError as error:
        what, remedy = error.what, error.remedy
    except (RecursionError, MemoryError):
        what = "an expression is nested too deep, or too large"
    except (TypeError, ValueError, ArithmeticError) as error:
        what = _OWNER.sub("", str(error))
    except (
        Exception
    ) as error:  # a page is not ours: it gets file and line, whatever it made Python do
        what = f"{type(error).__name__}: {error}"
    raise ClaimError(what[:_LONGEST_MESSAGE], where=where, remedy=remedy)


def _word(words: Vocabulary, name: str) -> Callable[..., object]:
    if name in words:
        return words[name]
    remedy = "sparkpub values lists the names there are"
    raise ClaimError(f"{name!r} is no word of a page", remedy=remedy)


def parsed(call: str | None) -> tuple[str, list[object], dict[str, object]]:
    """Name, arguments and named arguments of a call. Raises ClaimError for whatever is not a call with constants."""
    alone = "write a call alone, as {{ value(…) }}; a table takes the place of a loop"
    if call is None:
        raise ClaimError("this is no call, or it does not end", remedy=alone)
    if len(call) > LONGEST_CALL:
        raise ClaimError(f"a call of {len(call):,} characters", remedy="shorten it")
    try:
        found = ast.parse(call.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ClaimError(f"this is no call: {error}", remedy=alone) from None
    if not isinstance(found, ast.Call) or not isinstance(found.func, ast.Name):
        raise ClaimError(f"{call.strip()[:80]} is no call", remedy=alone)
    named = {item.arg or "**": _constant(item.value) for item in found.keywords}
    return found.func.id, [_constant(item) for item in found.args], named


def _constant(node: ast.expr) -> object:
    """A text, a number, true or false, or a list of them."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant):
            value = part.value
            if isinstance(value, int | float) and not abs(value) <= LARGEST_NUMBER:
                raise ClaimError(
                    f"a number above {LARGEST_NUMBER:,}", remedy="write a smaller one"
                )
        elif not isinstance(part, _PLAIN):
            raise ClaimError(
                "an argument is not written out",
                remedy="write a text, a number or a list of them",
            )
    return ast.literal_eval(node)
