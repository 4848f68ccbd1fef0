"""Why a comparison is decided as it is, or is not, in words."""

from typing import TYPE_CHECKING

from sparkpub.record.text import counted, number, p_text
from sparkpub.review.statistics.describe import MINIMUM_RUNS, is_significant

if TYPE_CHECKING:
    from sparkpub.review.statistics.compare import Comparison


def why(c: "Comparison") -> str:
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
        return text
    if c.verdict != "undecided":
        return f"The difference is larger than chance explains ({_test(c)}, {_difference_text(c)})."
    if c.equivalence_p is None:
        return f"No difference is shown ({_test(c)}, {_difference_text(c)})."
    return (
        f"Neither a difference ({_difference_text(c)}) nor equivalence within {_margin(c)} ({_equivalence_text(c)}) "
        f"is shown ({_test(c)}).{_detectable(c)}"
    )


def _too_few(c: "Comparison") -> str:
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


def _margin(c: "Comparison") -> str:
    margin = f"±{c.equivalence_margin_percent:g} %"
    if not c.margin_declared:
        margin += " (a margin chosen afterwards)"
    return margin


def _test(c: "Comparison") -> str:
    if c.machines > 1:
        return f"in percent of its own baseline within each machine, then over {c.machines} machines"
    if c.analysis == "paired":
        return f"paired within {c.n_baseline} rounds{_of_servers(c)}{_of_rounds(c)}"
    return f"Welch, {c.n_baseline} and {c.n_candidate} runs{_of_servers(c)}"


def _of_servers(c: "Comparison") -> str:
    """On how many servers the errors rest, where runs shared them."""
    if c.servers is None:
        return ""
    return f", which shared servers: n = {c.servers} servers a side"


def _of_rounds(c: "Comparison") -> str:
    """The means that a paired difference is of, where not every run has a partner: those of all runs differ by another
    amount. Empty where all runs count."""
    if not c.left_out:
        return ""
    return (
        f", {counted(c.left_out, 'run')} without a partner left out"
        f" (means {c.mean_baseline:,.6g} and {c.mean_candidate:,.6g})"
    )


def _without_partner(c: "Comparison") -> str:
    """The same in a sentence of its own."""
    if not c.left_out or c.analysis != "paired":
        return ""
    found = _of_rounds(c).removeprefix(", ")
    return f" The difference is of these rounds, {found}."


def _difference_text(c: "Comparison") -> str:
    return _corrected(c.p_value, c.p_adjusted)


def _equivalence_text(c: "Comparison") -> str:
    return f"TOST {_corrected(c.equivalence_p, c.equivalence_p_adjusted)}"


def _corrected(plain: float | None, adjusted: float | None) -> str:
    if plain == adjusted:
        return p_text(adjusted)
    return f"adjusted {p_text(adjusted)}"


def _detectable(c: "Comparison") -> str:
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
