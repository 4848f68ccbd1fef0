"""Taking a run out of the figures and putting it back: a line in campaign.json, nothing deleted."""

import difflib

from sparkpub.record.errors import UsageError
from sparkpub.record.store import CAMPAIGN_FILE, read_campaign, to_json, write_atomic
from sparkpub.record.text import counted
from sparkpub.review.dataset import Dataset

_SHOWN = 3
"""Runs that a line lists where none or several are meant."""


def meant(dataset: Dataset, name: str) -> str:
    """The id of the run that a name means: its id, one of its files, its page's address, or a beginning of its id or of
    a file's name that no other run has.

    Raises UsageError with near ones where none is meant, or several.
    """
    address, _, _ = name.strip().partition("#")
    last = address.removesuffix("index.html").rstrip("/").rpartition("/")[2]
    exact = [
        run.run_id
        for run in dataset.runs
        if last in (run.run_id, *(file.name for file in run.files))
    ]
    begun = [
        run.run_id
        for run in dataset.runs
        if last and (run.run_id.startswith(last) or run.path.name.startswith(last))
    ]
    found = exact or begun
    if len(found) == 1:
        return found[0]
    where = str(dataset.folder)
    if found:
        what = f"{counted(len(found), 'run')} begin with {last!r}"
        raise UsageError(what, where=where, remedy=f"give one: {_listed(found)}")
    near = difflib.get_close_matches(last, dataset.by_id, n=_SHOWN, cutoff=0.5)
    remedy = "give a run id as a record carries it"
    if near:
        remedy = f"near are: {_listed(near)}"
    raise UsageError(f"no run {name!r}", where=where, remedy=remedy)


def _listed(runs: list[str]) -> str:
    """Some of the runs."""
    return ", ".join(runs[:_SHOWN]) + (", ..." if len(runs) > _SHOWN else "")


def quarantine(dataset: Dataset, run: str, reason: str | None) -> str:
    """Take a run out for a reason, or with None put it back. Returns the campaign's name.

    Raises UsageError for an empty reason, or a run to be put back that is not out.
    """
    stored = dataset.by_id[run]
    path = stored.path.parent / CAMPAIGN_FILE
    # Read again, and not from the dataset: somebody may have edited the file since.
    info = read_campaign(path.parent)
    if reason is None and all(item.run != run for item in info.quarantined):
        raise UsageError(
            f"run {run!r} is not in quarantine",
            where=str(path),
            remedy="nothing to undo",
        )
    if reason is not None:
        reason = " ".join(reason.split())
        if not reason:
            raise UsageError(
                "no reason given",
                where=f"run {run}",
                remedy="say with --reason why it is taken out",
            )
    write_atomic(path, to_json(info.with_quarantine(run, reason)))
    return info.campaign
