"""Results in the layout of the published study: a folder of runs, or one file with the figures of all of them.

    <environment>_<model>_iter<N>_<timestamp>_metadata.json  and  .log
    [{environment, model_name, …}, …]   or   {"models": {model: {environment: [{…}, …]}}}

The metadata hold what the runner script was told, not what ran; the name of the file fills in what damaged metadata
do not say.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sparkpub.record import outside
from sparkpub.tools import forms, reading
from sparkpub.tools.forms import FileError, ResultFile
from sparkpub.tools.shapes.base import Document, ReportShape, ShapedRun

_NAME = re.compile(
    r"(?P<environment>[^_]+)_(?P<model_name>.+)_iter(?P<iteration>\d+)_(?P<timestamp>\d{8}_\d{6})"
)
_METADATA = "_metadata.json"
_NEEDED = frozenset({"environment", "model_name", "timestamp", "iteration"})
"""What every run says in a file with the figures of many."""
_TEMPERATURES = ("start_temp_celsius", "end_temp_celsius")


def runs(file: ResultFile) -> list[ShapedRun]:
    """Of the metadata of a run, or of a file with the figures of many. Raises FileError."""
    named = _NAME.match(file.name)
    if named is not None and file.name.endswith(_METADATA):
        return [_of_metadata(file, named.groupdict())]
    if named is not None and file.suffix == ".log":
        metadata = file.path.with_name(file.name.removesuffix(".log") + _METADATA)
        what = "no metadata beside it: nothing says what it was"
        if metadata.is_file():
            what = f"it is read with {metadata.name}"
        return [ShapedRun({}, omitted=what)]
    if file.suffix != ".json":
        return []
    entries = [part for item in forms.of_json(file.content) for part in _entries(item)]
    runs = [_said(entry) for entry in entries if entry.keys() >= _NEEDED]
    return [ShapedRun(said, files={}) for said in runs]


def _entries(document: Document) -> Iterator[Document]:
    """A run alone, or each run of the nested form, whose names give model and environment."""
    if "environment" in document:
        yield document
        return
    models = document.get("models", document)
    for model, environments in models.items() if isinstance(models, dict) else ():
        if isinstance(environments, dict):
            for environment, of_it in environments.items():
                about = {"model_name": model, "environment": environment}
                yield from (about | entry for entry in reading.objects(of_it))


def _of_metadata(file: ResultFile, named: Mapping[str, Any]) -> ShapedRun:
    log = file.path.with_name(file.name.removesuffix(_METADATA) + ".log")
    files = {"original": file.content}
    try:
        if log.is_file():
            files["log"] = outside.content(log)
    except (OSError, outside.UnfitError) as error:
        raise FileError(f"{log.name} cannot be read: {error}") from None
    entry = reading.json_object(file.content)
    facts = {**named, **(entry or {}), "damaged": True if entry is None else None}
    missing = "" if "log" in files else "no log: nothing was measured that is known"
    return ShapedRun(_said(facts), files, missing=missing)


def _said(entry: Document) -> Document:
    """The monitor wrote -1 where it read nothing, and the unit of a latency stands nowhere: neither is a figure."""
    said = {**entry}
    for name in _TEMPERATURES:
        if entry.get(name) == -1:
            said[name] = "-1, not read"
    if "latency" in entry:
        said["latency"] = f"{entry['latency']}, without unit"
    return said


SHAPE = ReportShape(runs, (".json", ".log"), source="published")
