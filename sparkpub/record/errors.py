"""What can go wrong, said so that a person can act on it.

Only `cli.main` turns these into text and an exit code.
"""

from collections.abc import Sequence

from pydantic import ValidationError


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


def field_problems(error: ValidationError) -> list[str]:
    """What pydantic found, one `field.part: message` each."""
    found = [
        (".".join(map(str, item["loc"])), item["msg"].removeprefix("Value error, "))
        for item in error.errors()
    ]
    return [f"{field}: {message}" if field else message for field, message in found]


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
