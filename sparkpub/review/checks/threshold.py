"""The numbers that checks decide by. Each stands in the module of the check that uses it."""

from typing import Self


class Threshold(float):
    """A number that a check decides by, with its name and the reason for its value."""

    name: str
    reason: str

    def __new__(cls, name: str, value: float, reason: str) -> Self:
        """The number; it calculates and prints like any float."""
        made = super().__new__(cls, value)
        made.name = name
        made.reason = reason
        return made
