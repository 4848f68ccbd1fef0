"""Taking a run out of the figures and putting it back: a line in campaign.json, nothing deleted."""

from sparkpub.campaign import Campaign, Quarantine
from sparkpub.dataset import Dataset
from sparkpub.errors import UsageError
from sparkpub.store import CAMPAIGN_FILE, read_campaign, to_json, write_atomic


def quarantine(dataset: Dataset, run: str, reason: str) -> str:
    """Take a run out. Returns the campaign's name. Raises UsageError for an unknown run or an empty reason."""
    reason = " ".join(reason.split())
    if not reason:
        raise UsageError("no reason given", where=f"run {run}", remedy="say with --reason why the run is taken out")
    return _edit(dataset, run, Quarantine(run=run, reason=reason))


def release(dataset: Dataset, run: str) -> str:
    """Put a run back. Returns the campaign's name. Raises UsageError where it is not in quarantine."""
    return _edit(dataset, run, None)


def _edit(dataset: Dataset, run: str, entry: Quarantine | None) -> str:
    stored = dataset.by_id.get(run)
    if stored is None:
        raise UsageError(f"no run {run!r}", where=str(dataset.folder), remedy="give a run id as a record carries it")
    folder = stored.path.parent
    # Read again, and not from the dataset: somebody may have edited the file since.
    info: Campaign = read_campaign(folder)
    others = tuple(item for item in info.quarantined if item.run != run)
    if entry is None and len(others) == len(info.quarantined):
        raise UsageError(
            f"run {run!r} is not in quarantine", where=str(folder / CAMPAIGN_FILE), remedy="nothing to undo"
        )
    kept = others if entry is None else (*others, entry)
    write_atomic(folder / CAMPAIGN_FILE, to_json(info.model_copy(update={"quarantined": kept})))
    return info.campaign
