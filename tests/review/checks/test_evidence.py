"""What the review reads of a run's evidence besides the figures: here the order of its repeated measurements."""

import hashlib
from pathlib import Path

import pytest

from sparkpub.record.record import Evidence, Requested
from sparkpub.record.store import Stored
from sparkpub.review.checks.evidence import EvidenceReader, Reread
from tests.building import a_record

LOG = Path(__file__).parents[2] / "data/logs/llama-bench/b11434-h200.log"
"""Real: the first of five repetitions of the prompt ran at 18,243 tok/s, the others at 25,739 to 25,877."""


def read(folder: Path, content: bytes, **workload: object) -> Reread:
    """What the review sees in a log, for a run that was asked for these options."""
    (folder / "run.log").write_bytes(content)
    log = Evidence(
        role="log",
        path="run.log",
        sha256=hashlib.sha256(content).hexdigest(),
        bytes=len(content),
    )
    requested = Requested(model_id="m", workload=workload, environment={"type": "host"})
    record = a_record(requested=requested, evidence=(log,))
    answer = EvidenceReader().of(Stored(record, folder / "run.json")).answer
    assert answer is not None
    return answer


def series(folder: Path, **workload: object) -> tuple[float, ...]:
    """The repetitions that the review sees in the real log, for a run that was asked for these options."""
    return read(folder, LOG.read_bytes(), type="llama-bench", **workload).series


def test_a_first_repetition_that_stands_apart_is_in_sight(tmp_path: Path) -> None:
    times = series(tmp_path, warmup=0)
    assert times == pytest.approx(
        [1e3 / rate for rate in (18243.3, 25876.6, 25738.8, 25799.2, 25828.3)]
    )


def test_repetitions_of_warm_up_are_not_among_them(tmp_path: Path) -> None:
    times = series(tmp_path, warmup=1, repetitions=4)
    assert len(times) == 4
    assert max(times) < 1.01 * min(times)


def test_a_kernel_that_was_compiled_while_measuring_is_in_the_log_of_a_real_server(
    tmp_path: Path,
) -> None:
    """vLLM 0.24 compiled one after its client had begun, and warned of file handles and of the client's sampling
    before."""
    log = (LOG.parents[1] / "vllm-bench/0.24-serve.log").read_bytes()
    warned = read(tmp_path, log, type="vllm-bench").warnings
    (measured,) = [each.text for each in warned if each.measured]
    assert measured.startswith("Triton kernel JIT compilation during inference")
    assert len(warned) == 4


def test_an_error_is_known_from_a_warning(tmp_path: Path) -> None:
    """Lines as Python's logging, TensorRT-LLM and llama.cpp write them."""
    log = b"""
sparkpub: measuring
WARNING 11-22 22:51:02 [a.py:10] one
ERROR 11-22 22:51:02 [a.py:10] two
[11/22/2026-22:51:02] [TRT-LLM] [E] three
0.08.246.481 E srv  four
"""
    warned = read(tmp_path, log, type="vllm-bench").warnings
    assert [each.is_error for each in warned] == [False, True, True, True]
    assert [each.text.split()[-1] for each in warned] == ["one", "two", "three", "four"]


def test_what_an_engine_warns_of_when_it_ends_is_none_of_the_measurement(
    tmp_path: Path,
) -> None:
    """The first line and the last one are vLLM 0.24's own, on an H200."""
    log = b"""
(APIServer pid=892) WARNING 11-22 22:50:07 [system_utils.py:299] Found ulimit of 20000 and failed
Starting main benchmark run...
(EngineCore pid=1114) WARNING 11-22 22:51:02 [kernels.py:10] A kernel is compiled
(APIServer pid=892) WARNING 11-22 22:53:30 [utils.py:620] [shutdown] Process manager: force killing remaining processes
"""
    warned = read(tmp_path, log, type="vllm-bench").warnings
    assert [(each.text, each.measured) for each in warned] == [
        ("Found ulimit of \N{HORIZONTAL ELLIPSIS} and failed", False),
        ("A kernel is compiled", True),
    ]
