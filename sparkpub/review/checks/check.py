"""What a check is: a named question, what answers it, and what can be done about what it finds."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from sparkpub.record.store import Stored
from sparkpub.review.checks.finding import SEVERITIES, Finding, Severity
from sparkpub.review.checks.view import Case, View

CheckKind = Literal["happened", "meaning", "prose"]
"""What follows from a finding. `happened`: the run did not happen properly, it leaves the pooled figures.
`meaning`: the figures stay and carry a flag, and an error voids the claims about the world that rest on them.
`prose`: a sentence of the site is at fault, no run."""
ASK = (
    "Ask whoever published it, leave the runs out (sparkpub quarantine), or say in campaign.json why they stand "
    "(acknowledged:)."
)
"""What can be done about results that others measured, and nobody can measure again."""
Problems = Callable[[View, Stored], Iterable[str]]
"""What is wrong with a run, each thing in words; a text may be empty where there is no more to say than that it is."""
Cases = Callable[[View], Sequence[Case]]
"""The runs of a campaign in which something is wrong, each with what it is in words."""


class Asked(NamedTuple):
    """One thing that is asked of single runs, and told of all of them in one finding, as of `View.tell`."""

    happened: str
    """What a run with a problem did or had: `started hot`."""
    cases: Cases
    severity: Severity = "warning"
    remedy: str = ""
    """Where it is not that of the check."""
    metric: str | None = None
    """What it is about, where that is one metric."""
    takes_out: bool = False
    """Whether a run with a problem did not happen, so that nothing else is asked of it."""


@dataclass(frozen=True)
class Check:
    """A named question put to every campaign. It reads, and changes nothing.

    Those of kind `prose` read pages, `acknowledgement` reads what the others found, and `foreign-file` and
    `copied-evidence` look at all campaigns: these ask one campaign nothing.
    """

    name: str
    question: str
    raises: tuple[Severity, ...] = ()
    """Severities of what `judge` finds."""
    judge: Callable[[View], Iterable[Finding]] | None = None
    asked: tuple[Asked, ...] = ()
    kind: CheckKind = "meaning"
    cause: str = ""
    """What it is a sign of, where other checks find signs of the same: readers are told of one, and that there are
    more."""
    remedy: str = ""
    """What can be done about an error or a warning; empty where what it asks says it, each for itself."""
    imported: str = ""
    """The same of results that others measured, where the remedy is to measure again."""
    worst_only: bool = False
    """Whether it asks nothing more of a run in which it found something that is no note."""

    @property
    def severities(self) -> tuple[Severity, ...]:
        """Those that it can raise, the worst first."""
        can = {*self.raises, *(one.severity for one in self.asked)}
        return tuple(severity for severity in SEVERITIES if severity in can)

    def run(self, view: View) -> Iterator[Finding]:
        """The findings of one campaign, of runs that happened."""
        if self.judge is not None:
            yield from self.judge(view)
        yield from self.ask(view, takes_out=False)

    def ask(self, view: View, *, takes_out: bool) -> Iterator[Finding]:
        """A finding for each thing that is wrong with runs, of what takes them out or of the rest."""
        told: set[str] = set()
        for one in self.asked:
            if one.takes_out is not takes_out:
                continue
            cases = [case for case in one.cases(view) if case[0].run_id not in told]
            if self.worst_only and one.severity != "info":
                told |= {run.run_id for run, _ in cases}
            yield from view.tell(
                self.name,
                one.severity,
                one.happened,
                cases,
                remedy=one.remedy,
                metrics=[one.metric] if one.metric else (),
            )
