"""What pages say of several cells together, in words."""

from types import SimpleNamespace
from typing import Any

import pytest

from sparkpub.record.metrics import METRICS
from sparkpub.site import sentences
from tests.review.machines import TPUT, a_fleet, drawn, moved
from tests.review.statistics.campaigns import a_dataset, unreviewed


def a_row(
    effect: float, unit: str, *, heterogeneity_p: float = 0.5, left_out: int = 0
) -> SimpleNamespace:
    return SimpleNamespace(
        campaign="c",
        metric="system_peak_gib",
        unit=unit,
        family="primary",
        baseline="native",
        candidate="container",
        cells=5,
        left_out=left_out,
        effect=effect,
        ci95_effect=(effect / 2, effect * 1.5),
        error=effect / 4,
        df=20.0,
        t=4.0,
        p_value=1e-4,
        q=3.0,
        heterogeneity_p=heterogeneity_p,
    )


def rows(*verdicts: str) -> list[Any]:
    return [SimpleNamespace(verdict=verdict) for verdict in verdicts]


@pytest.mark.parametrize(
    ("effect", "unit", "words"),
    [
        (
            0.0625,
            "GiB",
            "64 MiB higher in container than in native, pooled over 5 cells",
        ),
        (0.5, "GiB", "0.5 GiB higher in container than in native, pooled over 5 cells"),
        (-2.0, "%", "2 % lower in container than in native, pooled over 5 cells"),
    ],
)
def test_an_effect_is_said_in_the_unit_that_reads_best(
    effect: float, unit: str, words: str
) -> None:
    text = sentences.together(METRICS["system_peak_gib"], a_row(effect, unit), [])
    assert words in text
    assert "differ by more" not in text


def test_small_memory_has_its_interval_in_the_same_unit() -> None:
    """0.0625 GiB are 64 MiB: the interval from half of it to half as much again."""
    text = sentences.together(METRICS["system_peak_gib"], a_row(0.0625, "GiB"), [])
    assert "interval 32 to 96 MiB" in text


def test_cells_worth_too_few_runs_are_said() -> None:
    row = a_row(0.5, "GiB", left_out=2)
    text = sentences.together(METRICS["system_peak_gib"], row, [])
    assert "pooled over 5 of 7 cells" in text


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (("undecided", "lower"), "No cell shows it separately."),
        (("undecided", "higher"), "One cell shows it separately."),
        (("higher", "higher", "equivalent"), "2 cells show it separately."),
    ],
)
def test_cells_that_show_it_alone_are_counted(
    verdicts: tuple[str, ...], words: str
) -> None:
    row = a_row(0.5, "GiB")
    assert words in sentences.together(METRICS["system_peak_gib"], row, rows(*verdicts))


def test_cells_that_disagree_are_said_to() -> None:
    row = a_row(0.5, "GiB", heterogeneity_p=0.001)
    text = sentences.together(METRICS["system_peak_gib"], row, [])
    assert text.endswith("so this mean describes none of them.")


def comparison(
    model: str, verdict: str, *, percent: float = 5.0, workload: str = "w"
) -> Any:
    return SimpleNamespace(
        model=model,
        workload=workload,
        verdict=verdict,
        candidate="container",
        baseline="native",
        difference=percent,
        difference_percent=percent,
        equivalence_margin_percent=1.0,
        analysis="paired",
        machines=1,
    )


@pytest.mark.parametrize(
    ("compared", "words"),
    [
        (
            [comparison("a", "equivalent"), comparison("b", "equivalent")],
            "Output throughput is equivalent within ±1 % in container and native for a and b.",
        ),
        (
            [comparison("a", "undecided")],
            "Output throughput is inconclusive for a: container against native.",
        ),
        (
            [comparison(name, "confounded") for name in "abc"],
            "Output throughput cannot be compared for all 3 models: "
            "container and native ran in separate blocks of time.",
        ),
        (
            [
                comparison("a", "lower", percent=-4),
                comparison("b", "lower", percent=-2),
            ],
            "Output throughput is 2.0 to 4.0 % lower in container than in native for a and b.",
        ),
        # What most have comes first, and both sides are named once.
        (
            [
                comparison("a", "undecided"),
                comparison("b", "equivalent"),
                comparison("c", "equivalent"),
                comparison("d", "higher"),
                comparison("e", "confounded"),
            ],
            "Output throughput is equivalent within ±1 % in container and native for b and c. "
            "It is inconclusive for a. It is 5.0 % higher for d. "
            "It cannot be compared for e, which ran in separate blocks of time.",
        ),
        (
            [
                comparison("a", "undecided"),
                comparison("b", "undecided"),
                comparison("a", "equivalent", workload="x"),
            ],
            "Output throughput is inconclusive for 2 of 3 configurations: container against native. "
            "It is equivalent within ±1 % for a (x).",
        ),
    ],
)
def test_comparisons_are_said_by_verdict(compared: list[Any], words: str) -> None:
    said = sentences.differences(METRICS["output_throughput_tok_s"], compared)
    assert said.replace("\u00a0", " ").replace("\u202f", " ") == words
    for sentence in said.split(". "):
        assert len(sentence.split()) <= 20


def test_comparisons_on_several_machines_say_on_how_many() -> None:
    measured = {"a": drawn(100, 5, 1), "b": drawn(140, 5, 2)}
    found = unreviewed(a_dataset(a_fleet(measured)))
    metric = METRICS[TPUT]
    text = sentences.differences(metric, found.comparison_rows)
    assert text.endswith("higher in container than in native for m on 2 machines.")
    assert (
        sentences.sample(found.cell_rows, {}) == "n = 16 runs per cell on 2 machines."
    )
    alone = unreviewed(a_dataset(a_fleet({"a": drawn(100, 5, 1)})))
    assert "machine" not in sentences.differences(metric, alone.comparison_rows)
    assert sentences.sample(alone.cell_rows, {}) == "n = 8 runs per cell."


def test_environments_on_different_machines_are_not_called_blocks() -> None:
    torn = moved(a_fleet({"a": drawn(100, 5, 1)}), "b", "container", range(1, 9))
    found = unreviewed(a_dataset(torn))
    text = sentences.differences(METRICS[TPUT], found.comparison_rows)
    assert text.endswith("container and native ran on different machines.")


def test_a_headline_counts_what_it_has_no_room_to_name() -> None:
    metric = METRICS["ttft_p95_ms"]
    compared = [
        comparison("a", "undecided"),
        comparison("b", "undecided"),
        comparison("c", "equivalent"),
        comparison("a", "higher", workload="x"),
        comparison("b", "confounded", workload="x"),
    ]
    said = sentences.headline(metric, compared).replace("\u00a0", " ")
    assert said == (
        "P95 time to first token, container against native: "
        "2 inconclusive, 1 equivalent within ±1 %, 1 higher, 1 not comparable."
    )
    assert len(said.split()) <= 20


def test_a_headline_names_what_it_can() -> None:
    metric = METRICS["ttft_p95_ms"]
    compared = [comparison("a", "equivalent")]
    assert sentences.headline(metric, compared) == sentences.differences(
        metric, compared
    )


def a_mean(model: str, mean: float, *machines: str) -> Any:
    return SimpleNamespace(cell=(model, "native", "w"), mean=mean, machines=machines)


@pytest.mark.parametrize(
    ("machines", "end"),
    [
        (((), ()), "lowest for n (90.0)."),
        ((("a",), ("a",)), "lowest for n (90.0)."),
        ((("a",), ("b",)), "lowest for n (90.0), on different machines."),
        ((("a", "b"), ("b", "a")), "lowest for n (90.0)."),
        ((("a", "b"), ("a",)), "lowest for n (90.0), on different machines."),
    ],
)
def test_a_ranking_over_machines_says_so(
    machines: tuple[tuple[str, ...], tuple[str, ...]], end: str
) -> None:
    best, worst = machines
    cells = [a_mean("m", 100, *best), a_mean("n", 90, *worst)]
    assert sentences.means(METRICS[TPUT], cells).endswith(end)
