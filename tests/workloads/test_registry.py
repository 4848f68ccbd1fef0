"""What holds for every workload of the registry."""

import pytest

from sparkpub.workloads import WORKLOADS


def test_a_workload_is_registered_under_its_own_name() -> None:
    assert {name: workload.name for name, workload in WORKLOADS.items()} == {name: name for name in WORKLOADS}
    assert set(WORKLOADS) == {"matmul", "generate", "command", "trtllm-bench", "vllm-bench", "llama-bench"}


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("log", [b"", b"\xff\xfe\x00", b"\x1b[31mTraceback", b"NaN", b"[[[[", b"{}"])
def test_no_parser_raises_and_none_calls_nothing_complete(name: str, log: bytes) -> None:
    answer = WORKLOADS[name].parse(log, {"report": log, "requests": log}, None)
    assert not answer.complete
    assert answer.problems
