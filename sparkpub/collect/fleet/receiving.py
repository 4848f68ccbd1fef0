"""Runs as they arrive from other machines: looked at before they are believed, then written as local ones are."""

import hashlib
from pathlib import Path

from pydantic import ValidationError

from sparkpub.collect import invoker, journal
from sparkpub.collect.fleet.node import Delivery
from sparkpub.record.errors import RecordError, field_problems
from sparkpub.record.record import Record
from sparkpub.record.store import Stored, write_atomic


def received(delivery: Delivery, campaign: str) -> Record:
    """The record of a run that arrived whole. Raises RecordError where anything in it is not as it should be."""
    remedy = "install the same sparkpub on every machine, and look at that machine's disk and network"
    try:
        record = Record.model_validate_json(delivery.record)
    except ValidationError as error:
        raise RecordError(
            f"a record that cannot be read: {field_problems(error)[0]}", remedy=remedy
        ) from None
    problem = _problem(record, delivery, campaign)
    if problem is not None:
        raise RecordError(problem, where=f"run {record.run_id}", remedy=remedy)
    return record


def _problem(record: Record, delivery: Delivery, campaign: str) -> str | None:
    """What is wrong with a run; None where nothing is."""
    if record.campaign != campaign:
        return f"it is of campaign {record.campaign}"
    for item in record.evidence:
        content = delivery.files.get(item.path)
        if not item.path.startswith(f"{record.stem}."):
            return f"{item.path} is the name of another run's file"
        if content is None:
            return f"{item.path} did not arrive"
        if hashlib.sha256(content).hexdigest() != item.sha256:
            return f"{item.path} arrived damaged"
    return None


def written(folder: Path, record: Record, delivery: Delivery) -> Stored:
    """Write the evidence, then the record: whoever sees a record finds its files."""
    for item in record.evidence:
        path = folder / item.path
        write_atomic(path, delivery.files[item.path])
        invoker.give(path)
    return journal.finish(folder, record)
