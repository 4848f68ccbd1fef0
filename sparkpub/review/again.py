"""Evidence of committed records read again: what this version finds in it and the record does not have yet."""

from collections.abc import Iterator
from pathlib import Path

from sparkpub.record.record import Record
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import Stored, read_folder
from sparkpub.review.checks.evidence import EvidenceReader, Reread


def read_again(folder: Path) -> Iterator[tuple[Stored, Record]]:
    """The runs of a campaign whose evidence says more than their record, each with the record that has it, too.

    Evidence that is not as it was recorded is passed over, and so are runs that do not count. Raises RecordError.
    """
    reader = EvidenceReader()
    for stored in read_folder(folder):
        answer = reader.of(stored).answer
        if answer is None or answer.truncated or stored.record.status != "ok":
            continue
        record = _with_new(stored.record, answer)
        if record != stored.record:
            yield stored, record


def _with_new(record: Record, answer: Reread) -> Record:
    """What the record has stays, word by word."""
    metrics = {
        name: metric
        for name, metric in answer.metrics.items()
        if name not in record.metrics and metric.value is not None
    }
    samples = {name: answer.samples[name] for name in metrics if name in answer.samples}
    seen = record.observed
    facts = {
        name: value
        for name, value in answer.observed
        if getattr(seen, name) is None and value is not None
    }
    settings = Redactor().options(answer.observed.settings)
    facts["settings"] = {**settings, **seen.settings}
    return record.model_copy(
        update={
            "metrics": {**record.metrics, **metrics},
            "samples": {**record.samples, **samples},
            "observed": seen.model_copy(update=facts),
        }
    )
