"""Numbers as words. Expected texts are written by hand."""

import pytest

from sparkpub.record import text

MINUS = "\u2212"
SAID = [
    # Digits, a true minus, and no sign at zero
    (text.number(-0.5, 2), f"{MINUS}0.50"),
    (text.number(-0.001, 2, signed=True), "0.00"),
    (text.number(30.828, 2, signed=True), "+30.83"),
    (text.number(29_959.4, 0), "29,959"),
    (text.significant(0.012345), "0.0123"),
    (text.significant(-1.5), f"{MINUS}1.5"),
    (text.significant(12345.0), "1.23e+04"),
    (text.significant(0.0), "0"),
    (text.percent(-43.75), f"{MINUS}43.8\u00a0%"),
    (text.percent(-0.04), "0.0\u00a0%"),
    (text.p_text(None), "no p"),
    (text.p_text(0.00009), "p < 0.0001"),
    (text.p_text(0.0001), "p = 0.0001"),
    (text.p_text(0.0123), "p = 0.012"),
    (text.p_text(1.0), "p = 1"),
    (text.counted(0, "run"), "0 runs"),
    (text.counted(1, "run"), "1 run"),
    (text.counted(1200, "run"), "1,200 runs"),
    (text.listed([]), ""),
    (text.listed(["a", "b", "a"]), "a and b"),
    (text.listed(["a", "b", "c"]), "a, b and c"),
    (text.spread(["20.0", "30.8"], "GiB"), "20.0 to 30.8\u00a0GiB"),
    (text.spread(["20.0", "20.0"], ""), "20.0"),
    (text.file_size(1023), "1023 B"),
    (text.file_size(1024), "1.0 KiB"),
    (text.file_size(5 * 2**40), "5120.0 GiB"),
]


@pytest.mark.parametrize(("said", "words"), SAID)
def test_numbers_as_words(said: str, words: str) -> None:
    assert said == words


def test_an_interval_is_rounded_away_from_itself() -> None:
    """So that a bound stays one; what floating point adds to 0.3 is no part of it."""
    assert text.outward(-0.93, 1.01) == (-1.0, 1.1)
    assert text.outward(-0.3, 0.1 + 0.2) == (-0.3, 0.3)
    assert text.outward(0.0, 0.001, 2) == (0.0, 0.01)
