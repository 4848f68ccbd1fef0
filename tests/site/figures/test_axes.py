"""The numbers along an axis: as many digits as the metric has, however close the values lie."""

import re

import pytest

from sparkpub.record.metrics import METRICS
from sparkpub.site.content import SiteOptions
from sparkpub.site.figures import marks
from sparkpub.site.figures.compile import compile_chart
from tests.site.figures.test_panels import a_library

MEMORY = "device_used_peak_gib"
"""In thousandths of a GiB."""


def numbers(drawing: str) -> list[str]:
    """The texts of a drawing that are decimal fractions."""
    return re.findall(r">(−?[\d,]+\.\d+)<", drawing)


@pytest.mark.parametrize("figure", ["device-used-peak"])
def test_an_axis_of_nearly_equal_values_has_no_digits_that_nobody_measured(
    figure: str, options: SiteOptions
) -> None:
    """The readings differ by 8 bytes; an axis that ends at them needs nine decimals to tell its ticks apart."""
    means = {
        ("m", "native", "w"): 15.227355949,
        ("m", "container", "w"): 15.227355957,
    }
    drawing = compile_chart(a_library(means, options, MEMORY).figure(figure).job)
    for shape in (drawing.svg_wide, drawing.svg_narrow):
        found = numbers(shape)
        assert len(set(found)) > 1
        assert all(len(text.partition(".")[2]) <= 3 for text in found)


def test_values_that_spread_keep_their_axis(options: SiteOptions) -> None:
    means = {("m", "native", "w"): 15.2, ("m", "container", "w"): 62.5}
    figure = a_library(means, options, MEMORY).figure("device-used-peak")
    assert "unionWith" not in str(figure.chart.specification())


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ((5.0, 5.0), (4.997, 5.003)),  # three steps of 0.001 to either side
        ((5.0, 5.004), (4.999, 5.005)),  # around the middle of 5.000 and 5.004
        ((5.0, 5.0061), None),  # six steps apart: the axis has its digits by itself
        ((0.0, 0.0), (0.0, 0.003)),  # there is no memory below zero
        ((), None),
    ],
)
def test_an_axis_spans_at_least_six_steps_of_the_last_digit(
    values: tuple[float, ...], shown: tuple[float, float] | None
) -> None:
    assert METRICS[MEMORY].decimals == 3
    assert marks.least_axis(METRICS[MEMORY], values) == shown
