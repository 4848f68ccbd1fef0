"""What happens to a finished page: the policy that it declares, and the theme's defects that it must not keep.

A page that cannot set headers declares its Content-Security-Policy in a meta element, so the policy is computed from
the page itself: scripts of this site, and exactly the inline scripts that the theme put there.
"""

import base64
import hashlib
import html
import re

from sparkpub.site.browser import runtime

_INLINE = re.compile(r"<script(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL | re.IGNORECASE)
_BUNDLE = re.compile(r'<script src="([^"]*)assets/javascripts/bundle\.')
_KEPT = re.compile(r"(<(pre|script|textarea)\b.*?</\2>)", re.DOTALL)
_CHARSET = re.compile(r'<meta charset="?utf-8"?>', re.IGNORECASE)

MENDS = (
    # Material 9.8 names neither its search dialog nor its progress bar.
    ('data-md-component="search" role="dialog">', 'data-md-component="search" role="dialog" aria-label="Search">'),
    ('data-md-component="progress" role="progressbar">',
     'data-md-component="progress" role="progressbar" aria-label="Loading the page">'),
    ('<div class="md-search__scrollwrap" tabindex="0"',
     '<div class="md-search__scrollwrap" tabindex="0" role="region" aria-label="Search results"'),
    # On a list of posts each "continue reading" is a landmark of its own, and all of them have the same name: none.
    ('<nav class="md-post__action">', '<nav class="md-post__action" role="none">'),
    ('<nav class="md-nav md-nav--primary">', '<nav class="md-nav md-nav--primary" aria-label="About this post">'),
    ('<nav class="md-nav">', '<nav class="md-nav" role="none">'),
    ("<h1>404 - Not found</h1>", "<h1>Nothing is here</h1><p>No page has this address. The run may have been "
     "renamed or taken out; the tabs lead to all that there is, and the search finds words.</p>"),
    # A table in Markdown has a header in every column, and the first is often empty.
    ("<th></th>", "<td></td>"),
)  # fmt: skip
"""What the theme writes, and what a reader of the screen needs instead."""


def finish(page: str) -> str:
    """A whole HTML page with its policy declared and the theme's defects mended; idempotent.

    A page without a head is returned as it came.
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
    page = _BUNDLE.sub(rf'<script src="\1{runtime.search()[0]}"></script>\g<0>', page, count=1)
    meta = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy(page))}">'
    return _CHARSET.sub(lambda charset: charset[0] + meta, page, count=1)


def _dense(text: str) -> str:
    """Each line without its indent, no empty lines, and still a gap at either end where there was one."""
    lines = "\n".join(filter(None, map(str.strip, text.split("\n"))))
    return "\n" * text[:1].isspace() + lines + "\n" * text[-1:].isspace()


def policy(page: str) -> str:
    """The Content-Security-Policy of a page: this site only, and the page's own inline scripts by their hash.

    Styles may be inline, since highlighted code and tables of the theme carry style attributes.
    """
    scripts = ["'self'", *inline_hashes(page)]
    rules = {
        "default-src": "'self'",
        "script-src": " ".join(scripts),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data:",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def inline_hashes(page: str) -> list[str]:
    """Policy sources of the page's inline scripts, in order, each once; data blocks are no scripts."""
    found = [
        match["text"]
        for match in _INLINE.finditer(page)
        if " src=" not in match["attributes"] and "json" not in match["attributes"]
    ]
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in found]
    return [f"'sha256-{digest}'" for digest in dict.fromkeys(digests)]
