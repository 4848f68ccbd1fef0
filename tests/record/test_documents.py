"""YAML that people write: each mistake with its line, its place in the document, and what to do."""

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError

from sparkpub.record.documents import (
    Lines,
    ListEntry,
    parse,
    read_parts,
    refuse,
)
from sparkpub.record.errors import MatrixError
from sparkpub.record.record import Declared


class Host(Declared):
    type: Literal["host"] = "host"
    python: str | None = None


class Docker(Declared):
    type: Literal["docker"] = "docker"
    image: str


class Inner(Declared):
    rate: int


class Document(Declared):
    title: str = ""
    inner: Inner | None = None
    places: dict[str, Annotated[Host | Docker, Field(discriminator="type")]] = Field(
        default_factory=dict
    )
    parts: tuple[Inner, ...] = ()
    counts: dict[str, int] = Field(default_factory=dict)


def lines_of(text: str) -> Lines:
    return parse(text, "m.yaml", MatrixError)[1]


def mistakes(text: str, *prefix: str) -> list[str]:
    document, lines = parse(text, "m.yaml", MatrixError)
    with pytest.raises(ValidationError) as found:
        Document.model_validate(document)
    return lines.described(found.value, prefix, Document, "document")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "\ntitel: x",
            "unknown key titel, m.yaml:2; did you mean title?",
        ),
        (
            "parts:\n- rate: 1\n- rate: 2\n  rat: 2",
            "unknown key parts.1.rat, m.yaml:4; did you mean rate?",
        ),
        (
            "places:\n  a:\n    type: host\n    pyton: x",
            "unknown key places.a.pyton, m.yaml:4; did you mean python?",
        ),
        ("title: x\ninner: {}", "inner.rate is missing, m.yaml:2; add rate:"),
        # A place that is called as a kind of places is.
        (
            "places:\n\n  host: {type: docker}",
            "places.host.image is missing, m.yaml:3; add image:",
        ),
        (
            "places:\n  a:\n    image: x",
            "places.a.type is missing, m.yaml:2; add type: host | docker",
        ),
        (
            "places:\n  a:\n    image: x\n    type: dokcer",
            "unknown type 'dokcer' of places.a, m.yaml:4; did you mean docker?",
        ),
        (
            "counts:\n  a: 1\n  b: x",
            "counts.b: input should be a valid integer, unable to parse string as an integer, m.yaml:3; correct b",
        ),
        (
            "counts:\n  1: 2",
            "counts.1: input should be a valid string, m.yaml:2; correct 1",
        ),
        (
            "- 1",
            "document: input should be a valid dictionary or instance of Document, m.yaml:1; correct document",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, said: str) -> None:
    assert mistakes(text) == [said]


def test_a_key_that_stands_twice_is_told_where_it_stands_again() -> None:
    lines = lines_of("a: 1\nb:\n  c: 1\n  c: 2\ne: [{f: 1,\n  f: 2}]")
    assert lines.duplicates == [
        "b.c stands twice, m.yaml:4; keep one",
        "e.0.f stands twice, m.yaml:6; keep one",
    ]


def test_mistakes_come_by_line_each_once() -> None:
    told = ["c, m.yaml:12; r", "b, m.yaml:3; r", "a; r", "b, m.yaml:3; r"]
    with pytest.raises(MatrixError) as refused:
        refuse(told, MatrixError)
    assert refused.value.lines() == ["a; r", "b, m.yaml:3; r", "c, m.yaml:12; r"]
    refuse([], MatrixError)


class Claim(ListEntry):
    says: str


def test_parts_of_a_file_have_names_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "claims.yaml"
    assert read_parts(path, Claim, MatrixError) == []
    path.write_text("")
    assert read_parts(path, Claim, MatrixError) == []
    path.write_text("- {id: a, says: x}\n- {id: b, says: y}\n")
    assert [item.says for item in read_parts(path, Claim, MatrixError)] == ["x", "y"]
    path.write_text("- {id: a, says: x}\n- {id: b, says: y}\n- {id: a, says: z}\n")
    with pytest.raises(MatrixError) as refused:
        read_parts(path, Claim, MatrixError)
    twice = f"id 'a' stands twice, {path}:3; give each its own"
    assert refused.value.lines() == [twice]
    path.write_text("- {id: a}\n- {id: b, says: y, says: z}\n")
    with pytest.raises(MatrixError) as refused:
        read_parts(path, Claim, MatrixError)
    assert refused.value.lines() == [
        f"0.says is missing, {path}:1; add says:",
        f"1.says stands twice, {path}:2; keep one",
    ]
