"""What real tools left, and what it says: a file `NAME.expected.json` beside the evidence of a run, for each.

Of vLLM 0.24.0 and llama-bench b11434 on an NVIDIA H200, of vLLM 0.32 and AIPerf 0.13 on two processor cores (another
client used that server meanwhile), of llama-benchy 0.4.0 against llama-server b11434 on two cores and against vLLM
0.24.0 with room for five requests. Those of trtllm-bench show every format that it has had. Figures were held against
what each tool printed when the files were added.
"""

import json
from pathlib import Path

import pytest

from sparkpub.plan.workloads import WORKLOADS
from sparkpub.plan.workloads.base import Answer

LOGS = Path(__file__).parents[2] / "data/logs"
CASES = sorted(
    f"{path.parent.name}/{path.name.removesuffix('.expected.json')}"
    for path in LOGS.rglob("*.expected.json")
)
ROLES = {
    "report": "report.json",
    "requests": "requests.json",
    "output": "output.json",
    "log": "log",
}


def answer_of(case: str, options: dict[str, object] | None = None) -> Answer:
    """What the evidence of a run says, to whoever asked for it with these options."""
    kind = case.partition("/")[0]
    paths = {role: LOGS / f"{case}.{name}" for role, name in ROLES.items()}
    files = {role: path.read_bytes() for role, path in paths.items() if path.is_file()}
    workload = WORKLOADS[kind]
    wanted = None if options is None else workload.options.model_validate(options)
    return workload.parse(files.pop("log", b""), files, wanted)


@pytest.mark.parametrize("case", CASES)
def test_what_the_evidence_says(case: str) -> None:
    expected = json.loads((LOGS / f"{case}.expected.json").read_text())
    answer = answer_of(case, expected.get("options"))
    values = {name: metric.value for name, metric in answer.metrics.items()}
    asked = {name: values[name] for name in expected["metrics"]}
    assert asked == pytest.approx(expected["metrics"])
    assert not set(expected.get("absent", ())) & set(values)
    observed = answer.observed.model_dump()
    settings = observed.pop("settings")
    assert settings.items() >= expected.get("settings", {}).items()
    known = {name: observed[name] for name in expected["observed"]}
    assert known == pytest.approx(expected["observed"])
    assert answer.complete is expected["complete"]
    assert list(answer.problems) == expected["problems"]


@pytest.mark.parametrize(
    ("case", "options", "problem"),
    [
        (
            "trtllm-bench/report-only",
            {"type": "trtllm-bench", "requests": 6},
            "4 of 6 requests returned",
        ),
        (
            "llama-bench/b11434-h200",
            {"type": "llama-bench", "repetitions": 5},
            "5 of 6 repetitions in a test",
        ),
    ],
)
def test_what_is_not_as_it_was_asked_for_is_said(
    case: str, options: dict[str, object], problem: str
) -> None:
    assert problem in answer_of(case, options).problems
