"""The places sparkpub can measure in. Adding one = a module here, a line below, a fixture in tests."""

from typing import Any

from sparkpub.collect.environments.base import Environment
from sparkpub.collect.environments.chroot import Chroot
from sparkpub.collect.environments.docker import Docker
from sparkpub.collect.environments.host import Host
from sparkpub.collect.environments.nspawn import Nspawn
from sparkpub.plan.environments import EnvironmentOptions, HostOptions

ENVIRONMENTS: dict[str, type[Environment[Any]]] = {
    "host": Host,
    "chroot": Chroot,
    "nspawn": Nspawn,
    "docker": Docker,
}


def environment_of(options: EnvironmentOptions) -> Environment[Any]:
    """The environment that a matrix declares."""
    return ENVIRONMENTS[options.type](options)


def client_place(options: EnvironmentOptions) -> Environment[Any]:
    """Where the clients of an environment's server run, and every command of an environment without one."""
    if options.server is not None and options.server.client == "host":
        return Host(HostOptions())
    return environment_of(options)
