"""Taking a run out of the figures and putting it back: a line in campaign.json, nothing deleted."""

from sparkpub.record.errors import UsageError
from sparkpub.record.store import CAMPAIGN_FILE, read_campaign, to_json, write_atomic
from sparkpub.review.dataset import Dataset


def quarantine(dataset: Dataset, run: str, reason: str | None) -> str:
    """Take a run out for a reason, or with None put it back. Returns the campaign's name.

    Raises UsageError for an unknown run, an empty reason, or a run to be put back that is not out.
    """
    stored = dataset.by_id.get(run)
    if stored is None:
        raise UsageError(
            f"no run {run!r}",
            where=str(dataset.folder),
            remedy="give a run id as a record carries it",
        )
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
