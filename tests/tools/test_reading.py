"""Bytes of any origin as lines."""

import pytest

from sparkpub.tools import reading

SAID = "loading\nrate 5\n"


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig"])
def test_text_is_read_with_its_mark_and_without_what_is_none(coding: str) -> None:
    assert reading.lines(SAID.encode(coding)) == ["loading", "rate 5", ""]
    found = reading.lines(SAID.encode(coding) + b"\xc3\x28\x1b[31mdone\x1b[0m")
    assert found[2].endswith("(done")
