"""The places sparkpub can measure in. Adding one = a module here, a line below, a fixture in tests."""

from sparkpub.collect.environments.base import Environment
from sparkpub.collect.environments.chroot import Chroot
from sparkpub.collect.environments.docker import Docker
from sparkpub.collect.environments.host import Host
from sparkpub.collect.environments.nspawn import Nspawn

ENVIRONMENTS: dict[str, Environment] = {
    "host": Host(),
    "chroot": Chroot(),
    "nspawn": Nspawn(),
    "docker": Docker(),
}
