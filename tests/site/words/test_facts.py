"""facts.yaml: sourced figures."""

from pathlib import Path

import pytest

from sparkpub.record.errors import ClaimError
from sparkpub.review.claims import facts

GOOD = """\
- id: total
  says: Memory of the machine.
  value: 119.64
  decimals: 2
  unit: GiB
  source: {document: part 3, section: The Evidence}
  unquoted: nobody wrote it down
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "facts.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("value: 119.64", "119.64 GiB"),
        ("value: -3", "−3.00 GiB"),
        ("value: 20\n  upper: 30", "20.00–30.00 GiB"),
    ],
)
def test_a_fact_reads_as_it_was_published(
    tmp_path: Path, value: str, text: str
) -> None:
    found = facts.read(written(tmp_path, GOOD.replace("value: 119.64", value)))
    assert found["total"].text == text
    assert str(found["total"].source) == "part 3, “The Evidence”"


QUOTED = GOOD.replace("unquoted: nobody wrote it down", "quote: Q")


@pytest.mark.parametrize(
    ("quote", "words"),
    [
        ("Memory is 119.64 GiB.", ""),
        ("Memory is 119.638 GiB.", ""),  # as it was published, rounded
        ("Memory is 119.7 GiB.", "119.64 is not in it"),
        ("Memory is 119.64 GB.", "its unit, GiB, is not in it"),
        ("119.64 GB\n  quoted_unit: GB", ""),
    ],
)
def test_a_figure_stands_in_the_words_of_its_source(
    tmp_path: Path, quote: str, words: str
) -> None:
    """Else a page would show as published what nobody published."""
    path = written(tmp_path, QUOTED.replace("Q", quote))
    if not words:
        assert facts.read(path)["total"].quote == quote.partition("\n")[0]
        return
    with pytest.raises(ClaimError, match=words):
        facts.read(path)


@pytest.mark.parametrize("words", ["", "  quote: 119.64 GiB\n  unquoted: lost\n"])
def test_a_fact_has_the_words_of_its_source_or_says_why_not(
    tmp_path: Path, words: str
) -> None:
    text = GOOD.replace("  unquoted: nobody wrote it down\n", words)
    with pytest.raises(ClaimError, match=r"a fact has quote:, .* or unquoted:, why"):
        facts.read(written(tmp_path, text))
