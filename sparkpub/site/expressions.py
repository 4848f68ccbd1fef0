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
_ALONE = "write a call alone, as {{ value(…) }}; a table takes the place of a loop"
_OWNER = re.compile(r"^\S+\.(?=\w+\(\) )")
"""What Python names before a function that is given other arguments than it takes."""
_PART = re.compile(
    r"\{% raw %\}(?P<raw>.*?)\{% endraw %\}|\{\{(?P<call>.*?)\}\}|\{[{%]", re.DOTALL
)


def render(words: Vocabulary, text: str, uri: str, offset: int) -> str:
    """The text with what each call says in its place; `offset` lines of the file stand before it. Raises ClaimError
    with file and line, whatever goes wrong in it."""

    def filled(found: re.Match[str]) -> str:
        if found["raw"] is not None:
            return found["raw"]
        line = text.count("\n", 0, found.start()) + 1 + offset
        return _said(words, found["call"] or "", f"{uri}:{line}")

    return _PART.sub(filled, text)


def _said(words: Vocabulary, call: str, where: str) -> str:
    try:
        name, given, scope = parsed(call)
        if name in words:
            return str(words[name](*given, **scope))
        what, remedy = (
            f"{name!r} is no word of a page",
            "sparkpub values lists the names there are",
        )
    except SparkpubError as error:
        what, remedy = error.what, error.remedy
    except (
        Exception
    ) as error:  # a page is not ours: whatever it made Python do, it gets file and line
        what = _OWNER.sub("", str(error)) or type(error).__name__
        remedy = "see the page on writing for the arguments"
    raise ClaimError(what, where=where, remedy=remedy)


def parsed(call: str) -> tuple[str, list[object], dict[str, object]]:
    """Name, arguments and named arguments of a call. Raises ClaimError for whatever is not a call with constants."""
    try:
        found = ast.parse(call.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ClaimError(f"this is no call: {error}", remedy=_ALONE) from None
    if not isinstance(found, ast.Call) or not isinstance(found.func, ast.Name):
        raise ClaimError(f"{call.strip()[:80]} is no call", remedy=_ALONE)
    try:
        given = [ast.literal_eval(item) for item in found.args]
        named = {
            item.arg or "**": ast.literal_eval(item.value) for item in found.keywords
        }
    except ValueError:
        remedy = "write a text, a number or a list of them"
        raise ClaimError("an argument is not written out", remedy=remedy) from None
    return found.func.id, given, named
