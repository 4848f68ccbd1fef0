"""The highest arrival rate within the limits of the time to first token and of the time per output token."""

from typing import Any

import pytest

from sparkpub.record.record import Record
from sparkpub.review.results import Results
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
    metrics = {"tpot_p95_ms": more.pop("tpot", 50.0)} | more.pop("metrics", {})
    failed = more.pop("failed", 0.0)
    if failed is not None:
        metrics["failed_requests_percent"] = failed
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


@pytest.mark.parametrize(
    ("records", "limit", "rate", "text"),
    [
        # 1.9, 3 and 7 s of waiting against limits of 2, 5 and 10.
        ([at(0.1, 1.9), at(0.5, 3), at(1, 7)], 5, 0.5, "0.5"),
        ([at(0.1, 1.9), at(0.5, 3), at(1, 7)], 10, 1, "limit not reached (up to 1.0)"),
        ([at(0.1, 12), at(0.5, 30)], 10, None, "below 0.1"),
        # Users have to read ten tokens a second, and one request of a hundred may fail.
        ([at(0.1, 1), at(0.5, 1, tpot=100.0), at(1, 1, tpot=100.1)], 2, 0.5, "0.5"),
        ([at(0.1, 1, failed=1.0), at(0.5, 1, failed=1.1)], 2, 0.1, "0.1"),
        # Of requests that failed not every client tells.
        ([at(0.1, 1, failed=None), at(0.5, 6, failed=None)], 5, 0.1, "0.1"),
        # A rate above one that fails does not count: chance, or a server that sheds load.
        ([at(0.1, 1), at(0.5, 6), at(1, 4)], 5, 0.1, "0.1"),
        # However many requests were sent, it is the same load: every measurement of a rate has to hold.
        ([at(0.1, 1), at(0.5, 4), at(0.5, 6, asked={"requests": 200})], 5, 0.1, "0.1"),
    ],
)
def test_it_is_the_highest_rate_up_to_which_the_limits_hold(
    records: list[Record], limit: float, rate: float | None, text: str
) -> None:
    found = measured(*records)[limit]
    assert (found.rate, found.text) == (rate, text)
    assert found.load == "4,000 in, 500 out, burstiness 0.7"


def test_where_a_figure_is_missing_or_loads_differ_there_is_no_sweep() -> None:
    """A bound on the requests at once makes another load, and so does a closed loop."""
    unknown = [at(rate, 1).model_copy(update={"metrics": {}}) for rate in (0.1, 0.5)]
    assert measured(*unknown) == {}
    bounded = at(0.5, 1, asked={"concurrency": 25})
    closed = at(0.5, 1, asked={"request_rate": None, "concurrency": 8})
    assert measured(at(0.1, 1), bounded, closed) == {}


def test_beside_the_rate_stands_what_it_means() -> None:
    """0.47 requests a second of 268 s each are 126 in flight (Little's law), and 629 ms a token are 1.6 a second."""
    metrics = {
        "request_throughput_req_s": 0.47,
        "request_latency_mean_ms": 268_000.0,
        "tpot_mean_ms": 629.0,
    }
    found = measured(at(0.1, 1, tpot=900.0, metrics=metrics), at(0.5, 1))[10]
    assert (found.text, found.served_req_s) == ("below 0.1", 0.47)
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
