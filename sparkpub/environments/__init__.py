"""The places sparkpub can measure in. Adding one = a module here, a line below, a fixture in tests."""

from sparkpub.environments.base import Environment
from sparkpub.environments.chroot import Chroot
from sparkpub.environments.docker import Docker
from sparkpub.environments.host import Host

ENVIRONMENTS: dict[str, Environment] = {"host": Host(), "chroot": Chroot(), "docker": Docker()}
