"""A page that somebody hands in does not crash a build: it gets one line with file and line."""

import os
from pathlib import Path

import pytest

from sparkpub import cli
from sparkpub.record.errors import ClaimError, SiteError
from sparkpub.site import expressions
from sparkpub.site.proofreading import read_page
from sparkpub.site.sources import read


def rendered(text: str) -> str:
    def fails(kind: str) -> str:
        raise {"key": KeyError, "os": OSError, "assert": AssertionError}[kind]("x")

    words = {
        "value": lambda *_, **__: "5 GiB",
        "fails": fails,
    }
    return expressions.render(words, text, "p.md", 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n{{ ().__class__.__mro__ }}", "().__class__.__mro__ is no call, p.md:2"),
        ("\n{% for i in range(10**9) %}{% endfor %}", "this is no call"),
        ("{{ value(" + "[" * 2000 + "]" * 2000 + ") }}", "p.md:1"),
        ("\n\n{{ fails('key') }}", "'x', p.md:3"),
        ("\n{{ fails('os') }}", "x, p.md:2"),
    ],
)
def test_an_expression_beyond_its_bounds_has_file_and_line(
    text: str, said: str
) -> None:
    with pytest.raises(ClaimError) as refused:
        rendered(text)
    (line,) = refused.value.lines()
    assert said in line
    assert "p.md:" in line
    assert len(line) < 500


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\n- a\n---\n", "front matter is no mapping, p.md; write name: value"),
        ("x" * (1 << 20) + "x", "larger than 1.0 MiB"),
    ],
)
def test_a_page_that_is_no_plain_text_is_refused(
    text: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "p.md"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SiteError) as refused:
        read(path, "p.md")
    assert said in refused.value.lines()[0]


def test_a_page_that_is_no_file_or_not_utf_8_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "latin.md").write_bytes(b"caf\xe9")
    with pytest.raises(SiteError, match="a device, pipe or socket and not a file"):
        read(tmp_path / "pipe.md", "pipe.md")
    with pytest.raises(SiteError, match="not UTF-8 at byte 3"):
        read(tmp_path / "latin.md", "latin.md")


def test_lists_without_end_are_given_up(tmp_path: Path) -> None:
    path = tmp_path / "p.md"
    lines = (" " * (4 * level) + "- a\n" for level in range(300))
    path.write_text("".join(lines))
    with pytest.raises(SiteError, match="nested too deep"):
        read_page(read(path, "p.md"))


def test_a_file_cannot_steer_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither by its name nor by what it holds."""
    path = tmp_path / "m\x1b[2J.yaml"
    path.write_text("campaign: c\nw\\x1b]0;evil\\x07: 1\n")
    monkeypatch.setattr("sys.argv", ["sparkpub", "plan", str(path)])
    with pytest.raises(SystemExit):
        cli.main()
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert "m\ufffd[2J.yaml" in said.err
