"""What can go wrong, said so that a person can act on it.

Only `cli.main` turns these into text and an exit code.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if (
    TYPE_CHECKING
):  # for annotations alone: the sampler takes errors along, and no pydantic
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails


class SparkpubError(Exception):
    """One or more problems, each with what happened, where, and what to do about it.

    `what` is one problem in one line; `where` a file, field or line; `remedy` the next step. `others`
    carries further problems found in the same pass, already worded, so that nobody mends one at a time.
    """

    exit_code = 1

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        remedy: str = "",
        others: Sequence[str] = (),
    ) -> None:
        self.what, self.where, self.remedy = what, where, remedy
        self.others = tuple(others)
        super().__init__(self.lines()[0])

    def lines(self) -> list[str]:
        """Every problem as one line: `what, where; what to do`."""
        first = (
            self.what
            + (f", {self.where}" if self.where else "")
            + (f"; {self.remedy}" if self.remedy else "")
        )
        return [" ".join(line.split()) for line in (first, *self.others)]


def said_by_system(error: OSError) -> str:
    """The operating system's reason, and the file that it is about."""
    where = f", {error.filename}" if error.filename else ""
    return f"{error.strerror or error}{where}"


def field_problems(error: "ValidationError") -> list[str]:
    """What pydantic found, one `field.part: message` each."""
    found = []
    for item in error.errors():
        field = ".".join(map(str, item["loc"]))
        found.append(f"{field}: {worded(item)}" if field else worded(item))
    return found


def worded(problem: "ErrorDetails") -> str:
    """What is wrong with one value, in words: a form that it has to have is said as people would say it."""
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return "no field has this name"
    if problem["type"] != "string_pattern_mismatch":
        return problem["msg"].removeprefix("Value error, ")
    pattern = problem["ctx"]["pattern"]
    form = FORMS.get(pattern, "of the form that belongs here")
    return f"{problem['input']!r} is not {form}"


FORMS = {
    r"^[a-z0-9][a-z0-9.-]{0,62}$": "a name of a-z, 0-9, dot and hyphen, 63 characters at most",
    r"^[a-z][a-z0-9_]{0,62}$": "a name of a-z, 0-9 and underscore that begins with a letter",
    r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,200}$": "a run's id of letters, digits, dot, hyphen and underscore",
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,100}$": "a file's name of letters, digits, dot, hyphen and underscore",
    r"^https://": "an address that begins with https://",
    r"^/": "a path that begins with /",
    r"^(/.|<home>)": "the path of a folder below /",
    r"^/dev/.+": "the path of a device such as /dev/nvidia0",
    r"^[0-9a-f]{64}$": "a SHA-256 in hexadecimal",
    r"^\d+(\.\d+)?[bkmgBKMG]?$": "a size such as 60g or 512m",
    r"^\d+(-\d+)?(,\d+(-\d+)?)*$": "a list of processors such as 0-9,12",
    r"^P\d{1,2}$": "a performance state such as P0",
    r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)": "a duration such as 30s, 5m or 1h",
}
"""The forms that values in people's files have, and what to call them."""


class UsageError(SparkpubError):
    """Wrong use of a command, or of a name in one."""

    exit_code = 2


class MatrixError(SparkpubError):
    """A matrix that cannot be run as written."""

    exit_code = 2


class RecordError(SparkpubError):
    """A record, campaign file or piece of evidence that is damaged."""


class CatalogueError(SparkpubError):
    """A name that the catalogue does not have."""


class CollectError(SparkpubError):
    """The machine, an environment or the journal stops a collection."""


class NeverStartedError(CollectError):
    """A run that an environment did not start, for a reason that would stop every other run, too."""


class WorkloadError(SparkpubError):
    """A benchmark's answer that cannot be read."""


class ImportFormatError(SparkpubError):
    """Another tool's results that cannot be imported."""

    exit_code = 2


class ClaimError(SparkpubError):
    """A claim, a fact or a name in prose that does not resolve."""


class SiteError(SparkpubError):
    """The site cannot be built from this data."""
