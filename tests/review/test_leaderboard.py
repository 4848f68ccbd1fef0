"""The leaderboard: which load answers for a use, which models are ranked under it, and in which order."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from sparkpub.record.record import Machine, Record, Spread
from sparkpub.review.checks import Finding
from sparkpub.review.leaderboard import Board, boards, machines
from sparkpub.review.names import Names
from sparkpub.review.owners import pairs
from sparkpub.review.results import Results
from sparkpub.review.speeds import Speed, speeds
from sparkpub.review.tables.column import rows
from tests.leaderboards import LOAD, TPUT, a_finding, dataset_of, reviewed, runs_of

ONE = {**LOAD, "concurrency": 1}
SPARK, H200 = Machine(kind="dgx-spark"), Machine(kind="h200")
BF16, FP8 = {"dtype": "bfloat16"}, {"quantization": "fp8"}


def measured(*records: Record, findings: Sequence[Finding] = ()) -> list[Speed]:
    review = reviewed(dataset_of(*records), findings=findings)
    return speeds(review, Results(review).cell_rows, Names(review.dataset))


def board_of(*records: Record, **found: Any) -> Board:
    (board,) = boards(measured(*records, **found), "dgx-spark")
    return board


def order(board: Board) -> list[str]:
    return [row.model.name for row in board.rows]


def test_a_model_has_one_row_its_formats_are_columns_and_the_best_comes_first() -> None:
    a = {"model_id": "x/A-7B", "load": ONE, "observed": BF16}
    board = board_of(
        *runs_of("a", [30.0, 32.0], **a),
        *runs_of("a", [50.0], campaign="d", **a),
        *runs_of("b", [80.0], model_id="y/A-7B-FP8", load=ONE, observed=FP8),
        *runs_of("c", [100.0], load=ONE),
    )
    assert board.widths == [16, 8, None]
    assert order(board) == ["c", "A-7B"]
    row = board.rows[1]
    assert [entry.value for entry in row.entries[16]] == [50.0, 31.0]  # (30 + 32) / 2
    assert (row.best.speed.weights, row.best.share) == ("FP8", 0.8)  # 80 / 100


A, B, UNNAMED = (
    Machine(kind="dgx-spark", id=name and name * 16) for name in ("a", "b", None)
)


@pytest.mark.parametrize(
    ("runs", "agreeing", "value"),
    [
        # A second campaign of a machine, and another format, are no further one. One run each: no errors weigh them.
        (
            [("", A, BF16, [30.0]), ("", A, BF16, [31.0]), ("", B, BF16, [29.0]), ("", B, FP8, [9.0])],
            [31.0, 29.0],
            30.0,
        ),
        # The means are 30.1 and 31.0, and the first machine is surer of its own.
        ([("", A, BF16, [30.0, 30.2] * 3), ("", B, BF16, [29.0, 33.0] * 3)], [31.0, 30.1], 30.15),
        # Those without a name are one of each owner.
        (
            [("o", UNNAMED, BF16, [30.0]), ("o", UNNAMED, BF16, [29.0]), ("p", UNNAMED, BF16, [26.0])],
            [30.0, 26.0],
            28.0,
        ),
    ],
)  # fmt: skip
def test_machines_of_one_recipe_share_one_figure(
    runs: list[tuple[str, Machine, dict[str, str], list[float]]],
    agreeing: list[float],
    value: float,
) -> None:
    """Each counts once, with its own error."""
    found = [
        replace(speed, owner=owner)
        for number, (owner, machine, seen, values) in enumerate(runs)
        for speed in measured(
            *runs_of("a", values, load=ONE, campaign=f"c{number}", machine=machine, observed=seen)
        )
    ]  # fmt: skip
    (board,) = boards(found, "dgx-spark")
    (row,) = board.rows
    entry = row.entries[16][0]
    assert [each.value for each in entry.agreeing] == pytest.approx(agreeing)
    assert entry.value == pytest.approx(value, abs=0.05)


FAR = {**ONE, "input_tokens": 64, "output_tokens": 64}
BATCHES = {"type": "generate", "input_tokens": 128, "output_tokens": 32}
BATCHES |= {"batch_size": 8, "requests": 48}


def test_of_many_owners_each_stands_beside_the_lowest_and_the_highest() -> None:
    """Pages of all owners grow as their number then, and not as its square."""
    found = []
    for number in range(9):
        name = f"o{number}"
        values = [50.0 + number, 50.2 + number]
        (speed,) = measured(*runs_of("a", values, load=ONE, campaign=name))
        found.append(replace(speed, owner=name))
    beside = {
        one: [pair.other.owner for pair in pairs(found) if pair.one.owner == one]
        for one in ("o0", "o4")
    }
    assert beside == {
        "o0": ["o1", "o2", "o6", "o7", "o8"],
        "o4": ["o0", "o1", "o2", "o6", "o7", "o8"],
    }
    assert len(pairs(found[:4])) == 4 * 3


@pytest.mark.parametrize(
    ("measured_under", "ranked", "tokens"),
    [
        # The load of most models, then the usual one; a library that computes a whole batch serves nobody.
        ([("a", ONE), ("a", FAR), ("b", FAR)], 2, 64),
        ([("a", FAR), ("a", ONE)], 1, 512),
        ([("a", BATCHES), ("b", BATCHES), ("c", LOAD)], 1, 512),
    ],
)
def test_a_board_shows_one_load(
    measured_under: list[tuple[str, dict[str, Any]]], ranked: int, tokens: int
) -> None:
    records = [
        record
        for number, (model, load) in enumerate(measured_under)
        for record in runs_of(model, [1.0], campaign=f"c{number}", load=load)
    ]
    board = board_of(*records)
    assert (len(board.rows), board.load.input_tokens) == (ranked, tokens)


@pytest.mark.parametrize(
    ("load", "title"),
    [
        (ONE, "One user"),
        (LOAD, "8 users"),
        ({**LOAD, "concurrency": 17}, "17 users"),
        ({**ONE, "input_tokens": 4096}, "Long prompts"),
    ],
)
def test_each_load_answers_for_its_use(load: dict[str, Any], title: str) -> None:
    """Of long prompts the sooner first token is better."""
    board = board_of(
        *runs_of("a", [9.0], load=load, metrics={"ttft_p50_ms": 400.0}),
        *runs_of("b", [1.0], load=load, metrics={"ttft_p50_ms": 200.0}),
    )
    assert board.title == title
    assert order(board) == (["b", "a"] if title == "Long prompts" else ["a", "b"])


def test_an_open_loop_ranks_no_throughput_and_memory_is_no_speed() -> None:
    arriving = {**LOAD, "request_rate": 0.5}
    assert not boards(measured(*runs_of("a", [1.0], load=arriving)), "dgx-spark")
    assert measured(*runs_of("a", [5.0], metric="peak_memory_gib")) == []


@pytest.mark.parametrize("check", ["roofline", "foreign-telemetry"])
def test_a_figure_in_doubt_is_not_ranked(check: str) -> None:
    board = board_of(
        *runs_of("m", [900.0], load=ONE, workload="w"),
        *runs_of("n", [100.0], load=ONE, workload="w"),
        findings=[a_finding(check, "error")],
    )
    assert order(board) == ["n"]
    assert [speed.doubts for speed in board.unranked] == [(check,)]
    findings = [a_finding(check, "warning"), a_finding("exit-status", "error")]
    board = board_of(*runs_of("m", [900.0], load=ONE, workload="w"), findings=findings)
    assert order(board) == ["m"]


def test_repetitions_too_far_apart_for_a_mean_have_no_place() -> None:
    """Of three that deviate by half of their mean, its 95 % interval begins below zero: 1 - 4.3 × 0.5 / √3."""
    (record,) = runs_of("m", [900.0], load=ONE)
    apart = {TPUT: Spread(repetitions=3, deviation=450.0, divisor="n-1")}
    board = board_of(
        record.model_copy(update={"spreads": apart}), *runs_of("n", [100.0], load=ONE)
    )
    assert order(board) == ["n"]
    assert [speed.model.name for speed in board.unranked] == ["m"]


@pytest.mark.parametrize("with_hits", [1, 2])
def test_rows_with_and_without_hits_in_the_prefix_cache_are_not_ranked_together(
    with_hits: int,
) -> None:
    """The kind that more models have is ranked; with equally many, those without hits are."""
    runs = runs_of("plain", [50.0], load=ONE)
    for number in range(with_hits):
        hits = {"prefix_cache_hit_percent": 29.0}
        runs += runs_of(f"hit{number}", [90.0 - number], load=ONE, metrics=hits)
    board = board_of(*runs)
    hit = [f"hit{number}" for number in range(with_hits)]
    ranked, apart = (["plain"], hit) if with_hits == 1 else (hit, ["plain"])
    assert order(board) == ranked
    assert [speed.model.name for speed in board.unranked] == apart


def test_the_home_machine_comes_first_then_those_with_most_models() -> None:
    found = measured(
        *runs_of("a", [1.0], machine=H200),
        *runs_of("b", [1.0], machine=H200),
        *runs_of("c", [1.0], machine=SPARK),
        *runs_of("d", [1.0]),
    )
    assert machines(found, "dgx-spark") == ["DGX Spark", "H200", "machine not stated"]
    assert machines(found, "none of these")[0] == "H200"
    assert machines(found, "machine not stated")[0] == "machine not stated"


@pytest.mark.parametrize(
    ("metrics", "each"),
    [
        ({"output_throughput_per_user_tok_s": 11.0, "tpot_mean_ms": 50.0}, 11.0),
        # 128 tokens in 6.4 s, although each token after the first took 40 ms
        ({"request_latency_mean_ms": 6_400.0, "tpot_mean_ms": 40.0}, 20.0),
        ({"tpot_mean_ms": 50.0}, 10.0),  # 80 tok/s / 8 users
    ],
)
def test_a_user_gets_what_was_measured_or_a_share(
    metrics: dict[str, float], each: float
) -> None:
    (speed,) = measured(*runs_of("a", [80.0], metrics=metrics))
    assert speed.per_user == each


def arriving(model: str, waits: dict[float, float]) -> list[Record]:
    """A sweep over rates in requests a second; the values are P95 of the time to first token in ms."""
    return [
        record
        for rate, wait in waits.items()
        for record in runs_of(
            model,
            [100.0],
            load={**LOAD, "concurrency": None, "request_rate": rate},
            workload=f"r{rate}",
            metrics={"ttft_p95_ms": wait, "tpot_p95_ms": 50.0},
        )
    ]


def test_capacity_ranks_by_the_rate_that_users_bear_then_by_their_wait() -> None:
    records = [
        *arriving("a", {0.5: 900.0, 1.0: 11_000.0}),
        *arriving("b", {0.5: 800.0, 1.0: 12_000.0}),
        *arriving("c", {0.5: 500.0, 1.0: 9_000.0}),
        *arriving("d", {0.5: 20_000.0, 1.0: 30_000.0}),
        *arriving("e", {0.5: 500.0, 0.6: 500.0}),
    ]
    review = reviewed(dataset_of(*records))
    results = Results(review)
    found = speeds(review, results.cell_rows, Names(review.dataset))
    (board,) = boards(found, "dgx-spark", rows(results.capacities))
    assert board.title == "Capacity"
    shown = [(row.model.name, row.best.capacity.text) for row in board.rows]
    assert shown == [
        ("c", "limit not reached (up to 1.0)"),
        ("b", "0.5"),
        ("a", "0.5"),
        ("d", "below 0.5"),
        ("e", "limit not reached (up to 0.6)"),
    ]
    assert [row.best.is_placed for row in board.rows] == [True, True, True, True, False]
    assert board.rows[1].best.share == 0.5  # 0.5 of 1
