"""Results in the layout of the published study: a folder of runs, or one file with the figures of all of them.

    <environment>_<model>_iter<N>_<timestamp>_metadata.json  and  .log
    [{environment, model_name, …}, …]   or   {"models": {model: {environment: [{…}, …]}}}

The metadata hold what the runner script was told, not what ran. Native runs were a chroot, container runs Docker.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sparkpub.collect.imports.facts import Facts
from sparkpub.collect.imports.folder import Beside
from sparkpub.collect.imports.given import Draft, Given, Left
from sparkpub.plan.workloads import WORKLOADS
from sparkpub.record import outside
from sparkpub.record.record import MetricValue, Observed, Status
from sparkpub.tools import reading
from sparkpub.tools.asked import as_key
from sparkpub.tools.cells import local_moment
from sparkpub.tools.forms import ResultFile
from sparkpub.tools.forms import of_json as documents

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
_NEEDED = frozenset({"environment", "model_name", "timestamp", "iteration"})
"""What every run says in a file with the figures of many."""
_TEMPERATURES = ("start_temp_celsius", "end_temp_celsius")
_FACTS = _NEEDED | {"model_id", "model_path", "exit_code", "latency"}
_NOTHING = Observed()
_UNSEEN = "without a log nothing shows which model ran"
_ENVIRONMENT_TYPES = {"native": "chroot", "container": "docker"}


class BenchmarkSpark:
    """Reads the metadata and logs of runs, and files with the figures of many."""

    tool = "benchmark-spark"

    def __init__(self, given: Given) -> None:
        self._given = given
        self.found: list[Draft | Left] = []

    def takes(self, beside: Beside) -> bool:
        """Whether a file is of a run, or has the figures of some. Raises FileError."""
        file = beside.file
        is_of_run = _NAME.match(file.name) is not None
        if is_of_run and file.name.endswith(_METADATA):
            self.found.append(_run_or_why_not(file, self._given))
        elif is_of_run and file.suffix == ".log":
            metadata = file.path.with_name(file.name.removesuffix(".log") + _METADATA)
            if not metadata.is_file():
                reason = "no metadata beside it: nothing says what it was"
                self.found.append(Left(file.source, reason))
        elif file.suffix == ".json":
            found = list(_of_all(file, self._given))
            self.found += found
            return bool(found)
        else:
            return False
        return True

    def passes_over(self, beside: Beside) -> bool:  # noqa: ARG002 - where others are to look
        """Never: whatever is no run has to be said."""
        return False


def _of_all(file: ResultFile, given: Given) -> Iterator[Draft | Left]:
    """The runs of a file with the figures of many. Raises FileError."""
    entries = [entry for item in documents(file.content) for entry in _entries(item)]
    entries = [(place, entry) for place, entry in entries if entry.keys() >= _NEEDED]
    unused = {name for _, entry in entries for name in entry} - _FACTS - set(_PUBLISHED)
    for name in sorted(unused):
        yield Left(file.source, f"the field {name} is not used", refused=False)
    for number, (place, entry) in enumerate(entries, 1):
        source = f"{file.source}, {place or f'entry {number}'}"
        yield _published(source, entry, given, file.content)


def _entries(document: dict[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A run alone, or each run with where it stands in the nested form, whose names give model and environment."""
    if "environment" in document:
        yield "", document
        return
    models = document.get("models", document)
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
            f"published as {reading.shown(entry['latency'])}, without unit",
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
        originals=(("original", content, ".json"),),
        unavailable=missing,
    )


def _figure(name: str, value: Any) -> MetricValue:
    """A published figure; what the monitor wrote as -1 was not read at all."""
    reason = f"published as {reading.shown(value)}"
    return reading.metric(
        name, None if value == -1 else value, "published", reason=reason
    )


def _run_or_why_not(file: ResultFile, given: Given) -> Draft | Left:
    log = file.path.with_name(file.name.removesuffix(_METADATA) + ".log")
    try:
        printed = outside.content(log) if log.is_file() else None
    except (OSError, outside.UnfitError) as error:
        return Left(file.source, f"cannot be read: {error}")
    return _run(file, printed, given)


def _run(file: ResultFile, log: bytes | None, given: Given) -> Draft | Left:
    """One run from its metadata and log; the name fills in what damaged metadata do not say."""
    content = file.content
    entry = reading.json_object(content)
    named = _NAME.match(file.name)
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
            file.source,
            facts,
            given,
            metrics=temperatures,
            files={"original": content},
            notes=tuple(notes),
            trouble="no log: nothing was measured that is known",
            unavailable={"log": "no log lay beside it", "observed": _UNSEEN},
        )
    files = {"original": content, "log": log}
    answer = WORKLOADS["trtllm-bench"].parse(files["log"], {}, None)
    notes += answer.problems if answer.complete else []
    return _draft(
        file.source,
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
    observed: Observed = _NOTHING,
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
    model_id = reading.word(facts.get("model_id"))
    weights = observed.quantization or Facts().weights_of_files(model_id)
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
        model_id=model_id,
        model_path=reading.word(facts.get("model_path")),
        environment=given.environment or as_key(str(environment)),
        environment_type=_ENVIRONMENT_TYPES.get(str(environment), "unknown"),
        iteration=iteration,
        started=started,
        status=status,
        status_reason=f"exit status {code:g}" if code else trouble,
        observed=observed.model_copy(update={"quantization": weights}),
        exit_code=None if code is None else int(code),
        asked={"type": "trtllm-bench"},
        **more,
    )
