"""What pages say of several cells together, in words."""

from types import SimpleNamespace
from typing import Any

import pytest

from sparkpub.record.metrics import METRICS
from sparkpub.review.summary import PooledRow
from sparkpub.site import sentences


def a_row(effect: float, unit: str, *, heterogeneity_p: float = 0.5) -> PooledRow:
    return PooledRow(
        campaign="c",
        metric="system_peak_gib",
        unit=unit,
        family="primary",
        baseline="native",
        candidate="container",
        cells=5,
        effect=effect,
        ci95_effect=(effect / 2, effect * 1.5),
        error=effect / 4,
        z=4.0,
        p_value=1e-4,
        q=3.0,
        heterogeneity_p=heterogeneity_p,
    )


def rows(*verdicts: str) -> list[Any]:
    return [SimpleNamespace(verdict=verdict) for verdict in verdicts]


@pytest.mark.parametrize(
    ("effect", "unit", "words"),
    [
        (0.0625, "GiB", "higher in container than in native by 64 MiB over 5 cells"),
        (0.5, "GiB", "higher in container than in native by 0.5 GiB over 5 cells"),
        (-2.0, "%", "lower in container than in native by 2 % over 5 cells"),
    ],
)
def test_an_effect_is_said_in_the_unit_that_reads_best(
    effect: float, unit: str, words: str
) -> None:
    text = sentences.together(METRICS["system_peak_gib"], a_row(effect, unit), [])
    assert words in text
    assert "differ by more" not in text


def test_small_memory_has_its_interval_in_the_same_unit() -> None:
    """0.0625 GiB are 64 MiB: the interval from half of it to half as much again."""
    text = sentences.together(METRICS["system_peak_gib"], a_row(0.0625, "GiB"), [])
    assert "is 32 to 96 MiB" in text


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (("undecided", "lower"), "none of them shows it alone"),
        (("undecided", "higher"), "one of them shows it alone"),
        (("higher", "higher", "equivalent"), "2 of them show it alone"),
    ],
)
def test_cells_that_show_it_alone_are_counted(
    verdicts: tuple[str, ...], words: str
) -> None:
    row = a_row(0.5, "GiB")
    assert words in sentences.together(METRICS["system_peak_gib"], row, rows(*verdicts))


def test_cells_that_disagree_are_said_to() -> None:
    row = a_row(0.5, "GiB", heterogeneity_p=0.001)
    text = sentences.together(METRICS["system_peak_gib"], row, [])
    assert text.endswith("it is the figure of none of them.")
