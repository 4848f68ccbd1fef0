"""Whether a run properly happened, and its record says what its evidence does: damage, exit status, log, report. And
what lies in a data folder and is no part of a campaign: other programs obey some files, whoever brought them."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from os import DirEntry
from pathlib import Path
from typing import Any

from sparkpub.record.metrics import mixed_units
from sparkpub.record.record import Record, metric_of
from sparkpub.record.store import (
    CAMPAIGN_FILE,
    Stored,
    campaign_folders,
    everything,
    record_paths,
)
from sparkpub.record.text import counted
from sparkpub.review.checks.check import ASK, Asked, Check, Problems, each
from sparkpub.review.checks.evidence import Reread
from sparkpub.review.checks.finding import Finding, Severity, Threshold
from sparkpub.review.checks.view import View, is_planned
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.grouping import grouped

PRINTED_TOLERANCE = Threshold(
    "printed tolerance",
    1e-6,
    "Allowed relative difference between a recorded figure and its evidence, due to printing and parsing numbers; of a "
    "figure in the log beyond half a unit of its last digit.",
)

# -- damage and how runs ended -------------------------------------------------------------------------------------


def damaged(campaign: str, lines: Iterable[str]) -> Iterator[Finding]:
    """Files that could not be read as records, from the lines of `Dataset.damage`."""
    for line in lines:
        text = f"A damaged file was left out: {line}."
        yield Finding("schema", "error", campaign, None, None, text, {"damage": line})


def _changed_files(view: View, stored: Stored) -> Iterator[str]:
    """Evidence that is gone or differs from the sum that its record carries."""
    for item in stored.record.evidence:
        lies = view.evidence.of(stored).sums[item.path]
        if lies != (item.bytes, item.sha256):
            how = "is missing" if lies.bytes is None else "has other content"
            yield f"the {item.role} {item.path} {how}"


def _left(view: View) -> list[Stored]:
    """The runs that nobody has taken out yet."""
    return [run for run in view.runs if run.run_id not in view.out]


def _good(view: View) -> list[Stored]:
    """Those of them that call themselves good."""
    return [run for run in _left(view) if run.record.status == "ok"]


def _slots(view: View) -> Collection[tuple[str, str, str, int]]:
    """The iterations that have a good run."""
    records = (run.record for run in view.runs)
    return {(*run.cell, run.iteration) for run in records if run.status == "ok"}


def _failed(*, again: bool) -> Problems:
    """Runs that did not end well. Where another attempt did, nothing is missing, and the finding is for the record."""

    def problems(view: View, stored: Stored) -> Iterator[str]:
        record = stored.record
        was_again = (*record.cell, record.iteration) in view.once(_slots)
        if record.status != "ok" and was_again is again:
            yield f"{record.status}: {record.status_reason}"

    return problems


# -- log and report ------------------------------------------------------------------------------------------------


def _published_only(record: Record) -> bool:
    """Whether every figure of a run was taken from a publication, so that no evidence can be asked for."""
    return all(value.source == "published" for value in record.metrics.values())


def _without_log(*, handed_over: bool) -> Problems:
    """Runs without a log, whose figures were published, or handed over in a report, or should have had one."""

    def problems(_view: View, stored: Stored) -> Iterator[str]:
        record = stored.record
        is_reported = not is_planned(record) and record.file("report") is not None
        was_handed_over = is_reported or _published_only(record)
        if record.file("log") is None and was_handed_over is handed_over:
            yield ""

    return problems


def _no_result(view: View, stored: Stored) -> Iterator[str]:
    """Why a run that calls itself good has none: the engine never gave its result."""
    record, answer = stored.record, view.evidence.of(stored).answer
    if _published_only(record):
        return
    values = record.metrics.values()
    reported = any(value.source == "report" for value in values)
    if all(value.value is None for value in values):
        yield "it ended with exit code 0 but has no figures"
    elif reported and record.file("report") is None:
        yield "its figures are recorded as coming from a report, but there is none"
    elif answer is not None and not answer.complete and not answer.truncated:
        yield "; ".join(answer.problems) or "the report is incomplete"


# -- the record against its evidence -------------------------------------------------------------------------------


def _first(problems: Callable[[Record, Reread], Iterator[str]]) -> Problems:
    """The first thing in which a record and its evidence differ: a log of another run differs in everything."""

    def first(view: View, stored: Stored) -> Iterator[str]:
        answer = view.evidence.of(stored).answer
        if answer is not None and (answer.complete or answer.truncated):
            yield from islice(problems(stored.record, answer), 1)

    return first


def _figures_otherwise(record: Record, answer: Reread) -> Iterator[str]:
    """The figures of a record that log or report contradict, and how."""
    for name, value in record.metrics.items():
        metric, found = metric_of(name, value), answer.value(name)
        lost = found is None and answer.truncated
        is_read = value.source in ("log", "report") and not lost
        told = (
            f"{metric.within_sentence}: {_text(value.value, metric.unit)} in the record"
        )
        if is_read and not _same(value.value, found):
            hint = mixed_units(value.value or 0.0, found or 0.0)
            yield f"{told}, and {_text(found, metric.unit)} in the {value.source}{hint}"
        elif name in answer.printed and value.value is not None:
            printed, half_digit = answer.printed[name]
            off = abs(printed - value.value) - half_digit
            if off > PRINTED_TOLERANCE * abs(printed):
                yield f"{told}, and the log prints {_text(printed, metric.unit)}"


def _facts_otherwise(record: Record, answer: Reread) -> Iterator[str]:
    """The facts that the record and its evidence both know, and differently; with the two."""
    said, found = (
        {name.replace("_", " "): has for name, has in seen if name != "settings"}
        | seen.settings
        for seen in (record.observed, answer.observed)
    )
    gpus, device = [gpu.name for gpu in record.machine.gpus], found["device"] or ""
    if device.startswith("NVIDIA ") and not any(name in device for name in gpus):
        said["GPU"], found["GPU"] = next(iter(gpus), None), device
    for name, has in found.items() if not answer.truncated else ():
        if None not in (said.get(name), has) and not _same(said[name], has):
            yield f"{name}: {said[name]} in the record, and {has} in the evidence"


def _text(value: float | None, unit: str) -> str:
    return "nothing" if value is None else f"{value:.6g} {unit}".strip()


def _same(said: Any, found: Any) -> bool:
    """Whether two values are the same, figures up to what printing and parsing changes."""
    if isinstance(said, int | float) and isinstance(found, int | float):
        return abs(said - found) <= PRINTED_TOLERANCE * max(abs(said), abs(found))
    return bool(said == found)


# -- what is no part of a campaign, and what no record tells -------------------------------------------------------

_KINDS: Mapping[str, tuple[Severity, str]] = {
    "a link": ("error", "Links are not followed here"),
    "what git obeys": ("error", "It changes what git does here"),
    "named by no record": ("info", "Nothing here reads it"),
}
"""What a foreign file is, how bad it is that it is there, and what comes of it."""
_ABOUT = re.compile(
    r"\.gitkeep|(?:readme|licen[cs]e|copying|notice|attributions?|authors|citation)(?:[.-][\w.-]+)?",
    re.IGNORECASE,
)
"""Names of what keeps an empty folder in git, and of what says where data come from."""
_OBEYED = frozenset({".gitmodules", ".gitattributes", "head"})
"""Settings, and the sign of a repository (gitrepository-layout(5)). Some file systems know no capitals."""
_LISTED = 3
"""Names that a message lists."""


def foreign_files(dataset: Dataset) -> Iterator[Finding]:
    """One finding for each kind of foreign file in each campaign, and for each kind of those that are in none."""
    folders = {campaign.folder.parent for campaign in dataset.campaigns.values()}
    folders.add(dataset.folder)
    for data in sorted(filter(Path.is_dir, folders)):
        foreign = _foreign(dataset, data)
        for (place, kind), files in grouped(foreign, lambda file: file[:2]).items():
            names = [name for *_, name in files]
            severity, so = _KINDS[kind]
            listed = ", ".join(names[:_LISTED])
            if len(names) > _LISTED:
                listed += f" and {len(names) - _LISTED} more"
            text = f"No part of a campaign: {listed} ({kind}). {so}."
            about = place or names[0].partition("/")[0]
            evidence = {"what": kind, "files": names}
            yield Finding("foreign-file", severity, about, None, None, text, evidence)


def _foreign(dataset: Dataset, data: Path) -> Iterator[tuple[str, str, str]]:
    """What lies in a data folder and does not belong there: its campaign, nothing where it is in none, its kind and its
    name."""
    campaigns = campaign_folders(data)
    own = {file for run in dataset.runs for file in run.files}
    own |= {folder / CAMPAIGN_FILE for folder in campaigns}
    # Nothing tells which evidence belongs to a record that could not be read.
    unread = {
        folder for folder in campaigns if not own.issuperset(record_paths(folder))
    }
    # Who compares two folders loads the campaigns that differ.
    looked_at = {*dataset.campaigns, *dataset.damage}
    skipped = {folder.name for folder in campaigns} - looked_at
    for entry in everything(data):
        path, kind = Path(entry.path), _kind(entry)
        name = path.relative_to(data)
        if kind == "named by no record" and (path in own or path.parent in unread):
            continue
        if kind and name.parts[0] not in skipped:
            place = name.parts[0] if name.parts[0] in dataset.campaigns else ""
            yield place, kind, name.as_posix()


def _kind(entry: DirEntry[str]) -> str | None:
    """What an entry of a data folder is if no record names it; None where it may be there."""
    if entry.is_symlink():
        return "a link"
    if entry.name.lower() in _OBEYED and entry.is_file():
        return "what git obeys"
    if entry.is_dir() or _ABOUT.fullmatch(entry.name):
        return None
    return "named by no record"


_FACTS: Mapping[str, Callable[[Record], object]] = {
    "the log": lambda record: record.file("log"),
    "the telemetry": lambda record: record.file("telemetry"),
    "the machine": lambda record: record.machine.id,
    "the engine's version": lambda record: record.observed.engine_version,
    "when the measured phase began and ended": lambda record: record.phases,
    "the command line of the tool": lambda record: record.argv,
}
"""What checks ask for and a record may lack, and where it has it."""


def unrecorded(campaign: CampaignData) -> list[str]:
    """Every fact that runs of a campaign lack, so that no check can judge it, with how many do: `the log (63 of 63
    runs)`."""
    records = campaign.records
    found = []
    for fact, read in _FACTS.items():
        lacking = sum(not read(record) for record in records)
        if lacking:
            found.append(f"{fact} ({lacking} of {counted(len(records), 'run')})")
    return found


DIFFERED = "differed from the evidence"
CHECKS = (
    Check(
        "schema",
        "Can every record be read?",
        ("error",),
        lambda view: damaged(view.campaign.name, view.damage),
        kind="happened",
        remedy="Restore the file from git, or delete it.",
    ),
    Check(
        "checksum",
        "Is all evidence unchanged?",
        kind="happened",
        asked=(
            Asked(
                "left evidence that is gone or changed",
                each(_changed_files, lambda view: view.runs),
                "error",
            ),
        ),
        remedy="Restore the file from git.",
    ),
    Check(
        "exit-status",
        "Did every run succeed?",
        kind="happened",
        asked=(
            Asked(
                "did not succeed (excluded)",
                each(_failed(again=False), _left),
            ),
            Asked(
                "did not succeed, and another attempt did",
                each(_failed(again=True), _left),
                "info",
            ),
        ),
        remedy="Read the reason and the end of the log, then run sparkpub collect --retry-failed.",
        imported=ASK,
    ),
    Check(
        "missing-report",
        "Did the engine report a result?",
        kind="happened",
        asked=(Asked("ended without a result", each(_no_result, _good), "error"),),
        remedy="Read the end of the log, then run sparkpub collect --retry-failed.",
        imported=ASK,
    ),
    Check(
        "missing-log",
        "Is there a log to check the figures against?",
        kind="happened",
        asked=(
            Asked(
                "came without a log: nothing shows that the figures are right",
                each(_without_log(handed_over=False), _good),
                "error",
            ),
            Asked(
                "came without a log: the figures are as published, and nothing shows the model",
                each(_without_log(handed_over=True), _good),
            ),
        ),
        remedy="Keep the log of the tool and of the server beside the results, and import them together.",
    ),
    Check(
        "metric-mismatch",
        "Does the record agree with log and report?",
        kind="happened",
        asked=(Asked(DIFFERED, each(_first(_figures_otherwise), _good), "error"),),
        remedy="Restore record and evidence from git, or import the results again.",
        asked_later=(Asked(DIFFERED, each(_first(_facts_otherwise)), "error"),),
    ),
    Check(
        "foreign-file",
        "Does everything in the data folder belong to a campaign?",
        kind="evidence",
        raises=("error", "info"),
        remedy="Delete it.",
    ),
)
