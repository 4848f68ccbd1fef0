"""Why a comparison is decided as it is, or is not, and why one replicates, in words."""

from collections.abc import Sequence
from math import ceil

from sparkpub.record.text import counted, listed, number, p_text
from sparkpub.review.statistics.estimate import (
    MINIMUM_RUNS,
    Estimate,
    is_significant,
    spread,
)
from sparkpub.review.tables.column import TableRow


def why(c: TableRow) -> str:
    """What the verdict of a comparison rests on, in one sentence or two."""
    describes = "The figures describe these runs only."
    if c.analysis == "description" and c.machines > 1:
        return (
            "No machine ran both environments, so that a difference between machines cannot be told from one between "
            f"environments. {describes}"
        )
    if c.order == "blocked":
        return (
            "The environments ran in separate blocks of time, so that a change over time cannot be told from a "
            f"difference between them. {describes}"
        )
    if c.n_effective < MINIMUM_RUNS:
        return _too_few(c)
    test, difference = _test(c), _corrected(c.p_value, c.p_adjusted)
    equivalence = f"TOST {_corrected(c.equivalence_p, c.equivalence_p_adjusted)}"
    margin = f"±{c.equivalence_margin_percent:g} %"
    if not c.margin_declared:
        margin += " (a margin chosen afterwards)"
    if c.verdict == "equivalent":
        text = f"The difference lies within {margin} of the baseline ({test}, {equivalence})."
        if is_significant(c.p_adjusted):
            text += f" It is detectable within that margin ({p_text(c.p_adjusted)})."
        return text + _scope(c)
    if c.verdict != "undecided":
        return f"The difference is larger than chance explains ({test}, {difference}).{_scope(c)}"
    if c.equivalence_p is None:
        return f"No difference is shown ({test}, {difference})."
    return (
        f"Neither a difference ({difference}) nor equivalence within {margin} ({equivalence}) is shown ({test})."
        f"{_detectable(c)}"
    )


def _corrected(plain: float | None, adjusted: float | None) -> str:
    return f"{'' if plain == adjusted else 'adjusted '}{p_text(adjusted)}"


def _scope(c: TableRow) -> str:
    """What so many runs cannot tell: what is rare, and what another day or start of the machine would give."""
    rare = (
        f"slow runs, up to {ceil(c.unseen_percent)} % of all, can be missing among them"
    )
    if c.machines > 1:
        return f" {rare.capitalize()}."
    days = "day" if c.days == 1 else f"{c.days} days"
    return f" It holds for the {days} of these runs, and {rare}."


def _too_few(c: TableRow) -> str:
    if c.order == "interleaved" and c.analysis == "description":
        return "No round is complete, so that nothing can be decided."
    runs = runs_of(c)
    if c.machines > 1:
        # How many of all the runs are those of that machine is not told here.
        runs = f"runs on one of the {c.machines} machines"
    worth = f"worth {c.n_effective:.1f}, and {MINIMUM_RUNS} are needed"
    return f"Too few independent runs to decide: the {runs} are {worth}."


def runs_of(c: TableRow) -> str:
    """What a comparison rests on: `10 rounds`, `4 and 4 runs on 2 servers a side`."""
    words = f"{c.n_baseline} and {c.n_candidate} runs"
    if c.analysis == "paired":
        words = f"{c.n_baseline} rounds"
    if c.servers is not None:
        words += f" on {counted(c.servers, 'server')} a side"
    return words


def _test(c: TableRow) -> str:
    if c.machines > 1:
        return f"in percent of its own baseline within each machine, then over {c.machines} machines"
    if c.analysis == "paired":
        return f"paired within {runs_of(c)}"
    return f"Welch, {runs_of(c)}"


def _detectable(c: TableRow) -> str:
    """What difference so many runs would have shown; empty where none is known."""
    if c.detectable_percent is None:
        return ""
    runs = counted(c.machines, "machine") if c.machines > 1 else runs_of(c)
    found = number(c.detectable_percent, 2 if c.detectable_percent < 1 else 1)
    return (
        f" These {runs} would show a difference of {found} % in four of five campaigns."
    )


def of_replication(
    overall: TableRow,
    verdicts: Sequence[str],
    known: Estimate | None,
    what: str,
) -> str:
    """What a replication rests on: the verdict of `overall`, those of the sessions, and their effects. `what` is what
    differs: machines, or sessions of one."""
    if overall.verdict == "confounded":
        return f"In one {what} the environments ran in separate blocks of time."
    if known is None:
        return f"Fewer than two {what}s have runs enough for an interval."
    found, machines = spread(known), counted(len(known.value), what)
    return (
        f"Over {machines} the mean is {overall.verdict}, and they are {listed(verdicts)} themselves "
        f"(Q = {found['q']:.1f}, {p_text(found['heterogeneity_p'])})."
    )
