"""sparkpub: measure LLM inference on a DGX Spark, review the runs, publish what survives.

import sparkpub

results = sparkpub.load("data/comprehensive")
results.runs, results.cells, results.comparisons  # pandas tables
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sparkpub.review.results import Results

__all__ = ["load"]
__version__ = "0.1.0"


def load(
    data: Path | str,
    *more: Path | str,
    include: Literal["counted", "all"] = "counted",
    skip: Callable[[str], None] | None = None,
) -> "Results":
    """The results of data folders as pandas tables: see `sparkpub.review.results.load`."""
    from sparkpub.review import results  # noqa: PLC0415 - what measures loads no pandas

    return results.load(data, *more, include=include, skip=skip)
