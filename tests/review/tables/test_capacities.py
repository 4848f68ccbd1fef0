"""The highest arrival rate within the limits of the time to first token and of the time per output token."""

from typing import Any

import pytest

from sparkpub.record.record import Record
from sparkpub.review import stats_told
from sparkpub.review.results import Results
from sparkpub.review.tables.capacities import in_order, is_placed
from sparkpub.review.tables.column import TableRow, rows
from tests.leaderboards import dataset_of, reviewed, runs_of

ARRIVING = {
    "type": "vllm-bench",
    "mode": "serve",
    "input_tokens": 4000,
    "output_tokens": 500,
    "burstiness": 0.7,
}


def at(rate: float, ttft_seconds: float, **more: Any) -> Record:
    """A run in which 95 % of the requests had their first token within so many seconds."""
    asked = ARRIVING | {"request_rate": rate} | more.pop("asked", {})
    requests = asked.setdefault("requests", 100)
    metrics = {
        "failed_requests_percent": more.pop("failed", 0.0),
        "tpot_p95_ms": more.pop("tpot", 50.0),
    }
    metrics |= more.pop("metrics", {})
    (record,) = runs_of(
        "m",
        [1000 * ttft_seconds],
        metric="ttft_p95_ms",
        metrics=metrics,
        load=asked,
        workload=f"w-rate{rate:g}-n{requests}",
        environment="native",
        **more,
    )
    return record.model_copy(update={"run_id": f"c-{record.workload}"})


def measured(*records: Record) -> dict[float, TableRow]:
    """Limit in seconds to the capacity."""
    results = Results(reviewed(dataset_of(*records)))
    return {row.limit_seconds: row for row in rows(results.capacities)}


def test_it_is_the_highest_rate_that_stays_below_the_limit() -> None:
    """1.9, 3 and 7 s of waiting against limits of 2, 5 and 10."""
    found = measured(at(0.1, 1.9), at(0.5, 3), at(1, 7))
    assert [found[limit].rate for limit in (2, 5, 10)] == [0.1, 0.5, 1]
    texts = [found[limit].text for limit in (2, 5, 10)]
    assert texts == ["0.1", "0.5", "limit not reached (up to 1.0)"]


@pytest.mark.parametrize(("tpot", "rate"), [(100.0, 0.5), (100.1, 0.1)])
def test_users_have_to_read_ten_tokens_a_second(tpot: float, rate: float) -> None:
    """A server that takes every request at once gives first tokens in time, and nobody can read what follows."""
    assert (
        measured(at(0.1, 1), at(0.5, 1, tpot=tpot), at(1, 1, tpot=400))[2].rate == rate
    )


def test_without_the_time_per_output_token_nothing_is_said() -> None:
    unknown = [at(rate, 1).model_copy(update={"metrics": {}}) for rate in (0.1, 0.5)]
    assert measured(*unknown) == {}


def test_beside_the_rate_stands_what_it_means() -> None:
    """0.47 requests a second of 268 s each are 126 in flight (Little's law), and 629 ms a token are 1.6 a second."""
    metrics = {
        "request_throughput_req_s": 0.47,
        "request_latency_mean_ms": 268_000.0,
        "tpot_mean_ms": 629.0,
    }
    found = measured(at(0.1, 1, tpot=900.0, metrics=metrics), at(0.5, 1))[10]
    assert (found.text, found.limit_tpot_ms, found.served_req_s) == (
        "below 0.1",
        100,
        0.47,
    )
    assert found.in_flight == pytest.approx(125.96)
    assert found.user_tok_s == pytest.approx(1.59, abs=0.001)
    # 100 requests at 0.1 a second come within 1,000 s, and 268 s is more than a fifth of it.
    assert found.note == "a mean request took 268 s, and requests came for 1,000 s"


def test_a_sweep_that_answers_of_another_length_decide_is_not_ranked() -> None:
    """399 tokens are more than a fifth below the 500 that are declared, and 400 are not. What lies above the first rate
    that does not hold decides nothing."""

    def answering(tokens: float, rate: float, seconds: float) -> Record:
        return at(rate, seconds, observed={"output_tokens_mean": tokens})

    kept, short = answering(400, 0.1, 1), answering(399, 0.1, 1)
    assert measured(kept, at(0.5, 1))[10].rate == 0.5
    found = measured(short, at(0.5, 1))[10]
    assert (found.text, found.rate, found.at_least) == ("not ranked", None, False)
    assert found.note == "its mean answer has 399 tokens, and its load declares 500"
    above = measured(at(0.1, 1), at(0.5, 20), answering(399, 1, 20))[10]
    assert (above.rate, above.note) == (0.1, None)


def test_what_bears_the_highest_rate_stands_before_the_ranking_and_what_ended_early_behind_it() -> (
    None
):
    waits = {"ended": (1, 1), "slow": (1, 12), "fast": (1, 1, 1), "none": (12, 12)}
    rates = (0.1, 0.5, 1)
    found = []
    for name, seconds in waits.items():
        records = map(at, rates, seconds)
        table = Results(reviewed(dataset_of(*records))).capacities
        found += [
            row._replace(model=name) for row in rows(table) if row.limit_seconds == 10
        ]
    ordered = [(row.model, is_placed(row, 1)) for row in in_order(found)]
    assert ordered == [("fast", True), ("slow", True), ("none", True), ("ended", False)]


def test_stats_tells_it() -> None:
    results = Results(reviewed(dataset_of(at(0.1, 1.9), at(0.5, 3))))
    told = stats_told.document(results)["capacities"]
    assert [(row["limit_seconds"], row["rate"], row["rates"]) for row in told] == [
        (2.0, 0.1, [0.1, 0.5]),
        (5.0, 0.5, [0.1, 0.5]),
        (10.0, 0.5, [0.1, 0.5]),
    ]
    lines = stats_told.render(results, "text").splitlines()
    table = lines[next(i for i, line in enumerate(lines) if "Capacities" in line) :]
    assert "limit not reached (up to 0.5)" in table[3]


def test_where_no_rate_holds_it_lies_below_the_lowest() -> None:
    found = measured(at(0.1, 12), at(0.5, 30))[10]
    assert (found.rate, found.text, found.at_least) == (None, "below 0.1", False)


@pytest.mark.parametrize(("failed", "rate"), [(1.0, 0.5), (1.1, 0.1)])
def test_at_most_one_request_of_a_hundred_may_fail(failed: float, rate: float) -> None:
    assert measured(at(0.1, 1), at(0.5, 1, failed=failed))[2].rate == rate


def test_a_rate_above_one_that_fails_does_not_count() -> None:
    """Chance, or a server that sheds load: nobody would run it at 1 a second."""
    assert measured(at(0.1, 1), at(0.5, 6), at(1, 4))[5].rate == 0.1


def test_every_measurement_of_a_rate_has_to_hold() -> None:
    """However many requests were sent, it is the same load."""
    longer = at(0.5, 6, asked={"requests": 200})
    found = measured(at(0.1, 1), at(0.5, 4), longer)
    assert [found[limit].rate for limit in (5, 10)] == [0.1, 0.5]


def test_one_rate_is_no_sweep_and_other_loads_are_other_sweeps() -> None:
    """A bound on the requests at once makes another load, and so does a closed loop."""
    bounded = at(0.5, 1, asked={"concurrency": 25})
    closed = at(0.5, 1, asked={"request_rate": None, "concurrency": 8})
    assert measured(at(0.1, 1), bounded, closed) == {}


def test_the_load_is_told_without_its_rate() -> None:
    assert (
        measured(at(0.1, 1), at(0.5, 1))[2].load == "4,000 in, 500 out, burstiness 0.7"
    )
