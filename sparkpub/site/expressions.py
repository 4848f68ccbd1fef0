"""The expressions in a page: calls and loops over lists that are written out, within bounds, and nothing else."""

import re
import traceback

from jinja2 import Environment, TemplateError, TemplateSyntaxError, nodes

from sparkpub.record.errors import ClaimError, SparkpubError

MOST_CALLS = 2000
"""Calls of one page, those in loops as often as they are made."""
MOST_CHARACTERS = 10_000_000
"""Characters that a page may become."""
LONGEST_TEXT, LARGEST_NUMBER = 1000, 1_000_000
"""Of what is written as an argument."""
_LONGEST_MESSAGE = 300
_OWNER = re.compile(r"^\S+\.(?=\w+\(\) )")
"""What Python names before a function that is given other arguments than it takes."""
_PLAIN = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.Call,
    nodes.Name,
    nodes.Const,
    nodes.Keyword,
    nodes.For,
    nodes.List,
    nodes.Tuple,
)
"""The parts of a template that a page may consist of."""


def render(environment: Environment, text: str, uri: str, offset: int) -> str:
    """A template's text; `offset` lines of the file stand before it. Raises ClaimError with file and line, whatever
    goes wrong in it."""
    try:
        return _rendered(environment, text, uri)
    except TemplateSyntaxError as error:
        what, line = str(error.message), error.lineno
        remedy = "correct the expression there"
    except TemplateError as error:
        what, line = str(error), _line(error, uri)
        remedy = "sparkpub values lists the names there are"
    except SparkpubError as error:
        what, line, remedy = error.what, _line(error, uri), error.remedy
    except (RecursionError, MemoryError):
        what, line = "an expression is nested too deep, or too large", 1
        remedy = "write calls alone"
    except (TypeError, ValueError, ArithmeticError) as error:
        what, line = _OWNER.sub("", str(error)), _line(error, uri)
        remedy = "see the page on writing for the arguments"
    except (
        Exception
    ) as error:  # a page is not ours: it gets file and line, whatever it made Python do
        what, line = f"{type(error).__name__}: {error}", _line(error, uri)
        remedy = "see the page on writing for the arguments"
    where = f"{uri}:{line + offset}"
    raise ClaimError(what[:_LONGEST_MESSAGE], where=where, remedy=remedy)


def _rendered(environment: Environment, text: str, uri: str) -> str:
    template = environment.parse(text)
    only_calls(template)
    _refuse_many(template, 1, 0)
    code = environment.compile(text, name=uri, filename=uri)
    page = environment.template_class.from_code(environment, code, environment.globals)
    pieces, length = [], 0
    for piece in page.generate():
        length += len(piece)
        if length > MOST_CHARACTERS:
            raise ValueError(f"the page becomes longer than {MOST_CHARACTERS:,} signs")
        pieces.append(piece)
    return "".join(pieces)


def only_calls(template: nodes.Template) -> None:
    """Raise TemplateSyntaxError for what is more than a call: an author's arithmetic would be a typed figure.

    Allowed are the names that prose may use with plain arguments, and loops over plain lists.
    """
    for node in template.find_all(nodes.Node):
        if not isinstance(node, _PLAIN):
            raise TemplateSyntaxError(
                f"{type(node).__name__} is not allowed: write the call alone",
                node.lineno,
            )
        if isinstance(node, nodes.Const):
            _refuse_large(node)
        printed = node.nodes if isinstance(node, nodes.Output) else []
        for part in printed:
            if isinstance(part, nodes.Const | nodes.List | nodes.Tuple):
                raise TemplateSyntaxError(
                    "an expression prints what was typed: write a call", part.lineno
                )


def _refuse_large(node: nodes.Const) -> None:
    value = node.value
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        what = f"a text of {len(value):,} characters"
        raise TemplateSyntaxError(what, node.lineno)
    if isinstance(value, int | float) and not abs(value) <= LARGEST_NUMBER:
        what = f"a number above {LARGEST_NUMBER:,}"
        raise TemplateSyntaxError(what, node.lineno)


def _refuse_many(node: nodes.Node, times: int, calls: int) -> int:
    """The calls so far with those below a node that is done so many times. Raises TemplateSyntaxError where they are
    too many, or a loop is not over a list that is written out."""
    if isinstance(node, nodes.For):
        if node.recursive or not isinstance(node.iter, nodes.List | nodes.Tuple):
            what = "a loop goes over a list that is written out"
            raise TemplateSyntaxError(what, node.lineno)
        times *= max(1, len(node.iter.items))
    if isinstance(node, nodes.Call | nodes.For):
        calls += times
    if calls > MOST_CALLS:
        what = f"more than {MOST_CALLS:,} calls on a page"
        raise TemplateSyntaxError(what, getattr(node, "lineno", 1))
    for child in node.iter_child_nodes():
        calls = _refuse_many(child, times, calls)
    return calls


def _line(error: BaseException, uri: str) -> int:
    """The line of the page at which a rendering stopped."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return next((f.lineno or 1 for f in frames if f.filename == uri), 1)
