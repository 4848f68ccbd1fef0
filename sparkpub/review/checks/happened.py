"""Whether a run properly happened, and its record says what its evidence does: damage, exit status, log, report."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from sparkpub.record.metrics import mixed_units
from sparkpub.record.record import Record, metric_of
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.evidence import Reread
from sparkpub.review.checks.finding import Finding, Severity, Threshold
from sparkpub.review.checks.view import Case, View

PRINTED_TOLERANCE = Threshold(
    "printed tolerance",
    1e-6,
    "Allowed relative difference between a recorded figure and its evidence, due to printing and parsing numbers; of a "
    "figure in the log beyond half a unit of its last digit.",
)


def damaged(campaign: str, lines: Iterable[str]) -> Iterator[Finding]:
    """Files that could not be read as records, from the lines of `Dataset.damage`."""
    for line in lines:
        text = f"A damaged file was left out: {line}."
        yield Finding("schema", "error", campaign, None, None, text, {"damage": line})


def schema(view: View) -> Iterator[Finding]:
    """Damaged records, which are nowhere in the figures."""
    yield from damaged(view.campaign.name, view.damage)


def checksum(view: View) -> Iterator[Finding]:
    """Evidence that is gone or differs from the sum that its record carries."""
    for stored in view.runs:
        for item in stored.record.evidence:
            lies = view.evidence.of(stored).sums[item.path]
            how = "is missing" if lies.bytes is None else "has other content"
            if lies != (item.bytes, item.sha256):
                text = f"The {item.role} {item.path} {how}."
                yield view.finding("checksum", "error", text, run=stored)


def exit_status(view: View) -> Iterator[Finding]:
    """Runs that did not end well. Where a later attempt did, nothing is missing, and the finding is for the record."""
    runs = [(run, run.record) for run in view.runs]
    good = {(*run.cell, run.iteration) for _, run in runs if run.status == "ok"}
    for stored, record in runs:
        if record.status != "ok" and record.run_id not in view.out:
            again = (*record.cell, record.iteration) in good
            then = "A later attempt succeeded." if again else "It is excluded."
            text = f"This run ended as {record.status}: {record.status_reason}. {then}"
            severity: Severity = "info" if again else "warning"
            yield view.finding("exit-status", severity, text, run=stored)


def _good(view: View) -> list[Stored]:
    """The runs that call themselves good and that nobody has taken out yet."""
    return [
        run
        for run in view.runs
        if run.record.status == "ok" and run.run_id not in view.out
    ]


def _published_only(record: Record) -> bool:
    """Whether every figure of a run was taken from a publication, so that no evidence can be asked for."""
    return all(value.source == "published" for value in record.metrics.values())


def missing_log(view: View) -> Iterator[Finding]:
    """Runs without a log. Figures that were only ever published cannot have one: a warning, and nothing leaves. Nor
    does a report that somebody handed over without its log: it carries its own figures."""
    without: dict[str, list[Case]] = defaultdict(list)
    for run in _good(view):
        record, so = run.record, NOTHING_SHOWS
        if _published_only(record):
            so = "The figures are as published and cannot be checked"
        elif record.plan.order == "as-published" and record.file("report"):
            so = "The figures are the report's; nothing shows the model"
        if record.file("log") is None:
            without[so].append((run, ""))
    for so, runs in without.items():
        text = f"Without a log: {{}}. {so}"
        severity: Severity = "error" if so == NOTHING_SHOWS else "warning"
        yield from view.tell("missing-log", severity, text, runs)


NOTHING_SHOWS = "Nothing shows that the figures are right"


def missing_report(view: View) -> Iterator[Finding]:
    """Runs that call themselves good although the engine never gave its result."""
    without = [
        (run, problem)
        for run in _good(view)
        if not _published_only(run.record) and (problem := _no_result(view, run))
    ]
    yield from view.tell(
        "missing-report", "error", "{} ended without a result", without
    )


def _no_result(view: View, stored: Stored) -> str | None:
    record, answer = stored.record, view.evidence.of(stored).answer
    if all(value.value is None for value in record.metrics.values()):
        return "it ended with exit code 0 but has no figures"
    reported = any(value.source == "report" for value in record.metrics.values())
    if reported and record.file("report") is None:
        return "its figures are recorded as coming from a report, but there is none"
    if answer is not None and not answer.complete and not answer.truncated:
        return "; ".join(answer.problems) or "the report is incomplete"
    return None


# -- the record against its evidence -------------------------------------------------------------------------------


def metric_mismatch(view: View) -> Iterator[Finding]:
    """Recorded figures that their own log or report contradicts, and reports that their own log contradicts. Figures
    with a checksum fault are not read."""
    return _differing(view, _good(view), _figures_otherwise)


def mistaken_facts(view: View) -> Iterator[Finding]:
    """Records that say of engine, model, load or machine what their own log and report contradict."""
    return _differing(view, view.happened, _facts_otherwise)


def _differing(
    view: View,
    runs: Sequence[Stored],
    problems: Callable[[Record, Reread], Iterator[str]],
) -> Iterator[Finding]:
    """One finding for all of them, each run with the first thing: a log of another run differs in everything."""
    answers = ((run, view.evidence.of(run).answer) for run in runs)
    wrong = [
        (run, problem)
        for run, answer in answers
        if answer is not None and (answer.complete or answer.truncated)
        for problem in islice(problems(run.record, answer), 1)
    ]
    text = "{} differs|differ from the evidence"
    yield from view.tell("metric-mismatch", "error", text, wrong)


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
    again = answer.observed
    said, found = (
        {name.replace("_", " "): has for name, has in seen if name != "settings"}
        | seen.settings
        for seen in (record.observed, again)
    )
    gpus, device = [gpu.name for gpu in record.machine.gpus], again.device or ""
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


CHECKS = (
    Check(
        "schema",
        "happened",
        ("error",),
        "Can every record be read?",
        schema,
        remedy="Restore the file from git, or delete it.",
    ),
    Check(
        "checksum",
        "happened",
        ("error",),
        "Is all evidence unchanged?",
        checksum,
        remedy="Restore the file from git.",
    ),
    Check(
        "exit-status",
        "happened",
        ("warning", "info"),
        "Did every run succeed?",
        exit_status,
        remedy="Read the reason and the end of the log, then run sparkpub collect --retry-failed.",
    ),
    Check(
        "missing-report",
        "happened",
        ("error",),
        "Did the engine report a result?",
        missing_report,
        remedy="Read the end of the log, then run sparkpub collect --retry-failed.",
    ),
    Check(
        "missing-log",
        "happened",
        ("error", "warning"),
        "Is there a log to check the figures against?",
        missing_log,
        remedy="Keep the log of the tool and of the server beside the results, and import them together.",
    ),
    Check(
        "metric-mismatch",
        "happened",
        ("error",),
        "Does the record agree with log and report?",
        metric_mismatch,
        thresholds=(PRINTED_TOLERANCE,),
        remedy="Restore record and evidence from git, or import the results again.",
        of_what_counts=mistaken_facts,
    ),
)
