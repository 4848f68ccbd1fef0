"""The page about speed says what the results say."""

import json
import runpy
import sys
from pathlib import Path

import pytest

from benchmarks import harness, house, report
from sparkpub.review.claims import facts
from sparkpub.site import manual


def test_the_page_is_made_from_the_results() -> None:
    assert report.README.read_text() == report.readme(), (
        "run python -m benchmarks.report"
    )


@pytest.mark.parametrize(
    ("fact", "result", "what"),
    [
        ("load-check", "commands", "350 runs, check: processor"),
        ("load-stats", "commands", "350 runs, stats: processor"),
        ("load-export", "commands", "350 runs, export: processor"),
        ("load-memory", "commands", "350 runs, stats: memory"),
        ("load-build-first", "load-1000", "build, nothing drawn: processor"),
        ("load-build-again", "load-1000", "build, nothing changed: processor"),
        ("load-build-memory", "load-1000", "build, nothing drawn: memory together"),
        ("load-site", "load-1000", "site"),
        ("load-10k-check", "commands", "10,000 runs, check: processor"),
        ("load-10k-stats", "commands", "10,000 runs, stats: processor"),
        ("load-10k-export", "commands", "10,000 runs, export: processor"),
        ("load-10k-memory", "commands", "10,000 runs, stats: memory"),
    ],
)
def test_the_guide_gives_the_figures_that_were_measured(
    fact: str, result: str, what: str
) -> None:
    rows = json.loads((harness.RESULTS / f"{result}.json").read_text())["rows"]
    measured = {row["what"]: row["value"] for row in rows}
    assert facts.read(manual.FACTS)[fact].value == measured[what]


def test_the_guide_gives_the_growth_of_every_campaign() -> None:
    rows = json.loads((harness.RESULTS / "git.json").read_text())["rows"]
    grown = [row for row in rows if row["what"].endswith("growth per run")]
    told = facts.read(manual.FACTS)
    for fact, figure in (("git-growth", "value"), ("git-files", "against_value")):
        measured = [row[figure] for row in grown]
        assert (told[fact].value, told[fact].upper) == (min(measured), max(measured))


PROGRAMS = sorted(
    path
    for path in Path(harness.__file__).parent.glob("*.py")
    if '__name__ == "__main__"' in path.read_text()
)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_benchmark_measures_nothing_unless_it_is_asked_to(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "parse_args()" in path.read_text()  # else the next line would measure
    monkeypatch.setattr(sys, "argv", [str(path), "--nonsense"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert ended.value.code == 2
    assert f"usage: python -m benchmarks.{path.stem}" in capsys.readouterr().err


def test_a_row_holds_median_spread_ratio_and_goal() -> None:
    row = harness.row(
        "build", [3.0, 1.0, 2.0], "s", against=("bare build", [1.0, 1.0]), goal=1.5
    )
    assert report.table([vars(row)])[2] == (
        "| build | 2 s (1 to 3) | 3 | bare build: 1 s | 2 | at most 1.5 s: **missed** |"
    )


def test_a_goal_below_zero_is_a_lower_limit() -> None:
    row = harness.row(
        "score",
        [99.0],
        "points",
        against=("peer", [89.0]),
        source="measured 2026-08-22",
        goal=-98,
    )
    assert report.table([vars(row)])[2] == (
        "| score | 99 points | 1 | peer: 89 points, measured 2026-08-22 | 1.11 | at least 98 points: met |"
    )


def test_size_counts_what_is_read_and_not_how_it_is_explained(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""Three tokens and seven."""\n\nx = 1  # a comment\ny = x if x else 2\n'
    )
    found = house.size([module])
    assert (found.tokens, found.lines, found.conditional_expressions) == (3 + 7, 2, 1)
    assert found.density == 5.0


def test_an_arrow_leads_from_the_room_that_imports(tmp_path: Path) -> None:
    package = tmp_path / "sparkpub"
    for room, source in {
        "record": "",
        "plan": "from sparkpub.record import store\nfrom sparkpub import review\n",
    }.items():
        (package / room).mkdir(parents=True)
        (package / room / "module.py").write_text(source)
    assert house.arrows(package) == {("plan", "record"): 1, ("plan", "review"): 1}
