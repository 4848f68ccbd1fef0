"""The one place where a number becomes words: digits, signs, units, p-values, counts and lists for a reader."""

import math
from collections.abc import Iterable, Sequence

MINUS = "\N{MINUS SIGN}"
SPACE = "\N{NO-BREAK SPACE}"
"""Between a number and its unit where a line must not break."""
NOT_AVAILABLE = "not available"
MOST_DECIMALS = 20
SMALLEST_P = 0.0001
"""p-values below this are not told apart: `p < 0.0001`."""


def number(value: float, decimals: int, *, signed: bool = False) -> str:
    """`1,508.17`, `−0.50`; with `signed`, `+30.83` and `0.00`. A number that rounds to zero has no sign."""
    if not 0 <= decimals <= MOST_DECIMALS:
        raise ValueError(f"decimals are 0 to {MOST_DECIMALS}, not {decimals}")
    rounded = round(value, decimals) + 0.0  # adding zero turns −0.0 into 0.0
    sign = "+" if signed and rounded else ""
    return f"{rounded:{sign},.{decimals}f}".replace("-", MINUS)


def significant(value: float, digits: int = 3) -> str:
    """`0.0123`, `1.5`, `−3e-05`: as many significant digits as asked for at most."""
    return f"{value:.{digits}g}".replace("-", MINUS)


def rounded(value: float, digits: int = 3) -> str:
    """`1,508`, `208`, `4.74`, `0.0123`: so many significant digits, and all that stand before the decimal point."""
    return number(value, _decimals(value, digits)) if value else "0"


def _decimals(value: float, digits: int) -> int:
    """How many decimals a number has with so many significant digits."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0


def with_unit(words: str, unit: str) -> str:
    """`70.47 GiB`; the words alone where there is no unit."""
    return f"{words} {unit}" if unit else words


def percent(value: float, decimals: int = 1) -> str:
    """`+43.8 %`, `−0.5 %`, `0.0 %`: a change in percent, with its sign and a space at which no line breaks."""
    return f"{number(value, decimals, signed=True)}{SPACE}%"


def outward(low: float, high: float, decimals: int = 1) -> tuple[float, float]:
    """The ends of an interval rounded away from each other, so that what is left out stays left out."""
    # What a computer adds to a decimal fraction is no part of it.
    steps = [round(end * 10**decimals, 6) for end in (low, high)]
    return math.floor(steps[0]) / 10**decimals, math.ceil(steps[1]) / 10**decimals


def outward_digits(low: float, high: float, digits: int = 3) -> tuple[float, float]:
    """The same for ends of so many significant digits each."""
    below, above = (_decimals(end, digits) for end in (low, high))
    return outward(low, high, below)[0], outward(low, high, above)[1]


def between(low: float, high: float, decimals: int, *, signed: bool = False) -> str:
    """`−0.6 to +0.5`: a range, rounded outwards; one figure where its ends are alike."""
    if low != high:
        low, high = outward(low, high, decimals)
    return span([number(end, decimals, signed=signed) for end in (low, high)])


def extent(values: Iterable[float], digits: int = 2) -> str:
    """`1.2 to 2.3`: the least and the greatest of some values in so many significant digits, rounded outwards; one
    figure where they are alike."""
    known = list(values)
    low, high = min(known), max(known)
    if low == high:
        return rounded(low, digits)
    below, above = (_decimals(end, digits) for end in (low, high))
    low, high = outward_digits(low, high, digits)
    return span([number(low, below), number(high, above)])


def p_text(p: float | None) -> str:
    """`p = 0.012`, `p < 0.0001` or `no p`."""
    if p is None:
        return "no p"
    return "p < 0.0001" if p < SMALLEST_P else f"p = {p:.2g}"


def counted(count: int, noun: str, several: str = "") -> str:
    """`1 run`, `2,000 runs`; `several` is the noun of many where that is not the noun and an s."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {several or f'{noun}s'}"


def other_processes(count: int) -> str:
    """`1 other process`, `2 other processes`."""
    return counted(count, "other process", "other processes")


def listed(names: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`, each name once."""
    *rest, last = list(dict.fromkeys(names)) or [""]
    return f"{', '.join(rest)} and {last}" if rest else last


def span(texts: Sequence[str]) -> str:
    """`x`, or `x to y` of sorted texts."""
    return texts[0] if len(set(texts)) == 1 else f"{texts[0]} to {texts[-1]}"


def spread(numbers: Sequence[str], unit: str) -> str:
    """`20.0 to 30.8 GiB` of sorted numbers, or one of them; the unit stays on the line of the last."""
    numbers_as_text = span(numbers)
    return f"{numbers_as_text}{SPACE}{unit}" if unit else numbers_as_text


def file_size(size: float) -> str:
    """Bytes in binary units: `512 B`, `1.5 KiB`, `3.0 GiB`."""
    if size < 1024:
        return f"{size:.0f} B"
    for unit in ("KiB", "MiB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:.1f} GiB"
