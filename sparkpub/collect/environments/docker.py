"""In a container of a Docker engine, through the Docker SDK.

`DOCKER_HOST` decides which engine. A run never pulls an image: what a night measures is on the machine before its first
run, see `pulled`. Containers are labelled with their collector, so that only orphans of our own are ever removed.
"""

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from sparkpub.collect import workdir
from sparkpub.collect.environments.base import (
    INSIDE_WORKDIR,
    Environment,
    Launch,
    Obstacle,
    Running,
    missing_sources,
    through_binds,
)
from sparkpub.collect.machine import processes
from sparkpub.collect.workdir import SHARED
from sparkpub.plan.address import LOOPBACK
from sparkpub.plan.environments import DockerOptions, Place
from sparkpub.record.errors import CollectError
from sparkpub.record.record import Container, Isolation
from sparkpub.record.telemetry import VISIBLE

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container as DockerContainer

RUN_LABEL, OWNER_LABEL = "sparkpub.run", "sparkpub.collector"


class Docker(Environment[DockerOptions]):
    """Commands run in a container created, watched and removed by the collector."""

    no_container = "the engine gave no facts of it"

    def obstacles(self, models: Sequence[str] = ()) -> Sequence[Obstacle]:
        """No engine, a remote engine, a missing image, missing sources of binds, GPUs that the engine cannot give."""
        options = self.options
        found = missing_sources(options.binds, models)
        try:
            with _engine() as client:
                address = client.api.base_url
                if not address.startswith(("http+docker://", "http+unix://")):
                    what = f"the engine at {address} may be on another machine"
                    remedy = "point DOCKER_HOST at a socket of this machine: sensors are read here"
                    found.append(Obstacle(what, remedy))
                if options.gpus is not None:
                    found += _gpu_obstacles(client)
                _image(client, options.image)
        except CollectError as error:
            found.append(Obstacle(error.what, error.remedy))
        return found

    def inherited(self) -> Mapping[str, str]:
        """What the image sets; empty where the engine does not answer."""
        with suppress(CollectError), _engine() as client:
            attributes = _image(client, self.options.image).attrs
            lines = attributes.get("Config", {}).get("Env") or ()
            return dict(line.split("=", 1) for line in lines if "=" in line)
        return {}

    def visible(self, path: str) -> str:
        """Through the longest bind that covers the path; unchanged where none does, as for a path in the image."""
        return through_binds(path, self.options.binds)

    @property
    def shares_ports(self) -> bool:
        """On the host's network alone."""
        return self.options.network == "host"

    def launch(self, launch: Launch) -> "DockerRun":
        """Create and start a container; its output streams to the run's log."""
        options = self.options
        where = f"image {options.image}"
        remedy = (
            "correct the environment's options, or try the same flags with docker run"
        )
        with ExitStack() as undo:
            client = undo.enter_context(
                _engine("the container cannot be started", remedy, where)
            )
            image = _image(client, options.image)
            argv, variables = self.resolved(launch, INSIDE_WORKDIR, "python3")
            container = client.containers.create(
                image.id, list(argv), **create_arguments(options, launch, variables)
            )
            undo.callback(_removed, container)
            workdir.share(launch.workdir)
            run = DockerRun(client, container, launch, argv, options.image)
            run.after = undo.pop_all()
            return run

    @staticmethod
    def reap() -> Sequence[str]:
        """Remove containers whose collector is dead; nobody else's."""
        said = []
        with suppress(CollectError), _engine() as client:
            for container in client.containers.list(
                all=True, filters={"label": OWNER_LABEL}
            ):
                if processes.abandoned(container.labels[OWNER_LABEL]):
                    container.remove(force=True)
                    said.append(
                        f"removed container {container.short_id} of run {container.labels.get(RUN_LABEL)}"
                    )
        return said


class DockerRun(Running):
    """A started container."""

    def __init__(
        self,
        client: "DockerClient",
        container: "DockerContainer",
        launch: Launch,
        argv: Sequence[str],
        image: str,
    ) -> None:
        super().__init__()
        self.argv = tuple(argv)
        self.isolation = Isolation(
            control_group="the engine's, for this container", work_folder=SHARED
        )
        self._client, self._container, self._image = client, container, image
        self.after = ExitStack()
        """Removes the container, and lets go of the engine."""
        self._ended, self._stopping = threading.Event(), False
        # Attached before the start, so that not one line is missed whatever log driver the engine uses.
        stream = container.attach(stdout=True, stderr=True, stream=True, logs=False)
        try:
            container.start()
        except BaseException:
            _close(stream)
            raise
        container.reload()
        self.container_id = str(container.id)
        self.address = address_of(container.attrs)
        self.pid = int(container.attrs["State"]["Pid"])
        self._pump = threading.Thread(
            target=_pump, args=(stream, launch.log), daemon=True
        )
        self._pump.start()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        """Wait in the engine's own call; a lost engine also ends the wait, and the inspection tells which it was."""
        try:
            with suppress(*_failures()):
                self._container.wait()
        finally:
            self._ended.set()

    def facts(self) -> Container | None:
        """As the engine has them now; None where it does not answer."""
        try:
            self._container.reload()
            return _facts(self._client, self._container, self._image)
        except _failures():
            return None

    def _end(self, timeout: float) -> None:
        if self._ended.wait(max(0.0, timeout)):
            self._pump.join(10)
            self.code, self.error = self._inspected()

    def _stop(self, grace: float) -> str:
        """`docker stop`: SIGTERM, and SIGKILL after `grace` seconds."""
        self._stopping = True
        try:
            self._container.stop(timeout=round(grace))
        except _failures() as error:
            return f"the engine does not end it: {_explained(error)}"
        return "the container did not end after SIGKILL"

    def undo(self) -> None:
        """Remove the container."""
        self.after.close()

    def _inspected(self) -> tuple[int, str | None]:
        """Exit status, out-of-memory flag and error as the engine keeps them. One that is being stopped ends its
        containers, and may no longer answer then."""
        try:
            self._container.reload()
            facts = _facts(self._client, self._container, self._image)
        except _failures() as error:
            lost = f"the engine lost the container: {_explained(error)}"
            return -signal.SIGKILL, lost
        ended = self._container.attrs["State"]
        if ended.get("Running"):
            lost = "the engine lost the container: it was stopped or restarted during the run"
            return -signal.SIGKILL, lost
        code, reason = int(ended["ExitCode"]), facts.error
        limit = self._container.attrs["HostConfig"].get("Memory")
        # An engine on control groups of version 1 sometimes misses the kernel's notice.
        unnoticed = code == 137 and limit and not self._stopping
        if facts.oom_killed or unnoticed:
            reason = reason or "out of memory: ended by the kernel"
        self.container = facts
        return code, reason


def _failures() -> tuple[type[Exception], ...]:
    """What the SDK raises where the engine refuses, and where it is gone."""
    import docker.errors  # noqa: PLC0415 - only where a container is wanted

    return docker.errors.DockerException, OSError


@contextmanager
def _engine(
    what: str = "no Docker engine answers",
    remedy: str = "start it, and check DOCKER_HOST and your permissions",
    where: str = "",
) -> Iterator["DockerClient"]:
    """The engine that DOCKER_HOST names. Raises CollectError, with `what` and the engine's own words, where none
    answers, or where it refuses what is asked within."""
    import docker  # noqa: PLC0415

    try:
        _knock()
        with closing(docker.from_env()) as client:
            yield client
    except _failures() as error:
        said = f"{what}: {_explained(error)}"
        raise CollectError(said, where=where, remedy=remedy) from None


def _removed(container: "DockerContainer") -> None:
    """Leave nothing of a container."""
    with suppress(*_failures()):
        container.remove(force=True, v=True)


def create_arguments(
    options: DockerOptions, launch: Launch, variables: Mapping[str, str]
) -> dict[str, Any]:
    """The keyword arguments of `containers.create` for these options; only what was asked for is set."""
    from docker.types import Mount, Ulimit  # noqa: PLC0415

    binds = [*options.binds, Place(str(launch.workdir.resolve()), INSIDE_WORKDIR)]
    arguments: dict[str, Any] = {
        # Mounts and not volumes: a missing host folder is an error and not a new folder of root's.
        "mounts": [
            Mount(bind.target, bind.source, type="bind", read_only=bind.read_only)
            for bind in binds
        ],
        "environment": dict(variables),
        "labels": {RUN_LABEL: launch.run, OWNER_LABEL: launch.owner},
        "ulimits": [
            Ulimit(name=name, soft=limit, hard=limit)
            for name, limit in options.ulimits.items()
        ],
        "devices": [device for device in options.devices if device.startswith("/")],
        "device_requests": _device_requests(options),
        "working_dir": INSIDE_WORKDIR,
        "ipc_mode": options.ipc,
        "shm_size": options.shm_size,
        "network_mode": _network(options, launch),
        "cpuset_cpus": options.cpuset,
        "mem_limit": _limit(options.memory),
        "memswap_limit": _limit(options.memory_swap),
        "cgroup_parent": options.cgroup_parent,
        "privileged": options.privileged or None,
        "user": options.user,
        "entrypoint": [""] if options.entrypoint == "" else options.entrypoint,
    }
    return {
        name: value
        for name, value in arguments.items()
        if value is not None and value != []
    }


def _limit(size: int | str | None) -> int | str | None:
    """A limit of memory as the engine takes it, where -1 is none."""
    return -1 if size == "unlimited" else size


def _network(options: DockerOptions, launch: Launch) -> str | None:
    """The network of a container: that of the server which it is a client of, so that 127.0.0.1 is the server's."""
    if options.network != "host" and isinstance(launch.server, DockerRun):
        return f"container:{launch.server.container_id}"
    return options.network


def address_of(attributes: Mapping[str, Any]) -> str:
    """Where this machine reaches a container: by its address in the first of its networks; empty where it has none."""
    if attributes["HostConfig"]["NetworkMode"] == "host":
        return LOOPBACK
    networks = attributes["NetworkSettings"].get("Networks") or {}
    for network in networks.values():
        address = network.get("IPAddress")
        if address:
            return str(address)
    return ""


def _device_requests(options: DockerOptions) -> list[Any]:
    from docker.types import DeviceRequest  # noqa: PLC0415

    asked: list[dict[str, Any]] = []
    if options.gpus:
        named = None if options.gpus == "all" else list(options.gpus)
        if named is None and os.environ.get(VISIBLE):
            # The collector was given some of the machine's GPUs, and measures no other.
            named = os.environ[VISIBLE].split(",")
        which = {"count": -1} if named is None else {"device_ids": named}
        asked.append({**which, "capabilities": [["gpu"]]})
    cdi = [device for device in options.devices if not device.startswith("/")]
    if cdi:
        asked.append({"driver": "cdi", "device_ids": cdi})
    return [DeviceRequest(**request) for request in asked]


def pulled(environments: Iterable[object]) -> Iterator[str]:
    """Pull the image of each Docker environment by its tag; a line with the digest of each. Raises CollectError where
    the engine or the registry refuses."""
    names = [item.image for item in environments if isinstance(item, DockerOptions)]
    for name in dict.fromkeys(names):
        remedy = "check the name and the network, or leave --pull out"
        with _engine(f"{name} cannot be pulled", remedy) as client:
            image = client.images.pull(name)
        digests = image.attrs.get("RepoDigests") or [image.id]
        yield f"pulled {name}: {digests[0].rpartition('@')[2]}"


def described() -> str:
    """The engine in one line. Raises CollectError where none answers."""
    with _engine() as client:
        version, info = client.version(), client.info()
    runtimes = ", ".join(sorted(info.get("Runtimes", {})))
    groups = f"cgroup v{info.get('CgroupVersion', '1')} by {info.get('CgroupDriver')}"
    return f"engine {version.get('Version')}, API {version.get('ApiVersion')}, {groups}, runtimes {runtimes}"


def _knock() -> None:
    """Try the engine's socket by itself: refused, the library would leave its own open. Raises OSError."""
    address = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if address.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as knocking:
            knocking.connect(address.removeprefix("unix://"))


def _image(client: "DockerClient", name: str) -> Any:
    import docker.errors  # noqa: PLC0415

    try:
        return client.images.get(name)
    except docker.errors.ImageNotFound:
        remedy = f"docker pull {name}: nothing is pulled during a campaign"
        raise CollectError(
            f"image {name} is not on this machine", remedy=remedy
        ) from None


def _gpu_obstacles(client: "DockerClient") -> list[Obstacle]:
    """Docker needs the toolkit's runtime or CDI."""
    info = client.info()
    if "nvidia" in info.get("Runtimes", {}) or info.get("CDISpecDirs"):
        return []
    remedy = "install nvidia-container-toolkit, or give devices: and binds:"
    return [Obstacle("the engine has no NVIDIA runtime", remedy)]


def _facts(
    client: "DockerClient", container: "DockerContainer", image: str
) -> Container:
    """What really ran, in the engine's words."""
    version, info = client.version(), client.info()
    attributes = container.attrs
    listed = version.get("Components", [])
    parts = {str(part.get("Name")): str(part.get("Version")) for part in listed}
    image_id = str(attributes["Image"])
    runtime = attributes["HostConfig"].get("Runtime") or info.get("DefaultRuntime")
    component = "runc" if runtime == "io.containerd.runc.v2" else runtime
    toolkit = parts.get("nvidia-container-toolkit") or _toolkit_version()
    return Container(
        engine="docker",
        engine_version=version.get("Version"),
        api_version=client.api.api_version,
        runtime=runtime,
        runtime_version=parts.get(component or ""),
        toolkit_version=toolkit,
        cgroup_driver=info.get("CgroupDriver"),
        cgroup_version=info.get("CgroupVersion"),
        image=image,
        image_id=image_id,
        digests=tuple(client.images.get(image_id).attrs.get("RepoDigests") or ()),
        oom_killed=bool(attributes["State"].get("OOMKilled")),
        error=attributes["State"].get("Error") or None,
    )


def _toolkit_version() -> str | None:
    """The version of nvidia-container-toolkit on this machine; None where it is not installed."""
    with suppress(OSError):
        argv = ["nvidia-ctk", "--version"]
        said = subprocess.run(argv, capture_output=True, text=True, check=False)
        if said.returncode == 0 and said.stdout:
            return said.stdout.splitlines()[0].rpartition(" ")[2]
    return None


def _pump(stream: Any, log: Callable[[bytes], object]) -> None:
    try:
        for chunk in stream:
            log(chunk)
    finally:
        _close(stream)


def _close(stream: Any) -> None:
    """The library ends the connection but keeps its file: both must go, or every run leaks one."""
    with suppress(OSError):
        stream.close()
    with suppress(OSError):
        stream._response.raw._fp.fp.close()


def _explained(error: Exception) -> str:
    """An engine's error in one line: its own words, else the system's."""
    said = getattr(error, "explanation", None) or getattr(error, "strerror", None)
    return " ".join(str(said or error).split())[:300]
