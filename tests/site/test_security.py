"""The policy a page declares, checked against the definition: base64 of SHA-256 of the script's text."""

import base64
import hashlib
from types import SimpleNamespace

import pytest
from jinja2 import DictLoader, Environment
from mkdocs.exceptions import PluginError

from sparkpub.site.browser import security
from sparkpub.site.mkdocs import refuse_others

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


def test_a_host_that_the_site_allows_may_send_scripts_styles_and_frames() -> None:
    host = "https://giscus.app"
    rules = dict(
        rule.split(" ", 1) for rule in security.policy(["go()"], [host]).split("; ")
    )
    named = {name for name, sources in rules.items() if host in sources.split()}
    assert named == {
        *("script-src", "style-src", "img-src"),
        *("font-src", "connect-src", "frame-src"),
    }
    assert source_of("go()") in rules["script-src"]
    assert "unsafe" not in " ".join(rules.values())


@pytest.mark.parametrize(
    "address", ["http://x.org", "https://x.org; script-src *", "*", "giscus.app"]
)
def test_what_is_no_address_of_a_host_is_refused(address: str) -> None:
    with pytest.raises(PluginError, match="is not the address of a host"):
        refuse_others([address])
    refuse_others(["https://x.org:8443"])


def test_nothing_inline_is_allowed_at_large_and_forms_go_nowhere_else() -> None:
    rules = rendered(base_url=".")
    assert "unsafe" not in " ".join(rules.values())
    for rule in ("default-src", "style-src", "script-src", "base-uri", "form-action"):
        assert rules[rule].split()[0] == "'self'"
    assert rules["object-src"] == "'none'"
    assert rules["img-src"] == "'self' data:"
