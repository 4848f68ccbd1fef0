"""What pages say of several cells together, in words."""

from types import SimpleNamespace
from typing import Any

import pytest

from sparkpub.record.metrics import METRICS
from sparkpub.site import sentences
from sparkpub.site.pages import findings
from tests.review.machines import TPUT, a_fleet, drawn, moved
from tests.review.statistics.campaigns import a_dataset, unreviewed


class Keys:
    """Names that are the keys."""

    dataset = SimpleNamespace(campaigns={"p": SimpleNamespace(published=True)})

    def called(self, _campaign: str, _axis: str, key: str) -> str:
        return key

    def cell(self, _campaign: str, cell: tuple[str, ...]) -> tuple[str, ...]:
        return cell


KEYS: Any = Keys()


def comparison(
    model: str,
    verdict: str,
    *,
    percent: float = 5.0,
    workload: str = "w",
    worth: float = 10.0,
) -> Any:
    """The interval reaches 3 units to both sides; of a mean of 200 these are 1.5 %."""
    difference = 2 * percent
    return SimpleNamespace(
        campaign="c",
        mean_baseline=200.0,
        ci95_difference=(difference - 3, difference + 3),
        ci90_difference=(difference - 2, difference + 2),
        equivalence_p=0.2,
        model=model,
        workload=workload,
        verdict=verdict,
        candidate="container",
        baseline="native",
        difference=difference,
        difference_percent=percent,
        n_effective=worth,
        equivalence_margin_percent=1.0,
        analysis="paired",
        machines=1,
        unseen_percent=25.9,
    )


@pytest.mark.parametrize(
    ("compared", "words"),
    [
        # 90 % intervals, 1 % to both sides: -0.9 to +1.1 and -1.1 to +0.9.
        (
            [
                comparison("a", "equivalent", percent=0.1),
                comparison("b", "equivalent", percent=-0.1),
            ],
            "Output throughput is equal within ±1 % in container and natively for a and b "
            "(measured −0.1 to +0.1 %, −1.1 to +1.1 %; up to 26 % slow runs would not show).",
        ),
        # Why it is open though its interval is clear of zero: runs worth fewer than four, or a correction.
        (
            [comparison("a", "undecided", percent=-10, worth=3)],
            "Too few independent runs to judge the effect of container on output throughput for a: −10.0 % "
            "(−11.0 to −9.0 %; 4 are needed).",
        ),
        # What others published nobody here measures again.
        (
            [
                SimpleNamespace(
                    **vars(comparison("a", "undecided", percent=-10, worth=3))
                    | {"campaign": "p"}
                )
            ],
            "Too few independent runs to judge the effect of container on output throughput for a: −10.0 % "
            "(−11.0 to −9.0 %).",
        ),
        (
            [comparison("a", "undecided", percent=2)],
            "No clear effect of container on output throughput for a: +2.0 % "
            "(+1.0 to +3.0 %; not significant after correction for the number of comparisons).",
        ),
        (
            [comparison(name, "confounded", percent=2.6) for name in "abc"],
            "Output throughput differs by +2.6 % for all 3 models, but container and native ran in separate blocks "
            "of time: the effect of container cannot be separated from drift over time.",
        ),
        (
            [
                comparison("a", "lower", percent=-4),
                comparison("b", "lower", percent=-2),
            ],
            "Output throughput is 2.0 to 4.0 % lower in container than natively for a and b (−5.5 to −0.5 %).",
        ),
        # What most have comes first.
        (
            [
                comparison("a", "undecided", percent=0.4),
                comparison("b", "higher", workload="x"),
                comparison("c", "higher"),
            ],
            "Output throughput is 5.0 % higher in container than natively for 2 of 3 configurations (+3.5 to +6.5 %). "
            "No clear effect of container on output throughput for a (w): +0.4 % (−0.6 to +1.4 %).",
        ),
    ],
)
def test_a_verdict_stands_beside_the_effect_and_its_bounds(
    compared: list[Any], words: str
) -> None:
    said = sentences.differences(KEYS, METRICS["output_throughput_tok_s"], compared)
    assert said.replace("\u00a0", " ").replace("\u202f", " ") == words


def test_bounds_are_rounded_outwards() -> None:
    """0.12 % and 2 units of 200: the interval ends at -0.88 and 1.12 %, which 1.1 would not bound."""
    row = comparison("a", "undecided", percent=0.12)
    said = sentences.differences(KEYS, METRICS["ttft_p95_ms"], [row])
    assert said.endswith("(−0.9 to +1.2\u00a0%).")
    row.equivalence_p = None
    said = sentences.differences(KEYS, METRICS["ttft_p95_ms"], [row])
    assert said.endswith(
        "(−1.4 to +1.7\u00a0%)."
    )  # no margin was asked for: 95 %, 3 units
    row.ci95_difference = None
    said = sentences.differences(KEYS, METRICS["ttft_p95_ms"], [row])
    assert said.endswith("(too few runs for a bound).")


def test_comparisons_on_several_machines_say_on_how_many() -> None:
    measured = {"a": drawn(100, 5, 1), "b": drawn(140, 5, 2)}
    found = unreviewed(a_dataset(a_fleet(measured)))
    metric = METRICS[TPUT]
    text = sentences.differences(KEYS, metric, found.comparison_rows)
    assert "higher in container than natively for m on 2 machines (" in text
    assert sentences.sample(found.cell_rows, {}) == "n = 16 per cell on 2 machines."
    alone = unreviewed(a_dataset(a_fleet({"a": drawn(100, 5, 1)})))
    assert "machine" not in sentences.differences(KEYS, metric, alone.comparison_rows)
    assert sentences.sample(alone.cell_rows, {}) == "n = 8 per cell."


def test_environments_on_different_machines_are_not_called_blocks() -> None:
    torn = moved(a_fleet({"a": drawn(100, 5, 1)}), "b", "container", range(1, 9))
    found = unreviewed(a_dataset(torn))
    text = sentences.differences(KEYS, METRICS[TPUT], found.comparison_rows)
    assert (
        "container and native ran on different machines: the effect of container cannot be separated from that of the"
        in text
    )


def test_a_headline_counts_what_it_has_no_room_to_name() -> None:
    metric = METRICS["ttft_p95_ms"]
    compared = [
        comparison("a", "undecided"),
        comparison("b", "undecided"),
        comparison("c", "equivalent"),
        comparison("a", "higher", workload="x"),
        comparison("b", "confounded", workload="x"),
    ]
    said = sentences.headline(KEYS, metric, compared).replace("\u00a0", " ")
    assert said == (
        "P95 time to first token, container against native: "
        "+5.0 % measured (2 not clear, 1 equal within ±1 %, 1 higher, 1 not separable from time or machine)."
    )
    assert len(said.split()) <= sentences.MOST_WORDS


def a_mean(model: str, mean: float, *machines: str) -> Any:
    cell = (model, "native", "w")
    return SimpleNamespace(campaign="c", cell=cell, mean=mean, machines=machines)


def test_a_ranking_over_machines_says_so() -> None:
    for other, elsewhere in (("a", ""), ("b", ", on different machines")):
        cells = [a_mean("m", 100, "a"), a_mean("n", 90, other)]
        said = sentences.means(KEYS, METRICS[TPUT], cells)
        assert said.endswith(f"lowest for n (90.0 tok/s){elsewhere}.")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            "5 users get 6.1 times what one gets: something held the single user back. In all, this holds in 12 cells.",
            "5 users get 6.1 times what one gets: something held the single user back (12 cells).",
        ),
        (
            "A run stood apart from the others: memory peak 1.865 GiB (the other 9 runs 1.083 GiB).",
            "A run stood apart from the others.",
        ),
        (
            "KV cache and memory are one, not two: over 60 runs, a = −0.9 × b. One restates the other.",
            "KV cache and memory are one, not two. One restates the other.",
        ),
        (
            "20 runs had more traffic: a different model ran. For example iteration 1: 2,124 GB/s.",
            "20 runs had more traffic: a different model ran.",
        ),
    ],
)
def test_a_caveat_in_sight_keeps_its_point_and_leaves_out_figures(
    message: str, said: str
) -> None:
    assert findings.brief(message) == said
