"""What we intend to measure: YAML -> Matrix.

All mistakes of a matrix are reported at once, each with its line and, for a name, the nearest right one.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    PositiveFloat,
    PositiveInt,
    TypeAdapter,
    ValidationError,
)

from sparkpub.plan import recipes, references
from sparkpub.plan.durations import WRITTEN, Seconds
from sparkpub.plan.environments import EnvironmentOptions
from sparkpub.plan.workloads import WorkloadOptions
from sparkpub.plan.workloads.command import CommandOptions
from sparkpub.record import documents, outside
from sparkpub.record.documents import Lines, suggestion
from sparkpub.record.errors import MatrixError, field_problems
from sparkpub.record.metrics import METRICS, TAKEN, slug
from sparkpub.record.record import (
    Analysis,
    Architecture,
    Declared,
    Key,
    MetricName,
    Record,
    Title,
)
from sparkpub.record.store import canonical_json

PlannedOrder = Literal["interleaved", "random", "blocked"]
Machines = Literal["split", "replicate"]
Percent = Annotated[float, Field(ge=0, le=100)]
START_CELSIUS = 45.0
"""The start temperature that the source's methodology allows at most."""


class Model(Declared):
    """A model to measure. Its folder is `path`; `config` describes one with random weights and no folder."""

    id: Title
    label: Title | None = None
    """What pages call it; None for the name that the id gives."""
    path: str | None = None
    config: dict[str, Any] | None = None
    """A transformers config.json as YAML; the weights are then random, and every page says so."""
    random_weights: bool = False
    architecture: Architecture | None = None
    """Facts for the checks, where neither the run nor the model's folder says them."""

    @property
    def has_random_weights(self) -> bool:
        """Whether it was never trained: what it says is no sense."""
        return self.random_weights or self.config is not None


class Gates(Declared):
    """Conditions before and limits during a run. null switches a gate off."""

    cooldown: Seconds = 300.0
    """Minimum pause since the campaign's last run ended, also across restarts of the collector, in seconds."""
    max_start_temp_celsius: Annotated[float, Field(gt=0, lt=120)] | None = START_CELSIUS
    """Maximum GPU temperature at the start of a run, in °C."""
    max_wait: Seconds = 1800.0
    """How long all gates together may wait before a run, in seconds."""
    max_gpu_temp_celsius: Annotated[float, Field(gt=0, lt=120)] | None = 80.0
    """Hard temperature limit, in °C. A run does not start above it, whatever the other gates allow."""
    max_cpu_percent: Percent | None = 10.0
    """Maximum load of all processors together before a run, in percent."""
    min_free_memory_percent: Percent | None = 90.0
    """Minimum free GPU memory before a run, in percent; with unified memory that of the machine."""
    min_free_disk_gib: Annotated[float, Field(ge=0)] | None = 5.0
    """Minimum free disk space, in GiB."""
    performance_state: Annotated[str, Field(pattern=r"^P\d{1,2}$")] | None = None
    """NVML performance state wanted before a run, e.g. P0. An idle GPU sits in P8, so it is often not met."""
    drop_caches: bool = False
    """Write back and drop the page cache before each run. Needs root."""
    exclusive_gpu: bool = True
    """No other process on the GPU."""
    lock_clocks_mhz: PositiveInt | None = None
    """Lock the SM clock for the campaign, in MHz, and release it afterwards. Needs root."""
    min_available_memory_gib: Annotated[float, Field(ge=0)] | None = None
    """Stop a run if MemAvailable falls below this, in GiB, before the machine hangs; none: 8 on unified memory, else no
    limit."""
    on_unmet: Literal["run", "skip", "stop"] = "run"
    """What to do if a gate is not met: `run` anyway and record it, `skip` the run, or `stop` the campaign. For skip and
    stop, an unreadable sensor counts as not met."""


class TelemetryOptions(Declared):
    """How often the sampler reads its sensors."""

    interval: Annotated[float, WRITTEN, Field(ge=0.02, le=60)] = 1.0


class Outliers(Declared):
    """Repeat runs that Grubbs' test flags: both are kept, and the repeat names the run it repeats."""

    repeat: PositiveInt = 1
    metric: str = "output_throughput_tok_s"


class Exclusion(Declared):
    """Cells left out: every axis named must match."""

    model: Key | None = None
    environment: Key | None = None
    workload: Key | None = None


class Matrix(Declared):
    """A campaign as declared. `environments` and `workloads` hold their options by name, each of its own type."""

    campaign: Key
    title: Title
    models: Annotated[dict[Key, Model], Field(min_length=1)]
    environments: Annotated[dict[Key, EnvironmentOptions], Field(min_length=1)]
    workloads: Annotated[dict[Key, WorkloadOptions], Field(min_length=1)]
    baseline: Key | None = None
    iterations: Annotated[int, Field(ge=1, le=10000)] = 10
    order: PlannedOrder = "interleaved"
    machines: Machines = "split"
    """What several machines do with the plan: `split` measures each model on one of them, which is faster;
    `replicate` has each of them measure everything, which shows whether a finding replicates."""
    seed: int = 42
    exclude: Annotated[tuple[Exclusion, ...], Field(max_length=1000)] = ()
    gates: Gates = Gates()
    timeout: Annotated[float, WRITTEN, Field(gt=0)] = 1800.0
    retries: Annotated[int, Field(ge=0, le=10)] = 1
    repeat_outliers: Outliers | None = None
    telemetry: TelemetryOptions = TelemetryOptions()
    equivalence_margin_percent: Annotated[PositiveFloat, Field(le=100)] = 1.0
    """Differences smaller than it do not matter, in percent of the baseline."""
    margin_reason: Annotated[str, Field(min_length=1)] | None = None
    """Why this margin: what a smaller difference would not change, or what a pilot showed."""
    primary: tuple[MetricName, ...] = ()
    """The metrics that the campaign is about, decided before its first run; every other comparison explores."""
    origin: dict[str, str] | None = None
    licence: str | None = None

    def declared_environment(self, name: str) -> dict[str, Any]:
        """The options of an environment as they were written."""
        return self.environments[name].measured

    def declared_workload(self, name: str) -> dict[str, Any]:
        """What of a workload decides what a run measures, as it was written: its options but the number of runs."""
        declared = self.workloads[name].measured
        return {option: value for option, value in declared.items() if option != "runs"}

    @property
    def own_metrics(self) -> dict[str, str]:
        """Metrics that workloads of the matrix declare themselves, with a workload of each."""
        found: dict[str, str] = {}
        for workload, options in self.workloads.items():
            if isinstance(options, CommandOptions):
                found |= dict.fromkeys(options.metrics.keys() - METRICS, workload)
        return found

    @property
    def keeps_servers(self) -> bool:
        """Whether an environment has a server that lives for several runs."""
        return any(options.server is not None for options in self.environments.values())

    def iterations_of(self, workload: str) -> int:
        """How many iterations the cells of a workload have: its own `runs`, else the matrix's `iterations`."""
        options = self.workloads.get(workload)  # a key may be renamed after measuring
        if options is None or options.runs is None:
            return self.iterations
        return options.runs

    @property
    def most_iterations(self) -> int:
        """Iterations of the cells that have most."""
        return max(self.iterations_of(workload) for workload in self.workloads)

    @property
    def baseline_environment(self) -> str:
        """`baseline:`, else the first environment."""
        return self.baseline or next(iter(self.environments))

    def includes(self, model: str, environment: str, workload: str) -> bool:
        """Whether a cell is part of the campaign."""
        cell = {"model": model, "environment": environment, "workload": workload}
        return not any(
            all(getattr(rule, axis) in (None, name) for axis, name in cell.items())
            for rule in self.exclude
        )

    def cells(self, *, backwards: bool = False) -> Iterator[tuple[str, str, str]]:
        """(model, environment, workload) of every cell, in the order declared; `backwards` takes the last environment
        first.

        Where a server lives for several runs, all workloads of a model and environment follow each other, so that the
        server is started once for them; `backwards` then takes the last workload first, too.
        """
        environments, workloads = list(self.environments), list(self.workloads)
        if backwards:
            environments.reverse()
        if self.keeps_servers:
            if backwards:
                workloads.reverse()
            cells = list(product(self.models, environments, workloads))
        else:
            by_workload = product(workloads, self.models, environments)
            cells = [(model, place, work) for work, model, place in by_workload]
        for cell in cells:
            if self.includes(*cell):
                yield cell

    def fingerprint(self, model: str, environment: str, workload: str) -> str:
        """SHA-256 of a cell's canonical specification: everything declared that decides what is measured."""
        cell = {
            "model": self.models[model].model_dump(
                mode="json", exclude_defaults=True, exclude={"label"}
            ),
            "environment": self.declared_environment(environment),
            "workload": self.declared_workload(workload),
            "seed": self.seed,
        }
        return hashlib.sha256(canonical_json(cell).encode()).hexdigest()

    @property
    def analysis(self) -> Analysis:
        """What the records of its runs say of the analysis."""
        return Analysis(
            primary=self.primary, margin_percent=self.equivalence_margin_percent
        )

    @property
    def words(self) -> frozenset[str]:
        """What is no name of a machine or user, though one may be called that: its keys, and words of the schemas."""
        keys = re.findall(r'"([^"]+)":', json.dumps(self.document()))
        return schema_words() | frozenset(keys)

    def document(self) -> dict[str, Any]:
        """The matrix as data, for campaign.json."""
        return self.model_dump(mode="json", exclude_defaults=True)


def read(path: Path) -> Matrix:
    """A matrix file. Raises MatrixError with every mistake in it, each with its line."""
    return parse(documents.text_of(path, MatrixError), str(path))


def renamed(matrix: Matrix, campaign: str) -> Matrix:
    """The same measurements under another campaign's name. Raises MatrixError where it is none."""
    try:
        name = TypeAdapter(Key).validate_python(campaign)
    except ValidationError:
        what = f"{campaign!r} is no name of a campaign"
        remedy = (
            "use small letters, digits, dots and hyphens, for example night-2026-11-22"
        )
        raise MatrixError(what, where="--campaign", remedy=remedy) from None
    return matrix.model_copy(update={"campaign": name})


def parse(text: str, name: str = "matrix") -> Matrix:
    """A matrix from YAML text; `name` stands in messages. Raises MatrixError with every mistake."""
    document, lines = documents.parse(text, name, MatrixError)
    if not isinstance(document, dict):
        raise MatrixError(
            "a matrix is a mapping with campaign, models, environments and workloads",
            where=f"{name}:1",
            remedy="see matrix/demo.yaml for a small one",
        )
    problems = [*lines.duplicates]
    for path, what in outside.unbounded_numbers(document):
        named = f"{'.'.join(path)}: {what}"
        problems.append(lines.problem(path, named, "correct it"))
    unreadable = recipes.fill_in(document, Path(name).parent, lines)
    if unreadable:
        documents.refuse([*problems, *unreadable], MatrixError)
    matrix: Matrix | None = None
    try:
        matrix = Matrix.model_validate(document)
        problems += _name_problems(matrix, lines)
        for path, what in references.secrets(document, schema_words()):
            named = f"{what} stands in {'.'.join(path)}"
            problems.append(lines.problem(path, named, references.REMEDY))
    except ValidationError as error:
        problems += lines.described(error, (), Matrix, "matrix")
    documents.refuse(problems, MatrixError)
    assert matrix is not None
    return matrix


def from_document(document: Mapping[str, Any], where: str) -> Matrix:
    """The matrix stored in a campaign.json: options that an earlier version had are data. Raises MatrixError naming the
    file."""
    try:
        return Matrix.model_validate(document, extra="ignore")
    except ValidationError as error:
        problem = f"matrix.{field_problems(error)[0]}"
        raise MatrixError(
            problem, where=f"{where}/campaign.json", remedy="restore the file from git"
        ) from None


@cache
def schema_words() -> frozenset[str]:
    """The words of the schemas of a matrix and of a record: fields, and what they may say."""
    schemas = [Matrix.model_json_schema(), Record.model_json_schema()]
    return frozenset(re.findall(r'"([^"\s]+)"', json.dumps(schemas)))


def _name_problems(matrix: Matrix, lines: Lines) -> Iterator[str]:
    """Names that point nowhere, and a matrix that plans nothing or starts a server for nothing."""
    for path, what, name, known in _named(matrix):
        if name is not None and name not in known:
            said = what.replace("{}", repr(name))
            yield lines.problem(path, said, suggestion(name, known))
    for name, workload in matrix.own_metrics.items():
        other = TAKEN.get(slug(name), name)
        if other != name or name in TAKEN:
            what = f"metric {name!r} would have the address of {other!r}: {slug(name)}"
            path = ("workloads", workload, "metrics", name)
            yield lines.problem(path, what, "choose another name")
    idle = set()
    for _, environment, workload in matrix.cells():
        served = matrix.environments[environment].server is not None
        if served and not matrix.workloads[workload].measures_server:
            idle.add((environment, workload))
    for environment, workload in sorted(idle):
        what = f"workload {workload} would not measure the server of environment {environment}"
        yield lines.problem(("workloads", workload), what, "exclude these cells")
    if not list(matrix.cells()):
        what = "every cell is excluded, so nothing would run"
        yield lines.problem(("exclude",), what, "remove a rule of exclude:")


def _named(
    matrix: Matrix,
) -> Iterator[tuple[tuple[str, ...], str, str | None, Collection[str]]]:
    """Each name that has to be one of others: its place, what is said where it is none of them, and these."""
    what = "baseline {} is not an environment"
    yield ("baseline",), what, matrix.baseline, matrix.environments
    for index, metric in enumerate(matrix.primary):
        known = METRICS.keys() | matrix.own_metrics
        yield ("primary", str(index)), "unknown metric {} in primary", metric, known
    for index, rule in enumerate(matrix.exclude):
        for axis, name in rule:
            what = f"exclude names an unknown {axis} {{}}"
            names = getattr(matrix, f"{axis}s")
            yield ("exclude", str(index), axis), what, name, names
