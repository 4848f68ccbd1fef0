"""The smallest root that runs the machine's own programs: links and empty folders; /usr is bound into it."""

import io
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

BINDS = ("/usr:/usr:ro",)
"""With these a root below runs the host's programs."""
LINKS = {
    name: f"usr/{name}"
    for name in ("bin", "sbin", "lib", "lib64")
    if Path("/", name).is_symlink()
}
FOLDERS = ("usr", "tmp", "etc")
IMAGE = "sparkpub-test:latest"


def a_rootfs(place: Path) -> Path:
    """A root file system in a folder."""
    for name in FOLDERS:
        (place / name).mkdir(parents=True)
    for name, target in LINKS.items():
        (place / name).symlink_to(target)
    return place


def content(root: Path) -> list[str]:
    """Everything in a folder, by its path there."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def a_tar(passwd: str = "") -> bytes:
    """The same as a tar, for `docker import`, with an /etc/passwd where one is given."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name in FOLDERS:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for name, target in LINKS.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
        if passwd:
            entry = tarfile.TarInfo("etc/passwd")
            entry.size = len(passwd)
            tar.addfile(entry, io.BytesIO(passwd.encode()))
    return content.getvalue()


def mounts() -> list[str]:
    """Mount points of this process's namespace."""
    return [
        line.split()[4]
        for line in Path("/proc/self/mountinfo").read_text().splitlines()
    ]


@contextmanager
def an_engine(
    image: str = IMAGE, tar: bytes | None = None, **more: Any
) -> Iterator[Any]:
    """A client of the Docker engine, which has an image of this root."""
    import docker

    with closing(docker.from_env()) as engine:
        name = image.partition(":")[0]
        content = a_tar() if tar is None else tar
        engine.api.import_image_from_data(
            content, repository=name, tag="latest", **more
        )
        yield engine
