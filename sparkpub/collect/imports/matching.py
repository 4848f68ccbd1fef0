"""Which workload of a matrix an imported run belongs to: the only one that agrees with everything the run shows."""

from collections.abc import Iterator
from typing import Any

from sparkpub.collect.imports.given import Draft
from sparkpub.plan.matrix import Matrix

SAME_SIZE = 0.1
"""Mean lengths within this share of each other are one load: random lengths vary, and another load is another size."""
_LENGTHS = {
    "input_tokens": "input_tokens_mean",
    "output_tokens": "output_tokens_mean",
}
"""Options that a report may not say, and the means that show them all the same."""
_OF_KIND = frozenset({"type", "mode"})
"""What tells tools and their modes apart."""


def workload_of(draft: Draft, matrix: Matrix) -> tuple[str | None, str]:
    """The key of the workload, and why there is none where it is None."""
    differing: dict[str, str] = {}
    fitting = []
    for key, options in matrix.workloads.items():
        difference = next(_differences(draft, options), None)
        if difference is None:
            fitting.append(key)
        else:
            differing[key] = difference
    if len(fitting) == 1:
        return fitting[0], ""
    if fitting:
        names = " and ".join(fitting)
        return None, f"it fits the workloads {names}; name one with --workload"
    reasons = "; ".join(f"{key}: {reason}" for key, reason in differing.items())
    return None, f"it fits no workload of the matrix ({reasons})"


def _differences(draft: Draft, options: Any) -> Iterator[str]:
    """In what a run is not as the options of a workload ask, in words."""
    kind = _another_kind(draft, options)
    if kind is not None:
        yield kind
        return
    for name in {**draft.asked, **draft.fits}:
        if name in _OF_KIND:
            continue
        shown = draft.fits.get(name, (draft.asked.get(name),))
        if not hasattr(options, name):
            yield f"its {name} is {shown[0]}, which the workload cannot ask for"
            continue
        declared = getattr(options, name)
        left_open = declared is None and name in _LENGTHS
        if not left_open and declared not in shown:
            yield f"its {name} is {shown[0]} in place of {declared}"
    for name, mean in _LENGTHS.items():
        seen = getattr(draft.observed, mean)
        declared = getattr(options, name, None)
        if name in draft.asked or seen is None or declared is None:
            continue
        if abs(seen - declared) > SAME_SIZE * max(seen, declared):
            yield f"its {name} were {seen:g} on average in place of {declared}"


def _another_kind(draft: Draft, options: Any) -> str | None:
    """Whether the tool, or its mode, is another one than the workload's."""
    tool, mode = draft.asked["type"], draft.asked.get("mode")
    if options.type != tool:
        return f"it is of {options.type}"
    if mode is not None and options.mode != mode:
        return f"its mode is {options.mode}"
    return None
