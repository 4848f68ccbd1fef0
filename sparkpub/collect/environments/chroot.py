"""In another root file system of the same machine: no container, no new namespaces but one for mounts.

The mounts are made in a mount namespace that lives as long as the run's processes. When the last one ends the
kernel undoes them, whatever became of the collector; nobody outside ever sees them.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sparkpub.collect.environments.base import (
    INSIDE_WORKDIR,
    Launch,
    Obstacle,
)
from sparkpub.collect.environments.host import HostProcess
from sparkpub.collect.environments.rootfs import (
    CLEAN,
    SETUP_FAILED,
    OtherRoot,
    below,
    mountpoints,
)
from sparkpub.plan.environments import ChrootOptions, Place

SYSTEM = ("/proc", "/sys", "/dev")


class Chroot(OtherRoot[ChrootOptions]):
    """Commands run under another root, as root, with a clean environment."""

    def obstacles(self, models: Sequence[str] = ()) -> Sequence[Obstacle]:
        """Missing tools, rights, root file system, interpreter or sources of binds."""
        found = [
            Obstacle(
                f"the program {tool} is missing", "install util-linux and coreutils"
            )
            for tool in ("unshare", "mount", "chroot", "sh")
            if shutil.which(tool) is None
        ]
        if not found and not may_mount():
            remedy = "run the collector as root: sudo sparkpub …"
            found.append(Obstacle("mounting and chroot are not permitted", remedy))
        return [*found, *self.root_obstacles(models)]

    def launch(self, launch: Launch) -> HostProcess:
        """Start the command in a private mount namespace, with everything mounted first."""
        argv, variables = self.resolved(launch, INSIDE_WORKDIR, "python3")
        root = Path(self.options.rootfs).resolve()
        binds = [
            *(Place(name, name) for name in SYSTEM),
            *self.options.binds,
            Place(str(launch.workdir.resolve()), INSIDE_WORKDIR),
        ]
        with mountpoints(root, binds) as undo:
            private = (_tool("unshare"), "--mount", "--propagation", "private")
            return HostProcess(
                [*private, _tool("sh"), "-c", _script(root, binds, argv)],
                launch,
                CLEAN | variables,
                recorded=argv,
                folder=root,
                meanings={
                    SETUP_FAILED: "the chroot could not be set up; the log says which mount failed"
                },
                undo=undo,
            )


def _script(root: Path, binds: Sequence[Place], argv: Sequence[str]) -> str:
    """Shell text that mounts everything and becomes the command; every word is quoted."""
    mount, quote = _tool("mount"), shlex.quote
    lines = []
    for bind in binds:
        target = quote(below(root, bind.target))
        recursive = "--rbind" if bind.source in SYSTEM else "--bind"
        lines.append(
            f"{mount} {recursive} {quote(bind.source)} {target} || exit {SETUP_FAILED}"
        )
        if bind.read_only:
            lines.append(f"{mount} -o remount,bind,ro {target} || exit {SETUP_FAILED}")
    # The command starts in its folder; `chroot` itself changes to `/`.
    enter = ["/bin/sh", "-c", f'cd {INSIDE_WORKDIR} && exec "$@"', "sh", *argv]
    lines.append("exec " + shlex.join([_tool("chroot"), str(root), *enter]))
    return "\n".join(lines)


def may_mount() -> bool:
    """Whether a private mount namespace with a mount in it can be made: tried, since capabilities hide in many ways."""
    argv = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "mount",
        "--bind",
        "/tmp",  # noqa: S108
        "/tmp",  # noqa: S108
    ]
    return (
        os.geteuid() == 0
        and subprocess.run(argv, capture_output=True, check=False).returncode == 0
    )


def _tool(name: str) -> str:
    """By its full path: the matrix may set another PATH for the command. What is missing is an obstacle."""
    return shutil.which(name) or name
