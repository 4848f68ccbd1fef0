"""How the server of a cell is started, for others to do it again: as a recipe of sparkrun, or as a command of a shell.

A recipe holds the server: image, variables, options and command. Load and figure stand in it as `benchmark` and in its
description. The command is the matrix's; where somebody else started the server, it is rebuilt from the settings that
the results tell, and says so.
"""

import re
import shlex
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
REBUILT = "rebuilt from the settings that its source states: compare it with yours"
"""What is said of a command that no matrix declares."""
_RUNTIMES = {
    "vLLM": "vllm",
    "SGLang": "sglang",
    "llama.cpp": "llama-cpp",
    "TensorRT-LLM": "trtllm",
}
"""Engines as sparkrun calls them."""
_SAID = {"type", "image", "env", "python", "server", "binds", "ulimits", "recipe"}
"""Options of an environment that a recipe has, or does not need, besides `EXECUTOR`."""
_CLIENTS = ("llama-benchy", "openai-endpoint", *CLIENTS)
"""Types of the workloads that measure a server."""
_OF_CLIENTS = {
    *("client", "client_version", "latency", "coherence", "output_tokens_by"),
    *("tokenizer", "server", "port", "host"),
}
"""Settings that runs have of their client, and not of the server, and what a recipe has as a placeholder."""
_LOAD = {"pp": "input_tokens", "tg": "output_tokens", "concurrency": "concurrency"}
"""Arguments of llama-benchy, which is sparkrun's own client, to the options of a workload."""


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
    notes = [f"Written by sparkpub from {campaign}, {cell}."]
    options = None if matrix is None else matrix.environments.get(record.environment)
    if options is not None and options.server is not None:
        server = _declared(record, options, options.server)
        unsaid = options.declared.keys() - _SAID - set(EXECUTOR)
        if unsaid:
            notes.append(f"A recipe cannot say its {', '.join(sorted(unsaid))}.")
    else:
        server = told(record)
        notes.append(f"The command is {REBUILT}.")
    if "container" not in server:
        notes.append("It ran without a container: name one that has the engine.")
    asked = record.requested.workload
    args = {name: [asked[key]] for name, key in _LOAD.items() if key in asked}
    document = {
        "recipe_version": "2",
        "model": record.requested.model_id,
        "runtime": _RUNTIMES.get(setup_of(record).engine or ""),
        **dict.fromkeys(("container", "executor_config", "volumes")),
        "min_nodes": 1,
        **dict.fromkeys(("defaults", "env")),
        "metadata": {"description": _figure(results, record)},
        **server,
        "benchmark": {"framework": "llama-benchy", "args": args} if args else None,
    }
    stated = {name: value for name, value in document.items() if value}
    return "".join(f"# {note}\n" for note in notes) + yaml.dump(
        stated, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000
    )


def command(record: Record) -> str | None:
    """The server's command as a shell takes it, rebuilt of what the results tell; None where they tell none."""
    try:
        server = told(record)
    except UsageError:
        return None
    words = [f"{name}={shlex.quote(value)}" for name, value in server["env"].items()]
    text: str = server["command"].strip()
    text = text.replace("{model}", shlex.quote(record.requested.model_id))
    return " ".join([*words, text.replace("{port}", str(server["defaults"]["port"]))])


def _declared(record: Record, options: LaunchOptions, server: Server) -> dict[str, Any]:
    """The parts of a recipe that say how a matrix starts a server. An image is told by its digest where the engine knew
    one."""
    parts: dict[str, Any] = {
        "defaults": {"port": server.port},
        "env": dict(options.env),
        "command": _command(record, server),
    }
    if isinstance(options, DockerOptions):
        digests = record.container.digests if record.container else ()
        declared = options.declared
        executor = {name: declared[name] for name in EXECUTOR if name in declared}
        limits = [f"{name}={limit}" for name, limit in options.ulimits.items()]
        if limits:
            executor["ulimit"] = limits
        parts["container"] = digests[0] if digests else options.image
        parts["executor_config"] = executor
        parts["volumes"] = list(declared.get("binds", ()))
    return parts


def told(record: Record) -> dict[str, Any]:
    """The same of a run whose server somebody else started, as far as the results tell its options. Raises UsageError
    where they tell none."""
    asked = record.requested
    name = _RUNTIMES.get(setup_of(record).engine or "")
    settings = record.observed.settings
    options = {key: settings[key] for key in settings if key not in _OF_CLIENTS}
    is_served = asked.workload.get("mode") in (None, "serve")
    is_client = is_served and asked.workload.get("type") in _CLIENTS
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
            if value == "false" and name == "vllm":
                flag, value = flag.replace("--", "--no-", 1), "true"  # noqa: PLW2901
            if value != "false":  # other engines have no negation
                words.append(
                    flag if value == "true" else f"{flag} {shlex.quote(value)}"
                )
    parts = {
        "defaults": {"port": runtime.port},
        "env": {option: value for option, value in options.items() if option.isupper()},
        "command": " \\\n  ".join(words) + "\n",
    }
    image = asked.environment.get("image")
    return parts if image is None else parts | {"container": image}


def _command(record: Record, server: Server) -> str:
    """The server's command, with the placeholders of recipes; an option a line."""
    seeds = record.reproducibility.seeds if record.reproducibility else {}
    known = {
        "{model_path}": "{model}",
        "{model_id}": "{model}",
        "{load_format}": "dummy" if record.requested.random_weights else "auto",
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
    return re.sub(r" (--?[A-Za-z])", r" \\\n  \1", " ".join(words)) + "\n"


def _figure(results: Results, record: Record) -> str:
    """What was measured, on which machine, with which tool."""
    rows = results.cell_rows.where(
        campaign=record.campaign, cell=record.cell, metric=METRIC
    )
    machine = setup_of(record).machine
    where = f" on {machine}" if machine else ""
    tool = str(record.requested.workload.get("type"))
    for row in rows:
        return f"{number(row.mean, 1)} output tok/s{where} (n = {row.n}, {tool})"
    return f"Measured{where} with {tool}"


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
