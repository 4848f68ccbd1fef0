"""The figure of what a single user gets of the memory's bandwidth."""

from pathlib import Path

from sparkpub.record.record import Machine, Record
from sparkpub.site.build import publish
from sparkpub.site.content import SiteOptions
from sparkpub.site.figures.draw import draw
from sparkpub.site.figures.figure import Entry, Table
from sparkpub.site.figures.library import Library
from tests.leaderboards import LOAD, dataset_of, published, runs_of


def build(name: str, weights: str, rate: float, prompt: int = 512) -> Record:
    (record,) = runs_of(
        name.lower(),
        [rate],
        model_id=f"x/{name}",
        load=LOAD | {"concurrency": 1, "requests": 10, "input_tokens": prompt},
        observed={"quantization": weights},
        machine=Machine(kind="dgx-spark"),
        workload=f"in{prompt}",
    )
    return published(record, run_id=f"c-{name.lower()}-{prompt}")


def test_each_build_is_shown_where_it_is_fastest_and_what_is_not_known_is_told(
    tmp_path: Path,
) -> None:
    """Of 273 GB/s: 10 × 2 × 6.825 is 50 %, 2 × 2 × 27.3 is 40 %, 8 × 2 × 20.475 is 120 %."""
    records = [
        build("Big-10B", "bf16", 6.825),
        build("Big-10B", "bf16", 5.0, prompt=8192),
        build("Small-2B", "bf16", 27.3),
        build("Narrow-4B", "nvfp4", 54.6),
        build("Doubtful-8B", "bf16", 20.475),
    ]
    publication = publish(dataset_of(*records), SiteOptions(tmp_path))
    library = Library(publication)
    figure = library.figure("memory-bandwidth", "c")
    shares = [
        row["tip"]["Of the bandwidth"] for row in figure.chart.rows if "tip" in row
    ]
    assert shares == ["120 %", "50 %", "40 %"]
    assert figure.says == (
        "One user takes 40 to 120 % of the memory's 273 GB/s, half of the 3 builds 50 % or more. "
        "For 1 more build the bytes of a token are not known for this format."
    )
    assert figure.table.rows[-1][4] == "not known for this format"
    assert draw("k", figure.chart).svg_wide


def test_a_column_in_which_nothing_is_known_is_left_out() -> None:
    """But for the first, which says what the rows are about."""
    rows = [("", "", Entry(""), (), "3"), ("", "not known", "", "", "")]
    known = Table(("a", "b", "c", "d", "e"), rows).known
    assert (known.head, [*known.rows]) == (("a", "e"), [("", "3"), ("", "")])
    assert Table(("a",), [("",)]).known.head == ("a",)
    assert Table(("a", "b"), []).known.head == ("a", "b")
