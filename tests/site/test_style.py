"""Colours that everybody can tell apart: contrast by WCAG 2.2, colour blindness by the matrices of Viénot, Brettel
and Mollon (1999), distance in CIELAB."""

import re

import numpy as np
import pytest

from sparkpub.site.figures import theme
from sparkpub.site.figures.colours import STYLESHEET

CSS = STYLESHEET.read_text(encoding="utf-8")
SERIES = [f"--sp-c{index}" for index in range(1, 7)]
TEXT = ["--sp-fg", "--sp-fg2", "--sp-link", "--sp-bad", "--sp-warn", "--sp-good"]


def palette(mode: str) -> dict[str, str]:
    """The colour variables of a mode, by the first block that sets them."""
    block = (
        CSS if mode == "light" else CSS[CSS.index('[data-md-color-scheme="slate"]') :]
    )
    return dict(
        re.findall(r"(--sp-[a-z0-9]+): *(#[0-9a-f]{6});", block[: block.index("}")])
    )


def linear(colour: str) -> np.ndarray:
    """Linear RGB of an sRGB colour (IEC 61966-2-1)."""
    value = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """WCAG 2.2: (L1 + 0.05) / (L2 + 0.05)."""
    bright, dark = sorted(
        (float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other)),
        reverse=True,
    )
    return (bright + 0.05) / (dark + 0.05)


SIMULATED = {
    "normal": np.eye(3),
    "deuteranopia": np.array(
        [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]]
    ),
    "protanopia": np.array(
        [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]]
    ),
}
XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
)


def lab(colour: str, vision: str) -> np.ndarray:
    xyz = XYZ @ np.clip(SIMULATED[vision] @ linear(colour), 0, 1) / [0.9505, 1, 1.089]
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_and_series_stand_out_from_the_ground(mode: str) -> None:
    colours = palette(mode)
    for name in TEXT:
        assert contrast(colours[name], colours["--sp-bg"]) >= 4.5, name
        assert contrast(colours[name], colours["--sp-band"]) >= 4.5, name
    for name in SERIES:
        assert contrast(colours[name], colours["--sp-bg"]) >= 3, name


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("vision", SIMULATED)
def test_the_first_two_series_differ_for_every_eye(mode: str, vision: str) -> None:
    colours = palette(mode)
    distance = np.linalg.norm(
        lab(colours["--sp-c1"], vision) - lab(colours["--sp-c2"], vision)
    )
    assert distance >= 40


def test_every_colour_that_charts_name_has_a_value() -> None:
    named = {
        re.sub(r"var\((.*)\)", r"\1", colour)
        for colour in (*theme.SERIES, *theme.RAMP, theme.INK, theme.FAINT)
    }
    for mode in ("light", "dark"):
        assert named <= palette(mode).keys()
