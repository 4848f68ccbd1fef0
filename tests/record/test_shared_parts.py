"""Parts that records have in common are held once, and no record says anything else for that."""

from typing import Any

from sparkpub.record.record import Machine, Record, Requested
from sparkpub.record.shared_parts import SharedParts
from tests.building import a_record


def a_run(**fields: Any) -> Record:
    """As it is read: with parts of its own."""
    return Record.model_validate_json(a_record(**fields).model_dump_json())


def asked(batch: float) -> Requested:
    return Requested(
        model_id="x/y",
        workload={"type": "command", "batch": batch},
        environment={"type": "host"},
    )


def test_equal_parts_are_one_and_others_stay() -> None:
    parts = SharedParts()
    machine: dict[str, Any] = {"machine": Machine(id="m1", cpu="Grace")}
    one = parts.share(a_run(requested=asked(8), **machine))
    other = parts.share(a_run(requested=asked(8), run_id="c-2", **machine))
    assert one.machine is other.machine
    assert one.requested is other.requested
    assert other.run_id == "c-2"
    assert one.metrics is not other.metrics
    (value,), (second,) = one.metrics.values(), other.metrics.values()
    assert value is not second
    assert value.model_fields_set is second.model_fields_set


def test_a_number_of_another_type_is_another_part() -> None:
    parts = SharedParts()
    whole = parts.share(a_run(requested=asked(8)))
    float_ = parts.share(a_run(requested=asked(8.0)))
    assert repr(whole.requested.workload["batch"]) == "8"
    assert repr(float_.requested.workload["batch"]) == "8.0"


def test_a_record_says_what_it_said() -> None:
    parts = SharedParts()
    parts.share(a_run(status_reason="a"))
    cases: list[dict[str, Any]] = [{}, {"requested": asked(4)}, {"status_reason": "b"}]
    for fields in cases:
        before = a_run(**fields)
        after = parts.share(a_run(**fields))
        assert after == before
        given = before.model_dump(exclude_unset=True)
        assert after.model_dump(exclude_unset=True) == given
