"""How the server of a cell was started that somebody else started: the command rebuilt from what the results tell."""

import re
import shlex

from sparkpub.plan.recipes import runtimes
from sparkpub.plan.workloads.withdrawn import CLIENTS
from sparkpub.record.record import Record
from sparkpub.review.setup import setup_of

REBUILT = "rebuilt from the settings that its source states: compare it with yours"
"""What is said of a command that no matrix declares."""
_RUNTIMES = {
    "vLLM": "vllm",
    "SGLang": "sglang",
    "llama.cpp": "llama-cpp",
    "TensorRT-LLM": "trtllm",
}
"""Engines as `plan.recipes` calls them."""
_CLIENTS = ("llama-benchy", "openai-endpoint", *CLIENTS)
"""Types of the workloads that measure a server."""
_OF_CLIENTS = {
    *("client", "client_version", "latency", "coherence", "output_tokens_by"),
    *("tokenizer", "server", "port", "host"),
}
"""Settings that runs have of their client, and not of the server, and where it listened."""


def command(record: Record) -> str | None:
    """The server's command as a shell takes it, with the port that its engine listens on; None where the results tell
    no options."""
    asked, settings = record.requested, record.observed.settings
    name = _RUNTIMES.get(setup_of(record).engine or "")
    options = {key: settings[key] for key in settings if key not in _OF_CLIENTS}
    is_served = asked.workload.get("mode") in (None, "serve")
    is_client = is_served and asked.workload.get("type") in _CLIENTS
    if not is_client or name is None or not options:
        return None
    runtime = runtimes()[name]
    variables, flags = [], []
    for option, value in options.items():
        if option.isupper():
            variables.append(f"{option}={shlex.quote(value)}")
        if not re.fullmatch(r"[a-z][a-z0-9_]*", option):
            continue
        flag = runtime.flags.get(option, f"--{option.replace('_', '-')}")
        if value == "true":
            flags.append(flag)
        elif value != "false":
            flags.append(f"{flag} {shlex.quote(value)}")
        elif name == "vllm":  # other engines have no negation
            flags.append(flag.replace("--", "--no-", 1))
    start = runtime.words.replace("{model}", shlex.quote(asked.model_id))
    lines = [start, f"--port {runtime.port}", *flags]
    return " ".join([*variables, " \\\n  ".join(lines)])
