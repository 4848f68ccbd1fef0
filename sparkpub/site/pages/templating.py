"""Templates: everything that comes from data is escaped, in HTML and in Markdown."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from sparkpub.record.text import counted, file_size, listed, percent, rounded
from sparkpub.review.checks import CHECKS
from sparkpub.review.checks.happened import unrecorded
from sparkpub.review.names import load_name
from sparkpub.review.tables.over import REPEAT_PERCENT
from sparkpub.site.content import ROOT, Page, block_key, placeholder
from sparkpub.site.figures.figure import known
from sparkpub.site.figures.output import markup
from sparkpub.site.pages import (
    campaign_page,
    findings,
    leaderboard_page,
    memory,
    model_links,
)
from sparkpub.site.publication import Publication, slug

SHIPPED = Path(__file__).parent / "templates"
MOST_BARE = 99_999
"""A larger number has commas."""
_SPECIAL = re.compile(r"[&<>\\`*_{}\[\]|#~^=:!]")


def markdown_text(text: Any) -> Markup:
    """Text as it is, in Markdown: every sign that could mean something becomes a character reference."""
    plain = " ".join(str(text).splitlines())
    return Markup(_SPECIAL.sub(lambda sign: f"&#{ord(sign[0])};", plain))  # noqa: S704 - this is the escaping


def page(template: str, publication: Publication, **context: Any) -> Page:
    """A page of a publication as a template writes it: Markdown, whose `{{ front(title=…) }}` says what it says of
    itself, and whose HTML parts, written as `{% call html() %}…{% endcall %}`, are placeholders."""
    meta: dict[str, Any] = {}
    parts: dict[str, str] = {}

    def front(**said: Any) -> str:
        meta.update(said)
        return ""

    def html(caller: Callable[[], str]) -> Markup:
        part = str(caller()).strip()
        key = block_key(part)
        parts[key] = part
        return Markup(f"\n{placeholder(key)}\n")  # noqa: S704 - a hexadecimal digest

    written = text(
        f"{template}.md.j2",
        publication=publication,
        front=front,
        html=html,
        **context,
    )
    return Page(meta, written.lstrip(), parts)


def options(said: Mapping[str, Any]) -> Markup:
    """What a record says under names, within each other as they are there."""
    rows = (
        f"<dt>{escape(name.replace('_', ' ') if name == name.lower() else name)}</dt><dd>{plain(value)}</dd>"
        for name, value in said.items()
    )
    return Markup(f'<dl class="sp-facts">{"".join(rows)}</dl>')  # noqa: S704 - its parts are escaped


def plain(value: Any) -> Markup:
    """One of its values, for readers."""
    match value:
        case Mapping():
            return options(value)
        case None:
            told = "not set"
        case bool():
            told = "yes" if value else "no"
        case float():
            told = f"{value:.7g}"
        case int() if value > MOST_BARE:
            told = f"{value:,}"
        case list() | tuple():
            told = ", ".join(map(str, value))
        case _:
            told = value
    return escape(told)


def text(template: str, **context: Any) -> str:
    """A rendered template."""
    return _environment().get_template(template).render(**context)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(SHIPPED),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "md": markdown_text,
        "size": file_size,
        "brief": findings.brief,
    }
    environment.globals |= {
        "root": ROOT,
        "CHECKS": CHECKS,
        "REPEAT_PERCENT": REPEAT_PERCENT,
        "slug": slug,
        "drawing": markup,
        "known": known,
        "options": options,
        "plain": plain,
        "counted": counted,
        "listed": listed,
        "percent": percent,
        "rounded": rounded,
        "load_name": load_name,
        "not_recorded": unrecorded,
        "model_links": model_links,
        # What a page asks for besides is where its rows are chosen.
        "campaign_page": campaign_page,
        "findings": findings,
        "leaderboard_page": leaderboard_page,
        "memory": memory,
    }
    return environment
