"""What a test may need from the machine. A marker says it; here is how the machine is asked.

A need that is not met skips the test, visibly. `SPARKPUB_REQUIRE=docker,chroot,browser` forbids that: a need named
there and not met is a failure, so that a machine set up to run everything cannot pass by skipping.
"""

import fcntl
import functools
import gc
import importlib.util
import os
import pickle
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sparkpub.review.checks import Review

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def _docker() -> str | None:
    import docker

    try:
        client = docker.from_env(timeout=5)
        try:
            client.ping()
        finally:
            client.close()
    except docker.errors.DockerException as error:
        return f"no Docker engine answers: {error}"
    return None


def _browser() -> str | None:
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed"
    return None if any(map(shutil.which, BROWSERS)) else "no Chromium on PATH"


def _chroot() -> str | None:
    if os.geteuid() != 0:
        return "needs root"
    missing = [
        tool for tool in ("unshare", "mount", "chroot") if shutil.which(tool) is None
    ]
    if missing:  # a root made by a plain `su` lacks the folders of such programs
        return f"needs {', '.join(missing)} on the PATH"
    found = subprocess.run(
        ["unshare", "--mount", "true"], capture_output=True, text=True, check=False
    )
    return (
        None if found.returncode == 0 else f"no right to mount: {found.stderr.strip()}"
    )


def _nspawn() -> str | None:
    if shutil.which("systemd-nspawn") is None:
        return "needs systemd-nspawn, of Debian's systemd-container"
    return _chroot()


def _gpu() -> str | None:
    import pynvml

    try:
        pynvml.nvmlInit()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        return f"no NVIDIA GPU: {error}"
    return None


def _torch() -> str | None:
    missing = [
        name
        for name in ("torch", "transformers")
        if importlib.util.find_spec(name) is None
    ]
    return f"not installed: {', '.join(missing)}" if missing else None


def _ray() -> str | None:
    return None if importlib.util.find_spec("ray") else "Ray is not installed"


NEEDS: dict[str, Callable[[], str | None]] = {
    "docker": _docker,
    "browser": _browser,
    "chroot": _chroot,
    "nspawn": _nspawn,
    "gpu": _gpu,
    "torch": _torch,
    "ray": _ray,
}


@functools.cache
def unmet(need: str) -> str | None:
    """Why this machine cannot serve a need, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ResourceWarning
        )  # a refused connection of docker-py leaves its socket to gc
        reason = NEEDS[need]()
        gc.collect()
    return reason


@pytest.fixture(scope="session", autouse=True)
def no_clock_is_locked() -> Iterator[None]:
    """No test sets the clocks of a GPU that is really there: it refuses, as one does whose user has no right to."""
    import pynvml

    def refuse(*_: object) -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pynvml, "nvmlDeviceSetGpuLockedClocks", refuse)
        patch.setattr(pynvml, "nvmlDeviceResetGpuLockedClocks", refuse)
        yield


@pytest.fixture(scope="session")
def published_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the campaign `phase1`: 63 runs as somebody published them. For reading only."""
    from tests import published

    return published.write(tmp_path_factory.mktemp("published") / "data")


@pytest.fixture(scope="session")
def committed(tmp_path_factory: pytest.TempPathFactory) -> "Review":
    """The committed campaigns under review. For reading only: one process reviews them for all."""
    from sparkpub.record.settings import DEFAULT_DATA
    from sparkpub.review.checks import review
    from sparkpub.review.dataset import load

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    kept = folder / "committed.pickle"
    with (folder / "committed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            data = load(Path(__file__).parents[1] / DEFAULT_DATA)
            kept.write_bytes(pickle.dumps(review(data)))
    found: Review = pickle.loads(kept.read_bytes())
    return found


def pytest_configure(config: pytest.Config) -> None:
    unknown = set(
        filter(None, os.environ.get("SPARKPUB_REQUIRE", "").split(","))
    ) - set(NEEDS)
    if unknown:
        raise pytest.UsageError(
            f"SPARKPUB_REQUIRE names {', '.join(sorted(unknown))}; there are: {', '.join(NEEDS)}"
        )


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("slow") and "slow" not in item.config.getoption(
        "markexpr"
    ):
        pytest.skip("long form; run it with -m slow")
    required = os.environ.get("SPARKPUB_REQUIRE", "").split(",")
    for need in NEEDS:
        if item.get_closest_marker(need) and (reason := unmet(need)):
            (pytest.fail if need in required else pytest.skip)(reason)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine lock and notes of the test's own: two tests may collect at once, and clean up after nobody else."""
    monkeypatch.setenv("SPARKPUB_STATE", str(tmp_path / "state"))
    return tmp_path / "state"
