"""Whether the servers that run already, and the clients that measure them, are there: asked before anything starts."""

import os
import socket
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from sparkpub.collect.environments import ENVIRONMENTS, client_place
from sparkpub.collect.environments.base import Environment
from sparkpub.plan.address import host_of, is_loopback
from sparkpub.plan.environments import EnvironmentOptions
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun
from sparkpub.plan.workloads.base import Options, RunningServer
from sparkpub.plan.workloads.payload import pages
from sparkpub.record import package


def absent(matrix: Matrix, runs: Sequence[PlannedRun]) -> list[str]:
    """Servers that do not answer or do not serve the model, and clients that are not installed, a line each."""
    pairs = dict.fromkeys((run.environment, run.workload) for run in runs)
    servers: dict[RunningServer, None] = {}
    lines: dict[str, None] = {}
    for environment, workload in pairs:
        options = matrix.workloads[workload]
        place, around = client_place(matrix.environments[environment])
        lines |= dict.fromkeys(no_client(place, around, options, environment))
        lines |= dict.fromkeys(_no_module(place, around, options))
        server = options.running_server
        if server is not None and _reached(matrix, environment, server):
            servers[server] = None
    for server in servers:
        lines |= dict.fromkeys(no_server(server))
    return list(lines)


def no_server(server: RunningServer) -> Iterator[str]:
    """Why a server cannot be measured, and what to do about it.

    A matrix may be anybody's: to look at it sends no key to the address in it, and a server that wants one is there.
    """
    try:
        pages.models(server.url, server.model, keyed=False)
    except pages.StopError as error:
        if not (error.keyless and os.environ.get("OPENAI_API_KEY")):
            yield str(error)


def is_here(url: str) -> bool:
    """Whether a server's address is one of this machine's own: only such an address can be listened on."""
    if is_loopback(url):
        return True
    try:
        found = socket.getaddrinfo(host_of(url), 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return any(_is_own(family, place) for family, _, _, _, place in found)


def _is_own(family: socket.AddressFamily, place: tuple[Any, ...]) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(place)
        except OSError:
            return False
    return True


def _reached(matrix: Matrix, environment: str, server: RunningServer) -> bool:
    """Whether this machine finds a server where the environment does: a container has a loopback of its own."""
    options = matrix.environments[environment]
    shared = ENVIRONMENTS[options.type].shares_ports(options)
    return shared or not is_loopback(server.url)


def no_client(
    place: Environment, around: EnvironmentOptions, workload: Options, environment: str
) -> Iterator[str]:
    """That no client of a workload is installed in an environment, where that can be seen from outside."""
    programs = workload.programs
    has = partial(place.has_program, options=around)
    if not programs or any(has(name) is not False for name in programs):
        return
    name, install = next(iter(programs.items()))
    yield f"{name} is not installed, environment {environment}; install with: {install}"


def _no_module(
    place: Environment, around: EnvironmentOptions, workload: Options
) -> Iterator[str]:
    """That the engine of a payload of ours is not installed: every run would fail at its import."""
    for name, extra in workload.modules.items():
        if place.has_module(name, around) is False:
            command = package.install_command(extra)
            yield f"{name} is not installed, which the runs need; install it with: {command}"
