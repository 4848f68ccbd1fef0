"""What a workload is: one benchmark tool's dialect. How to ask, and how to read the answer.

Both halves are pure: `command` starts nothing, `parse` opens nothing. So a parser that is mended reads old
logs anew without a GPU, and the collector, the importers and the check `metric-mismatch` share one reader.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field

from sparkpub.plan.address import ServerAddress, base_of
from sparkpub.plan.environments import Server
from sparkpub.plan.options import TypedOptions
from sparkpub.record.errors import WorkloadError
from sparkpub.record.load import Load
from sparkpub.record.record import MetricValue, Observed, Phase
from sparkpub.tools import reading

WORKDIR = "{workdir}"
"""Stands in `Command.argv` and `Command.variables` for the run's folder as the environment sees it."""
PYTHON = "{python}"
"""Stands in `Command.argv` for the Python interpreter of the environment."""


STOPWATCH = "stopwatch.py"
MEASURING = "sparkpub: measuring"
"""The line that our own payloads print when loading and warming up are over."""


@dataclass(frozen=True)
class RunningServer:
    """A server that runs already, as a matrix names it; `url` without `/v1`."""

    url: str
    model: str | None
    """The model's name on it; None for the one that it serves."""


class Options(TypedOptions):
    """A workload's options in the matrix; an unknown key is an error. Every option has an effect."""

    runs: Annotated[int, Field(ge=1, le=10000)] | None = None
    """Iterations of each cell of this workload; none: as many as `iterations` of the matrix says."""

    @property
    def measures_server(self) -> bool:
        """Whether a run can be a client of the server that an environment keeps."""
        return False

    @property
    def running_server(self) -> RunningServer | None:
        """The server that has to answer before a run starts; None for one of the environment, or none at all."""
        return None

    @property
    def programs(self) -> Mapping[str, str]:
        """Programs of which one has to be installed in the environment, each with the command that installs it; empty
        where the workload's command is the program."""
        return {}

    @property
    def modules(self) -> Mapping[str, str]:
        """Modules that a payload of ours imports, each with the extra of sparkpub that brings it."""
        return {}

    def asked(self) -> dict[str, Any]:
        """What a run is asked for, whether it was written or is a default: option to value."""
        return dict(self)

    def flags(self) -> dict[str, object]:
        """The options as our own payloads take them: `batch_size` as `--batch-size`."""
        return {
            f"--{name.replace('_', '-')}": value
            for name, value in self
            if name not in ("type", "runs", "label")
        }


class ClientOptions(Options):
    """What every client of a server can be told: which one it measures."""

    url: ServerAddress | None = None
    """Address of the server, with or without `/v1`, e.g. `http://127.0.0.1:8000`; none: the server of the
    environment."""
    model: str | None = None
    """The model's name on the server; none: the one that it has loaded, else the first that `/v1/models` lists."""

    @property
    def measures_server(self) -> bool:
        """Unless the address of another server is given."""
        return self.url is None

    @property
    def running_server(self) -> RunningServer | None:
        """The server at `url`."""
        if self.url is None:
            return None
        return RunningServer(base_of(self.url), self.model)


SAID_AT_ONCE: Mapping[str, str] = {"PYTHONUNBUFFERED": "1"}
"""A Python program prints a line when it comes to it, and not when its buffer is full: a server says what it loaded
before the first client comes, and the line that begins the measurement comes with it."""


@dataclass(frozen=True)
class RunCase:
    """One run to prepare. `model_path` is the path as the environment sees it."""

    model_key: str
    model_id: str
    model_path: str | None
    model_config: Mapping[str, Any] | None
    """Contents of a config.json for a model with random weights that has no folder."""
    random_weights: bool
    iteration: int
    seed: int
    workload_key: str = ""
    attempt: int = 1
    server: Server | None = None
    """The server of the environment that this run is a client of."""

    @property
    def prompt_seed(self) -> int:
        """The seed of a client's prompts: the same in every environment, another one for each workload, iteration and
        attempt, so that a server that lives for several runs finds no prompt in its prefix cache."""
        text = f"{self.seed}/{self.workload_key}/{self.iteration}/{self.attempt}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1

    @property
    def server_command(self) -> "Command | None":
        """The command of that server. Two runs share a server exactly if their commands are equal."""
        if self.server is None:
            return None
        return Command(tuple(map(self.filled, self.server.argv)), SAID_AT_ONCE)

    def filled(self, text: str) -> str:
        """Text with `{model_path}`, `{model_id}`, `{load_format}`, `{seed}`, `{iteration}` and `{port}` filled in."""
        load_format, port = "auto", ""
        if self.random_weights:
            load_format = "dummy"
        if self.server is not None:
            port = str(self.server.port)
        known = {
            "{model_path}": self.model_path or "",
            "{model_id}": self.model_id,
            "{load_format}": load_format,
            "{seed}": str(self.seed),
            "{iteration}": str(self.iteration),
            "{port}": port,
        }
        pattern = re.compile("|".join(map(re.escape, known)))
        return pattern.sub(lambda found: known[found[0]], text)

    def server_url(self, url: str | None, tool: str) -> str:
        """The server to measure: at the `url` of the options, else that of the environment. Raises WorkloadError for
        neither."""
        if url is not None:
            return base_of(url)
        if self.server is None:
            raise self.refusal(f"{tool} needs the server's address", "add url:")
        return self.server.url

    def folder(self, tool: str) -> str:
        """`model_path`. Raises WorkloadError where the model has none: a tool would fetch weights from elsewhere."""
        if self.model_path is None:
            where = f"models.{self.model_key}"
            what = f"{tool} needs the model's folder"
            raise WorkloadError(what, where=where, remedy="add path:")
        return self.model_path

    def refusal(self, what: str, remedy: str) -> WorkloadError:
        """What is said of options that make no command."""
        where = f"workloads.{self.workload_key}"
        return WorkloadError(what, where=where, remedy=remedy)


@dataclass(frozen=True)
class Command:
    """What to start. `files` makes the files that are written into the run's folder first; `outputs` (evidence role to
    file name) are read from it afterwards."""

    argv: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Callable[[], Mapping[str, bytes]] = dict
    """Name to content. Who asks for the arguments alone, as a check does, does not pay for a data set of prompts."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    measured_from: str | None = None
    """Regular expression of the line with which the tool says that loading and warming up are over."""
    measured_until: str | None = None
    """Regular expression of the line that the tool prints when the measurement, or a part of it, is over: the last one
    counts. None: it says nothing then, and the measured phase ends after `Observed.measured_seconds`, else with the
    command."""


def flags(values: Mapping[str, object]) -> list[str]:
    """Flag to value as a command line: True is a flag alone, and None and False leave it out."""
    words: list[str] = []
    for flag, value in values.items():
        if value is None or value is False:
            continue
        words.append(flag)
        if value is not True:
            words.append(str(value))
    return words


@dataclass(frozen=True)
class Answer:
    """What a workload's evidence says. `complete` is False where the tool ended without its result, and
    `problems` says in words what is missing, doubtful or contradictory."""

    metrics: Mapping[str, MetricValue]
    observed: Observed = field(default_factory=Observed)
    phases: tuple[Phase, ...] = ()
    phases_epoch: float | None = None
    """UNIX time of the phases' zero by the clock of the machine, where the payload says it."""
    complete: bool = True
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What the evidence says besides, to be kept with the run."""
    samples: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Metric to its repeated measurements within the run, in the order they were made, in the metric's unit."""
    deviations: Mapping[str, float] = field(default_factory=dict)
    """Standard deviations over the requests, as the tool says them: of a distribution in ms, and of `output_tokens`."""
    load: Load | None = None
    """What was asked for, where the report alone says it."""
    series: tuple[float, ...] = ()
    """Milliseconds of each batch or repetition, in the order in which they ran, where the tool kept them."""


def no_answer(problem: str, observed: Observed | None = None) -> Answer:
    """What is said of a tool that ended without its result."""
    return Answer({}, observed or Observed(), complete=False, problems=(problem,))


Parse = Callable[[bytes, Mapping[str, bytes], Any], Answer]
"""What reads merged stdout and stderr, and the output files (role to content), with the options; None for imports."""
AnyOptions = TypeVar("AnyOptions", bound=Options)


@dataclass(frozen=True)
class Workload(Generic[AnyOptions]):
    """One tool: its options in the matrix, the command of one run, and the reader of what it left.

    `parse` takes merged stdout and stderr, the output files (role to content), and the options, None for imports. It
    never raises for what a tool may print: what cannot be read is said in `Answer.problems`.
    """

    options: type[AnyOptions]
    command: Callable[[RunCase, AnyOptions], Command]
    parse: Callable[[bytes, Mapping[str, bytes], AnyOptions | None], Answer]
    printed: Callable[[bytes], Mapping[str, tuple[float, float]]] | None = None
    """What the log says besides the report: metric to value and half a unit of its last digit. Where a report is
    edited and its log is not, they differ."""


def own_answer(
    report: Mapping[str, Any],
    metrics: Mapping[str, MetricValue],
    seen: Any,
    problems: Sequence[str],
    series: Sequence[float] = (),
) -> Answer:
    """What a payload of ours says: every report of theirs carries its phases."""
    return Answer(
        metrics,
        reading.observed(seen),
        reading.phases(report.get("phases")),
        reading.number(report.get("phases_epoch")),
        complete=not problems,
        problems=tuple(problems),
        series=tuple(series),
    )


@cache
def payload(name: str) -> bytes:
    """A script of the folder `payload`: it runs inside the environment and imports nothing of ours but what lies beside
    it."""
    return (Path(__file__).with_name("payload") / name).read_bytes()


def timed_payload(name: str) -> dict[str, bytes]:
    """A script of ours with what all that time themselves share, by file name."""
    return {name: payload(name), STOPWATCH: payload(STOPWATCH)}
