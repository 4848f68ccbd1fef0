"""Records of a workload that is no longer run are read, and nothing runs it."""

import json

import pytest

from sparkpub.plan.workloads import WORKLOADS
from sparkpub.plan.workloads.base import RunCase
from sparkpub.plan.workloads.generate import GenerateOptions
from sparkpub.record.errors import WorkloadError

GENERATE = WORKLOADS["generate"]


def test_it_is_refused_with_what_to_use_instead() -> None:
    case = RunCase("m", "m", "/m", None, True, 1, 42, workload_key="decode")
    with pytest.raises(WorkloadError) as refused:
        GENERATE.command(case, GenerateOptions())
    assert refused.value.lines() == [
        "generate is no longer run; its records stay readable, workloads.decode; "
        "use vllm-bench, llama-bench or llama-benchy"
    ]


def test_a_report_of_infinite_logits_is_not_hidden() -> None:
    report = {
        "metrics": {"output_throughput_tok_s": 5.0},
        "problems": ["the logits are not finite"],
    }
    answer = GENERATE.parse(b"", {"report": json.dumps(report).encode()}, None)
    assert answer.problems == ("the logits are not finite",)
    assert not answer.complete
