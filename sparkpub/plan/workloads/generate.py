"""Text generation with PyTorch and transformers: our own payload, for any model folder or architecture.

Every batch holds `batch_size` requests of `input_tokens` random tokens, submitted together; each emits exactly
`output_tokens` tokens, greedily, with the end-of-sequence token ignored. All requests of a batch therefore share
their time to first token and their latency, and the payload measures `batches` of them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt

from sparkpub.plan.workloads import reading
from sparkpub.plan.workloads.architecture import config_bytes
from sparkpub.plan.workloads.base import MEASURING, PYTHON, WORKDIR, Answer, Case, Command, Options, flags
from sparkpub.record.errors import WorkloadError
from sparkpub.record.metrics import METRICS
from sparkpub.record.record import MetricValue

_SCRIPT, _CONFIG, _REPORT, _REQUESTS = "generate.py", "config.json", "report.json", "requests.json"


class GenerateOptions(Options):
    """A fixed amount of work: `batches` × `batch_size` requests, after `warmup` batches that do not count."""

    type: Literal["generate"] = "generate"
    batch_size: PositiveInt = 1
    """Requests computed together."""
    batches: PositiveInt = 20
    """Batches measured, one after the other."""
    warmup: Annotated[int, Field(ge=0)] = 2
    """Batches before the measured ones; they do not count."""
    input_tokens: PositiveInt = 512
    """Tokens of each prompt, drawn from the seed."""
    output_tokens: Annotated[int, Field(ge=2)] = 128
    """Tokens generated per request."""
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    """Type of weights and KV cache."""
    device: Literal["auto", "cuda", "cpu"] = "auto"
    """Where it runs; auto: on the GPU where there is one."""
    attention: Literal["sdpa", "eager"] = "sdpa"
    """Attention kernel: PyTorch's fused one (`sdpa`) or plain matrix products (`eager`)."""
    cuda_graph: bool = False
    """Decode by replaying a CUDA graph: the cost of launching kernels from Python disappears."""


def command(case: Case, options: GenerateOptions) -> Command:
    """The payload with its options as flags. Raises WorkloadError for a model with neither folder nor config."""
    files = {_SCRIPT: reading.payload(_SCRIPT)}
    if case.model_config is not None:
        files[_CONFIG] = config_bytes(case.model_config)
        model: dict[str, object] = {"--config": f"{WORKDIR}/{_CONFIG}"}
    elif case.model_path is not None:
        model = {"--model": case.model_path, "--random-weights": case.random_weights}
    else:
        where = f"models.{case.model_key}"
        raise WorkloadError("generate needs a model folder or a config", where=where, remedy="add path: or config:")
    outputs = {"report": _REPORT, "requests": _REQUESTS}
    written = {f"--{role}": f"{WORKDIR}/{name}" for role, name in outputs.items()}
    argv = flags(model | options.flags() | {"--seed": case.seed} | written)
    # Nothing is fetched while something is measured.
    variables = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    return Command((PYTHON, f"{WORKDIR}/{_SCRIPT}", *argv), variables, files, outputs, MEASURING)


def parse(log: bytes, files: Mapping[str, bytes], options: Options | None) -> Answer:
    """Metrics and identity from the report, times from the requests."""
    report = reading.json_object(files.get("report"))
    if report is None:
        return Answer({}, complete=False, problems=("no report: the generation did not finish",))
    told, given = report.get("problems"), report.get("metrics")
    problems = [str(problem) for problem in told] if isinstance(told, list) else []
    known = given.items() if isinstance(given, dict) else ()
    metrics = {name: reading.metric(name, value, "report") for name, value in known if name in METRICS}
    for name, reason in reading.words(report.get("unavailable")).items():
        if name in METRICS:
            metrics[name] = reading.metric(name, None, "report", reason=reason)
    metrics |= _times(reading.json_object(files.get("requests")))
    if not reading.known(metrics, "output_throughput_tok_s"):
        problems.append("the report holds no throughput")
    return reading.own_answer(report, metrics, report.get("observed"), problems)


def printed(log: bytes) -> dict[str, tuple[float, float]]:
    """What the payload's last line says."""
    return reading.printed(log, {"output_throughput_tok_s": r"batch \d+: ([\d.]+) output tokens/s"})


def _times(document: Mapping[str, Any] | None) -> dict[str, MetricValue]:
    """Distributions over requests; between tokens, over all steps of all batches."""
    if document is None:
        return {}
    latencies, firsts, per_token = [], [], []
    for request in reading.objects(document.get("requests")):
        first, latency = reading.number(request.get("ttft_ms")), reading.number(request.get("latency_ms"))
        tokens = reading.positive_int(request.get("output_tokens"))
        if first is not None and latency is not None and tokens is not None and tokens > 1:
            latencies.append(latency)
            firsts.append(first)
            per_token.append((latency - first) / (tokens - 1))
    batches = document.get("itl_ms")
    steps = [step for batch in batches for step in reading.numbers(batch)] if isinstance(batches, list) else []
    series = {"request_latency": latencies, "ttft": firsts, "tpot": per_token, "itl": steps}
    return reading.distributions(series, "report")
