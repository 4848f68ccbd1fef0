"""The policy a page declares, checked against the definition: base64 of SHA-256 of the script's text."""

import base64
import hashlib

from sparkpub.site.browser import security

PAGE = """<!doctype html><html><head><meta charset="utf-8"><title>x</title>
<script>let a = "</b>"</script><script src="x.js"></script><script id="__config" type="application/json">{}</script>
</head><body><div class="md-search" data-md-component="search" role="dialog"></div>
<script>let a = "</b>"</script></body></html>"""


def test_only_scripts_that_run_are_hashed_and_each_once() -> None:
    expected = base64.b64encode(hashlib.sha256(b'let a = "</b>"').digest()).decode()
    assert security.inline_hashes(PAGE) == [f"'sha256-{expected}'"]


def test_scripts_need_hash_or_site() -> None:
    script = next(rule for rule in security.policy(PAGE).split("; ") if rule.startswith("script-src "))
    assert "unsafe" not in script
    assert script.split()[1] == "'self'"


def test_policy_stands_before_the_first_script_and_only_once() -> None:
    page = security.finish(PAGE)
    assert page.index("Content-Security-Policy") < page.index("<script")
    assert security.finish(page) == page


def test_search_dialog_has_a_name() -> None:
    assert 'role="dialog" aria-label="Search"' in security.finish(PAGE)


def test_a_fragment_without_head_is_left_alone() -> None:
    assert security.finish("<p>x</p>") == "<p>x</p>"


def test_a_page_that_speaks_of_the_policy_has_one_as_well() -> None:
    assert 'http-equiv="Content-Security-Policy"' in security.finish(
        PAGE.replace("<title>", "<title>Content-Security-Policy ")
    )
