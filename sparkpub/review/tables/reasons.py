"""Why a comparison is decided as it is, or is not, and why one replicates, in words."""

from collections.abc import Sequence
from math import ceil

import numpy as np

from sparkpub.record.text import counted, number, outward, p_text
from sparkpub.review.statistics.estimate import (
    ALPHA,
    MINIMUM_RUNS,
    Estimate,
    is_significant,
    over,
    spread,
    t_quantile,
)
from sparkpub.review.tables.column import TableRow


def why(c: TableRow) -> str:
    """What the verdict of a comparison rests on, in one sentence or two."""
    if c.analysis == "description" and c.machines > 1:
        return (
            "No machine ran both environments, so that a difference between machines cannot be told from one between "
            "environments. The figures describe these runs only."
        )
    if c.order == "blocked":
        return (
            "The environments ran in separate blocks of time, so that a change over time cannot be told from a "
            "difference between them. The figures describe these runs only."
        )
    if c.n_effective < MINIMUM_RUNS:
        return _too_few(c) + _without_partner(c)
    if c.verdict == "equivalent":
        text = f"The difference lies within {_margin(c)} of the baseline ({_test(c)}, {_equivalence_text(c)})."
        if is_significant(c.p_adjusted):
            text += f" It is detectable within that margin ({p_text(c.p_adjusted)})."
        return text + _scope(c)
    if c.verdict != "undecided":
        return f"The difference is larger than chance explains ({_test(c)}, {_difference_text(c)}).{_scope(c)}"
    if c.equivalence_p is None:
        return f"No difference is shown ({_test(c)}, {_difference_text(c)})."
    return (
        f"Neither a difference ({_difference_text(c)}) nor equivalence within {_margin(c)} ({_equivalence_text(c)}) "
        f"is shown ({_test(c)}).{_detectable(c)}"
    )


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
    if c.machines > 1:
        return (
            f"On one of the {c.machines} machines there are too few runs or rounds to decide: they are worth "
            f"{c.n_effective:.1f} independent ones, and {MINIMUM_RUNS} are needed."
        )
    few = min(c.n_baseline, c.n_candidate) < MINIMUM_RUNS
    if c.order == "interleaved" and (few or c.analysis == "description"):
        rounds = c.n_baseline if c.analysis == "paired" else 0
        return f"Too few complete rounds to decide: {rounds}, and {MINIMUM_RUNS} are needed."
    if few:
        return f"Too few runs to decide: {c.n_baseline} and {c.n_candidate}, and {MINIMUM_RUNS} a side are needed."
    what = (
        f"{c.n_baseline} rounds"
        if c.analysis == "paired"
        else f"{c.n_baseline} and {c.n_candidate} runs"
    )
    if c.servers is not None:
        if c.servers < MINIMUM_RUNS:
            return f"Too few servers to decide: the {what} shared {c.servers} a side, and {MINIMUM_RUNS} are needed."
        what += f" on {c.servers} servers a side"
    return (
        f"Neighbouring runs are alike: the {what} are worth {c.n_effective:.1f} independent ones, and {MINIMUM_RUNS} "
        "are needed."
    )


def _margin(c: TableRow) -> str:
    margin = f"±{c.equivalence_margin_percent:g} %"
    if not c.margin_declared:
        margin += " (a margin chosen afterwards)"
    return margin


def _test(c: TableRow) -> str:
    if c.machines > 1:
        return f"in percent of its own baseline within each machine, then over {c.machines} machines"
    if c.analysis == "paired":
        return f"paired within {c.n_baseline} rounds{_of_servers(c)}{_of_rounds(c)}"
    return f"Welch, {c.n_baseline} and {c.n_candidate} runs{_of_servers(c)}"


def _of_servers(c: TableRow) -> str:
    """On how many servers the errors rest, where runs shared them."""
    if c.servers is None:
        return ""
    return f", which shared servers: n = {c.servers} servers a side"


def _of_rounds(c: TableRow) -> str:
    """The means that a paired difference is of, where not every run has a partner: those of all runs differ by another
    amount. Empty where all runs count."""
    if not c.left_out:
        return ""
    return (
        f", {counted(c.left_out, 'run')} without a partner left out"
        f" (means {c.mean_baseline:,.6g} and {c.mean_candidate:,.6g})"
    )


def _without_partner(c: TableRow) -> str:
    """The same in a sentence of its own."""
    if not c.left_out or c.analysis != "paired":
        return ""
    found = _of_rounds(c).removeprefix(", ")
    return f" The difference is of these rounds, {found}."


def _difference_text(c: TableRow) -> str:
    return _corrected(c.p_value, c.p_adjusted)


def _equivalence_text(c: TableRow) -> str:
    return f"TOST {_corrected(c.equivalence_p, c.equivalence_p_adjusted)}"


def _corrected(plain: float | None, adjusted: float | None) -> str:
    if plain == adjusted:
        return p_text(adjusted)
    return f"adjusted {p_text(adjusted)}"


def _detectable(c: TableRow) -> str:
    """What difference so many runs would have shown; empty where none is known."""
    if c.detectable_percent is None:
        return ""
    runs = counted(c.n_baseline, "round")
    if c.machines > 1:
        runs = counted(c.machines, "machine")
    elif c.analysis != "paired":
        runs = f"{c.n_baseline} and {c.n_candidate} runs"
    found = number(c.detectable_percent, 2 if c.detectable_percent < 1 else 1)
    return (
        f" These {runs} would show a difference of {found} % in four of five campaigns."
    )


def of_replication(
    overall: TableRow,
    said: str,
    verdicts: Sequence[str],
    known: Sequence[Estimate],
    what: str,
) -> str:
    """What a replication rests on, in a sentence: that of `overall`, which the sessions with these verdicts and effects
    make. `what` is what differs: machines, or sessions of one."""
    if overall.verdict == "confounded":
        return f"In one {what} the environments ran in separate blocks of time."
    if not known:
        return f"Fewer than two {what}s have runs enough for an interval."
    found, machines = spread(known), counted(len(known), what)
    apart = f"Q = {found['q']:.1f}, {p_text(found['heterogeneity_p'])}"
    if said == "replicates":
        agreed = f"The mean over {machines} is decided, and none of them decides otherwise ({apart})."
        ends = found["prediction95_low"], found["prediction95_high"]
        return agreed + _size(overall.verdict, ends, what)
    if said == "does not replicate":
        return f"The {what}s decide differently, and differ by more than their errors explain ({apart})."
    if len(set(verdicts) - {"undecided"}) > 1:
        return f"The {what}s decide differently, but differ by no more than their errors explain ({apart})."
    if overall.verdict != "undecided":
        return f"The mean over {machines} is decided, but one of them decides otherwise ({apart})."
    df = over(known).df
    # Why a mean over so few is known badly: its interval in standard errors.
    return (
        f"The mean over {machines} is not decided: {len(known)} {what}s leave {counted(df, 'degree')} of freedom, so "
        f"that its interval reaches {t_quantile(1 - ALPHA / 2, df):.1f} standard errors to either side. More {what}s "
        "would narrow it, more runs hardly."
    )


def _size(verdict: str, prediction95: tuple[float, float], what: str) -> str:
    """Whether what replicates in its direction does so in its size: the prediction interval decides. Empty where two
    sessions leave none."""
    if np.isnan(prediction95).any():
        return ""
    low, high = outward(*prediction95)
    ends = f"{number(low, 1, signed=True)} and {number(high, 1, signed=True)} %"
    where = f"one more {what} is expected between {ends}"
    if verdict == "equivalent" or low > 0 or high < 0:
        return f" By size, {where}."
    return f" Only the direction replicates: {where}."
