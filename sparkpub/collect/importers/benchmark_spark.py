"""Results in the layout of the published study: a folder of runs, or one file with the figures of all of them.

    <environment>_<model>_iter<N>_<timestamp>_metadata.json  and  .log
    [{environment, model_name, …}, …]   or   {"models": {model: {environment: [{…}, …]}}}

The metadata hold what the runner script was told, not what ran. Native runs were a chroot, container runs Docker.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sparkpub.collect.importers.base import Draft, Given, Left, as_key, local_moment
from sparkpub.collect.importers.files import ResultFile
from sparkpub.plan.workloads import WORKLOADS, reading
from sparkpub.record import outside
from sparkpub.record.errors import ImportFormatError
from sparkpub.record.record import MetricValue, Status

_NAME = re.compile(
    r"(?P<environment>[^_]+)_(?P<model_name>.+)_iter(?P<iteration>\d+)_(?P<timestamp>\d{8}_\d{6})"
)
_METADATA = "_metadata.json"
_PUBLISHED = {
    "output_throughput": "output_throughput_tok_s",
    "throughput": "request_throughput_req_s",
    "peak_memory": "peak_memory_gib",
    "kv_cache": "kv_cache_gib",
    "start_temp_celsius": "gpu_temp_start_celsius",
    "end_temp_celsius": "gpu_temp_end_celsius",
}
_TEMPERATURES = ("start_temp_celsius", "end_temp_celsius")
_FACTS = frozenset(
    {
        "environment",
        "model_name",
        "model_id",
        "model_path",
        "iteration",
        "timestamp",
        "exit_code",
        "latency",
    }
)
_UNSEEN = "without a log nothing shows which model ran"
_ENVIRONMENT_TYPES = {"native": "chroot", "container": "docker"}


class BenchmarkSpark:
    """Reads the runs of folders in which other things may lie."""

    tool = "benchmark-spark"

    def __init__(self, given: Given) -> None:
        self._given = given
        self._metadata: list[Path] = []

    def takes(self, file: ResultFile) -> bool:
        """Whether a file is of a run: its metadata, or the log beside them."""
        if _NAME.match(file.name) is None:
            return False
        if file.name.endswith(_METADATA):
            self._metadata.append(file.path)
            return True
        metadata = file.path.with_name(file.name.removesuffix(".log") + _METADATA)
        return file.name.endswith(".log") and metadata.is_file()

    def found(self) -> Iterator[Draft | Left]:
        """The runs of all metadata."""
        for path in self._metadata:
            yield _run_or_why_not(path, self._given)

    def passes_over(self, file: ResultFile) -> bool:  # noqa: ARG002
        """Every file is spoken of."""
        return False


def read(path: Path, given: Given) -> Iterator[Draft | Left]:
    """Runs of a folder, or of an aggregated file."""
    if path.is_dir():
        yield from _folder(path, given)
        return
    try:
        content = outside.content(path)
    except outside.UnfitError as error:
        raise ImportFormatError(
            f"cannot be read: {error}",
            where=str(path),
            remedy="give the folder of the results, or one file",
        ) from None
    try:
        document = reading.strict_json(content)
    except ValueError as problem:
        unfit = isinstance(problem, outside.UnfitError)
        what = str(problem) if unfit else "not JSON, or cut short"
        raise ImportFormatError(
            what, where=str(path), remedy="fetch the file again"
        ) from None
    entries = list(_entries(document))
    if not entries:
        remedy = "give a list of runs, or models with their environments and runs"
        raise ImportFormatError("no runs in it", where=str(path), remedy=remedy)
    unused = {name for _, entry in entries for name in entry} - _FACTS - set(_PUBLISHED)
    for name in sorted(unused):
        yield Left(path.name, f"the field {name} is not used", refused=False)
    for place, entry in entries:
        yield _published(f"{path.name}, {place}", entry, given, content)


def _entries(document: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each run with where it stands; in the nested form the place gives model and environment."""
    for index, entry in enumerate(reading.objects(document)):
        yield f"entry {index + 1}", entry
    models = document.get("models", document) if isinstance(document, dict) else None
    for model, environments in models.items() if isinstance(models, dict) else ():
        for environment, runs in (
            environments.items() if isinstance(environments, dict) else ()
        ):
            for index, entry in enumerate(reading.objects(runs)):
                yield (
                    f"{model}/{environment} {index + 1}",
                    {"model_name": model, "environment": environment, **entry},
                )


def _published(
    source: str, entry: Mapping[str, Any], given: Given, content: bytes
) -> Draft | Left:
    metrics = {
        name: _figure(name, entry.get(field))
        for field, name in _PUBLISHED.items()
        if field in entry
    }
    if "latency" in entry:
        # Its unit stands nowhere, so that a number could not be used either.
        reason = given.about.unavailable.get(
            "request_latency_mean_ms",
            f"published as {entry['latency']!r}, without unit",
        )
        metrics["request_latency_mean_ms"] = reading.metric(
            "request_latency_mean_ms", None, "published", reason=reason
        )
    missing = {"log": "not published", "observed": _UNSEEN}
    return _draft(
        source,
        entry,
        given,
        metrics=metrics,
        originals=((content, ".json"),),
        unavailable=missing,
    )


def _figure(name: str, value: Any) -> MetricValue:
    """A published figure; what the monitor wrote as -1 was not read at all."""
    reason = f"published as {value!r}"
    return reading.metric(
        name, None if value == -1 else value, "published", reason=reason
    )


def _folder(folder: Path, given: Given) -> Iterator[Draft | Left]:
    names = sorted(path for path in folder.iterdir() if path.is_file())
    metadata = [path for path in names if path.name.endswith(_METADATA)]
    if not metadata:
        raise ImportFormatError(
            "no *_metadata.json in it",
            where=str(folder),
            remedy="give the folder of the results",
        )
    used = set()
    for path in metadata:
        used |= {path, _log_of(path)}
        yield _run_or_why_not(path, given)
    for path in (path for path in names if path not in used):
        orphan = path.suffix == ".log"
        reason = (
            "no metadata beside it: nothing says what it was" if orphan else "not a run"
        )
        yield Left(path.name, reason, refused=orphan)


def _log_of(metadata: Path) -> Path:
    return metadata.with_name(metadata.name.removesuffix(_METADATA) + ".log")


def _run_or_why_not(path: Path, given: Given) -> Draft | Left:
    log = _log_of(path)
    try:
        return _run(path, log if log.is_file() else None, given)
    except (OSError, outside.UnfitError) as error:
        return Left(path.name, f"cannot be read: {error}")


def _run(path: Path, log: Path | None, given: Given) -> Draft | Left:
    """One run from its metadata and log; the name fills in what damaged metadata do not say."""
    content = outside.content(path)
    entry = reading.json_object(content)
    named = _NAME.match(path.name)
    facts = (named.groupdict() if named else {}) | (entry or {})
    notes = []
    if entry is None:
        notes.append("the metadata are damaged; the file's name says which run it was")
    temperatures = {
        _PUBLISHED[key]: _figure(_PUBLISHED[key], facts[key])
        for key in _TEMPERATURES
        if key in facts
    }
    if log is None:
        return _draft(
            path.name,
            facts,
            given,
            metrics=temperatures,
            files={"original": content},
            notes=tuple(notes),
            trouble="no log: nothing was measured that is known",
            unavailable={"log": "no log lay beside it", "observed": _UNSEEN},
        )
    files = {"original": content, "log": outside.content(log)}
    answer = WORKLOADS["trtllm-bench"].parse(files["log"], {}, None)
    notes += answer.problems if answer.complete else []
    return _draft(
        path.name,
        facts,
        given,
        metrics=dict(answer.metrics) | temperatures,
        observed=answer.observed,
        files=files,
        notes=tuple(notes),
        trouble=None if answer.complete else "; ".join(answer.problems),
    )


def _draft(
    source: str,
    facts: Mapping[str, Any],
    given: Given,
    *,
    trouble: str | None = None,
    **more: Any,
) -> Draft | Left:
    """`trouble` is why a run that ended with exit code 0 is none; `more` are fields of the draft."""
    started, iteration = (
        local_moment(facts.get("timestamp")),
        reading.positive_int(facts.get("iteration")),
    )
    model, environment = facts.get("model_name"), facts.get("environment")
    needed = {
        "model_name": model,
        "environment": environment,
        "timestamp": started,
        "iteration": iteration,
    }
    if started is None or iteration is None or not all(needed.values()):
        missing = [name for name, value in needed.items() if not value]
        return Left(source, f"it does not say {', '.join(missing)}")
    code = reading.number(facts.get("exit_code"))
    status: Status = "ok"
    if trouble:
        status = "invalid"
    if code:
        status = "failed"
    return Draft(
        source=source,
        tool="benchmark-spark",
        model=given.model or as_key(str(model)),
        model_id=reading.word(facts.get("model_id")),
        model_path=reading.word(facts.get("model_path")),
        environment=given.environment or as_key(str(environment)),
        environment_type=_ENVIRONMENT_TYPES.get(str(environment), "unknown"),
        iteration=iteration,
        started=started,
        status=status,
        status_reason=f"exit status {code:g}" if code else trouble,
        exit_code=None if code is None else int(code),
        asked={"type": "trtllm-bench"},
        **more,
    )
