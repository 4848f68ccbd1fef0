"""What a check is: a named question, the function that answers it, and the numbers it decides by."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from sparkpub.record.store import Stored
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View

CheckKind = Literal["happened", "meaning", "evidence", "prose"]
"""What follows from a finding. `happened`: the run did not happen properly, it leaves the pooled figures.
`meaning`: the figures stay and carry a flag, and an error voids the claims about the world that rest on them.
`evidence`: the figures stay and carry a flag. `prose`: a sentence of the site is at fault, no run."""


Run = Callable[[View], Iterable[Finding]]
"""What a check does: the findings of one campaign."""


@dataclass(frozen=True)
class Check:
    """A named question put to every campaign.

    `severities` are those it can raise. `implies` names checks that trip with it by their nature, when a single
    fault is planted in clean data. `remedy` says what an operator can do about an error or a warning; it is empty where
    the messages say it, each for its cause. `run` yields findings of one campaign; it reads, and changes nothing. It is
    None for checks of kind `prose`, which read pages, for `acknowledgement`, which reads what they found, and for
    `foreign-file`, which looks at the whole data folder.
    """

    name: str
    kind: CheckKind
    severities: tuple[Severity, ...]
    question: str
    run: Run | None = None
    implies: frozenset[str] = frozenset()
    thresholds: tuple[Threshold, ...] = ()
    remedy: str = ""
    of_what_counts: Run | None = None
    """What a check of kind `happened` asks of the runs that did: such a finding takes none of them out."""


def of_each_run(
    name: str,
    kind: CheckKind,
    severity: Severity,
    question: str,
    problems: Callable[[View, Stored], Iterable[str]],
    happened: tuple[str, ...],
    *,
    thresholds: tuple[Threshold, ...] = (),
    remedy: str = "",
) -> Check:
    """A check that asks one thing of each run by itself, and tells all runs in one finding. `problems` are what is
    wrong with one, in words; `happened` says it of one run, and of several where that is another word."""

    def run(view: View) -> Iterator[Finding]:
        return view.faulty(name, severity, problems, *happened)

    return Check(
        name, kind, (severity,), question, run, thresholds=thresholds, remedy=remedy
    )
