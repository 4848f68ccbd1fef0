"""Templates of pages: compiled once for a preview, and anew where they were edited."""

from pathlib import Path

import pytest
from jinja2 import Environment

from sparkpub.site.pages.template_code import KeptCode
from sparkpub.site.pages.templating import Templates


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Names of the templates that were compiled, in order."""
    names: list[str | None] = []
    compile_one = Environment.compile

    def noted(self, source, name=None, *rest, **options):  # type: ignore[no-untyped-def]
        names.append(name)
        return compile_one(self, source, name, *rest, **options)

    monkeypatch.setattr(Environment, "compile", noted)
    return names


def test_a_template_is_compiled_once_and_again_when_it_was_edited(
    tmp_path: Path, compiled: list[str | None]
) -> None:
    page = tmp_path / "page.md.j2"
    page.write_text("Written by {{ who }}.")
    kept = KeptCode()
    for who in ("A", "B"):
        assert Templates(tmp_path, kept).text("page.md.j2", who=who) == (
            f"Written by {who}."
        )
    assert compiled == ["page.md.j2"]
    page.write_text("Edited by {{ who }}.")
    assert Templates(tmp_path, kept).text("page.md.j2", who="C") == "Edited by C."
    assert compiled == ["page.md.j2"] * 2


def test_without_a_place_for_it_nothing_is_kept(
    tmp_path: Path, compiled: list[str | None]
) -> None:
    (tmp_path / "page.md.j2").write_text("Written.")
    for _ in range(2):
        Templates(tmp_path).text("page.md.j2")
    assert compiled == ["page.md.j2"] * 2
