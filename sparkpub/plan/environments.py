"""Where a workload can run, as a matrix declares it: the options of every kind of environment.

What is done with them is `sparkpub.collect.environments`; a kind there has the name it has here.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from sparkpub.plan.durations import Seconds
from sparkpub.plan.options import TypedOptions
from sparkpub.record.record import Declared
from sparkpub.record.telemetry import VISIBLE

# A matrix as published has `<home>` in place of home folders.
_BIND = re.compile(
    r"(?P<source>(?:/|<home>)[^:]*):(?P<target>(?:/|<home>)[^:]*)(?::(?P<mode>ro|rw))?"
)


def _variable(name: str) -> str:
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None:
        raise ValueError(f"{name!r} is not the name of an environment variable")
    return name


Variable = Annotated[str, AfterValidator(_variable)]
"""The name of an environment variable."""


@dataclass(frozen=True)
class Place:
    """A host folder or file made visible inside."""

    source: str
    target: str
    read_only: bool = False


def _place(value: Any) -> Any:
    if isinstance(value, Place):
        return value
    found = _BIND.fullmatch(str(value))
    if found is None:
        raise ValueError(
            f"{value!r} is not a bind; write /host/path:/inside/path or /host/path:/inside/path:ro"
        )
    source, target = (found[side].rstrip("/") or "/" for side in ("source", "target"))
    return Place(source, target, found["mode"] == "ro")


Bind = Annotated[Place, BeforeValidator(_place, json_schema_input_type=str)]
"""In the matrix `/host/path:/inside/path[:ro|rw]`, as Docker spells it."""


class Server(Declared):
    """A server that lives for several runs: it is started once, and the clients of these runs measure it.

    - Before a run its command is filled in. A server that runs with this command in this environment is used again; any
      other is stopped first. It is ready when `health` answers with status 200.
    - The log of each run begins with what the server printed until then, so that every run proves which model was
      loaded; what it prints during the run follows, and then what the client prints.
    - The first run served has the time from launch to health as its metric `server_start_seconds`. Each run names its
      server start in `observed.settings["server"]`.
    - The client of a run is the workload's own command in the same environment. Where that is a container, the client
      is a second one of the same image in the network of the first, so that both find the server on 127.0.0.1; the
      collector asks for its health at the container's address: without `network: host` it has to listen on 0.0.0.0.
    - The server is stopped when the runs are over, the environment or model changes, or a run fails or times out.
    """

    argv: Annotated[tuple[str, ...], Field(min_length=1)]
    """The server and its arguments, word by word. `{model_path}`, `{model_id}`, `{load_format}` (dummy for random
    weights, else auto), `{seed}` and `{port}` are filled in; with `{iteration}` each iteration gets a new server."""
    port: Annotated[int, Field(ge=1024, le=65535)] = 8137
    """TCP port on 127.0.0.1."""
    health: Annotated[str, Field(pattern=r"^/")] = "/health"
    """What answers with status 200 once the server is ready."""
    ready_timeout: Seconds = 900.0
    """How long the server may take until it is ready, in seconds."""
    client: Literal["inside", "host"] = "inside"
    """Where the clients run: in the same environment, or on the host, for an image that has none. On the host, the
    environment has to share its network."""

    @property
    def url(self) -> str:
        """Where clients find the server."""
        return f"http://127.0.0.1:{self.port}"


class RecipeSource(Declared):
    """The recipe that an environment was made of."""

    file: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    left_out: tuple[str, ...] = ()
    """Parts of it that have no effect here."""


class LaunchOptions(TypedOptions):
    """An environment's options in the matrix; an unknown key is an error. Every option has an effect."""

    env: Mapping[Variable, str] = Field(default_factory=dict)
    """Variables of the command, besides the workload's own."""
    python: str | None = None
    """The Python interpreter of the environment; None for its default."""
    server: Server | None = None
    """A server that lives for several runs, and that workloads measure as its clients; its options stand under `server`
    below."""

    @property
    def gpu_indices(self) -> Sequence[int] | Literal["all"] | None:
        """The GPUs of the machine that runs use, by index; None where the options do not say."""
        return _indices(self.env.get(VISIBLE, "").split(","))


def _indices(names: Sequence[str]) -> tuple[int, ...] | None:
    """GPUs by index; None where one of them is named otherwise."""
    if not all(name.strip().isdecimal() for name in names):
        return None
    return tuple(int(name) for name in names)


class SharedGpus(LaunchOptions):
    """Options of every environment whose commands see the machine's GPUs as the collector does."""

    gpus: tuple[Annotated[int, Field(ge=0)], ...] | None = None
    """The GPUs that runs use, by the index of `nvidia-smi`: `CUDA_VISIBLE_DEVICES` shows a command these alone. Needed
    on a machine with several GPUs."""

    @property
    def gpu_indices(self) -> Sequence[int] | Literal["all"] | None:
        """What `gpus` names, else what `CUDA_VISIBLE_DEVICES` in `env` does."""
        return super().gpu_indices if self.gpus is None else self.gpus


class HostOptions(SharedGpus):
    """Options of `type: host`. The command inherits the collector's variables; `env` is added to them."""

    type: Literal["host"] = "host"


class RootOptions(SharedGpus):
    """Options of every environment with a root file system of its own in a folder."""

    rootfs: Annotated[str, Field(pattern=r"^(/.|<home>)")]
    """The folder that becomes `/`, for instance an unpacked container image."""
    binds: tuple[Bind, ...] = ()
    """Host folders made visible inside: `/host:/inside[:ro]`."""


class ChrootOptions(RootOptions):
    """Options of `type: chroot`. /proc, /sys and /dev are those of the machine."""

    type: Literal["chroot"] = "chroot"


_GPU_DEVICE = re.compile(r"(?:/dev/nvidia|nvidia\.com/gpu=)(all|\d+)(?::.*)?")
"""A GPU as a device: its file, or its name in CDI."""
Size = (
    Annotated[str, Field(pattern=r"^\d+(\.\d+)?[bkmgBKMG]?$")]
    | Annotated[int, Field(gt=0)]
)
"""Bytes, or a number with a unit as Docker reads it: `60g`, `512m`."""
Processors = Annotated[str, Field(pattern=r"^\d+(-\d+)?(,\d+(-\d+)?)*$")]
"""A list of processors as Docker and the kernel read it: `0-9,12`."""


def _device(text: str) -> str:
    if re.fullmatch(r"/dev/.+|.+/.+=.+", text) is None:
        raise ValueError(
            f"{text!r} is no device; write /dev/nvidia0 or a CDI name such as nvidia.com/gpu=all"
        )
    return text


_MOST_GPUS = 64
"""Of one machine, in another owner's campaign, which may say any number."""


def _named(gpus: Any) -> Any:
    """A number of GPUs, as campaigns of earlier versions have it: the engine gave the first ones."""
    is_number = type(gpus) is int and 0 < gpus <= _MOST_GPUS
    return tuple(map(str, range(gpus))) if is_number else gpus


class DockerOptions(LaunchOptions):
    """Options of `type: docker`: the flags of `docker run` under their own names."""

    type: Literal["docker"] = "docker"
    image: Annotated[str, Field(min_length=1)]
    """The image, by tag, digest or id. It has to be on this machine: it is never pulled."""
    gpus: Annotated[
        Literal["all"] | tuple[str, ...] | None, BeforeValidator(_named)
    ] = None
    """`--gpus`: all, or a list of GPU indices. Needs the NVIDIA container toolkit."""
    devices: tuple[Annotated[str, AfterValidator(_device)], ...] = ()
    """`--device`: `/dev/nvidia0[:/inside[:rwm]]`, or CDI names such as `nvidia.com/gpu=all`."""
    ipc: str | None = None
    """`--ipc`: `host` shares the host's shared memory, `private` gives the container its own."""
    shm_size: Size | None = None
    """`--shm-size`: bytes or a size such as `60g` for /dev/shm; without effect beside `ipc: host`, which takes the
    host's."""
    ulimits: Mapping[str, Annotated[int, Field(ge=-1)]] = Field(default_factory=dict)
    """`--ulimit`, soft and hard alike: `memlock` in bytes (-1: unlimited), `stack` in bytes."""
    binds: tuple[Bind, ...] = ()
    """`--volume`: host folders and files made visible inside, `/host:/inside[:ro]`."""
    network: str | None = None
    """`--network`: `none`, `host` or the name of a network; none: the engine's bridge."""
    cpuset: Processors | None = None
    """`--cpuset-cpus`: the processors that may be used, e.g. `0-9,12`."""
    memory: Size | Literal["unlimited"] | None = None
    """`--memory`: bytes, a size such as `60g`, or `unlimited`; what CUDA allocates is not charged to it, on unified
    memory either."""
    memory_swap: Size | Literal["unlimited"] | None = None
    """`--memory-swap`: memory and swap together, in the same form."""
    cgroup_parent: str | None = None
    """`--cgroup-parent`: the control group under which the container's is made; `/` is the root."""
    privileged: bool = False
    """`--privileged`: every device and capability."""
    user: str | None = None
    """`--user`: name or `uid[:gid]`; none: the image's."""
    entrypoint: str | tuple[str, ...] | None = None
    """`--entrypoint`; the image's own where it is not given, none where it is empty."""
    recipe: RecipeSource | None = None
    """In a matrix file the path of a recipe of sparkrun or Spark Arena, in place of `type` and all that the recipe
    says; options beside it win. What it becomes is written in its place, with the file's name and SHA-256."""

    @property
    def gpu_indices(self) -> Sequence[int] | Literal["all"] | None:
        """What `gpus` or `devices` name."""
        if isinstance(self.gpus, tuple):
            return _indices(self.gpus)
        found = [_GPU_DEVICE.fullmatch(device) for device in self.devices]
        names = [device[1] for device in found if device is not None]
        if self.gpus == "all" or "all" in names:
            return "all"
        return _indices(names) if names else None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        outside = self.server is not None and self.server.client == "host"
        if outside and self.network != "host":
            raise ValueError("clients on the host find the server with network: host")
        return self


class NspawnOptions(RootOptions):
    """Options of `type: nspawn`: a container of systemd-nspawn, without an engine, images or layers. Processes, mounts,
    IPC and /dev are its own; network, users and control groups are those of a run on the host."""

    type: Literal["nspawn"] = "nspawn"
    devices: tuple[Annotated[str, Field(pattern=r"^/dev/.+")], ...] = ()
    """Devices made visible inside, by their paths: `/dev/nvidia0`. Drivers' libraries come from the root file system or
    through `binds`."""
    ulimits: Mapping[str, Annotated[int, Field(ge=-1)]] = Field(default_factory=dict)
    """`--rlimit`, soft and hard alike: `memlock` in bytes (-1: unlimited), `stack` in bytes."""


EnvironmentOptions = Annotated[
    HostOptions | ChrootOptions | NspawnOptions | DockerOptions,
    Field(discriminator="type"),
]
"""The options of any environment, told apart by `type`."""
OPTIONS: dict[str, type[LaunchOptions]] = {
    "host": HostOptions,
    "chroot": ChrootOptions,
    "nspawn": NspawnOptions,
    "docker": DockerOptions,
}
"""`type:` in the matrix -> the options it takes."""
