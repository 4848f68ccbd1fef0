"""A cell as a recipe of sparkrun, so that others serve the model as it was served here.

A recipe holds the server: image, variables, options and command. Load and figure stand in it as `benchmark` and in its
description.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Any

import yaml

from sparkpub.plan.environments import DockerOptions, LaunchOptions, Server
from sparkpub.plan.recipes import EXECUTOR, runtimes
from sparkpub.plan.workloads.withdrawn import CLIENTS
from sparkpub.record.errors import UsageError
from sparkpub.record.record import Record
from sparkpub.record.text import number
from sparkpub.review.results import Results
from sparkpub.review.setup import setup_of

METRIC = "output_throughput_tok_s"
_RUNTIMES = {
    "vLLM": "vllm",
    "SGLang": "sglang",
    "llama.cpp": "llama-cpp",
    "TensorRT-LLM": "trtllm",
}
"""Engines as sparkrun calls them."""
_SAID = frozenset(
    {"type", "image", "env", "python", "server", "binds", "ulimits", "recipe"}
    | set(EXECUTOR)
)
"""Options of an environment that a recipe has, or does not need."""
_CLIENTS = ("llama-benchy", "openai-endpoint", *CLIENTS)
"""Types of the workloads that measure a server."""
_OF_CLIENTS = frozenset(
    {"client", "client_version", "latency", "coherence", "output_tokens_by"}
    | {"tokenizer", "server", "port", "host"}
)
"""Settings that runs have of their client, and not of the server, and what a recipe has as a placeholder."""


def written(results: Results, campaign: str, cell: str) -> str:
    """The recipe of a cell, `model/environment/workload`, as YAML. Raises UsageError where there is none."""
    matrix = results.reviewed.dataset.campaign(campaign).matrix
    counted = results.reviewed.campaigns[campaign].counted
    by_name = {"/".join(key): runs for key, runs in counted.items() if runs}
    if cell not in by_name:
        remedy = f"there are: {', '.join(by_name) or 'none'}"
        what = f"no cell {cell} in {campaign} with a run that counts"
        raise UsageError(what, remedy=remedy)
    record = by_name[cell][-1].record
    options = None if matrix is None else matrix.environments.get(record.environment)
    notes = [f"Written by sparkpub from {campaign}, {cell}."]
    if options is not None and options.server is not None:
        server = _declared(record, options, options.server)
        unsaid = options.declared.keys() - _SAID
        if unsaid:
            notes.append(f"A recipe cannot say its {', '.join(sorted(unsaid))}.")
    else:
        server = told(record)
        notes.append(
            "The command is made of the options that the results tell: compare it with yours."
        )
    if "container" not in server:
        notes.append("It ran without a container: name one that has the engine.")
    document = {
        "recipe_version": "2",
        "model": record.requested.model_id,
        "runtime": _RUNTIMES.get(setup_of(record).engine or ""),
        **dict.fromkeys(("container", "executor_config", "volumes")),
        "min_nodes": 1,
        **dict.fromkeys(("defaults", "env")),
        "metadata": {"description": _figure(results, record)},
        **server,
        "benchmark": _benchmark(record.requested.workload),
    }
    stated = {name: value for name, value in document.items() if value}
    return "".join(f"# {note}\n" for note in notes) + yaml.dump(
        stated, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000
    )


def _declared(record: Record, options: LaunchOptions, server: Server) -> dict[str, Any]:
    """The parts of a recipe that say how a matrix starts a server. An image is told by its digest where the engine knew
    one."""
    parts: dict[str, Any] = {
        "defaults": {"port": server.port},
        "env": dict(options.env),
        "command": _command(record, server),
    }
    if isinstance(options, DockerOptions):
        image = options.image
        if record.container is not None and record.container.digests:
            image = record.container.digests[0]
        declared = options.declared
        executor = {name: declared[name] for name in EXECUTOR if name in declared}
        limits = [f"{name}={limit}" for name, limit in options.ulimits.items()]
        if limits:
            executor["ulimit"] = limits
        parts |= {"container": image, "executor_config": executor}
        parts["volumes"] = list(declared.get("binds", ()))
    return parts


def told(record: Record) -> dict[str, Any]:
    """The same of a run whose server somebody else started, as far as the results tell its options. Raises UsageError
    where they tell none."""
    name = _RUNTIMES.get(setup_of(record).engine or "")
    options = {
        option: value
        for option, value in record.observed.settings.items()
        if option not in _OF_CLIENTS
    }
    workload, image = (
        record.requested.workload,
        record.requested.environment.get("image"),
    )
    is_client = (
        workload.get("mode") in (None, "serve") and workload.get("type") in _CLIENTS
    )
    if not is_client or name is None or not options:
        raise UsageError(
            f"nothing tells how the server of {'/'.join(record.cell)} was started",
            remedy="a recipe is the command of a server; choose a cell with one",
        )
    runtime = runtimes()[name]
    words = [runtime.words, "--port {port}"]
    for option, value in options.items():
        if re.fullmatch(r"[a-z][a-z0-9_]*", option):
            flag = runtime.flags.get(option, f"--{option.replace('_', '-')}")
            words += _flagged(flag, value, negated=name == "vllm")
    parts = {
        "defaults": {"port": runtime.port},
        "env": {option: value for option, value in options.items() if option.isupper()},
        "command": " \\\n  ".join(words) + "\n",
    }
    return parts if image is None else parts | {"container": image}


def _flagged(flag: str, value: str, *, negated: bool) -> list[str]:
    """An option as words: `true` is the flag alone, and `false` its negation, where the engine has such."""
    if value == "true":
        return [flag]
    if value == "false":
        return [flag.replace("--", "--no-", 1)] if negated else []
    return [f"{flag} {shlex.quote(value)}"]


def _command(record: Record, server: Server) -> str:
    """The server's command, with the placeholders of recipes; an option a line."""
    seeds = record.reproducibility.seeds if record.reproducibility else {}
    random = record.requested.random_weights
    known = {
        "{model_path}": "{model}",
        "{model_id}": "{model}",
        "{load_format}": "dummy" if random else "auto",
        "{seed}": str(seeds.get("workload", 0)),
        "{iteration}": str(record.iteration),
    }
    words = []
    for word in server.argv:
        for theirs, ours in known.items():
            word = word.replace(theirs, ours)  # noqa: PLW2901 - step by step
        # A placeholder is filled in before the words are split.
        plain = re.fullmatch(r"[\w./:={},@%+-]*\{(model|port)\}[\w./:@-]*", word)
        words.append(word if plain else shlex.quote(word))
    text = " ".join(words)
    return re.sub(r" (--?[A-Za-z])", r" \\\n  \1", text) + "\n"


def _benchmark(workload: Mapping[str, Any]) -> dict[str, Any]:
    """The load as llama-benchy is told it, which is sparkrun's own client."""
    named = {"pp": "input_tokens", "tg": "output_tokens", "concurrency": "concurrency"}
    args = {
        theirs: [workload[ours]] for theirs, ours in named.items() if ours in workload
    }
    return {"framework": "llama-benchy", "args": args} if args else {}


def _figure(results: Results, record: Record) -> str:
    """What was measured, on which machine, with which tool."""
    row = results.cell(record.campaign, record.cell, METRIC)
    setup = setup_of(record)
    where = f" on {setup.machine}" if setup.machine else ""
    tool = str(record.requested.workload.get("type"))
    if row is None:
        return f"Measured{where} with {tool}"
    return f"{number(row.mean, 1)} output tok/s{where} (n = {row.n}, {tool})"


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
