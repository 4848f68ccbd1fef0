"""One run, one record: the unit on disk.

A record holds facts: what was requested, what was observed, how long everything took, and what evidence
lies beside it. Opinions (is it an outlier, does it fit the machine) are computed later, by `checks`.

`schema_version` 1 is the first and only one."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)
from pydantic.dataclasses import dataclass

from sparkpub.record import outside
from sparkpub.record.load import Load
from sparkpub.record.metrics import METRICS, TAKEN, Metric, declared, slug
from sparkpub.record.web import Address

SCHEMA_VERSION = 1

Status = Literal["ok", "failed", "timeout", "interrupted", "invalid"]
Source = Literal["log", "report", "sampler", "published"]


def _no_page(key: str) -> str:
    if key == "index":
        raise ValueError("index is the name of a page; choose another")
    return key


Key = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,62}$"),
    AfterValidator(_no_page),
]
"""A short name of a campaign, model, environment or workload: safe in file names, addresses and HTML."""
RunId = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,200}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
LONGEST_TEXT = 5000
"""Characters of any text in a record, a campaign or a matrix."""
Title = Annotated[str, StringConstraints(min_length=1, max_length=300)]
"""What stands in headings, tables and drawings."""
Unit = Annotated[str, StringConstraints(max_length=40)]
MetricName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
Measured = Annotated[
    float,
    Field(ge=-outside.LARGEST, le=outside.LARGEST, allow_inf_nan=False),
    AfterValidator(outside.figure),
]
"""0, or a figure whose size arithmetic can bear: its squares and quotients are numbers, too."""
Amount = Annotated[Measured, Field(ge=0)]
PositiveAmount = Annotated[Measured, Field(gt=0)]
"""An amount that is not 0."""
Whole = Annotated[int, Field(ge=0, lt=outside.WHOLE_BELOW)]
Count = Annotated[int, Field(gt=0, lt=outside.WHOLE_BELOW)]
Seed = Annotated[int, Field(gt=-outside.WHOLE_BELOW, lt=outside.WHOLE_BELOW)]
RUNS_BELOW = 10**6
"""Iterations of a cell, and places in a plan: a hundred times what one repository is made for."""
Iteration = Annotated[int, Field(gt=0, lt=RUNS_BELOW)]
Position = Annotated[int, Field(ge=0, lt=RUNS_BELOW)]
Duration = Annotated[float, Field(ge=0, le=1e8, allow_inf_nan=False)]
"""Seconds, of three years at most: a run may take one, and clocks and dates overflow far beyond it."""
MatrixOptions = Annotated[dict[str, Any], AfterValidator(outside.bounded)]
"""In the vocabulary of the matrix."""


_KNOWN = ConfigDict(
    extra="forbid",
    allow_inf_nan=False,
    str_max_length=LONGEST_TEXT,
    defer_build=True,  # a command that reads no record does not wait for it
)
STRICT = ConfigDict(**_KNOWN, strict=True)
"""An unknown field is an error. What a run has dozens of is a dataclass with slots, a fifth of the size of a model."""


_GIVEN: set[str] = set()


class Strict(BaseModel):
    """Immutable, and an unknown field is an error."""

    model_config = ConfigDict(**STRICT, frozen=True)

    def model_post_init(self, _context: object) -> None:
        """Nobody asks which fields were given, and the sets of their names are a third of a record."""
        object.__setattr__(self, "__pydantic_fields_set__", _GIVEN)


class Declared(BaseModel):
    """What people write: immutable, and an unknown key is an error. The string under a field says what it means."""

    model_config = ConfigDict(**_KNOWN, frozen=True, use_attribute_docstrings=True)


_FIRST_YEAR, _LAST_YEAR = 1970, 2261
"""Of a time: where UNIX time begins, and the last year that nanoseconds in 64 bits reach."""


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Moment:
    """A point in time. `zone` is "unknown" where the source recorded a local clock without its zone."""

    value: str
    zone: Literal["utc", "unknown"]

    @model_validator(mode="after")
    def _consistent(self) -> "Moment":
        year = datetime.fromisoformat(self.value).year
        if not _FIRST_YEAR <= year <= _LAST_YEAR:
            raise ValueError(f"the year {year} is not {_FIRST_YEAR} to {_LAST_YEAR}")
        if (self.zone == "utc") != self.value.endswith("Z"):
            raise ValueError("a time ends in Z exactly when its zone is utc")
        return self

    @classmethod
    def at(cls, moment: datetime) -> "Moment":
        """From a datetime in UTC, to the second."""
        return cls(value=moment.strftime("%Y-%m-%dT%H:%M:%SZ"), zone="utc")

    @property
    def compact(self) -> str:
        """The form used in file names: `20251108T195154`, with a Z only where UTC is known."""
        return re.sub(r"[-:]|\.\d+", "", self.value)


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class MetricValue:
    """A value with its unit and where it was read. `value` is null only with a `reason`.

    `label` and `direction` are set exactly where the matrix, or the mapping of a table, declared a metric of its own;
    `definition` says what that is.
    """

    value: Measured | None
    unit: Unit
    source: Source
    reason: str | None = None
    label: Title | None = None
    direction: Literal["higher", "lower", "neither"] | None = None
    definition: Title | None = None

    @model_validator(mode="after")
    def _null_has_reason(self) -> "MetricValue":
        if (self.value is None) == (self.reason is None):
            raise ValueError("a null value needs a reason, and a value has none")
        return self


class Spread(Strict):
    """How far the repetitions behind a metric lie apart, of results that give their mean and deviation alone."""

    repetitions: Count | None
    """Null where the results do not say it."""
    deviation: Amount
    """Standard deviation, in the metric's unit."""
    divisor: Literal["n", "n-1"] | None
    """What the sum of squares was divided by; null where it is not known."""


class Architecture(Strict):
    """Facts about a model, each null where nothing said it. Bytes are bytes, not GB.

    `source` names the best authority that was there, in this order: log, config.json, matrix, catalogue.
    """

    source: Literal["log", "config.json", "matrix", "catalogue"]
    model_type: str | None = None
    parameters: Count | None = None
    active_parameters: Count | None = None
    weight_bytes: Count | None = None
    dense_bytes_per_step: Count | None = None
    """Bytes read in each decode step whatever the batch: all but routed experts and input embedding."""
    expert_bytes: Whole | None = None
    """Bytes of all routed experts together; 0 for a dense model."""
    experts: Count | None = None
    experts_per_token: Count | None = None
    kv_bytes_per_token: Count | None = None
    layers: Count | None = None
    hidden_size: Count | None = None
    attention_heads: Count | None = None
    kv_heads: Count | None = None
    head_dim: Count | None = None
    dtype: str | None = None
    quantization: str | None = None
    config_sha256: Sha256 | None = None
    weights_sha256: Sha256 | None = None
    """Of the weight index (safetensors index or the list of weight files with their sizes)."""


class Requested(Strict):
    """What the matrix asked for."""

    model_id: Title
    model_path: str | None = None
    random_weights: bool = False
    architecture: Architecture | None = None
    workload: MatrixOptions
    """The workload's options in the vocabulary of the matrix, `type` included."""
    environment: MatrixOptions
    """The environment's options in the vocabulary of the matrix, `type` included."""
    load: Load | None = None
    """What was asked of the engine, in the vocabulary of all tools; null in records of before it was written there."""
    disputed: dict[str, str] = {}
    """Options on which the sources disagree: option to an explanation."""


class Observed(Strict):
    """What the run itself showed. A field is null where nothing in the run says it."""

    engine: str | None = None
    engine_version: str | None = None
    model_path: str | None = None
    random_weights: bool | None = None
    parameters: Count | None = None
    weight_bytes: Count | None = None
    kv_bytes_per_token: Count | None = None
    config_sha256: Sha256 | None = None
    model_type: str | None = None
    layers: Count | None = None
    dtype: str | None = None
    kv_cache_dtype: str | None = None
    quantization: str | None = None
    device: str | None = None
    device_total_gib: Amount | None = None
    requests: Whole | None = None
    input_tokens_mean: Amount | None = None
    output_tokens_mean: Amount | None = None
    batch_size: Count | None = None
    concurrency_mean: Amount | None = None
    speculative_decoding: bool | None = None
    measured_seconds: Duration | None = None
    settings: dict[str, str] = {}
    """Further settings in the engine's own words (load_format, attention backend, …)."""


class Analysis(Strict):
    """What the matrix declared of the analysis when the run was measured: the metrics that the campaign is about, and
    the equivalence margin in percent of the baseline."""

    primary: tuple[MetricName, ...]
    margin_percent: PositiveAmount


class Plan(Strict):
    """Where the run stood in the campaign."""

    position: Position
    """0-based position in the planned order; for imports, in order of time."""
    order: Literal["interleaved", "random", "blocked", "as-published"]
    seed: Seed | None = None
    attempt: Iteration = 1
    analysis: Analysis | None = None
    """Null for imports, and for runs measured before it was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Reading:
    """One sensor value while a gate waited. `value` is null where the sensor could not be read."""

    at_seconds: Duration
    value: Measured | str | bool | None


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Gate:
    """One condition before a run: what was wanted, what was read, and how long it took.

    `met` is null where the sensor is unreadable; then `reason` says why. It never passes silently.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
    wanted: Measured | str | bool | None
    unit: str = ""
    met: bool | None
    waited_seconds: Duration
    readings: tuple[Reading, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Phase:
    """A named stretch of the run (load, warmup, measure), in seconds since its start."""

    name: str
    start_seconds: Duration
    end_seconds: Duration


class Event(Strict):
    """Something noted while the run was on: a throttle, a foreign process, a kernel or driver message."""

    at_seconds: Duration | None
    kind: Literal[
        "throttle",
        "foreign-process",
        "slow-clock",
        "leak",
        "xid",
        "oom",
        "kernel",
        "memory-floor",
        "timeout",
        "note",
    ]
    text: str


class Gpu(Strict):
    """One GPU as the driver describes it. `id` is a salted hash of its UUID, `index` its number among the machine's
    GPUs, as NVML counts them."""

    name: str
    index: Whole | None = None
    id: str | None = None
    memory_total_gib: Amount | None = None
    compute_capability: str | None = None
    vbios: str | None = None
    power_limit_watt: Amount | None = None
    power_default_watt: Amount | None = None
    """The limit that the GPU has where nobody sets one."""
    clock_max_sm_mhz: Amount | None = None
    mig: bool | None = None
    ecc: bool | None = None


class Machine(Strict):
    """The machine measured. `id` is a salted hash, `kind` a key of the machine catalogue or null."""

    id: str | None = None
    boot: str | None = None
    """Salted hash of the kernel's id of this boot: machines that share it are containers of one host."""
    kind: str | None = None
    count: Count | None = None
    """How many machines of this kind served the model together; null where nothing says it."""
    arch: str | None = None
    os: str | None = None
    kernel: str | None = None
    cpu: str | None = None
    cpu_count: Count | None = None
    memory_total_gib: Amount | None = None
    unified_memory: bool | None = None
    gpus: tuple[Gpu, ...] = ()
    """Those that the run's processes used, where several are there."""
    gpus_there: Count | None = None
    """How many GPUs the run could have used; null for one."""
    driver: str | None = None
    cuda_driver: str | None = None
    firmware: str | None = None
    cgroup: Literal["v1", "v2", "hybrid", "none"] | None = None
    power_mode: str | None = None
    governor: str | None = None
    """What sets the clock of the processors: `performance`, `powersave`."""
    clocks_locked_mhz: Amount | None = None
    gpu_slowdown_celsius: float | None = None
    """From where the driver slows the GPU down."""


class Container(Strict):
    """The container that really ran, as the engine reported it."""

    engine: str
    engine_version: str | None = None
    api_version: str | None = None
    runtime: str | None = None
    runtime_version: str | None = None
    toolkit_version: str | None = None
    cgroup_driver: str | None = None
    cgroup_version: str | None = None
    image: str
    image_id: str
    digests: tuple[str, ...] = ()
    oom_killed: bool | None = None
    error: str | None = None


class Isolation(Strict):
    """What kept a run apart from the rest of the machine, in words."""

    control_group: str
    """Where the run was charged, or why it had no control group of its own."""
    work_folder: str
    """Who could write to the folder in which the command left its results."""


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Memory:
    """The machine's memory at one moment, from /proc/meminfo and NVML, in GiB."""

    total_gib: Amount
    free_gib: Amount
    available_gib: Amount
    cached_gib: Amount
    shmem_gib: Amount
    swap_used_gib: Amount
    gpu_used_gib: Amount | None = None
    cgroup_gib: Amount | None = None
    processes_pss_gib: Amount | None = None


class MemoryLedger(Strict):
    """Where memory went: before the run, and at the sample with the least MemAvailable."""

    baseline: Memory
    peak: Memory


_PACKAGES: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
"""Hundreds are in an environment, and the same in all its runs."""


class Reproducibility(Strict):
    """What somebody else needs to run it again."""

    sparkpub_version: str
    sparkpub_commit: str | None = None
    sparkpub_clean: bool | None = None
    python: str | None = None
    packages: Annotated[
        dict[str, str],
        AfterValidator(lambda found: _PACKAGES.setdefault((*found.items(),), found)),
    ] = {}
    """`pip freeze` of the environment measured: name to version."""
    packages_unavailable: str | None = None
    variables: dict[str, str] = {}
    """Environment variables of the run, by allow-list."""
    other_variables: tuple[str, ...] = ()
    """The names of all others that reached the run, but for those that tell of a secret; their values stay private."""
    seeds: dict[str, Seed] = {}


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Evidence:
    """A file beside the record. `path` is relative to the record's folder and stays in it."""

    role: Literal[
        "log", "telemetry", "report", "requests", "iterations", "original", "output"
    ]
    path: Annotated[
        str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,220}$")
    ]
    sha256: Sha256
    bytes: Whole
    truncated: bool = False


class Origin(Strict):
    """Where an imported figure comes from."""

    title: str
    author: str | None = None
    url: Address | None = None
    commit: str | None = None
    file: str | None = None
    licence: str | None = None


class Record(Strict):
    """One run of one cell. See the fields' own types for units and for what null means."""

    schema_version: Literal[1] = 1
    run_id: RunId
    campaign: Key
    model: Key
    environment: Key
    workload: Key
    iteration: Iteration
    repeat_of: RunId | None = None
    specification: Sha256 | None = None
    """Fingerprint of the cell as declared; null for imports without a matrix."""
    status: Status
    status_reason: str | None = None
    plan: Plan
    started: Moment
    ended: Moment | None = None
    duration_seconds: Duration | None = None
    """Monotonic, from launch to exit."""
    argv: tuple[str, ...] = ()
    exit_code: int | None = None
    requested: Requested
    observed: Observed = Observed()
    metrics: dict[MetricName, MetricValue]
    samples: dict[MetricName, tuple[Measured, ...]] = {}
    """Metrics measured several times within the run: each measurement in order, in the metric's unit. The metric is
    their mean."""
    spreads: dict[MetricName, Spread] = {}
    """Metrics that are a mean over repetitions of which no more is known than their deviation."""
    gates: tuple[Gate, ...] = ()
    phases: tuple[Phase, ...] = ()
    events: tuple[Event, ...] = ()
    machine: Machine = Machine()
    container: Container | None = None
    isolation: Isolation | None = None
    memory: MemoryLedger | None = None
    reproducibility: Reproducibility | None = None
    evidence: tuple[Evidence, ...] = ()
    unavailable: dict[str, str] = {}
    """What is not there and why: field or evidence role to reason."""
    origin: Origin | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "Record":
        problems = [
            problem
            for name, value in self.metrics.items()
            for problem in metric_problems(name, value)
        ]
        if self.status != "ok" and not self.status_reason:
            problems.append(f"status: {self.status} needs a status_reason")
        if self.status == "ok" and self.exit_code not in (0, None):
            problems.append(
                f"exit_code: {self.exit_code} cannot be a run with status ok"
            )
        problems += [
            f"samples.{name}: not a metric of the run"
            for name in self.samples
            if name not in self.metrics
        ]
        problems += [
            f"spreads.{name}: not a metric of the run, or one with samples"
            for name in self.spreads
            if name not in self.metrics or name in self.samples
        ]
        names = [item.path for item in self.evidence]
        if len(names) != len(set(names)):
            problems.append("evidence: two entries share a path")
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def cell(self) -> tuple[str, str, str]:
        """(model, environment, workload)."""
        return (self.model, self.environment, self.workload)

    @property
    def stem(self) -> str:
        """The record's file name without suffix: an address, never parsed back. It is the run's id without the
        campaign, where the id begins with that."""
        stem = self.run_id.removeprefix(f"{self.campaign}-")
        if stem != self.run_id:
            return stem
        return stem_of(self.cell, self.iteration, self.started)

    def value(self, metric: str) -> float | None:
        """The value of a metric in its own unit; None where absent or not available."""
        found = self.metrics.get(metric)
        return None if found is None else found.value

    def file(self, role: str) -> Evidence | None:
        """The first piece of evidence in that role."""
        return next((item for item in self.evidence if item.role == role), None)


def metric_problems(name: str, value: MetricValue) -> list[str]:
    """What is wrong with a metric's name, unit or range, in words that name the field."""
    known = METRICS.get(name)
    where = f"metrics.{name}"
    if known is None:
        if value.label is None or value.direction is None:
            return [
                f"{where}: unknown metric; a metric of one's own needs label and direction"
            ]
        if slug(name) in TAKEN:
            return [f"{where}: would have the address of another page: {slug(name)}"]
        return []
    if (value.label, value.direction, value.definition) != (None, None, None):
        return [
            f"{where}: label, direction and definition are fixed for a known metric"
        ]
    if value.unit != known.unit:
        return [f"{where}.unit: {value.unit!r} should be {known.unit!r}"]
    if value.value is not None and not known.minimum <= value.value <= known.maximum:
        return [
            f"{where}.value: {value.value} is outside {known.minimum}…{known.maximum} {known.unit}"
        ]
    return []


def stem_of(cell: tuple[str, str, str], iteration: int, started: Moment) -> str:
    """How the file names of a run of a cell (model, environment, workload) begin."""
    model, environment, workload = cell
    return f"{environment}_{model}_{workload}_iter{iteration:02d}_{started.compact}"


def metric_of(name: str, value: MetricValue) -> Metric:
    """The definition behind a metric value: the registry's, or the one the matrix declared."""
    known = METRICS.get(name)
    if known is not None:
        return known
    return declared(
        name,
        value.unit,
        value.direction or "neither",
        value.label or name,
        value.definition,
    )
