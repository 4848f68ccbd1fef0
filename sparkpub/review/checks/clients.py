"""What serving tools mean by their figures, tool by tool, and the figures of a run as its tool means them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isnan, nan, sqrt

from sparkpub.plan.requested import load_of, options_of
from sparkpub.record.record import Record
from sparkpub.review.checks.evidence import Reread
from sparkpub.review.checks.threshold import Threshold

IDLE_SHARE = Threshold(
    "idle share",
    0.03,
    "Share of a closed loop's time that a client needs between two requests, beyond the end of the run, when fewer are "
    "in flight.",
)

IDLE_SHARE_OF_VLLM = Threshold(
    "idle share of vllm",
    0.005,
    "The same of `vllm bench serve`: on 57 runs it was 0.3 % at most, the beginning and the end of the run included.",
)

IDLE_SECONDS = Threshold(
    "idle seconds",
    0.05,
    "Seconds of a closed loop that may pass before the first request and after the last one.",
)

_RISING = ("min", "p50", "p90", "p95", "p99", "max")


@dataclass(frozen=True)
class Client:
    """What a tool means by its figures."""

    ends_with_last_token: bool = False
    """Whether a request's latency ends with its last token, and TPOT is the time after the first token divided by the
    remaining tokens. GuideLLM's latency ends later, with the end of the stream."""
    interpolates: bool = False
    """Whether percentiles are interpolated, so that two of them are equal only where requests took equally long."""
    a_chunk_a_token: bool = False
    """Whether ITL is the time of each step, in which every answer gets a token."""
    in_batches: bool = False
    """Whether the requests of a batch share their times, so that few of them differ."""
    span_is_longer: bool = False
    """Whether rates are over a longer span than the duration that is reported."""
    idle_share: Threshold = IDLE_SHARE


CLIENTS: Mapping[str, Client] = {
    "vllm-bench": Client(
        ends_with_last_token=True, interpolates=True, idle_share=IDLE_SHARE_OF_VLLM
    ),
    "sglang": Client(ends_with_last_token=True, interpolates=True),
    "aiperf": Client(ends_with_last_token=True, interpolates=True, span_is_longer=True),
    "genai-perf": Client(ends_with_last_token=True, interpolates=True),
    "inference-perf": Client(interpolates=True),
    "trtllm-bench": Client(ends_with_last_token=True),
    "generate": Client(
        ends_with_last_token=True, a_chunk_a_token=True, in_batches=True
    ),
    "ctranslate2": Client(in_batches=True),
}
"""By the tool, or by the client whose report a workload reads. Others are asked what holds by any definition."""


class Reported:
    """The figures of a run as its tool means them, times in seconds. What is not known is NaN."""

    def __init__(self, record: Record, answer: Reread | None = None) -> None:
        asked, seen = options_of(record), record.observed
        tool = str(asked.get("client", asked.get("type")))
        self.client = CLIENTS.get(tool, Client())
        self.load, self.record = load_of(record), record
        self.problems: tuple[str, ...] = ()
        """What the tool's reader found wrong with its report and log."""
        if answer is not None and answer.complete:
            self.problems = answer.problems
        self.requests = seen.requests or 0
        self.concurrency = _known(seen.concurrency_mean) or nan
        self.input_tokens = _known(seen.input_tokens_mean)
        self.output_tokens = _known(seen.output_tokens_mean or self.load.output_tokens)
        asked_for = self.load.output_tokens or 0
        fixed = asked_for > 1 and seen.output_tokens_mean == asked_for
        self.length: float = asked_for if fixed else nan
        """Tokens of every answer, where all have the same number."""
        known = {} if answer is None else answer.deviations
        self.slack = known.get("tpot", nan) * known.get("output_tokens", nan)
        """By how much the mean of products may be off the product of the means, of a request's tokens and its time per
        token (Cauchy and Schwarz), in milliseconds."""
        if fixed:
            self.slack = 0.0
        self.rate = self.of("request_throughput_req_s") or nan
        self.seconds = self.of("measured_time_ms") / 1e3
        self.span = (self.requests or nan) / self.rate
        self.in_flight = self.rate * self.of("request_latency_mean_ms") / 1e3
        """Requests in flight on average, by Little's law."""
        bound = _known(self.load.in_flight)
        self.most = min(bound, self.requests or bound)
        """The most requests that a client had in flight."""
        self.lost_some = self.of("failed_requests_percent") > 0
        """Whether requests failed: of those, no report says how long they took."""
        self.is_closed = self.load.request_rate is None and not self.lost_some
        """Whether each request begins when another ends."""

    def of(self, name: str) -> float:
        """A metric of the run."""
        return _known(self.record.value(name))

    def mean(self, stem: str) -> float:
        """The mean of a distribution, in milliseconds."""
        return self.of(f"{stem}_mean_ms")

    def known(self, stem: str) -> Mapping[str, float]:
        """The statistics of a distribution that are known, in milliseconds, in the order in which they rise."""
        found = {key: self.of(f"{stem}_{key}_ms") for key in _RISING}
        return {key: value for key, value in found.items() if not isnan(value)}

    @cached_property
    def slowest(self) -> float:
        """The longest latency that is known."""
        known = self.known("request_latency")
        found = [known[name] for name in ("max", "p99", "p95") if name in known]
        return found[0] / 1e3 if found else nan

    @cached_property
    def least_share(self) -> float:
        """The share of the asked concurrency that an honest closed loop has at least: all but what a client needs
        between requests, and but the end of the run, when fewer are in flight; 0 where it is not known."""
        most, seconds = self.most, self.span
        if isnan(seconds):
            # Nobody counted: each of `most` lanes had a request, and one of them the slowest.
            mean = most * self.mean("request_latency") / 1e3 or nan
            least = mean / (mean + (most - 1) * self.slowest)
            return 0.0 if isnan(least) else least
        # No lane is idle for longer than the last request takes.
        tail = (most - 1) / most * self.slowest / seconds
        middle = self.known("request_latency").get("p50", nan) / 1e3
        if self.requests % most == 0 and not isnan(middle):
            # Every lane has as many requests: they part by what single requests differ in. The slowest of a hundred is
            # 2.3 standard deviations from the middle, and the last of 64 lanes ends 2.4 of its own after their mean.
            spread = (self.slowest - middle) * sqrt(self.requests / most) / seconds
            tail = min(tail, spread)
        least = 1 - self.client.idle_share - IDLE_SECONDS / seconds - tail
        return 0.0 if isnan(least) else least


def _known(value: float | None) -> float:
    return nan if value is None else value
