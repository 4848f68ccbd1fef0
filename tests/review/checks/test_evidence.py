"""What lies beside a record as the checks read it: sums of files, samples, and what a parser finds in the log."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparkpub.record.record import Evidence, Phase, Requested
from sparkpub.record.store import Stored
from sparkpub.review.checks.evidence import (
    EvidenceReader,
    Examined,
    Reread,
)
from sparkpub.review.checks.sensors import Samples
from tests.building import a_record
from tests.review.checks.in_memory import a_run, a_view, told


def examined(folder: Path, files: dict[str, bytes], **fields: Any) -> Examined:
    """What is read of a run with these files, by role."""
    evidence = []
    for role, content in files.items():
        (folder / f"{role}.txt").write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        item: Any = {"role": role, "path": f"{role}.txt"}
        evidence.append(Evidence(**item, sha256=digest, bytes=len(content)))
    record = a_record(evidence=tuple(evidence), **fields)
    return EvidenceReader().of(Stored(record, folder / "run.json"))


def asked(kind: str, **options: Any) -> Requested:
    """A run of this tool with these options."""
    workload = {"type": kind, **options}
    return Requested(model_id="m", workload=workload, environment={"type": "host"})


def samples(folder: Path, header: str, *rows: str, **fields: Any) -> Samples:
    """The samples of a table."""
    table = "\n".join([f"elapsed_seconds,{header}", *rows, ""]).encode()
    found = examined(folder, {"telemetry": table}, **fields).samples
    assert found is not None
    return found


def test_samples_are_numbers(tmp_path: Path) -> None:
    found = samples(
        tmp_path,
        "mem_available_gib,gpu_utilization_percent,gpu_throttle_reasons,gpu_clock_sm_mhz",
        "-2,9,49,0x0000000000000020,100",
        "0,10,50,0x0000000000000020,1000",
        "1,,90,0x0000000000000009,1100",  # idle, which slows nothing, is the lowest bit
        "5,30,90,0x0000000000000004,1300",
        ",7,90,0x0000000000000000,",
        "6,60,90,unknown,1200",
    )
    busy, available = found.under_load, "mem_available_gib"
    assert found.times.tolist() == [-2.0, 0.0, 1.0, 5.0, 6.0]
    assert found.interval == 1.5  # the median of 2, 1, 4 and 1
    assert found.over(available, found.times > 0) == 45.0  # of 30 and 60
    assert found.over("processes_pss_gib", busy) is None
    both_ends = Phase(name="measure", start_seconds=0.0, end_seconds=5.0)
    assert found.within(both_ends).tolist() == [False, True, True, True, False]
    # The median of 1000, 1100, 1300 and 1200.
    assert found.over("gpu_clock_sm_mhz", busy, np.median) == 1150.0
    reasons = found.columns["gpu_throttle_reasons"][busy].tolist()
    assert reasons == pytest.approx([0x20, 0x8, 0x4, np.nan], nan_ok=True)


def answered(folder: Path, kind: str, /, log: bytes = b"x", **options: Any) -> Reread:
    """What the review reads again of a run whose tool was asked for these options, and left this log."""
    answer = examined(folder, {"log": log}, requested=asked(kind, **options)).answer
    assert answer is not None
    return answer


def test_warnings_are_known_by_level_and_by_when_they_came(tmp_path: Path) -> None:
    """Lines as vLLM's and Python's logging, TensorRT-LLM and llama.cpp write them; those of vLLM are its own."""
    log = b"""
(APIServer pid=892) WARNING 11-22 22:50:07 [system_utils.py:299] Found ulimit of 20000 and failed
Starting main benchmark run...
(EngineCore pid=1114) WARNING 11-22 22:51:02 [kernels.py:10] A kernel is compiled
ERROR 11-22 22:51:02 [a.py:10] two
[11/22/2026-22:51:02] [TRT-LLM] [E] three
0.08.246.481 E srv  four
(APIServer pid=892) WARNING 11-22 22:53:30 [utils.py:620] [shutdown] Process manager: force killing remaining processes
"""
    warned = answered(tmp_path, "vllm-bench", log=log).warnings
    assert [
        (each.text.split()[-1], each.measured, each.is_error) for each in warned
    ] == [
        ("failed", False, False),
        ("compiled", True, False),
        ("two", True, True),
        ("three", True, True),
        ("four", True, True),
    ]


BEGINS = "Starting main benchmark run...\n"
SAID = [
    (
        # llama.cpp, `src/llama-model.cpp` (b4750)
        "load_tensors: offloaded 20/33 layers to GPU\n" + BEGINS,
        "20 of 33 layers on the GPU",
    ),
    (
        # `examples/server/server.cpp` of the same; of a log without the client's lines
        "slot      release: id  0 | task 7 | stop processing: n_past = 511, truncated = 1\n",
        "stop processing",
    ),
    (
        "slot      release: id  0 | task 7 | stop processing: n_past = 496, truncated = 0\n",
        None,
    ),
    (
        # https://github.com/ollama/ollama/issues/7907, with the level that its runner has since
        'time=2024-12-02T09:25:57.024Z level=WARN source=runner.go:131 msg="truncating input prompt" limit=2048 '
        "prompt=17624 keep=5 new=2048\n",
        "less: source",
    ),
    (
        # SGLang, `scheduler.py`: at level INFO
        BEGINS
        + "[2026-05-24 03:51:46 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 1\n",
        "KV cache pool is full",
    ),
    (
        "[2026-05-24 03:51:46 TP0] KV cache pool is full. Retract requests.\n" + BEGINS,
        None,
    ),
    (
        # TensorRT-LLM, of a head size that its fused kernels lack
        BEGINS
        + "[TensorRT-LLM][WARNING] Fall back to unfused MHA because of unsupported head size 128 in sm_87\n",
        "Fall back to unfused MHA",
    ),
]
"""What engines say of a model or a prompt that does not fit, as their sources write it, and what a reader is told."""


@pytest.mark.parametrize(("log", "words"), SAID)
def test_what_does_not_fit_is_told_in_the_words_of_every_engine(
    tmp_path: Path, log: str, words: str | None
) -> None:
    answer = answered(tmp_path, "openai-endpoint", log=log.encode())
    found = told("engine-warning", a_view(a_run(), answer=answer))
    if words is None:
        assert found == []
    else:
        (finding,) = found
        assert words in finding
