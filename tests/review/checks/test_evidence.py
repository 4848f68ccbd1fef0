"""What the review reads of a run's evidence besides the figures: here the order of its repeated measurements."""

import hashlib
from pathlib import Path

import pytest

from sparkpub.record.record import Evidence, Requested
from sparkpub.record.store import Stored
from sparkpub.review.checks.evidence import EvidenceReader, Reread
from tests.building import a_record
from tests.review.checks.in_memory import a_run, a_view, told

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


BEGINS = "Starting main benchmark run...\n"
SAID = [
    (
        # llama.cpp, `src/llama-model.cpp` (b4750)
        "load_tensors: offloaded 20/33 layers to GPU\n" + BEGINS,
        "computed the model, or a part of it, on the processor: 20 of 33 layers on the GPU",
    ),
    ("load_tensors: offloaded 33/33 layers to GPU\n" + BEGINS, None),
    (
        # `common/arg.cpp` of the same
        "warning: no usable GPU found, --gpu-layers option will be ignored\n" + BEGINS,
        "on the processor: no usable GPU found",
    ),
    (
        # `examples/server/server.cpp` of the same; of a log without the client's lines
        "slot      release: id  0 | task 7 | stop processing: n_past = 511, truncated = 1\n",
        "cut prompts short, or forgot their beginning, to fit them into its context: stop processing",
    ),
    ("slot      release: id  0 | task 7 | stop processing: n_past = 496, truncated = 0\n", None),
    (
        # https://github.com/ollama/ollama/issues/7907, with the level that its runner has since
        'time=2024-12-02T09:25:57.024Z level=WARN source=runner.go:131 msg="truncating input prompt" limit=2048 '
        "prompt=17624 keep=5 new=2048\n",
        "to fit them into its context: source",
    ),
    (
        # SGLang, `scheduler.py`: at level INFO
        BEGINS + "[2026-05-24 03:51:46 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 1\n",
        "took requests out of its batch, to compute them again later, while it was measured: KV cache pool is full",
    ),
    ("[2026-05-24 03:51:46 TP0] KV cache pool is full. Retract requests.\n" + BEGINS, None),
    (
        # TensorRT-LLM, of a head size that its fused kernels lack
        BEGINS + "[TensorRT-LLM][WARNING] Fall back to unfused MHA because of unsupported head size 128 in sm_87\n",
        "used slower code than it could, while it was measured: Fall back to unfused MHA",
    ),
    ("Run 1/3 (pp)\nKV cache pool is full. Retract requests.\n", "took requests out of its batch"),
]  # fmt: skip
"""What engines say of a model or a prompt that does not fit, as their sources write it, and what a reader is told."""


@pytest.mark.parametrize(("log", "words"), SAID)
def test_what_does_not_fit_is_told_in_the_words_of_every_engine(
    tmp_path: Path, log: str, words: str | None
) -> None:
    answer = read(tmp_path, log.encode(), type="openai-endpoint")
    found = told("engine-warning", a_view(a_run(), answer=answer))
    if words is None:
        assert found == []
    else:
        (finding,) = found
        assert words in finding
