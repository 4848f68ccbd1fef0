"""The load of a run, as it was declared: one vocabulary for all tools.

A load is what a tool was asked to put on its engine, never what came out: how long the prompts and answers were meant
to be, how many requests it keeps in flight (a closed loop) or at which rate they arrive (an open one). What nothing
says stays None; nothing is guessed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

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
        load: Load = cls._of_client(asked)
        steps = _STEPS.get(load.tool, _STEPS.get(str(asked.get("type")), ()))
        for step in steps:
            load = step(load, asked)
        return load

    @classmethod
    def _of_client(cls, asked: Mapping[str, Any]) -> Self:
        """The load of a client: what is in flight is worked on at once."""
        in_flight = _count(asked, *IN_FLIGHT)
        return cls(
            tool=_tool(asked),
            input_tokens=_length(asked.get("input_tokens")),
            output_tokens=_length(asked.get("output_tokens")),
            dataset=_word(asked.get("dataset")),
            in_flight=in_flight,
            at_once=in_flight,
            request_rate=_positive(asked.get("request_rate")),
            burstiness=_positive(asked.get("burstiness")),
            depth=_count(asked, "depth") or 0,
            batch=_count(asked, *BATCH),
            requests=_count(asked, *REQUESTS),
        )

    def submitted_at_once(self) -> Self:
        """The load of a client that submits all of its requests at once unless it was told otherwise."""
        if self.in_flight is not None or self.request_rate is not None:
            return self
        return replace(self, all_submitted=True, at_once=self.requests)

    def in_batches(self) -> Self:
        """The load of a tool that brings its own engine: what does not fit into a batch waits."""
        bounds = [bound for bound in (self.at_once, self.batch) if bound is not None]
        return replace(self, at_once=min(bounds, default=None))

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


_Step = Callable[[Load, Mapping[str, Any]], Load]
"""From the load of a client, and what was asked for, to what a tool makes of it."""


def _all_unless_unknown(load: Load, asked: Mapping[str, Any]) -> Load:
    """An import may not know how many requests were in flight."""
    return load.submitted_at_once() if "concurrency" in asked else load


def _one_by_one(batch: int | None) -> _Step:
    """One sequence at a time, whatever the number of its tokens in a batch."""
    return lambda load, _: replace(load, in_flight=1, at_once=1, batch=batch)


def _times(size: Literal["batch", "in_flight"]) -> _Step:
    """So many batches or rounds, and not requests."""

    def multiplied(load: Load, _: Mapping[str, Any]) -> Load:
        each = getattr(load, size)
        if load.requests is None or each is None:
            return load
        return replace(load, requests=load.requests * each)

    return multiplied


def _in_batches(load: Load, _: Mapping[str, Any]) -> Load:
    return load.in_batches()


def _all_at_once(load: Load, _: Mapping[str, Any]) -> Load:
    return load.submitted_at_once()


def _in_step(load: Load, _: Mapping[str, Any]) -> Load:
    return replace(load, is_in_step=True)


_OWN_BATCHES = (_in_batches, _in_step, _times("batch"))
_STEPS: Mapping[str, Sequence[_Step]] = {
    "ctranslate2": _OWN_BATCHES,
    "generate": _OWN_BATCHES,
    "llama-bench": (_one_by_one(batch=1),),
    "llama-benchy": (_times("in_flight"),),
    "openai-endpoint": (_all_at_once,),
    "trtllm-bench": (_all_unless_unknown, _in_batches),
    "trtllm-bench latency": (_one_by_one(batch=None),),
    "vllm-bench": (_all_at_once, _in_batches),
    "vllm-bench latency": (_times("batch"), _in_batches),
    "vllm-bench serve": (_all_at_once,),
}
"""What tools make of their options, those included that are no longer run: a tool, or one of its modes. The batch of a
server is a setting."""
