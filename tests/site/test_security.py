"""The policy a page declares, checked against the definition: base64 of SHA-256 of the script's text."""

import base64
import hashlib

import pytest
from jinja2 import DictLoader, Environment

from sparkpub.site.browser import security

TEMPLATE = """{% if x %}<script>let a = "</b>", at = "{{ base_url }}"</script>{% endif %}
<script>{% if y %}cut(){% endif %}</script><script src="x.js"></script><script id="__config" type="application/json">"""
KNOWN = security.scripts_in([TEMPLATE])
PAGE = """<!doctype html><html><head><meta charset="utf-8"><title>x</title>
<script>let a = "</b>", at = "../.."</script><script src="x.js"></script>
<script id="__config" type="application/json">{}</script>
</head><body><div class="md-search" data-md-component="search" role="dialog"></div>
<script>let a = "</b>", at = "../.."</script></body></html>"""


def test_only_scripts_that_run_are_hashed_and_each_once() -> None:
    expected = base64.b64encode(
        hashlib.sha256(b'let a = "</b>", at = "../.."').digest()
    ).decode()
    assert security.allowed_hashes(PAGE, KNOWN) == [f"'sha256-{expected}'"]


@pytest.mark.parametrize(
    "script",
    [
        "alert(1)",
        'let a = "</b>", at = "../..";alert(1)',
        'let a = "</b>", at = "";alert(1);""',
        'let a = "</b>", at = "x"+alert(1)+""',
        "cut()",
        "",
    ],
)
def test_a_script_that_the_theme_does_not_have_is_never_allowed(script: str) -> None:
    """Whatever a page came to hold: its hash is not in the policy."""
    page = PAGE.replace("<body>", f"<body><script>{script}</script>")
    assert security.policy(page, KNOWN) == security.policy(PAGE, KNOWN)


def test_the_scripts_of_the_theme_are_those_of_its_templates() -> None:
    environment = Environment(
        loader=DictLoader({"a.html": TEMPLATE, "b.txt": "<script>no()</script>"})
    )
    assert [script.pattern for script in security.theme_scripts(environment)] == [
        script.pattern for script in KNOWN
    ]


def test_scripts_need_hash_or_site() -> None:
    script = next(
        rule
        for rule in security.policy(PAGE, KNOWN).split("; ")
        if rule.startswith("script-src ")
    )
    assert "unsafe" not in script
    assert script.split()[1] == "'self'"


def test_policy_stands_before_the_first_script_and_only_once() -> None:
    page = security.finish(PAGE, KNOWN)
    assert page.index("Content-Security-Policy") < page.index("<script")
    assert security.finish(page, KNOWN) == page


def test_search_dialog_has_a_name() -> None:
    assert 'role="dialog" aria-label="Search"' in security.finish(PAGE, KNOWN)


def test_a_fragment_without_head_is_left_alone() -> None:
    assert security.finish("<p>x</p>", KNOWN) == "<p>x</p>"


def test_a_page_that_speaks_of_the_policy_has_one_as_well() -> None:
    assert 'http-equiv="Content-Security-Policy"' in security.finish(
        PAGE.replace("<title>", "<title>Content-Security-Policy "), KNOWN
    )
