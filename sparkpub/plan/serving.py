"""The command of a server that lives for several runs (`sparkpub.plan.environments.Server`)."""

from collections.abc import Mapping

from sparkpub.plan.environments import Server
from sparkpub.plan.workloads.base import Command, RunCase

SAID_AT_ONCE: Mapping[str, str] = {"PYTHONUNBUFFERED": "1"}
"""A Python server says what it loaded before the first client comes, not when its buffer is full."""


def command(case: RunCase, server: Server) -> Command:
    """The server's command for the model of a run. Two runs share a server exactly if their commands are equal."""
    return Command(tuple(case.filled(word) for word in server.argv), SAID_AT_ONCE)
