"""The load of a run, as its options declare it, in one vocabulary for all tools."""

from collections.abc import Mapping
from typing import Any

import pytest

from sparkpub.plan.requested import load_of
from sparkpub.record.load import Load
from sparkpub.record.record import Observed, Origin, Plan, Record, Requested
from tests.building import a_record

IMPORTED = Plan(position=0, order="as-published")


def run(
    workload: Mapping[str, Any],
    *,
    key: str = "w",
    imported: bool = False,
    **fields: Any,
) -> Record:
    """A run with these options of its workload."""
    requested = Requested(
        model_id="x/y", workload=dict(workload), environment={"type": "host"}
    )
    if imported:
        fields["plan"] = IMPORTED
    return a_record(requested=requested, workload=key, **fields)


def load(tool: str, options: Mapping[str, Any], *, imported: bool = False) -> Load:
    """The load of a tool, `vllm-bench serve`, with these options."""
    name, _, mode = tool.partition(" ")
    modes = {"mode": mode} if mode else {}
    return load_of(run({"type": name} | modes | dict(options), imported=imported))


TRTLLM = "trtllm-bench throughput"
SERVE = "vllm-bench serve"


@pytest.mark.parametrize(
    ("tool", "options", "in_flight", "at_once", "flow"),
    [
        # The tool is the engine too: no more than fit into a batch are worked on.
        (TRTLLM, {"concurrency": 4, "max_batch_size": 8}, 4, 4, "4 at once"),
        (
            TRTLLM,
            {"concurrency": 64, "max_batch_size": 8},
            64,
            8,
            "8 at once, 64 in flight",
        ),
        (
            TRTLLM,
            {"requests": 50, "max_batch_size": 8},
            None,
            8,
            "8 at once, all others waiting",
        ),
        (TRTLLM, {"requests": 5}, None, 5, "all 5 at once"),
        ("trtllm-bench latency", {}, 1, 1, "1 at once"),
        ("llama-bench", {"n_batch": 2048}, 1, 1, "1 at once"),
        ("generate", {}, None, 1, "1 at once"),
        ("ctranslate2", {"batch_size": 2}, None, 2, "2 at once"),
        ("vllm-bench latency", {"batch_size": 2}, None, 2, "2 at once"),
        ("vllm-bench throughput", {}, None, 8, "8 at once, all others waiting"),
        # A client: the server's largest batch is a setting, not the load that a client makes.
        (SERVE, {"concurrency": 8, "batch_size": 4}, 8, 8, "8 at once"),
        (SERVE, {"batch_size": 4}, None, 100, "all 100 at once"),
        (SERVE, {"request_rate": 4}, None, None, "4.0 a second"),
        (
            SERVE,
            {"request_rate": 4, "concurrency": 8},
            8,
            8,
            "4.0 a second, at most 8 at once",
        ),
        ("openai-endpoint", {"requests": 64}, None, 64, "all 64 at once"),
        ("command", {}, None, None, ""),
    ],
)
def test_how_many_requests_come_at_once(
    tool: str,
    options: dict[str, Any],
    in_flight: int | None,
    at_once: int | None,
    flow: str,
) -> None:
    found = load(tool, options)
    assert (found.in_flight, found.at_once, found.flow) == (in_flight, at_once, flow)


@pytest.mark.parametrize(
    ("tool", "options", "at_once", "flow"),
    [
        # What an import does not say is not the default: nobody knows whether all requests came at once.
        (TRTLLM, {"max_batch_size": 8, "requests": 50}, 8, "8 at once"),
        ("generate", {"batches": 5}, None, ""),
        # The reports of these clients say a bound where there is one.
        (SERVE, {"requests": 100}, 100, "all 100 at once"),
        (SERVE, {}, None, ""),
        (
            SERVE,
            {"request_rate": 4, "burstiness": 0.5},
            None,
            "4.0 a second, burstiness 0.5",
        ),
        ("table", {"max_concurrency": 4}, 4, "4 at once"),
        ("table", {"concurrency": "many", "requests": 100}, None, ""),
    ],
)
def test_an_import_declares_no_more_than_it_says(
    tool: str, options: dict[str, Any], at_once: int | None, flow: str
) -> None:
    found = load(tool, options, imported=True)
    assert (found.at_once, found.flow) == (at_once, flow)


@pytest.mark.parametrize(
    ("tool", "options", "requests", "batch"),
    [
        (TRTLLM, {"requests": 64}, 64, 8),
        ("generate", {"batches": 6, "batch_size": 8}, 48, 8),
        ("llama-bench", {}, 5, 1),
        # Ten batches of eight.
        ("vllm-bench latency", {"requests": 10}, 80, 8),
        (SERVE, {"requests": 10}, 10, None),
        (SERVE, {"batch_size": 16}, 100, 16),
    ],
)
def test_how_much_is_measured_and_what_a_batch_holds_are_no_part_of_the_load(
    tool: str, options: dict[str, Any], requests: int, batch: int | None
) -> None:
    found = load(tool, options)
    assert (found.requests, found.batch) == (requests, batch)
    client = {"concurrency": 4, "input_tokens": 512}
    many = load(SERVE, client | {"requests": 64, "batch_size": 64})
    assert many == load(SERVE, client | {"requests": 32, "batch_size": 8})


def test_the_load_is_what_was_asked_and_not_what_came_out() -> None:
    asked = {"input_tokens": 512, "output_tokens": 128, "concurrency": 8, "depth": 4096}
    seen = Observed(input_tokens_mean=511.6, output_tokens_mean=100.2, requests=50)
    found = load_of(run({"type": "llama-benchy"} | asked, observed=seen))
    assert (found.input_tokens, found.output_tokens, found.depth) == (512, 128, 4096)
    assert found.label == "512 tokens in, 128 tokens out, 8 at once, 4,096 in context"
    assert found.is_known
    silent = load_of(run({"type": "vllm-bench", "mode": "serve"}, observed=seen))
    imported = {"type": "vllm-bench", "mode": "serve"}
    found = load_of(run(imported, observed=seen, imported=True))
    assert (found.input_tokens, found.output_tokens, found.flow) == (
        None,
        None,
        "",
    )
    assert (silent.input_tokens, silent.output_tokens) == (512, 128)


def test_a_load_that_nothing_says_is_not_known() -> None:
    found = load("table", {"output_tokens": 128, "concurrency": 8})
    assert not found.is_known
    assert found.label == "an unknown number of tokens in, 128 tokens out, 8 at once"
    found = load("table", {"input_tokens": 1, "output_tokens": 128})
    assert not found.is_known
    assert found.label == "1 token in, 128 tokens out, an unknown number at once"


def test_a_data_set_stands_for_the_lengths_of_its_prompts() -> None:
    own = load("openai-endpoint", {"dataset": "/prompts/chat.jsonl", "concurrency": 8})
    assert own.label == "prompts of chat.jsonl, 128 tokens out, 8 at once"
    assert own.is_known
    client = {"dataset": "sharegpt", "concurrency": 8}
    imported = load("sglang", client, imported=True)
    assert imported.label == "prompts of sharegpt, 8 at once, w"
    assert imported.is_known


def test_the_key_of_an_import_tells_loads_apart_that_its_options_do_not() -> None:
    imported = {"origin": Origin(title="elsewhere")}
    client = {"type": "vllm-bench", "mode": "serve", "concurrency": 1}
    cached = run(client, key="pp64-c1-cached-n10", **imported)
    assert load_of(cached).named == "pp64-c1-cached"
    own = run(client, key="pp64-c1-cached-n10")
    assert load_of(own).named == ""
    declared = run(client, key="serve-n8", specification="0" * 64, **imported)
    assert load_of(declared).named == ""
    # The key of llama-bench adds settings of the engine, which are what is ranked.
    engine = run({"type": "llama-bench"}, key="pp512-k-q8-0", **imported)
    assert load_of(engine).named == ""


def test_numbers_that_an_import_has_as_text_are_numbers_of_its_load() -> None:
    """Columns of a table without a unit come as they stand there."""
    written = {"concurrency": "8", "input_tokens": "512", "output_tokens": "128"}
    known = load("table", {name: int(text) for name, text in written.items()})
    found = load("table", written, imported=True)
    assert (found.in_flight, found.input_tokens, found.output_tokens) == (8, 512, 128)
    assert found.label == f"{known.label}, {found.named}"
