"""Addresses on the web as somebody wrote them."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator


def address_problem(address: str) -> str | None:
    """Why nothing can follow an address, None where it can be taken apart; `https://[x]/y` cannot."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError as error:
        return f"{address[:200]!r} is no address: {error}"
    return None


def _followed(address: str) -> str:
    problem = address_problem(address)
    if problem is not None:
        raise ValueError(problem)
    return address


Address = Annotated[str, AfterValidator(_followed)]
"""An address that can be taken apart."""
