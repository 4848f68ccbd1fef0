"""Another root file system of this machine: what environments have in common whose commands run in one.

Mount points that had to be created in it are noted before they are made, and removed when the run is over, by the
next collector where this one died.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeVar

from sparkpub.collect import state
from sparkpub.collect.environments.base import (
    Environment,
    Obstacle,
    missing_sources,
    through_binds,
)
from sparkpub.collect.environments.host import reap
from sparkpub.plan.environments import Place, RootOptions
from sparkpub.record.errors import CollectError

CLEAN = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}
"""What a command under another root gets besides its own variables; nothing of the operator's environment."""
SETUP_FAILED = 125
"""Exit status before the command starts, as `docker run` and `chroot` use it."""
MOST_LINKS = 40
"""Links that a path may lead through, as many as Linux follows."""
_NOTES = "mountpoints.json"


Rooted = TypeVar("Rooted", bound=RootOptions)


class OtherRoot(Environment[Rooted]):
    """Commands run under another root, with a clean environment."""

    def root_obstacles(self, models: Sequence[str]) -> list[Obstacle]:
        """A root file system, models or sources of binds that are not there."""
        root = Path(self.options.rootfs)
        if not root.is_dir():
            remedy = "correct rootfs: or unpack the image there"
            return [Obstacle(f"no root file system {root}", remedy)]
        inside = [
            Obstacle(
                f"no model at {path} in {root}",
                "bind its folder: binds: [/host:/inside:ro]",
            )
            for path in models
            if self.visible(path) == path and not Path(below(root, path)).exists()
        ]
        return [*missing_sources(self.options.binds, models), *inside]

    def inherited(self) -> Mapping[str, str]:
        """A minimal environment; nothing of the operator's."""
        return CLEAN

    def visible(self, path: str) -> str:
        """Through the longest bind that covers the path, else below the root file system, else unchanged."""
        inside = through_binds(path, self.options.binds)
        root, place = self.options.rootfs, PurePosixPath(path)
        if inside == path and place.is_relative_to(root):
            return str(PurePosixPath("/") / place.relative_to(root))
        return inside

    @staticmethod
    def reap() -> Sequence[str]:
        """End processes of dead collectors, with which their mounts go, and remove created mount points."""
        return [
            *reap(),
            *(f"removed mount point {path}" for path in remove_mountpoints(_noted())),
        ]


def below(root: Path, target: str) -> str:
    """The host's path of a place inside, with links in it followed inside: an absolute link must not lead out."""
    place, links = root, 0
    parts = list(PurePosixPath(target).parts[1:])
    while parts:
        part = parts.pop(0)
        if part == "..":
            place = place if place == root else place.parent
            continue
        place = place / part
        if place.is_symlink():
            links += 1
            if links > MOST_LINKS:
                what = f"too many links below {root}"
                raise CollectError(what, where=target, remedy="correct binds:")
            to = place.readlink()
            place = root if to.is_absolute() else place.parent
            parts = [piece for piece in to.parts if piece != "/"] + parts
    return str(place)


def make_mountpoints(root: Path, binds: Sequence[Place]) -> list[Path]:
    """Create mount points that are missing, and note them first so that a crash cannot leave them unknown."""
    missing: dict[Path, None] = {}
    for bind in binds:
        target = Path(below(root, bind.target))
        folders = (*reversed(target.parents), target)
        missing |= dict.fromkeys(path for path in folders if not path.exists())
    if missing:
        _note([*_noted(), *missing])
    for path in missing:
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            what = f"a mount point cannot be created: {error.strerror}"
            remedy = "create it or correct binds:"
            raise CollectError(what, where=str(path), remedy=remedy) from None
    return [*missing]


@contextmanager
def mountpoints(root: Path, binds: Sequence[Place]) -> Iterator[Callable[[], object]]:
    """Mount points that are missing, made for a run that starts within; yields what removes them when it is over."""
    undo = partial(remove_mountpoints, make_mountpoints(root, binds))
    try:
        yield undo
    except BaseException:
        undo()
        raise


def remove_mountpoints(paths: Sequence[Path]) -> list[Path]:
    """Remove created mount points that are empty, deepest first; says which."""
    removed = []
    for path in sorted(set(paths), reverse=True):
        with suppress(OSError):
            path.rmdir()
            removed.append(path)
    if paths:
        _note([path for path in _noted() if path not in paths or path.exists()])
    return removed


def _noted() -> list[Path]:
    return [Path(text) for text in state.read(_NOTES) or []]


def _note(paths: Sequence[Path]) -> None:
    state.write(_NOTES, [str(path) for path in paths])
