"""In a container of systemd-nspawn: the namespaces of a container, without an engine, an image or a network.

systemd-nspawn runs as a child of the collector and is registered nowhere (`--register=no --keep-unit`), so that it
works on machines without a running systemd, too, and ends with its run. The control group is that of a run on the host.
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from sparkpub.collect.environments.base import (
    INSIDE_WORKDIR,
    Launch,
    Obstacle,
)
from sparkpub.collect.environments.host import HostProcess
from sparkpub.collect.environments.rootfs import (
    CLEAN,
    OtherRoot,
    mountpoints,
)
from sparkpub.plan.environments import NspawnOptions, Place

PROGRAM = "systemd-nspawn"
SYSTEM = ("/dev", "/proc", "/run", "/sys", "/tmp", "/root", "/var", "/var/log", "/etc")  # noqa: S108 - inside
"""Folders that systemd-nspawn makes in a root that lacks them."""
_ALONE = (
    *("--quiet", "--settings=no", "--register=no", "--keep-unit", "--as-pid2"),
    *("--pipe", "--resolv-conf=off", "--timezone=off", "--link-journal=no"),
)
"""Nothing but what the matrix says: no settings file, no registration, and no file of the root is changed."""
_VARIABLES = {"SYSTEMD_NSPAWN_LOCK": "0"}
"""A server and its client run in one root at the same time."""


class Nspawn(OtherRoot[NspawnOptions]):
    """Commands run as root of a container."""

    no_container = "a container of systemd-nspawn, which has no engine and no image"

    def obstacles(self, models: Sequence[str] = ()) -> Sequence[Obstacle]:
        """The missing program or right, root file system, devices or sources of binds."""
        found = []
        if shutil.which(PROGRAM) is None:
            remedy = "install it: sudo apt install systemd-container"
            found.append(Obstacle(f"the program {PROGRAM} is missing", remedy))
        elif os.geteuid() != 0:
            remedy = "run the collector as root: sudo sparkpub …"
            found.append(Obstacle(f"{PROGRAM} is for root", remedy))
        found += [
            Obstacle(f"no device {device}", "correct devices: or load its driver")
            for device in self.options.devices
            if not Path(device).exists()
        ]
        return [*found, *self.root_obstacles(models)]

    def launch(self, launch: Launch) -> HostProcess:
        """Start the command in a container of its own."""
        argv, variables = self.resolved(launch, INSIDE_WORKDIR, "python3")
        root = Path(self.options.rootfs).resolve()
        binds = (
            *self.options.binds,
            Place(str(launch.workdir.resolve()), INSIDE_WORKDIR),
        )
        points = [*(Place(name, name) for name in SYSTEM), *binds]
        container = [
            *_ALONE,
            f"--directory={root}",
            f"--machine={_machine(launch.run)}",
            f"--chdir={INSIDE_WORKDIR}",
            *_flags(self.options, binds),
            *(
                f"--setenv={name}={value}"
                for name, value in (CLEAN | variables).items()
            ),
        ]
        with mountpoints(root, points) as undo:
            return HostProcess(
                [_tool(), *container, "--", *argv],
                launch,
                os.environ | dict(launch.marks) | _VARIABLES,
                recorded=argv,
                undo=undo,
            )


def _tool() -> str:
    return shutil.which(PROGRAM) or PROGRAM


def _machine(run: str) -> str:
    """A name for the container, which is a host name: letters, digits and hyphens."""
    return "sparkpub-" + re.sub(r"[^a-z0-9]+", "-", run.lower())[-40:].strip("-")


def _flags(options: NspawnOptions, binds: Sequence[Place]) -> Iterator[str]:
    """Binds, devices and limits."""
    for bind in binds:
        flag = "--bind-ro" if bind.read_only else "--bind"
        yield f"{flag}={bind.source}:{bind.target}"
    for device in options.devices:
        yield f"--bind={device}"
    for name, limit in options.ulimits.items():
        yield f"--rlimit={name.upper()}={'infinity' if limit < 0 else limit}"
