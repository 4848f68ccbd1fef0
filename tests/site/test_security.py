"""The policy a page declares, checked against the definition: base64 of SHA-256 of the script's text."""

import base64
import hashlib
from types import SimpleNamespace

from jinja2 import DictLoader, Environment

from sparkpub.site.browser import security

BASE, PALETTE, CONTENT = security.SCRIPT_TEMPLATES
THEME = {
    BASE: '<script>at = new URL("{{ base_url }}")</script>',
    PALETTE: """{% if "tabs" in features %}<script>tabs()</script>{% endif %}
<script>palette()</script>""",
    CONTENT: '<script src="x.js"></script><script id="c" type="application/json">{}</script>',
    "partials/javascripts/consent.html": "<script>consent()</script>",
    "page.html": "{{ policy() }}",
}


def rendered(*features: str, **variables: object) -> dict[str, str]:
    """Rule to its sources, of a page of a theme with these features."""
    environment = Environment(loader=DictLoader(THEME))
    environment.globals["policy"] = security.page_policy(environment)
    config = SimpleNamespace(theme={"features": list(features)})
    text = environment.get_template("page.html").render(config=config, **variables)
    return dict(rule.split(" ", 1) for rule in text.split("; "))


def source_of(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def test_the_scripts_of_the_theme_are_allowed_as_this_page_has_them() -> None:
    expected = ["'self'", source_of('at = new URL("../..")'), source_of("palette()")]
    assert rendered(base_url="../..")["script-src"].split() == expected


def test_a_feature_that_is_on_brings_its_script() -> None:
    found = rendered("tabs", base_url=".")["script-src"].split()
    assert source_of("tabs()") in found
    assert source_of("palette()") in found


def test_nothing_inline_is_allowed_at_large_and_forms_go_nowhere_else() -> None:
    rules = rendered(base_url=".")
    assert "unsafe" not in " ".join(rules.values())
    for rule in ("default-src", "style-src", "script-src", "base-uri", "form-action"):
        assert rules[rule].split()[0] == "'self'"
    assert rules["object-src"] == "'none'"
    assert rules["img-src"] == "'self' data:"
