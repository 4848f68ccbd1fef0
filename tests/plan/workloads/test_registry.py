"""What holds for every workload of the registry."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from sparkpub.plan.environments import OPTIONS, Server
from sparkpub.plan.matrix import Gates
from sparkpub.plan.workloads import WORKLOADS, WorkloadOptions
from sparkpub.plan.workloads.withdrawn import WithdrawnOptions
from sparkpub.record.record import metric_problems
from sparkpub.tools import reading


def test_every_workload_is_an_option_of_the_matrix() -> None:
    """The registry and the type of the options name the same ones."""
    union, *_ = get_args(WorkloadOptions)
    kinds = {
        kind: options
        for options in get_args(union)
        for kind in get_args(options.model_fields["type"].annotation)
    }
    assert kinds == {name: member.options for name, member in WORKLOADS.items()}


PARTS = {
    **{
        f"workload {name}": member.options
        for name, member in WORKLOADS.items()
        if not issubclass(member.options, WithdrawnOptions)
    },
    **{f"environment {name}": options for name, options in OPTIONS.items()},
    "gates": Gates,
    "server": Server,
}


@pytest.mark.parametrize("part", PARTS)
def test_every_option_says_what_it_means(part: str) -> None:
    """The reference page prints these texts."""
    silent = [
        name
        for name, field in PARTS[part].model_fields.items()
        if name != "type" and not (field.description or "").endswith(".")
    ]
    assert silent == []


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("log", [b"", b"\xff\xfe\x00", b"[[[[", b"{}"])
def test_no_parser_raises_and_none_calls_nothing_complete(
    name: str, log: bytes
) -> None:
    answer = WORKLOADS[name].parse(log, {"report": log, "requests": log}, None)
    assert not answer.complete
    assert answer.problems


LOGS = Path(__file__).parents[2] / "data/logs"
REPORTS = sorted(LOGS.rglob("*.report.json"))


def damaged(document: dict[str, Any]) -> Iterator[Any]:
    """The document with each of its parts gone, or another thing in its place."""
    yield from (None, "x", [], [[]], {"a": 1}, 1e308, True)
    for key in document:
        yield {name: other for name, other in document.items() if name != key}
        for junk in (None, "x", [], [[]], {}, -1, 0, 1e308, float("nan"), "\ud800"):
            yield document | {key: junk}


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.name)
def test_no_damage_to_a_report_makes_a_parser_raise(path: Path) -> None:
    parse = WORKLOADS[path.parent.name].parse
    content = path.read_bytes()
    document = reading.json_object(content) or {}
    reports = [json.dumps(report).encode() for report in damaged(document)]
    for report in (*reports, content[: len(content) // 2]):
        answer = parse(b"", {"report": report, "requests": report}, None)
        for metric, value in answer.metrics.items():
            assert not metric_problems(metric, value)
        assert answer.samples.keys() <= answer.metrics.keys()
