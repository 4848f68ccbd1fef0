"""A project while `mkdocs serve` shows it, for the benchmarks that change one of its files."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 300
"""The first build draws every chart."""


def variables(project: Path) -> dict[str, str]:
    """The environment of an installed package: its modules stay compiled. Drawings are kept below the project, not with
    those of other builds."""
    return {
        **os.environ,
        "XDG_CACHE_HOME": str(project / ".cache"),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(project / ".compiled"),
    }


@contextmanager
def served(project: Path, *options: str) -> Iterator[str]:
    """The address of a project while MkDocs serves it; its first page is there."""
    port = _free_port()
    address = f"http://127.0.0.1:{port}/"
    argv = [sys.executable, "-m", "mkdocs", "serve", *options]
    argv += ["--quiet", "--dev-addr", f"127.0.0.1:{port}"]
    with subprocess.Popen(
        argv,
        cwd=project,
        env=variables(project),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            wait_for(address, "<html", START_SECONDS, process)
            yield address
        finally:
            process.terminate()


def wait_for(
    address: str,
    text: str,
    limit: float,
    process: "subprocess.Popen[bytes] | None" = None,
) -> None:
    """Until a page says this. Raises TimeoutError after `limit` seconds, or when the server's `process` has ended."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if process is not None and process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(address, timeout=limit) as answer:
                found = answer.read()
            if text in found.decode():
                return
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.02)
    raise TimeoutError(f"{address} never said {text}")


def _free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
