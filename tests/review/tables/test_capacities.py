"""The highest arrival rate within a limit of the time to first token."""

from typing import Any

import pytest

from sparkpub.record.record import Record
from sparkpub.review import stats_told
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
    metrics = {"failed_requests_percent": more.pop("failed", 0.0)}
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
    assert texts == ["0.1", "0.5", "at least 1"]


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
    assert "at least 0.5" in table[3]


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
