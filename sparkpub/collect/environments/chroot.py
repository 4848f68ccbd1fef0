"""In another root file system of the same machine: no container, no new namespaces but one for mounts.

The mounts are made in a mount namespace that lives as long as the run's processes. When the last one ends the
kernel undoes them, whatever became of the collector; nobody outside ever sees them. Only mount points that had to
be created in the root file system need undoing by hand: they are noted before they are made.
"""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath

from sparkpub.collect import state, workdir
from sparkpub.collect.environments.base import (
    INSIDE_WORKDIR,
    Environment,
    Launch,
    Obstacle,
    missing_sources,
    resolved,
    through_binds,
)
from sparkpub.collect.environments.host import HostProcess, reap
from sparkpub.plan.environments import ChrootOptions, Place
from sparkpub.record.errors import CollectError

CLEAN = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}
"""What a command in a chroot gets besides its own variables; nothing of the operator's environment."""
SYSTEM = ("/proc", "/sys", "/dev")
_NOTES = "mountpoints.json"


class Chroot(Environment):
    """Commands run under another root, as root, with a clean environment."""

    def obstacles(
        self, options: ChrootOptions, models: Sequence[str] = ()
    ) -> Sequence[Obstacle]:
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
        root = Path(options.rootfs)
        if not root.is_dir():
            return [
                *found,
                Obstacle(
                    f"no root file system {root}",
                    "correct rootfs: or unpack the image there",
                ),
            ]
        inside = [
            Obstacle(
                f"no model at {path} in {root}",
                "bind its folder: binds: [/host:/inside:ro]",
            )
            for path in models
            if self.visible(path, options) == path
            and not Path(_below(root, path)).exists()
        ]
        return [*found, *missing_sources(options.binds, models), *inside]

    def inherited(self, options: ChrootOptions) -> Mapping[str, str]:  # noqa: ARG002
        """A minimal environment; nothing of the operator's."""
        return CLEAN

    def visible(self, path: str, options: ChrootOptions) -> str:
        """Through the longest bind that covers the path, else below the root file system, else unchanged."""
        inside = through_binds(path, options.binds)
        if inside == path and PurePosixPath(path).is_relative_to(options.rootfs):
            return str(
                PurePosixPath("/") / PurePosixPath(path).relative_to(options.rootfs)
            )
        return inside

    def launch(self, launch: Launch, options: ChrootOptions) -> HostProcess:
        """Start the command in a private mount namespace, with everything mounted first."""
        argv, variables = resolved(launch, options, INSIDE_WORKDIR, "python3")
        root = Path(options.rootfs).resolve()
        binds = [
            *(Place(name, name) for name in SYSTEM),
            *options.binds,
            Place(str(launch.workdir.resolve()), INSIDE_WORKDIR),
        ]
        admitted = workdir.admit(launch.workdir, _user(root, options))
        made = _make_mountpoints(root, binds)
        try:
            private = (_tool("unshare"), "--mount", "--propagation", "private")
            return HostProcess(
                [*private, _tool("sh"), "-c", _script(root, binds, options, argv)],
                launch,
                CLEAN | variables,
                recorded=argv,
                folder=root,
                admitted=admitted,
                meanings={
                    SETUP_FAILED: "the chroot could not be set up; the log says which mount failed"
                },
                undo=partial(_remove_mountpoints, made),
            )
        except BaseException:
            _remove_mountpoints(made)
            raise

    def reap(self) -> Sequence[str]:
        """End processes of dead collectors, with which their mounts go, and remove created mount points."""
        return [
            *reap(),
            *(f"removed mount point {path}" for path in _remove_mountpoints(_noted())),
        ]


def _user(root: Path, options: ChrootOptions) -> int | None:
    """The user of this machine as whom the command runs: ids are the same under another root, names are its own."""
    passwd = ""
    with suppress(OSError, UnicodeDecodeError):
        passwd = Path(_below(root, "/etc/passwd")).read_text(encoding="utf-8")
    return workdir.user_number(options.user, passwd)


SETUP_FAILED = 125
"""Exit status of the script before the command starts, as `docker run` and `chroot` use it."""


def _script(
    root: Path, binds: Sequence[Place], options: ChrootOptions, argv: Sequence[str]
) -> str:
    """Shell text that mounts everything and becomes the command; every word is quoted."""
    mount, quote = _tool("mount"), shlex.quote
    lines = []
    for bind in binds:
        target = quote(_below(root, bind.target))
        recursive = "--rbind" if bind.source in SYSTEM else "--bind"
        lines.append(
            f"{mount} {recursive} {quote(bind.source)} {target} || exit {SETUP_FAILED}"
        )
        if bind.read_only:
            lines.append(f"{mount} -o remount,bind,ro {target} || exit {SETUP_FAILED}")
    # The command starts in its folder; `chroot` itself changes to `/`.
    enter = ["/bin/sh", "-c", f'cd {INSIDE_WORKDIR} && exec "$@"', "sh", *argv]
    user = ["--userspec", options.user] if options.user is not None else []
    lines.append("exec " + shlex.join([_tool("chroot"), *user, str(root), *enter]))
    return "\n".join(lines)


def _below(root: Path, target: str) -> str:
    """The host's path of a place inside, with links in it followed inside: an absolute link must not lead out."""
    place = root
    parts = list(PurePosixPath(target).parts[1:])
    links = 0
    while parts:
        part = parts.pop(0)
        if part == "..":
            place = place if place == root else place.parent
            continue
        place = place / part
        if place.is_symlink():
            links += 1
            if links > 40:
                raise CollectError(
                    "too many links",
                    where=f"{target} in {root}",
                    remedy="correct binds:",
                )
            to = place.readlink()
            place = root if to.is_absolute() else place.parent
            parts = [piece for piece in to.parts if piece != "/"] + parts
    return str(place)


def _make_mountpoints(root: Path, binds: Sequence[Place]) -> list[Path]:
    """Create mount points that are missing, and note them first so that a crash cannot leave them unknown."""
    missing: list[tuple[Path, bool]] = []
    for bind in binds:
        target = Path(_below(root, bind.target))
        if not target.exists():
            missing += [
                (folder, False)
                for folder in reversed(target.parents)
                if not folder.exists()
            ]
            missing.append((target, Path(bind.source).is_file()))
    missing = list(dict.fromkeys(missing))
    if missing:
        _note([*_noted(), *(path for path, _ in missing)])
    for path, is_file in missing:
        try:
            if is_file:
                path.touch()
            else:
                path.mkdir(exist_ok=True)
        except OSError as error:
            what, remedy = (
                f"a mount point cannot be created: {error.strerror}",
                "create it or correct binds:",
            )
            raise CollectError(what, where=str(path), remedy=remedy) from None
    return [path for path, _ in missing]


def _remove_mountpoints(paths: Sequence[Path]) -> list[Path]:
    """Remove created mount points that are empty, deepest first; says which."""
    removed = []
    for path in sorted(set(paths), reverse=True):
        with suppress(OSError):
            if path.is_dir():
                path.rmdir()
            elif path.stat().st_size == 0:
                path.unlink()
            else:
                continue
            removed.append(path)
    if paths:
        _note([path for path in _noted() if path not in paths or path.exists()])
    return removed


def _noted() -> list[Path]:
    try:
        return [Path(text) for text in json.loads(state.read(_NOTES) or "[]")]
    except ValueError:
        return []


def _note(paths: Sequence[Path]) -> None:
    state.write(_NOTES, json.dumps([str(path) for path in paths]) if paths else None)


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
