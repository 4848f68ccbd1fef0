"""Taking a run out of the figures and putting it back: a line in campaign.json, nothing deleted."""

from pathlib import Path

from sparkpub.record.errors import UsageError
from sparkpub.record.store import CAMPAIGN_FILE, read_campaign, to_json, write_atomic
from sparkpub.review.dataset import Dataset


def meant(dataset: Dataset, name: str) -> str:
    """The id of the run that has this id, or a file of this name.

    Raises UsageError where none has.
    """
    last = Path(name).name
    for run in dataset.runs:
        if last == run.run_id or last in {file.name for file in run.files}:
            return run.run_id
    remedy = "give a run id as a record carries it"
    raise UsageError(f"no run {name!r}", where=str(dataset.folder), remedy=remedy)


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
