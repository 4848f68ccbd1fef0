"""The places sparkpub can measure in. Adding one = a module here, a line below, a fixture in tests."""

from sparkpub.collect.environments.base import Environment
from sparkpub.collect.environments.chroot import Chroot
from sparkpub.collect.environments.docker import Docker
from sparkpub.collect.environments.host import Host
from sparkpub.collect.environments.nspawn import Nspawn
from sparkpub.plan.environments import EnvironmentOptions, HostOptions

ENVIRONMENTS: dict[str, Environment] = {
    "host": Host(),
    "chroot": Chroot(),
    "nspawn": Nspawn(),
    "docker": Docker(),
}


def client_place(
    options: EnvironmentOptions,
) -> tuple[Environment, EnvironmentOptions]:
    """Where the clients of an environment's server run, and every command of an environment without one."""
    if options.server is not None and options.server.client == "host":
        return ENVIRONMENTS["host"], HostOptions()
    return ENVIRONMENTS[options.type], options
