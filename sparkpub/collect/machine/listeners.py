"""The process that answers at a port of this machine: /proc names the socket, and the processes that hold it open."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sparkpub.collect.machine.processes import everybody, start_ticks

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENING = "0A"
"""A socket's state that waits for connections: `TCP_LISTEN` of the kernel's tcp_states.h, in hexadecimal."""


def listener(port: int) -> int | None:
    """The process that listens at `port`, the oldest where several share the socket; None where none is seen: nobody
    listens, it is in another network namespace, or another user's and we are not root."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    if not sockets:
        return None
    found = [pid for pid in everybody() if sockets & set(_open_files(pid))]
    return min(found, key=lambda pid: int(start_ticks(pid) or 0), default=None)


def _inodes(port: int) -> Iterator[str]:
    """Of the sockets that listen at a port, at any address. Columns as in the kernel's proc_net_tcp.rst."""
    for table in TABLES:
        with suppress(OSError):
            for line in table.read_text().splitlines()[1:]:
                fields = line.split()
                _, _, local_port = fields[1].rpartition(":")
                if fields[3] == LISTENING and int(local_port, 16) == port:
                    yield fields[9]


def _open_files(pid: int) -> Iterator[str]:
    """What the file descriptors of a process lead to; nothing where it ended or may not be looked at."""
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                yield str(descriptor.readlink())
