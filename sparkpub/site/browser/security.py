"""The Content-Security-Policy that every page declares.

A host of static files sets no headers, so the policy stands in a meta element of the page's head. It allows the files
of this site and the inline scripts in the theme's own templates. It is made from those templates and never from a
finished page: what text from outside brings into a page is not in it.

Trusted Types (`require-trusted-types-for 'script'`) were tried with Material 9.8 in Chromium and are left out. The
theme's script assigns plain text to `innerHTML`, to `src` of a script and to a worker's address, so search stops. A
default policy that lets that text through would protect from nothing that the rules here do not.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable

from jinja2 import Environment, pass_context
from jinja2.runtime import Context

SCRIPT_TEMPLATES = (
    "partials/javascripts/base.html",
    "partials/javascripts/palette.html",
    "partials/javascripts/content.html",
)
"""The theme's templates whose inline scripts our pages hold."""
RULES = (
    ("default-src", "'self'"),
    ("style-src", "'self'"),
    ("img-src", "'self' data:"),
    ("object-src", "'none'"),
    ("base-uri", "'self'"),
    ("form-action", "'self'"),
)
_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def page_policy(environment: Environment) -> Callable[[Context], str]:
    """A function for templates that returns the policy of the page being rendered."""
    templates = [environment.get_template(name) for name in SCRIPT_TEMPLATES]

    @pass_context
    def policy_of_page(context: Context) -> str:
        # The theme's head is rendered before the theme has set its own `features`.
        features = context["config"].theme.get("features") or []
        variables = context.get_all() | {"features": features}
        scripts: list[str] = []
        for template in templates:
            scripts += _INLINE_SCRIPT.findall(template.render(variables))
        return policy(scripts)

    return policy_of_page


def policy(scripts: Iterable[str]) -> str:
    """The policy under which these inline scripts may run, and nothing else that a page holds."""
    hashes = [_hash(script) for script in scripts]
    rules = {"script-src": " ".join(["'self'", *hashes]), **dict(RULES)}
    return "; ".join(f"{name} {sources}" for name, sources in rules.items())


def _hash(script: str) -> str:
    """The source expression of a script: base64 of the SHA-256 of its text (CSP Level 3, section 2.3.1)."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
