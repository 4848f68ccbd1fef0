"""Bytes of any origin as lines."""

import pytest

from sparkpub.tools import reading

SAID = "loading\nrate 5\n"


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_is_read_in_the_coding_of_its_mark(coding: str) -> None:
    assert reading.lines(SAID.encode(coding)) == ["loading", "rate 5", ""]


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
@pytest.mark.parametrize("zeros", [b"", b"\0"])
def test_a_log_that_begins_with_the_bytes_of_a_mark_by_accident_keeps_its_lines(
    mark: bytes, zeros: bytes
) -> None:
    log = mark + zeros + SAID.encode() + b"\xc3\x28\x1b[31mdone\x1b[0m"
    found = reading.lines(log)
    assert found[1] == "rate 5"
    assert found[2].endswith("(done")
