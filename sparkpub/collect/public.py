"""What of a matrix and of a record may be published: the same without secrets and private names."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import ValidationError

from sparkpub.plan.matrix import Matrix
from sparkpub.plan.references import REFERENCE
from sparkpub.record.errors import MatrixError, field_problems
from sparkpub.record.record import Record
from sparkpub.record.redaction import Redactor
from sparkpub.record.secrets import is_secret_name, without_secrets
from sparkpub.record.tokens import SECRET

_FOR_A_SHELL = re.compile(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})")
IDENTITY = (
    *("schema_version", "run_id", "campaign", "model", "environment", "workload"),
    *("iteration", "repeat_of", "specification", "status", "plan", "started", "ended"),
    *("evidence",),
)
"""Fields of a record that are made here, of names that a matrix may have."""


def public(matrix: Matrix) -> tuple[Matrix, Redactor]:
    """The matrix as it may be published, without home folders and host names, and what redacts everything else.

    Raises MatrixError where a secret stands in it.
    """
    document = matrix.document()
    redactor = Redactor().also({}, words={*_keys(document), *_schema_words()})
    _refuse_secrets(matrix)
    try:
        return Matrix.model_validate(redactor.options(document)), redactor
    except ValidationError as error:
        raise MatrixError(
            f"{field_problems(error)[0]}, once what is private in it is replaced",
            where=f"matrix of {matrix.campaign}",
            remedy="keep host names out of names",
        ) from None


def published(record: Record, redactor: Redactor) -> Record:
    """The record as it may be published: every text in it redacted, its names and files as they are."""
    document = without_private(record.model_dump(), redactor)
    return Record.model_validate(document, strict=False)


def without_private(document: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    """The same of the fields of a record."""
    # A password may be the name of a tool: the record still says which tool ran.
    redactor = redactor.also({}, words=_schema_words())
    changed = {
        name: redactor.options(value, name)
        for name, value in document.items()
        if name not in IDENTITY
    }
    facts = document.get("reproducibility")
    if facts is not None:  # packages are called google-auth
        packages = {
            name: redactor.text(text) for name, text in facts["packages"].items()
        }
        changed["reproducibility"]["packages"] = packages
    return document | changed


def _refuse_secrets(matrix: Matrix) -> None:
    """Raise MatrixError where a secret stands in a matrix."""
    place = next(_secrets(matrix.document()), None)
    if place is not None:
        raise MatrixError(
            f"a secret stands in {place}",
            where=f"matrix of {matrix.campaign}",
            remedy="write $NAME there, and set NAME in the environment of the collector",
        )


def _secrets(document: Any, place: str = "", name: str = "") -> Iterator[str]:
    """Where secrets stand, by dotted names: beside a telling name or flag, or by their own shape."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            yield from _secrets(value, f"{place}.{key}".lstrip("."), str(key))
    elif isinstance(document, list | tuple):
        for index, (before, value) in enumerate(pairwise(["", *document])):
            is_flag = isinstance(before, str) and before.startswith("-")
            yield from _secrets(value, f"{place}.{index}", before if is_flag else name)
    elif isinstance(document, str) and not REFERENCE.fullmatch(document):
        # What a shell fills in is none; a placeholder in its place stays one.
        text = _FOR_A_SHELL.sub(SECRET, document)
        parts = (text, *text.split())
        beside = bool(text) and text != SECRET and is_secret_name(name)
        if beside or any(without_secrets(part) != part for part in parts):
            yield place


def _keys(document: Any) -> Iterator[str]:
    """Every key of a document: the names of the matrix among them."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            yield str(key)
            yield from _keys(value)
    elif isinstance(document, list):
        for value in document:
            yield from _keys(value)


@cache
def _schema_words() -> frozenset[str]:
    """The words of the schemas of a matrix and of a record: fields, and what they may say."""
    schemas = [Matrix.model_json_schema(), Record.model_json_schema()]
    return frozenset(re.findall(r'"([^"\s]+)"', json.dumps(schemas)))
