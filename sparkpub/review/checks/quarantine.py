"""Taking a run out of the figures and putting it back: a line in campaign.json, nothing deleted."""

from sparkpub.record.errors import UsageError
from sparkpub.record.store import CAMPAIGN_FILE, read_campaign, to_json, write_atomic
from sparkpub.record.text import counted
from sparkpub.review.dataset import Dataset

_SHOWN = 3
"""Runs that a line lists where several are meant."""


def meant(dataset: Dataset, name: str) -> str:
    """The id of the run that a name means: its id, one of its files, its page's address, or a beginning of its id or of
    a file's name that no other run has.

    Raises UsageError where none is meant, or several.
    """
    address = name.strip().partition("#")[0].removesuffix("index.html")
    last = address.rstrip("/").rpartition("/")[2]
    exactly: set[str] = set()
    begins: set[str] = set()
    for run in dataset.runs:
        words = [run.run_id, *(file.name for file in run.files)]
        if last in words:
            exactly.add(run.run_id)
        if last and any(word.startswith(last) for word in words):
            begins.add(run.run_id)
    found = sorted(exactly or begins)
    if len(found) == 1:
        return found[0]
    what = f"no run {name!r}"
    remedy = "give a run id as a record carries it"
    if found:
        what = f"{counted(len(found), 'run')} begin with {last!r}"
        remedy = f"give one: {', '.join(found[:_SHOWN])}"
    raise UsageError(what, where=str(dataset.folder), remedy=remedy)


def quarantine(dataset: Dataset, run: str, reason: str | None) -> str:
    """Take a run out for a reason, or with None put it back. Returns the campaign's name.

    Raises UsageError for an empty reason, or a run to be put back that is not out.
    """
    path = dataset.by_id[run].path.parent / CAMPAIGN_FILE
    # Read again, and not from the dataset: somebody may have edited the file since.
    info = read_campaign(path.parent)
    if reason is None:
        if run not in {item.run for item in info.quarantined}:
            what = f"run {run!r} is not in quarantine"
            raise UsageError(what, where=str(path), remedy="nothing to undo")
    else:
        reason = " ".join(reason.split())
        if not reason:
            remedy = "say with --reason why it is taken out"
            raise UsageError("no reason given", where=f"run {run}", remedy=remedy)
    write_atomic(path, to_json(info.with_quarantine(run, reason)))
    return info.campaign
