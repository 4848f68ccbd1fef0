"""What a check is: a named question, the function that answers it, and the numbers it decides by."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from sparkpub.record.store import Stored
from sparkpub.review.checks.finding import Finding, Severity, Threshold
from sparkpub.review.checks.view import View

CheckKind = Literal["happened", "meaning", "evidence", "prose"]
"""What follows from a finding. `happened`: the run did not happen properly, it leaves the pooled figures.
`meaning`: the figures stay and carry a flag, and an error voids the claims about the world that rest on them.
`evidence`: the figures stay and carry a flag. `prose`: a sentence of the site is at fault, no run."""


Judge = Callable[[View], Iterable[Finding]]
"""What a check does: the findings of one campaign."""


class AskedOfRun(NamedTuple):
    """One thing that is asked of each run by itself: what is wrong with one, in words, and how that is told of all of
    them in one finding, as of `View.tell`."""

    problems: Callable[[View, Stored], Iterable[str]]
    happened: str
    severity: Severity = "warning"
    remedy: str = ""
    """Where it is not that of the check."""


@dataclass(frozen=True)
class Check:
    """A named question put to every campaign.

    `severities` are those it can raise. `remedy` says what an operator can do about an error or a warning; it is
    empty where the messages say it, each for its cause. A check reads, and changes nothing. Those of kind `prose` read
    pages, `acknowledgement` reads what the others found, and `foreign-file` and `copied-evidence` look at all
    campaigns: these ask one campaign nothing.
    """

    name: str
    kind: CheckKind
    severities: tuple[Severity, ...]
    question: str
    judge: Judge | None = None
    asked: tuple[AskedOfRun, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    remedy: str = ""
    of_others: str = ""
    """What a reader of results that others measured can do, where the remedy is to measure again."""
    of_what_counts: Judge | None = None
    """What a check of kind `happened` asks of the runs that did: such a finding takes none of them out."""

    def run(self, view: View) -> Iterator[Finding]:
        """The findings of one campaign."""
        if self.judge is not None:
            yield from self.judge(view)
        for problems, happened, severity, remedy in self.asked:
            text, cases = f"{{}} {happened}", view.found(problems)
            yield from view.tell(self.name, severity, text, cases, remedy=remedy)
