"""What a check is: a named question, the function that answers it, and the numbers it decides by."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from sparkpub.record.store import Stored
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View

CheckKind = Literal["happened", "meaning", "evidence", "prose"]
"""What follows from a finding. `happened`: the run did not happen properly, it leaves the pooled figures.
`meaning`: the figures stay and carry a flag, and an error voids the claims about the world that rest on them.
`evidence`: the figures stay and carry a flag. `prose`: a sentence of the site is at fault, no run."""


Judge = Callable[[View], Iterable[Finding]]
"""What a check does: the findings of one campaign."""


@dataclass(frozen=True)
class Check:
    """A named question put to every campaign.

    `severities` are those it can raise. `implies` names checks that trip with it by their nature, when a single
    fault is planted in clean data. `remedy` says what an operator can do about an error or a warning; it is empty where
    the messages say it, each for its cause. `run` yields findings of one campaign; it reads, and changes nothing. It is
    None for checks of kind `prose`, which read pages, for `acknowledgement`, which reads what they found, and for
    `foreign-file` and `copied-evidence`, which look at all campaigns.
    """

    name: str
    kind: CheckKind
    severities: tuple[Severity, ...]
    question: str
    run: Judge | None = None
    implies: frozenset[str] = frozenset()
    thresholds: tuple[Threshold, ...] = ()
    remedy: str = ""
    of_others: str = ""
    """What a reader of results that others measured can do, where the remedy is to measure again."""
    of_what_counts: Judge | None = None
    """What a check of kind `happened` asks of the runs that did: such a finding takes none of them out."""


class Asked(NamedTuple):
    """One thing that is asked of each run by itself: what is wrong with one, in words, and how that is told of all of
    them in one finding, as of `View.tell`."""

    problems: Callable[[View, Stored], Iterable[str]]
    happened: str
    severity: Severity = "warning"
    remedy: str = ""
    """Where it is not that of the check."""


def of_each_run(
    name: str,
    kind: CheckKind,
    question: str,
    *asked: Asked,
    thresholds: tuple[Threshold, ...] = (),
    remedy: str = "",
    of_others: str = "",
) -> Check:
    """A check of nothing but what is asked of each run by itself."""

    def run(view: View) -> Iterator[Finding]:
        for one in asked:
            text, cases = f"{{}} {one.happened}", view.found(one.problems)
            yield from view.tell(name, one.severity, text, cases, remedy=one.remedy)

    severities = tuple(dict.fromkeys(one.severity for one in asked))
    return Check(
        name,
        kind,
        severities,
        question,
        run,
        thresholds=thresholds,
        remedy=remedy,
        of_others=of_others,
    )
