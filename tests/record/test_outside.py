"""Files and documents that somebody else may have written: what is refused, and in which words."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record import documents, outside
from sparkpub.record.errors import MatrixError
from sparkpub.record.outside import UnfitError


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"x" * 10)
    assert outside.content(path, 10) == b"x" * 10
    with pytest.raises(UnfitError, match="larger than 9 B"):
        outside.content(path, 9)


def test_what_is_compressed_is_bounded_after_decompression(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"x" * 4096))
    assert outside.unpacked(path, 4096) == b"x" * 4096
    assert outside.content(path) == path.read_bytes()
    with pytest.raises(UnfitError, match=r"larger than 4\.0 KiB"):
        outside.unpacked(path, 4095)
    path.write_bytes(gzip.compress(b"x" * 100)[:-3])
    with pytest.raises(UnfitError, match="not whole as gzip"):
        outside.unpacked(path)


def _pipe(place: Path) -> None:
    os.mkfifo(place)


def _folder(place: Path) -> None:
    place.mkdir()


def _device(place: Path) -> None:
    place.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_pipe, "a device, pipe or socket and not a file"),
        (_folder, "a folder and not a file"),
        (_device, "a device, pipe or socket and not a file"),
    ],
)
def test_what_is_no_file_is_refused_without_waiting(
    tmp_path: Path, make: Callable[[Path], None], said: str
) -> None:
    make(tmp_path / "odd")
    with pytest.raises(UnfitError, match=said):
        outside.content(tmp_path / "odd")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "b": {"c": 2, "c": 3}}', "key 'c' stands twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1e999}', "1e999 is larger than any number here"),
        ('{"a": ' + "9" * 41 + "}", "a number with 41 digits"),
        ("[" * 51 + "1" + "]" * 51, "nested deeper than 50 levels"),
        (json.dumps(dict.fromkeys(map(str, range(10_001)))), "10,001 keys"),
        ('{\n"a": "\\u001b[31m"}', "a control character in line 2"),
        ('{"a": "\x7f"}', "a control character in line 1"),
    ],
)
def test_json_is_refused_beyond_its_bounds(text: str, said: str) -> None:
    with pytest.raises(UnfitError) as refused:
        outside.json_document(text.encode())
    assert said in str(refused.value)


def test_json_within_its_bounds_is_what_the_standard_says() -> None:
    document: Any = {"a": [1, -2.5, 10**39, None, True, "ä\n\t\u202f–"], "": {}}
    for _ in range(48):  # and two levels of its own
        document = [document]
    for text in (json.dumps(document), json.dumps(document, ensure_ascii=False)):
        assert outside.json_document(text.encode()) == document
    wide = dict.fromkeys(map(str, range(10_000)), 0)
    assert outside.json_document(json.dumps(wide).encode()) == wide


def test_control_characters_are_replaced_where_a_record_is_written() -> None:
    document = {"a\x1b": ["x\r\ny", "\x9b31m\u202e", "\ud800", 1, None]}
    assert outside.without_controls(document) == {
        "a\ufffd": ["x\ny", "\ufffd31m\ufffd", "\ufffd", 1, None]
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &a [x]\nb: &b [*a]", "*a within what another alias may name, m.yaml:2"),
        ("a: &a [1, *a]", "*a within what another alias may name, m.yaml:1"),
        ("a: *b", "found undefined alias, m.yaml:1"),
        ("\n" + "[" * 51 + "]" * 51, "nested deeper than 50 levels, m.yaml:2"),
        ("a: !!python/name:os.system x", "not YAML: could not determine a constructor"),
        ("a: !!bool maybe", "not YAML: 'maybe', m.yaml"),
        ("a: !!timestamp x", "fix the syntax there"),
        ("a: 2024-13-45", "not YAML: month must be in 1..12, m.yaml"),
        ("a: [", "fix the syntax there"),
    ],
)
def test_yaml_is_refused_beyond_its_bounds(text: str, said: str) -> None:
    with pytest.raises(MatrixError) as refused:
        documents.parse(text, "m.yaml", MatrixError)
    assert said in refused.value.lines()[0]


def test_yaml_within_its_bounds_is_read() -> None:
    text = (
        "a: &a {b: 1.5e+3, c: [x, 'é']}\nd: {<<: *a, e: *a}\nf: '5'\n"
        'g: ".inf"\nh: 0123456789abcdef0123456789abcdef0123456789abcdef\ni: |\n  x\n  y\n'
    )
    document, _ = documents.parse(text, "m.yaml", MatrixError)
    a = {"b": 1500.0, "c": ["x", "é"]}
    assert document == {
        "a": a,
        "d": {**a, "e": a},
        "f": "5",
        "g": ".inf",
        "h": "0123456789abcdef" * 3,
        "i": "x\ny\n",
    }


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_pipe, "cannot be read: a device, pipe or socket and not a file"),
        (
            lambda place: place.write_bytes(b"a: \xff"),
            "cannot be read: not UTF-8 at byte 3",
        ),
        (
            lambda place: place.write_bytes(b" " * (1 << 20) + b" "),
            "larger than 1.0 MiB",
        ),
        (lambda place: None, "cannot be read: No such file or directory"),
    ],
)
def test_a_text_that_cannot_be_read_says_why(
    tmp_path: Path, make: Callable[[Path], Any], said: str
) -> None:
    place = tmp_path / "m.yaml"
    make(place)
    with pytest.raises(MatrixError) as refused:
        documents.text_of(place, MatrixError)
    assert said in refused.value.lines()[0]
    assert f"{place}; give a YAML file" in refused.value.lines()[0]
