"""Whether a run properly happened, and its record says what its evidence does: damage, exit status, log, report. And
what lies in a data folder and is no part of a campaign: other programs obey some files, whoever brought them."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from os import DirEntry
from pathlib import Path
from typing import Any

from sparkpub.plan.requested import is_of_running_server
from sparkpub.record import identity
from sparkpub.record.metrics import mixed_units
from sparkpub.record.record import Record, metric_of
from sparkpub.record.store import (
    CAMPAIGN_FILE,
    Stored,
    campaign_folders,
    everything,
)
from sparkpub.record.text import counted
from sparkpub.review.checks.check import ASK, Asked, Cases, Check, Problems
from sparkpub.review.checks.evidence import Reread
from sparkpub.review.checks.finding import Finding, Severity, Threshold
from sparkpub.review.checks.rules import Wrong
from sparkpub.review.checks.view import Case, View, is_planned, listed
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.physics import THROUGHPUT
from sparkpub.review.reviewed import Cell

PRINTED_TOLERANCE = Threshold(
    1e-6,
    "Allowed relative difference between a recorded figure and its evidence, due to printing and parsing numbers; of a "
    "figure in the log beyond half a unit of its last digit.",
)

# -- damage and how runs ended -------------------------------------------------------------------------------------


def damaged(damage: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    """Files that could not be read as records, from the lines of `Dataset.damage`."""
    for campaign, lines in damage.items():
        for line in lines:
            text, told = f"A damaged file was left out: {line}.", {"damage": line}
            yield Finding("schema", "error", campaign, None, None, text, told)


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


def _failed(*, again: bool) -> Cases:
    """Runs that did not end well. Where another attempt did, nothing is missing, and the finding is for the record."""

    def cases(view: View) -> list[Case]:
        good = {_slot(run) for run in view.runs if run.record.status == "ok"}
        return [
            (run, f"{run.record.status}: {run.record.status_reason}")
            for run in _left(view)
            if run.record.status != "ok" and (_slot(run) in good) is again
        ]

    return cases


def _slot(run: Stored) -> tuple[Cell, int]:
    return run.record.cell, run.record.iteration


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


def _first(read: Callable[[Record, Reread], Iterator[str]]) -> Problems:
    """The first thing in which a record and its evidence differ: a log of another run differs in everything."""

    def first(view: View, stored: Stored) -> Iterator[str]:
        answer = view.evidence.of(stored).answer
        if answer is not None and (answer.complete or answer.truncated):
            yield from islice(read(stored.record, answer), 1)

    return first


def _figures_otherwise(record: Record, answer: Reread) -> Iterator[str]:
    """The figures of a record that log or report contradict, and how."""
    for name, value in record.metrics.items():
        metric, found, said = metric_of(name, value), answer.value(name), value.value
        lost = found is None and answer.truncated
        is_read = value.source in ("log", "report") and not lost
        printed, half_digit = answer.printed.get(name, (said, 0.0))
        if is_read and not _same(said, found):
            where = str(value.source)
        elif not _same(said, printed, half_digit):
            where, found = "log, as printed", printed
        else:
            continue
        hint = mixed_units(said or 0.0, found or 0.0)
        told, other = (
            "nothing" if one is None else f"{one:.6g} {metric.unit}".strip()
            for one in (said, found)
        )
        yield f"{metric.within_sentence}: {told} in the record, and {other} in the {where}{hint}"


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


def _same(said: Any, found: Any, off: float = 0.0) -> bool:
    """Whether two values are the same, figures up to what printing and parsing changes, and `off`."""
    if isinstance(said, int | float) and isinstance(found, int | float):
        return abs(said - found) - off <= PRINTED_TOLERANCE * max(abs(said), abs(found))
    return bool(said == found)


# -- which model ran ----------------------------------------------------------------------------------------------


def _contradicted(_view: View, stored: Stored) -> Iterator[str]:
    """What the evidence of a run shows of another model."""
    record = stored.record
    problems = identity.contradictions(
        record.requested, record.observed, record.metrics
    )
    if problems:
        yield f"of {record.requested.model_id}, {'; '.join(problems)}"


def _silent(view: View, stored: Stored) -> Iterator[str]:
    """Runs of language models that show none, not even as the name that a server which was there before gives it."""
    record = stored.record
    is_named = is_of_running_server(record) and record.observed.model_path
    if record.value(THROUGHPUT) is None or is_named:
        return
    shown = identity.shown(record.observed, record.metrics)
    if not shown and not any(_contradicted(view, stored)):
        yield ""


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


def foreign_files(dataset: Dataset) -> Iterator[Finding]:
    """One finding for each kind of foreign file in each campaign, and for each kind of those that are in none."""
    # In an owner's folder `gather` puts nothing but what belongs there.
    own = (each for each in dataset.campaigns.values() if each.owner is None)
    folders = {campaign.folder.parent for campaign in own}
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for data in sorted(filter(Path.is_dir, folders | {dataset.folder})):
        for name, kind in _foreign(dataset, data):
            campaign = name.parts[0]
            place = campaign if campaign in dataset.campaigns else ""
            found[place, kind].append(name.as_posix())
    for (place, kind), names in found.items():
        severity, so = _KINDS[kind]
        text = f"No part of a campaign: {listed(names, 'files')} ({kind}). {so}."
        about = place or names[0].partition("/")[0]
        evidence = {"what": kind, "files": names}
        yield Finding("foreign-file", severity, about, None, None, text, evidence)


def _foreign(dataset: Dataset, data: Path) -> Iterator[tuple[Path, str]]:
    """The names of what lies in a data folder and does not belong there, each with its kind."""
    campaigns = campaign_folders(data)
    here = (each for each in dataset.campaigns.values() if each.folder.parent == data)
    own = {file for campaign in here for run in campaign.runs for file in run.files}
    own |= {folder / CAMPAIGN_FILE for folder in campaigns}
    for entry in everything(data):
        path, kind = Path(entry.path), _kind(entry)
        is_unnamed = kind == "named by no record"
        if kind is None or (is_unnamed and path in own):
            continue
        name = path.relative_to(data)
        campaign = name.parts[0]
        # Who compares two folders loads the campaigns that differ. And nothing tells which evidence belongs to a record
        # that could not be read.
        is_told = not is_unnamed
        if not dataset.damage.get(campaign):
            is_told = campaign in dataset.campaigns or data / campaign not in campaigns
        if is_told:
            yield name, kind


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
    """The facts that runs of a campaign lack, so that no check can judge them, with how many do: `the log, the
    machine (63 of 63 runs)`."""
    records = campaign.records
    by_number: dict[int, list[str]] = defaultdict(list)
    for fact, read in _FACTS.items():
        by_number[sum(not read(record) for record in records)].append(fact)
    every = counted(len(records), "run")
    return [
        f"{', '.join(facts)} ({lacking} of {every})"
        for lacking, facts in by_number.items()
        if lacking
    ]


DIFFERED = "differed from the evidence"
CHECKS = (
    Check(
        "schema",
        "Can every record be read?",
        ("error",),
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
                Wrong(_changed_files, among=lambda view: view.runs),
                "error",
                takes_out=True,
            ),
        ),
        remedy="Restore the file from git.",
    ),
    Check(
        "exit-status",
        "Did every run succeed?",
        kind="happened",
        asked=(
            Asked("did not succeed (excluded)", _failed(again=False), takes_out=True),
            Asked(
                "did not succeed, and another attempt did",
                _failed(again=True),
                "info",
                takes_out=True,
            ),
        ),
        remedy="Read the reason and the end of the log, then run sparkpub collect --retry-failed.",
        imported=ASK,
    ),
    Check(
        "missing-report",
        "Did the engine report a result?",
        kind="happened",
        asked=(
            Asked(
                "ended without a result",
                Wrong(_no_result, among=_good),
                "error",
                takes_out=True,
            ),
        ),
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
                Wrong(_without_log(handed_over=False), among=_good),
                "error",
                takes_out=True,
            ),
            Asked(
                "came without a log: the figures are as published, and nothing shows the model",
                Wrong(_without_log(handed_over=True), among=_good),
            ),
        ),
        remedy="Keep the log of the tool and of the server beside the results, and import them together.",
    ),
    Check(
        "metric-mismatch",
        "Does the record agree with log and report?",
        kind="happened",
        asked=(
            Asked(
                DIFFERED,
                Wrong(_first(_figures_otherwise), among=_good),
                "error",
                takes_out=True,
            ),
            Asked(DIFFERED, Wrong(_first(_facts_otherwise)), "error"),
        ),
        remedy="Restore record and evidence from git, or import the results again.",
    ),
    Check(
        "identity",
        "Did the requested model run?",
        asked=(
            Asked(
                "showed another model than was asked for",
                Wrong(_contradicted),
                "error",
            ),
            Asked(
                "showed nothing of which model ran: the name is what was asked for, not what was seen",
                Wrong(_silent),
            ),
        ),
        remedy="Keep the server's log, which names the model that it loaded, and correct a name that is wrong.",
    ),
    Check(
        "foreign-file",
        "Does everything in the data folder belong to a campaign?",
        raises=("error", "info"),
        remedy="Delete it.",
    ),
)
