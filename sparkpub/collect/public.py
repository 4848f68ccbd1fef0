"""What of a matrix and of a record may be published: the same without secrets and private names."""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import ValidationError

from sparkpub.plan.matrix import Matrix
from sparkpub.plan.workloads.command import CommandOptions
from sparkpub.record.errors import MatrixError, field_problems
from sparkpub.record.record import Record
from sparkpub.record.redaction import Redactor
from sparkpub.record.secrets import is_secret_name, without_secrets

IDENTITY = (
    *("schema_version", "run_id", "campaign", "model", "environment", "workload"),
    *("iteration", "repeat_of", "specification", "status", "plan", "started", "ended"),
    *("evidence",),
)
"""Fields of a record that are made here, of names that a matrix may have."""


def public(matrix: Matrix) -> tuple[Matrix, Redactor]:
    """The matrix as it may be published, and what redacts everything else.

    Raises MatrixError where a secret stands in a field that cannot do without it.
    """
    document = matrix.document()
    _refuse_secret_patterns(matrix)
    words = {*_keys(document), *_schema_words()}
    redactor = Redactor().also(dict(_variables(matrix)), words=words)
    try:
        return Matrix.model_validate(redactor.options(document)), redactor
    except ValidationError as error:
        raise MatrixError(
            f"{field_problems(error)[0]}, once what is private in it is replaced",
            where=f"matrix of {matrix.campaign}",
            remedy="keep secrets in env: or variables:, and host names out of names",
        ) from None


def published(record: Record, redactor: Redactor) -> Record:
    """The record as it may be published: every text in it redacted, its names and files as they are."""
    document = record.model_dump()
    # A password may be the name of a tool: the record still says which tool ran.
    redactor = redactor.also({}, words=_schema_words())
    changed = {
        name: redactor.options(value, name)
        for name, value in document.items()
        if name not in IDENTITY
    }
    facts = document["reproducibility"]
    if facts is not None:  # packages are called google-auth
        packages = {
            name: redactor.text(text) for name, text in facts["packages"].items()
        }
        changed["reproducibility"]["packages"] = packages
    return Record.model_validate(document | changed, strict=False)


def _variables(matrix: Matrix) -> Iterator[tuple[str, str]]:
    """The variables that a matrix sets, and what it gives to flags such as `--token`."""
    for environment in matrix.environments.values():
        yield from environment.env.items()
    for workload in matrix.workloads.values():
        if isinstance(workload, CommandOptions):
            yield from workload.variables.items()
    yield from _flagged(matrix.document())


def _flagged(document: Any) -> Iterator[tuple[str, str]]:
    """Pairs of a telling flag and the word after it, in every list of words."""
    if isinstance(document, Mapping):
        for value in document.values():
            yield from _flagged(value)
    elif isinstance(document, list):
        for flag, word in pairwise(document):
            telling = isinstance(flag, str) and flag.startswith("-")
            if telling and is_secret_name(flag) and isinstance(word, str):
                yield flag, word
        for value in document:
            yield from _flagged(value)


def _refuse_secret_patterns(matrix: Matrix) -> None:
    """A pattern cannot be redacted and still match."""
    for name, workload in matrix.workloads.items():
        if not isinstance(workload, CommandOptions):
            continue
        patterns = [item.regex for item in workload.metrics.values()]
        for pattern in filter(None, [*patterns, workload.measured_from]):
            if without_secrets(pattern) != pattern and _has_token(pattern):
                raise MatrixError(
                    f"a regular expression of workload {name} holds a secret",
                    where=f"workloads.{name}",
                    remedy="match what stands around it",
                )


def _has_token(pattern: str) -> bool:
    return any(without_secrets(word) != word for word in pattern.split())


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
    """The words that a matrix or a record may say in a field of few choices."""
    return frozenset(
        word
        for model in (Matrix, Record)
        for word in _choices(model.model_json_schema())
    )


def _choices(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for name, value in schema.items():
            if name in ("const", "default") and isinstance(value, str):
                yield value
            elif name == "enum":
                yield from (word for word in value if isinstance(word, str))
            else:
                yield from _choices(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _choices(value)
