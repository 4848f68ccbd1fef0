"""Every metric sparkpub knows: the one place that knows units, directions and definitions.

A unit is part of a metric's name, GiB is 2**30 bytes, and two definitions are two metrics: TensorRT-LLM's
profiled peak, the sampler's and PyTorch's are never compared with each other.
"""

from dataclasses import dataclass
from typing import Literal

Direction = Literal["higher", "lower", "neither"]

GIB = 2**30


@dataclass(frozen=True)
class Metric:
    """A quantity that a run can have.

    `direction` says which way is better. `decimals` is how many digits a reader needs. `derived_from`
    names the metrics this one is computed from, so that it is never read as a second piece of evidence.
    `minimum` and `maximum` bound what is physically possible, in `unit`.
    """

    name: str
    unit: str
    direction: Direction
    label: str
    definition: str
    decimals: int = 2
    derived_from: tuple[str, ...] = ()
    minimum: float = 0.0
    maximum: float = float("inf")

    def format(self, value: float | None, *, unit: bool = True) -> str:
        """Text for a reader, e.g. `70.47 GiB`; "not available" where there is no value."""
        if value is None:
            return "not available"
        text = f"{value:z,.{self.decimals}f}".replace("-", "\N{MINUS SIGN}")
        return f"{text} {self.unit}" if unit and self.unit else text


def _percentiles(stem: str, label: str, definition: str) -> list[Metric]:
    names = [
        ("mean", "mean"),
        ("min", "minimum"),
        ("p50", "median"),
        ("p90", "P90"),
        ("p95", "P95"),
        ("p99", "P99"),
        ("max", "maximum"),
    ]
    return [
        Metric(
            f"{stem}_{key}_ms", "ms", "lower", f"{label}, {word}", f"{definition}; {word} over the requests of a run."
        )
        for key, word in names
    ]


_ALL = [
    Metric(
        "output_throughput_tok_s",
        "tok/s",
        "higher",
        "Output throughput",
        "Generated tokens of all requests divided by the wall time of the measured phase, prefill included.",
    ),
    Metric(
        "total_throughput_tok_s",
        "tok/s",
        "higher",
        "Total throughput",
        "Input and output tokens of all requests divided by the wall time of the measured phase.",
        derived_from=("output_throughput_tok_s",),
    ),
    Metric(
        "prompt_throughput_tok_s",
        "tok/s",
        "higher",
        "Prompt throughput",
        "Prompt tokens processed per second, measured in a phase of its own.",
    ),
    Metric(
        "request_throughput_req_s",
        "req/s",
        "higher",
        "Request throughput",
        "Finished requests divided by the wall time of the measured phase; with a fixed output length it is "
        "output throughput divided by that length.",
        decimals=4,
        derived_from=("output_throughput_tok_s",),
    ),
    Metric(
        "output_throughput_per_user_tok_s",
        "tok/s",
        "higher",
        "Output throughput per user",
        "Mean over requests of output tokens divided by that request's latency.",
    ),
    Metric(
        "measured_time_ms",
        "ms",
        "lower",
        "Measured time",
        "Wall time from the first request submitted to the last one finished; load and warm-up excluded.",
        decimals=1,
        derived_from=("output_throughput_tok_s",),
    ),
    *_percentiles(
        "request_latency", "Request latency", "From submission of a request to its last token, queueing included"
    ),
    *_percentiles("ttft", "Time to first token", "From submission of a request to its first token"),
    *_percentiles("tpot", "Time per output token", "Time after the first token divided by the remaining tokens"),
    *_percentiles("itl", "Inter-token latency", "Time between two consecutive tokens of a request"),
    Metric(
        "peak_memory_gib",
        "GiB",
        "lower",
        "Peak memory (engine-profiled)",
        "TensorRT-LLM's own profile: PyTorch's peak plus everything else on the device at that moment. On "
        "unified memory that includes page cache and every other user of RAM; it is not the memory of a process.",
    ),
    Metric(
        "kv_cache_gib",
        "GiB",
        "higher",
        "KV cache",
        "Memory the engine set aside for keys and values, as it printed it.",
    ),
    Metric(
        "kv_cache_tokens",
        "tokens",
        "higher",
        "KV cache capacity",
        "Tokens that fit into the KV cache, as the engine printed it.",
        decimals=0,
        derived_from=("kv_cache_gib",),
    ),
    Metric(
        "kv_bytes_per_token",
        "B/token",
        "neither",
        "KV bytes per token",
        "Bytes of keys and values per token, as observed in the run: it reveals the architecture.",
        decimals=0,
    ),
    Metric("weights_gib", "GiB", "neither", "Weights loaded", "Bytes of weights as loaded, as observed in the run."),
    Metric(
        "allocated_peak_gib",
        "GiB",
        "lower",
        "Peak allocated (PyTorch)",
        "Peak of PyTorch's caching allocator: tensors only, no context, no other process.",
        decimals=3,
    ),
    Metric(
        "reserved_peak_gib",
        "GiB",
        "lower",
        "Peak reserved (PyTorch)",
        "Peak that PyTorch's caching allocator held from the driver.",
        decimals=3,
    ),
    Metric(
        "device_used_before_gib",
        "GiB",
        "lower",
        "Device memory used before load",
        "Total minus free device memory as the CUDA runtime reported it before the model was loaded.",
        decimals=3,
    ),
    Metric(
        "device_used_loaded_gib",
        "GiB",
        "lower",
        "Device memory used after load",
        "Total minus free device memory as the CUDA runtime reported it after the model was loaded.",
        decimals=3,
    ),
    Metric(
        "device_used_peak_gib",
        "GiB",
        "lower",
        "Device memory used at peak",
        "Largest total minus free device memory the CUDA runtime reported during the measured phase.",
        decimals=3,
    ),
    Metric(
        "gpu_memory_peak_gib",
        "GiB",
        "lower",
        "GPU memory peak (NVML)",
        "Largest device memory in use that NVML reported during the run; not supported on unified memory.",
        decimals=3,
    ),
    Metric(
        "system_peak_gib",
        "GiB",
        "lower",
        "System memory peak above baseline",
        "Largest drop of MemAvailable below its value before the run: what the run cost the whole machine.",
        decimals=3,
    ),
    Metric(
        "cgroup_peak_gib",
        "GiB",
        "lower",
        "cgroup memory peak",
        "Largest charge of the run's own control group: anonymous, file, shared and kernel memory of the CPU side.",
        decimals=3,
    ),
    Metric(
        "gpu_temp_start_celsius",
        "°C",
        "lower",
        "GPU temperature at start",
        "GPU temperature just before the run.",
        decimals=1,
        minimum=-40,
        maximum=130,
    ),
    Metric(
        "gpu_temp_end_celsius",
        "°C",
        "lower",
        "GPU temperature at end",
        "GPU temperature just after the run.",
        decimals=1,
        minimum=-40,
        maximum=130,
    ),
    Metric(
        "gpu_temp_max_celsius",
        "°C",
        "lower",
        "Highest GPU temperature",
        "Highest GPU temperature sampled during the run.",
        decimals=1,
        minimum=-40,
        maximum=130,
    ),
    Metric(
        "gpu_power_mean_watt",
        "W",
        "lower",
        "Mean GPU power",
        "Mean GPU power over the samples of the run.",
        decimals=1,
        maximum=5000,
    ),
    Metric(
        "gpu_energy_joule",
        "J",
        "lower",
        "GPU energy",
        "Difference of NVML's energy counter over the run; the integral of the power samples where there is none.",
        decimals=0,
    ),
    Metric(
        "gpu_utilization_mean_percent",
        "%",
        "neither",
        "Mean GPU utilisation",
        "Mean over the samples of the share of time in which a kernel ran.",
        decimals=1,
        maximum=100,
    ),
    Metric(
        "gpu_clock_sm_mean_mhz",
        "MHz",
        "neither",
        "Mean SM clock",
        "Mean SM clock over the samples under load.",
        decimals=0,
        maximum=10000,
    ),
    Metric(
        "matmul_gflop_s",
        "GFLOP/s",
        "higher",
        "Matrix multiplication rate",
        "2·n³ floating-point operations divided by the mean time of one multiplication.",
    ),
    Metric(
        "matmul_time_mean_ms",
        "ms",
        "lower",
        "Matrix multiplication time",
        "Mean time of one n × n multiplication.",
        decimals=3,
        derived_from=("matmul_gflop_s",),
    ),
]

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}


def lookup(name: str) -> Metric | None:
    """The metric of that name, or None where a matrix declared its own."""
    return METRICS.get(name)
