"""Clients of servers: the driver of one whose server runs already, and the reader of any report that `tools/` knows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sparkpub.plan.address import base_of
from sparkpub.plan.workloads import server_pages
from sparkpub.plan.workloads.base import (
    PYTHON,
    SAID_AT_ONCE,
    WORKDIR,
    Answer,
    ClientOptions,
    Command,
    RunCase,
    no_answer,
    payload,
)
from sparkpub.record.load import Load
from sparkpub.record.record import MetricValue, Observed
from sparkpub.tools import engine, forms, reading
from sparkpub.tools.asked import asked
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


@dataclass(frozen=True)
class LeftBehind:
    """What the run of a client left: what it and the server printed, its report, and what the server said of itself."""

    log: bytes
    files: Mapping[str, bytes]

    @cached_property
    def lines(self) -> list[str]:
        """The log's."""
        return reading.lines(self.log)

    @cached_property
    def report(self) -> dict[str, Any]:
        """With the `lines` that were kept of each request; empty where there is none."""
        found = reading.json_object(self.files.get("report"))
        if not found:
            return {}
        return {"lines": forms.beside(self.files.get("requests", b"")), **found}

    @cached_property
    def server(self) -> dict[str, Any]:
        """What the driver heard of it (`payload/client.py`)."""
        return reading.json_object(self.files.get("output")) or {}

    @cached_property
    def printed(self) -> engine.Printed:
        """What the engine printed of itself."""
        return engine.printed(self.lines)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Who answered, as fields of `Observed`."""
        return engine.merged(server_pages.identity(self.server), self.printed.identity)

    def observed(self, said: ReportReading) -> Observed:
        """Who answered, and what a report counts."""
        return reading.observed(reading.said(said.facts) | self.identity)

    def answer(
        self,
        said: ReportReading,
        metrics: Mapping[str, MetricValue],
        problems: Sequence[str] = (),
        **more: Any,
    ) -> Answer:
        """With `metrics` beside what the report says; `more` are other fields."""
        fields = {
            "observed": self.observed(said),
            "samples": said.samples,
            "deviations": said.deviations,
            **more,
        }
        return Answer(
            {**metrics, **server_pages.counted(self.server)},
            problems=(*said.problems, *problems),
            notes=(*said.notes, *server_pages.answered(self.server)),
            **fields,
        )

    def whole(self, said: ReportReading) -> Answer:
        """All that a report says, with what the engine printed."""
        complete = any(reading.known(said.metrics, name) for name in said.metrics)
        return self.answer(
            said,
            {**said.metrics, **self.printed.metrics},
            () if complete else ("the report holds none of the figures",),
            complete=complete,
            load=_load(said),
        )


def answer_of(tools: Sequence[str], log: bytes, files: Mapping[str, bytes]) -> Answer:
    """What the report of one of these tools says, with what the server said of itself."""
    left = LeftBehind(log, files)
    said = read(left.report, tools)
    if said is not None:
        return left.whole(said)
    names = " or ".join(tools)
    return no_answer(f"no report of {names}", reading.observed(left.identity))


def _load(said: ReportReading) -> Load | None:
    """What the client was asked for, by its own report; None where that does not say it."""
    found = asked(said.mapping, said.document)
    options: dict[str, Any] = {"type": said.mapping.tool, **found.options}
    return Load.declared(options) if found.is_known else None
