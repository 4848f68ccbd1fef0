"""The load of a run, as it was declared: one vocabulary for all tools.

A load is what a tool was asked to put on its engine, never what came out: how long the prompts and answers were meant
to be, how many requests it keeps in flight (a closed loop) or at which rate they arrive (an open one). What nothing
says stays None; nothing is guessed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ConfigDict

from sparkpub.record.text import counted, number

IN_FLIGHT = ("concurrency", "max_concurrency")
"""What tools and tables call the requests that a client keeps in flight."""
BATCH = ("batch_size", "max_batch_size", "max_num_seqs")
"""What tools and tables call the most sequences of a batch."""
REQUESTS = ("requests", "repetitions", "batches")
"""What tools call the requests of a measurement."""


@dataclass(frozen=True)
class Load:
    """What a run asked of its engine. Only runs of the same load can be ranked."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    tool: str
    """The tool and its mode: what the tool counts as a token rate differs between tools."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    dataset: str | None = None
    """The data set, or the file of prompts, where prompts are not made to a length."""
    in_flight: int | None = None
    """Requests that a client keeps in flight; None where it does not bound them."""
    at_once: int | None = None
    """Requests that are worked on at once: those in flight, and in a tool that brings its own engine no more than fit
    into a batch. None where nothing bounds them."""
    all_submitted: bool = False
    """Whether all requests are submitted at the begin, so that those beyond `at_once` wait."""
    is_in_step: bool = False
    """Whether the requests of a batch begin together and get their first tokens together."""
    request_rate: float | None = None
    """Requests per second, where they arrive at a rate."""
    burstiness: float | None = None
    """How unevenly they arrive, where that is not at random: the shape of the intervals' gamma distribution."""
    depth: int = 0
    """Tokens that stand in the context before the prompt."""
    named: str = ""
    """The workload's key, where only the key of an import says everything that its tool was told."""
    batch: int | None = field(default=None, compare=False)
    """Most sequences that the engine takes into a batch: of a server that is a setting, and no part of its load."""
    requests: int | None = field(default=None, compare=False)
    """Requests measured: how long it takes, and no part of the load."""

    @classmethod
    def declared(cls, asked: Mapping[str, Any]) -> "Load":
        """The load that the options of a workload ask for, by what its tool makes of them."""
        tool = _tool(asked)
        makes = _MAKES.get(tool, _MAKES.get(str(asked.get("type")), ()))
        in_flight = _count(asked, *IN_FLIGHT)
        batch, requests = _count(asked, *BATCH), _count(asked, *REQUESTS)
        rate = _positive(asked.get("request_rate"))
        if "one by one" in makes:
            in_flight, batch = 1, 1 if tool == "llama-bench" else None
        # An import may not know how many requests were in flight.
        is_open = in_flight is None and rate is None
        all_submitted = is_open and (
            "submits all" in makes
            or ("may submit all" in makes and "concurrency" in asked)
        )
        at_once = requests if all_submitted else in_flight
        if "in batches" in makes:  # what does not fit into one waits
            bounds = [bound for bound in (at_once, batch) if bound is not None]
            at_once = min(bounds, default=None)
        each = batch if "counts batches" in makes else in_flight
        if requests and each and {"counts batches", "counts rounds"} & {*makes}:
            requests *= each
        return cls(
            tool=tool,
            input_tokens=_length(asked.get("input_tokens")),
            output_tokens=_length(asked.get("output_tokens")),
            dataset=_word(asked.get("dataset")),
            in_flight=in_flight,
            at_once=at_once,
            all_submitted=all_submitted,
            is_in_step="in step" in makes,
            request_rate=rate,
            burstiness=_positive(asked.get("burstiness")),
            depth=_count(asked, "depth") or 0,
            batch=batch,
            requests=requests,
        )

    @property
    def is_known(self) -> bool:
        """Whether the prompts, and how the requests come, are known."""
        lengths = (self.input_tokens, self.output_tokens)
        has_prompts = self.dataset is not None or None not in lengths
        return has_prompts and self.flow != ""

    @property
    def flow(self) -> str:
        """How the requests come; empty where nothing says it."""
        if self.request_rate is not None:
            return self._arrivals(self.request_rate)
        if self.at_once is None:
            return ""
        if self.all_submitted and self.at_once == self.requests:
            return f"all {self.at_once:,} at once"
        words = f"{self.at_once:,} at once"
        if self.in_flight is not None and self.in_flight > self.at_once:
            return f"{words}, {self.in_flight:,} in flight"
        if self.all_submitted:
            return f"{words}, all others waiting"
        return words

    def _arrivals(self, rate: float) -> str:
        words = f"{number(rate, 1)} a second"
        if self.burstiness is not None and self.burstiness != 1:
            words += f", burstiness {self.burstiness:g}"
        if self.in_flight is not None:
            words += f", at most {self.in_flight:,} at once"
        return words

    @property
    def label(self) -> str:
        """The load in one line, `512 tokens in, 128 tokens out, 8 at once`, for tables: other loads have other words.
        Pages say it in fewer (`names.load_name`)."""
        parts = []
        if self.dataset is not None:
            parts.append(f"prompts of {_file_name(self.dataset)}")
        sides = ((self.input_tokens, "in"), (self.output_tokens, "out"))
        for tokens, where in sides:
            if tokens:
                parts.append(f"{counted(tokens, 'token')} {where}")
            elif tokens is None and self.dataset is None:
                parts.append(f"an unknown number of tokens {where}")
        parts.append(self.flow or "an unknown number at once")
        if self.depth:
            parts.append(f"{self.depth:,} in context")
        if self.named:
            parts.append(self.named)
        return ", ".join(parts)


def _file_name(dataset: str) -> str:
    """The last part of the path of a data set; a name as it is."""
    return dataset.rpartition("/")[2] or dataset


def _tool(asked: Mapping[str, Any]) -> str:
    """`vllm-bench serve`; the tool alone where it has no modes."""
    tool = str(asked.get("type", "unknown"))
    mode = _word(asked.get("mode"))
    return tool if mode is None else f"{tool} {mode}"


def _count(asked: Mapping[str, Any], *names: str) -> int | None:
    """The first of these options that is a whole number above zero."""
    for name in names:
        value = asked.get(name)
        if isinstance(value, int) and value > 0:
            return value
    return None


def _length(value: object) -> int | None:
    """A number of tokens; 0 where a tool leaves that side out."""
    return value if isinstance(value, int) else None


def _positive(value: object) -> float | None:
    if isinstance(value, int | float) and value > 0:
        return float(value)
    return None


def _word(value: object) -> str | None:
    if isinstance(value, str) and value not in ("", "unknown"):
        return value
    return None


_OWN_BATCHES = ("in batches", "in step", "counts batches")
_MAKES: Mapping[str, Sequence[str]] = {
    "ctranslate2": _OWN_BATCHES,
    "generate": _OWN_BATCHES,
    "llama-bench": ("one by one",),
    "llama-benchy": ("counts rounds",),
    "openai-endpoint": ("submits all",),
    "trtllm-bench": ("may submit all", "in batches"),
    "trtllm-bench latency": ("one by one",),
    "vllm-bench": ("submits all", "in batches"),
    "vllm-bench latency": ("in batches", "counts batches"),
    "vllm-bench serve": ("submits all",),
}
"""What tools make of their options, those included that are no longer run: a tool, or one of its modes. One that brings
its own engine works `in batches`; the batch of a server is a setting."""
