"""What is kept of answers: the same as computed anew, never of other code, and no hindrance where it is damaged."""

import subprocess
import sys
from pathlib import Path

import pytest

from sparkpub.review.statistics import compare, describe, drift, outliers, remembered

VALUES = [61.25, 60.5, 62.75, 61.0, 60.75, 61.5, 70.0]
OTHERS = [63.0, 62.5, 64.25, 63.75, 62.0, 63.5, 64.0]


def answers() -> list[object]:
    return [
        describe.describe(VALUES),
        drift.trend(VALUES),
        drift.order_effect(VALUES, [0, 1, 0, 1, 0, 1, 0]),
        drift.order_effect(VALUES, [0] * 7),
        drift.first_runs([VALUES, OTHERS]),
        outliers.grubbs(VALUES),
        compare.compare(VALUES, OTHERS, margin_percent=1.0, direction="higher", unit="tok/s",
                        pairs=list(zip(VALUES, OTHERS, strict=True))),
    ]  # fmt: skip


@pytest.fixture(autouse=True)
def _new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_known", {})
    describe._describe.cache_clear()


def again(place: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The answers of a second process."""
    monkeypatch.setattr(remembered, "_known", {})
    describe._describe.cache_clear()
    with remembered.kept(place):
        return answers()


def test_a_second_process_answers_the_same_without_computing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = answers()
    describe._describe.cache_clear()
    place = tmp_path / "cache" / "statistics.json"
    with remembered.kept(place):
        assert answers() == plain
    monkeypatch.setattr(drift, "theil_sen", lambda _: pytest.fail("computed"))
    monkeypatch.setattr(compare.Welch, "of", lambda *_: pytest.fail("computed"))
    assert again(place, monkeypatch) == plain


def test_answers_of_other_code_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "statistics.json"
    with remembered.kept(place):
        drift.trend(VALUES)
    monkeypatch.setattr(remembered, "_code", lambda: "other")
    monkeypatch.setattr(drift, "theil_sen", lambda _: 42.0)
    found = again(place, monkeypatch)[1]
    assert isinstance(found, drift.Trend)
    assert found.slope == 42.0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"code": 1}', "null"])
def test_a_damaged_file_is_written_anew(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = answers()
    place = tmp_path / "statistics.json"
    place.write_text(text)
    assert again(place, monkeypatch) == plain
    written = place.read_text()
    assert len(written) > 1000
    assert again(place, monkeypatch) == plain
    assert place.read_text() == written


def test_what_is_no_longer_asked_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "statistics.json"
    with remembered.kept(place):
        drift.trend(VALUES)
    monkeypatch.setattr(remembered, "_known", {})
    with remembered.kept(place):
        drift.trend(OTHERS)
    assert place.read_text().count('"slope"') == 1


def test_nothing_heavy_is_loaded_before_it_is_needed() -> None:
    code = "import sys, sparkpub.site.mkdocs; print(*{'altair', 'pandas', 'pyarrow', 'scipy.stats'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"
