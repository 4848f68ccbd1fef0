"""Addresses of servers, in every form in which people have them."""

import pytest

from sparkpub.plan.address import base_of, is_loopback


@pytest.mark.parametrize(
    "written",
    [
        "http://127.0.0.1:8000",
        "http://127.0.0.1:8000//v1//",
        "http://127.0.0.1:8000/v1/chat/completions",
        "127.0.0.1:8000/v1",
        " 127.0.0.1:8000 ",
        ":8000",
        "8000/v1",
        "http://0.0.0.0:8000/",  # as servers print it
    ],
)
def test_every_form_is_one_address(written: str) -> None:
    assert base_of(written) == "http://127.0.0.1:8000"


@pytest.mark.parametrize(
    ("written", "base"),
    [
        ("spark-1.local:11434/v1", "http://spark-1.local:11434"),
        ("https://models.example/team/v1/", "https://models.example/team"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
        ("http://h/v1beta", "http://h/v1beta"),
    ],
)
def test_what_belongs_to_an_address_stays(written: str, base: str) -> None:
    assert base_of(written) == base


@pytest.mark.parametrize(
    "written", ["", "http://", "ftp://h:1", "http://h:port", "http://h?x=1"]
)
def test_what_is_no_address_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="is not an address such as http://127"):
        base_of(written)


def test_a_password_in_an_address_is_refused() -> None:
    with pytest.raises(ValueError, match="would be published") as raised:
        base_of("http://me:hunter2@h:8000/v1")
    assert "hunter2" not in str(raised.value)


def test_which_addresses_are_of_this_machine_by_their_form() -> None:
    here = ["http://localhost:1", "http://127.0.0.2", "http://[::1]:8000"]
    assert [is_loopback(base) for base in here] == [True] * 3
    assert not is_loopback("http://localhost.example")
