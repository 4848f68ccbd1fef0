"""Clients of servers: the driver of one whose server runs already, and the reader of any report that `tools/` knows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sparkpub.plan.address import base_of
from sparkpub.plan.workloads import llama_server, server_pages
from sparkpub.plan.workloads.base import (
    PYTHON,
    SAID_AT_ONCE,
    TOKENS_TOLERANCE,
    WORKDIR,
    Answer,
    ClientOptions,
    Command,
    RunCase,
    no_answer,
    payload,
)
from sparkpub.record.load import Load
from sparkpub.record.record import Observed
from sparkpub.tools import engine, reading
from sparkpub.tools.asked import asked
from sparkpub.tools.cells import CellError
from sparkpub.tools.reader import ReportReading, read

_DRIVER, _WANTED, _SERVER = "client.py", "client.json", "server.json"


def driven(
    case: RunCase,
    options: ClientOptions,
    command: Command,
    *,
    client: str | None = None,
) -> Command:
    """The command of a client in a driver that asks the server at `options.url` before and after, and keeps what it
    says as the output `output`. `{model}` in it is the model's name there. `client` names a program that has a
    `--version`."""
    assert options.url is not None
    wanted = {
        "url": base_of(options.url),
        "model": options.model,
        "random_weights": case.random_weights,
        "client": client,
    }
    return replace(
        command,
        argv=(PYTHON, f"{WORKDIR}/{_DRIVER}", *command.argv),
        variables=dict(SAID_AT_ONCE) | dict(command.variables),
        files=lambda: {
            _DRIVER: payload(_DRIVER),
            server_pages.PAYLOAD: payload(server_pages.PAYLOAD),
            _WANTED: json.dumps(wanted).encode(),
        },
        outputs=dict(command.outputs) | {"output": _SERVER},
    )


def answer_of(tools: Sequence[str], log: bytes, files: Mapping[str, bytes]) -> Answer:
    """What the report of one of these tools says, with what the server said of itself."""
    report = reading.json_object(files.get("report"))
    server = reading.json_object(files.get("output")) or {}
    lines = reading.lines(log)
    printed = engine.printed(lines)
    identity = engine.merged(server_pages.identity(server), printed.identity)
    said = None if report is None else read(report, tools)
    if said is None:
        names = " or ".join(tools)
        return no_answer(f"no report of {names}", reading.observed(identity))
    metrics = said.metrics | dict(printed.metrics)
    metrics |= llama_server.cache_hits(lines) | server_pages.counted(server)
    problems = said.problems
    complete = any(reading.known(said.metrics, name) for name in said.metrics)
    if not complete:
        problems.append("the report holds none of the figures")
    return Answer(
        metrics,
        reading.observed(identity | said.facts),
        complete=complete,
        problems=tuple(problems),
        notes=(*said.notes, *server_pages.answered(server)),
        samples=said.samples,
        deviations=said.deviations,
        load=_load(said),
    )


def _load(said: ReportReading) -> Load | None:
    """What the client was asked for, by its own report; None where that does not say it."""
    try:
        found = asked(said.mapping, said.document)
    except CellError:
        return None
    options: dict[str, Any] = {"type": said.mapping.tool, **found.options}
    return Load.declared(options) if found.is_known else None


def other_lengths(
    observed: Observed, input_tokens: int | None, output_tokens: int
) -> list[str]:
    """Where requests were longer or shorter than asked for; None asks for no length of prompts."""
    lengths = (
        ("prompts", observed.input_tokens_mean, input_tokens),
        ("outputs", observed.output_tokens_mean, output_tokens),
    )
    return [
        f"{what} had {seen:g} tokens on average instead of {wanted}"
        for what, seen, wanted in lengths
        if seen is not None
        and wanted is not None
        and abs(seen - wanted) > TOKENS_TOLERANCE * wanted
    ]
