"""Whether a run properly happened and its evidence is whole: damage, exit status, log, report."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from sparkpub.record.metrics import Metric, mixed_units
from sparkpub.record.record import MetricValue, Observed, Record, metric_of
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.evidence import Reread
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import Case, View, about_metrics, listed
from sparkpub.review.grouping import grouped

PRINTED_TOLERANCE = Threshold(
    "printed tolerance",
    1e-6,
    "Allowed relative difference between a recorded figure and the log, beyond half a unit of the last printed digit.",
)
RELATIVE_TOLERANCE = Threshold(
    "relative tolerance",
    1e-06,
    "Allowed relative difference between a recorded figure and its evidence, due to printing and parsing numbers.",
)

_DIFFERS = "differs from its own evidence in"
_DIFFER = "differ from their own evidence in"
_HANDED_OVER = (
    "The figures are the report's; nothing shows the model, or the memory that it took."
)
_NO_RUN = frozenset({"unbalanced", "missing-cell"})
"""A run that did not happen is missing from its cell."""
_UNIT_DAMAGE = re.compile(r"metrics\.\w+\.(?:unit|value)")


def damaged(campaign: str, lines: Iterable[str], *, units: bool) -> Iterator[Finding]:
    """Files that could not be read as records, from the lines of `Dataset.damage`: those whose fault is a
    metric's unit or range where `units`, else all others."""
    name = "unit" if units else "schema"
    for line in lines:
        if bool(_UNIT_DAMAGE.search(line)) is units:
            text = f"A damaged file was left out: {line}."
            yield Finding(name, "error", campaign, None, None, text, {"damage": line})


def schema(view: View) -> Iterator[Finding]:
    """Damaged records, which are nowhere in the figures."""
    yield from damaged(view.campaign.name, view.damage, units=False)


def checksum(view: View) -> Iterator[Finding]:
    """Evidence that is gone or differs from the sum that its record carries."""
    for stored in view.runs:
        for item in stored.record.evidence:
            lies = view.evidence.of(stored).sums[item.path]
            if lies.is_of(item):
                continue
            if lies.size is None:
                how = "of this run is missing"
            elif lies.size == item.bytes:
                how = "differs from the recorded file: other content of the same size"
            else:
                how = f"differs from the recorded file: {lies.size:,} bytes instead of {item.bytes:,}"
            yield view.finding(
                "checksum",
                "error",
                f"The {item.role} {item.path} {how}.",
                run=stored,
                file=item.path,
                expected=item.sha256,
                found=lies.sha256,
            )


def exit_status(view: View) -> Iterator[Finding]:
    """Runs that did not end well. Where a later attempt did, nothing is missing, and the finding is for the record."""
    good = {
        (*run.record.cell, run.record.iteration)
        for run in view.runs
        if run.record.status == "ok"
    }
    for stored in view.standing:
        record = stored.record
        if record.status != "ok":
            again = (*record.cell, record.iteration) in good
            text = f"This run ended as {record.status}: {record.status_reason}."
            text += " A later attempt succeeded." if again else " It is excluded."
            yield view.finding(
                "exit-status",
                "info" if again else "warning",
                text,
                run=stored,
                status=record.status,
                exit_code=record.exit_code,
            )


def published_only(stored: Stored) -> bool:
    """Whether every figure of a run was taken from a publication, so that no evidence can be asked for."""
    return all(value.source == "published" for value in stored.record.metrics.values())


def missing_log(view: View) -> Iterator[Finding]:
    """Runs without a log. Figures that were only ever published cannot have one: a warning, and nothing leaves."""
    without = [run for run in _good(view) if run.record.file("log") is None]
    for (severity, so), runs in grouped(without, _unproven).items():
        yield from view.together(
            "missing-log",
            severity,
            runs,
            lambda words, so=so: f"Without a log: {words}. {so}",  # type: ignore[misc]
        )


def _unproven(stored: Stored) -> tuple[Severity, str]:
    """What follows where a run has no log."""
    if published_only(stored):
        return "warning", "The figures are as published and cannot be checked."
    if stored.record.plan.order == "as-published" and stored.record.file("report"):
        # A report that somebody handed over without its log still carries its own figures.
        return "warning", _HANDED_OVER
    return "error", "Nothing shows that the figures are right."


def missing_report(view: View) -> Iterator[Finding]:
    """Runs that call themselves good although the engine never gave its result."""
    without = [
        (run, problem)
        for run in _good(view)
        if not published_only(run) and (problem := _no_result(view, run))
    ]
    yield from view.cases("missing-report", "error", without, "ended without a result")


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


def _good(view: View) -> list[Stored]:
    """The runs that call themselves good and that nobody has taken out yet."""
    return [run for run in view.standing if run.record.status == "ok"]


def metric_mismatch(view: View) -> Iterator[Finding]:
    """Recorded figures that their own log or report contradicts, and reports that their own log contradicts. Figures
    with a checksum fault are not read."""
    wrong: list[Case] = []
    metrics: dict[str, Metric] = {}
    for stored in _good(view):
        record, answer = stored.record, view.evidence.of(stored).answer
        if answer is not None and (answer.complete or answer.truncated):
            problems = list(_contradictions(record, answer))
            metrics |= {name: view.metrics[name] for name, _ in problems}
            # A log of another run differs in every figure: the first of them tells it.
            wrong += [(stored, problem) for _, problem in problems[:1]]
    labels = listed([metric.label for metric in metrics.values()], "metrics")
    yield from view.cases(
        "metric-mismatch",
        "error",
        wrong,
        f"{_DIFFERS} {labels}",
        f"{_DIFFER} {labels}",
        **about_metrics(list(metrics)),
    )


def _contradictions(record: Record, answer: Reread) -> Iterator[tuple[str, str]]:
    """The figures of a record that log or report contradict, and how."""
    for name, value in record.metrics.items():
        problem = _contradiction(answer, name, value)
        if problem is not None:
            yield name, problem


def _contradiction(answer: Reread, name: str, value: MetricValue) -> str | None:
    """What log or report say otherwise of one figure, in words."""
    metric: Metric = metric_of(name, value)
    if value.source in ("log", "report"):
        found = answer.values.get(name)
        if not _same(value.value, found) and not (found is None and answer.truncated):
            recorded, hint = (
                _text(value.value, metric),
                mixed_units(value.value or 0.0, found or 0.0),
            )
            return f"the record has {recorded}, and the {value.source} has {_text(found, metric)}{hint}"
    if name in answer.printed and value.value is not None:
        printed, half_digit = answer.printed[name]
        if abs(printed - value.value) > half_digit + PRINTED_TOLERANCE * abs(printed):
            return f"the record has {_text(value.value, metric)}, and the log prints {_text(printed, metric)}"
    return None


def mistaken_facts(view: View) -> Iterator[Finding]:
    """Records that say of engine, model, load or machine what their own log and report contradict."""
    wrong: dict[str, list[Case]] = defaultdict(list)
    for stored in view.happened:
        answer = view.evidence.of(stored).answer
        if answer is None or answer.truncated:
            continue
        for name, problem in _observed_otherwise(stored.record, answer.observed):
            wrong[name].append((stored, problem))
    for name, cases in wrong.items():
        yield from view.cases(
            "metric-mismatch",
            "error",
            cases,
            f"{_DIFFERS} {name}",
            f"{_DIFFER} {name}",
            what=name,
        )


def _observed_otherwise(record: Record, again: Observed) -> Iterator[tuple[str, str]]:
    """The name of each fact that the record and its evidence both know, and differently; with the two."""
    pairs: dict[str, tuple[Any, Any]] = {}
    for field in Observed.model_fields:
        if field != "settings":
            name = field.replace("_", " ")
            pairs[name] = getattr(record.observed, field), getattr(again, field)
    for name, value in again.settings.items():
        pairs[name] = record.observed.settings.get(name), value
    gpus = [gpu.name for gpu in record.machine.gpus]
    device = again.device or ""
    if device.startswith("NVIDIA ") and not any(name in device for name in gpus):
        pairs["GPU"] = next(iter(gpus), None), device
    for name, (said, found) in pairs.items():
        if said is not None and found is not None and not _alike(said, found):
            yield name, f"the record has {said}, and the evidence has {found}"


def _alike(said: object, found: object) -> bool:
    """Whether two values are the same, figures up to what printing and parsing changes."""
    if isinstance(said, int | float) and isinstance(found, int | float):
        return _same(float(said), float(found))
    return said == found


def _text(value: float | None, metric: Metric) -> str:
    return "nothing" if value is None else f"{value:.6g} {metric.unit}".strip()


def _same(recorded: float | None, found: float | None) -> bool:
    if recorded is None or found is None:
        return recorded is found
    return abs(recorded - found) <= RELATIVE_TOLERANCE * max(abs(recorded), abs(found))


CHECKS = (
    Check(
        "schema",
        "happened",
        ("error",),
        "Can every record be read?",
        schema,
        implies=_NO_RUN,
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
        implies=_NO_RUN,
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
        thresholds=(RELATIVE_TOLERANCE, PRINTED_TOLERANCE),
        remedy="Restore record and evidence from git, or import the results again.",
        of_what_counts=mistaken_facts,
    ),
)
