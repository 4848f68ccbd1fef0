"""What happens to a finished page: the policy that it declares, and the theme's defects that it must not keep.

A page that cannot set headers declares its Content-Security-Policy in a meta element. It allows the files of this site
and those inline scripts that stand in the theme's own templates; whatever else a page holds does not run.
"""

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Sequence

from jinja2 import Environment

from sparkpub.site.browser import runtime

Script = re.Pattern[str]
"""An inline script of the theme; what its template fills in is an address."""

_INLINE = re.compile(
    r"<script(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL | re.IGNORECASE
)
_BUNDLE = re.compile(r'<script src="([^"]*)assets/javascripts/bundle\.')
_TEMPLATE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_EXPRESSION = re.compile(r"\{\{.*?\}\}")
_ADDRESS = r"[\w./~%:+-]*"
_KEPT = re.compile(r"(<(pre|script|textarea)\b.*?</\2>)", re.DOTALL)
_CHARSET = re.compile(r'<meta charset="?utf-8"?>', re.IGNORECASE)

MENDS = (
    # Material 9.8 names neither its search dialog nor its progress bar.
    (
        'data-md-component="search" role="dialog">',
        'data-md-component="search" role="dialog" aria-label="Search">',
    ),
    (
        'data-md-component="progress" role="progressbar">',
        'data-md-component="progress" role="progressbar" aria-label="Loading the page">',
    ),
    (
        '<div class="md-search__scrollwrap" tabindex="0"',
        '<div class="md-search__scrollwrap" tabindex="0" role="region" aria-label="Search results"',
    ),
    # On a list of posts each "continue reading" is a landmark of its own, and all of them have the same name: none.
    ('<nav class="md-post__action">', '<nav class="md-post__action" role="none">'),
    (
        '<nav class="md-nav md-nav--primary">',
        '<nav class="md-nav md-nav--primary" aria-label="About this post">',
    ),
    ('<nav class="md-nav">', '<nav class="md-nav" role="none">'),
    (
        "<h1>404 - Not found</h1>",
        "<h1>Nothing is here</h1><p>No page has this address. The run may have been "
        "renamed or taken out; the tabs lead to all that there is, and the search finds words.</p>",
    ),
    # A table in Markdown has a header in every column, and the first is often empty.
    ("<th></th>", "<td></td>"),
)
"""What the theme writes, and what a reader of the screen needs instead."""


def theme_scripts(environment: Environment) -> list[Script]:
    """The inline scripts in the templates of a theme."""
    loader = environment.loader
    assert loader is not None
    names = [name for name in environment.list_templates() if name.endswith(".html")]
    return scripts_in(loader.get_source(environment, name)[0] for name in names)


def scripts_in(templates: Iterable[str]) -> list[Script]:
    """The inline scripts in the sources of templates, except those that a statement of the template cuts."""
    found = []
    for source in templates:
        for text in _TEMPLATE_SCRIPT.findall(source):
            if "{%" not in text:
                parts = map(re.escape, _EXPRESSION.split(text))
                found.append(re.compile(_ADDRESS.join(parts)))
    return found


def finish(page: str, known: Sequence[Script]) -> str:
    """A whole HTML page with its policy declared and the theme's defects mended; idempotent.

    `known` are the inline scripts that may run. A page without a head is returned as it came.
    """
    for defect, mended in MENDS:
        page = page.replace(defect, mended)
    if 'http-equiv="Content-Security-Policy"' in page:
        return page
    # The theme's blank lines and indents are a fortieth of a page as it travels.
    parts = _KEPT.split(page)
    parts[0::3] = map(_dense, parts[0::3])
    del parts[2::3]
    page = "".join(parts)
    page = _BUNDLE.sub(
        rf'<script src="\1{runtime.search()[0]}"></script>\g<0>', page, count=1
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy(page, known))}">'
    return _CHARSET.sub(lambda charset: charset[0] + meta, page, count=1)


def _dense(text: str) -> str:
    """Each line without its indent, no empty lines, and still a gap at either end where there was one."""
    lines = "\n".join(filter(None, map(str.strip, text.split("\n"))))
    return "\n" * text[:1].isspace() + lines + "\n" * text[-1:].isspace()


def policy(page: str, known: Sequence[Script]) -> str:
    """The Content-Security-Policy of a page: this site only, and the theme's inline scripts by their hash.

    Styles may be inline, since highlighted code and tables of the theme carry style attributes.
    """
    rules = {
        "default-src": "'self'",
        "script-src": " ".join(["'self'", *allowed_hashes(page, known)]),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data:",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def allowed_hashes(page: str, known: Sequence[Script]) -> list[str]:
    """Policy sources of those inline scripts of the page that are known, in order, each once."""
    texts = [
        match["text"]
        for match in _INLINE.finditer(page)
        if " src=" not in match["attributes"]
    ]
    allowed = [
        text
        for text in dict.fromkeys(texts)
        if any(script.fullmatch(text) for script in known)
    ]
    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in allowed
    ]
    return [f"'sha256-{digest}'" for digest in digests]
