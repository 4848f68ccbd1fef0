"""Numbers as words. Expected texts are written by hand."""

import pytest

from sparkpub.record import text

MINUS = "\u2212"


@pytest.mark.parametrize(
    ("value", "decimals", "signed", "words"),
    [
        (-0.5, 2, False, f"{MINUS}0.50"),
        (-0.001, 2, True, "0.00"),
        (30.828, 2, True, "+30.83"),
        (-30.828, 1, True, f"{MINUS}30.8"),
        (29_959.4, 0, False, "29,959"),
    ],
)
def test_a_number_has_digits_a_true_minus_and_no_sign_at_zero(
    value: float, decimals: int, signed: bool, words: str
) -> None:
    assert text.number(value, decimals, signed=signed) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.012345, "0.0123"), (-1.5, f"{MINUS}1.5"), (12345.0, "1.23e+04"), (0.0, "0")],
)
def test_significant_digits(value: float, words: str) -> None:
    assert text.significant(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(-43.75, f"{MINUS}43.8\u00a0%"), (-0.04, "0.0\u00a0%")],
)
def test_a_change_in_percent(value: float, words: str) -> None:
    assert text.percent(value) == words


@pytest.mark.parametrize(
    ("p", "words"),
    [
        (None, "no p"),
        (0.00009, "p < 0.0001"),
        (0.0001, "p = 0.0001"),
        (0.0123, "p = 0.012"),
        (1.0, "p = 1"),
    ],
)
def test_p_values(p: float | None, words: str) -> None:
    assert text.p_text(p) == words


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 runs"), (1, "1 run"), (1200, "1,200 runs")]
)
def test_counts(count: int, words: str) -> None:
    assert text.counted(count, "run") == words


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b", "a"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
    ],
)
def test_lists_name_each_once(names: list[str], words: str) -> None:
    assert text.listed(names) == words


def test_a_range_of_numbers_keeps_its_unit_on_the_line_of_the_last() -> None:
    assert text.spread(["20.0", "30.8"], "GiB") == "20.0 to 30.8\u00a0GiB"
    assert text.spread(["20.0", "20.0"], "") == "20.0"


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536 * 1024, "1.5 MiB"),
        (5 * 2**40, "5120.0 GiB"),
    ],
)
def test_sizes_of_files(size: int, words: str) -> None:
    assert text.file_size(size) == words


def test_an_interval_is_rounded_away_from_itself() -> None:
    """So that a bound stays one; what floating point adds to 0.3 is no part of it."""
    assert text.outward(-0.93, 1.01) == (-1.0, 1.1)
    assert text.outward(-0.3, 0.1 + 0.2) == (-0.3, 0.3)
    assert text.outward(0.0, 0.001, 2) == (0.0, 0.01)
