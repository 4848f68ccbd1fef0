"""The figure of capacity: its rows, its sentence, and that it draws."""

from pathlib import Path

from sparkpub.record.record import Record
from sparkpub.record.text import SPACE
from sparkpub.site.build import publish
from sparkpub.site.content import SiteOptions
from sparkpub.site.figures.draw import draw
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import campaign_page
from tests.leaderboards import dataset_of, published, runs_of

RATES = (0.1, 0.5, 1.0)
ALL, END = "all to 1", "limit not reached (up to 1.0)"
LIMITS = (
    f"95{SPACE}% of the first tokens within 10{SPACE}s "
    f"and 95{SPACE}% of the times per output token within 100{SPACE}ms"
)


def sweep(model: str, seconds: tuple[float, ...]) -> list[Record]:
    """A run at each rate, with so many seconds to the first token."""
    found = []
    for rate, wait in zip(RATES, seconds, strict=False):
        asked = {
            "type": "vllm-bench",
            "mode": "serve",
            "input_tokens": 4000,
            "output_tokens": 500,
            "request_rate": rate,
        }
        (record,) = runs_of(
            model,
            [1000 * wait],
            metric="ttft_p95_ms",
            metrics={"tpot_p95_ms": 50.0},
            load=asked,
            workload=f"rate{rate:g}",
        )
        found.append(published(record, run_id=f"c-{model}-{rate:g}"))
    return found


def capacity_of(builds: dict[str, tuple[float, ...]], sources: Path) -> Figure:
    records = [
        record for name, waits in builds.items() for record in sweep(name, waits)
    ]
    publication = publish(dataset_of(*records), SiteOptions(sources))
    library = Library(publication)
    return library.figure("capacity", "c")


def test_the_best_build_comes_first_with_what_it_bears_within_each_limit(
    tmp_path: Path,
) -> None:
    waits = {"slow": (3, 12, 30), "none": (20, 30, 40), "fast": (1, 1.5, 4)}
    figure = capacity_of(waits, tmp_path)
    assert [(row["name"], row["column"], row["text"]) for row in figure.chart.rows] == [
        *(("fast", "2 s", "0.5"), ("fast", "5 s", ALL), ("fast", "10 s", ALL)),
        *(
            ("slow", "2 s", "below 0.1"),
            ("slow", "5 s", "0.1"),
            ("slow", "10 s", "0.1"),
        ),
        *(("none", limit, "below 0.1") for limit in ("2 s", "5 s", "10 s")),
    ]
    assert figure.says == (
        f"Requests a second with {LIMITS}: fast {END}; slow 0.1; none below 0.1."
    )
    assert draw("k", figure.chart).svg_wide


def test_an_open_loop_is_answered_by_what_it_bears_and_not_by_its_throughput(
    tmp_path: Path,
) -> None:
    """The throughput of an open loop is that of its arrivals."""
    records = sweep("slow", (3, 12, 30))
    publication = publish(dataset_of(*records), SiteOptions(tmp_path))
    (campaign,) = publication.campaigns
    assert campaign_page.answers(publication, campaign) == [
        f"Requests a second with {LIMITS}: slow 0.1."
    ]


def test_a_sweep_that_ended_early_is_not_counted_among_those_that_reached_the_end(
    tmp_path: Path,
) -> None:
    """A server that stopped before the last rate has shown nothing there."""
    builds = {f"fast{number}": (1.0, 1.0, 1.0) for number in range(3)}
    builds |= {"short": (1.0, 1.0), "none": (11.0, 11.0, 11.0)}
    assert capacity_of(builds, tmp_path).says == (
        "3 of 5 builds kept up with 1 request/s, the highest rate tried; "
        "1 with all of a shorter sweep; 1 with none."
    )
