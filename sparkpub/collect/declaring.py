"""The campaign that a matrix declares: its file, and whether its name is free."""

from collections.abc import Sequence
from pathlib import Path

from sparkpub.collect import invoker
from sparkpub.plan.matrix import Matrix
from sparkpub.record import store
from sparkpub.record.campaign import Campaign
from sparkpub.record.errors import CollectError
from sparkpub.record.record import Record


def refuse_another_campaign(
    matrix: Matrix, records: Sequence[Record], folder: Path
) -> None:
    """Raise CollectError where the campaign's name is that of runs of which the matrix declares none."""
    measured = {record.cell for record in records}
    if not measured or not measured.isdisjoint(matrix.cells()):
        return
    known = "/".join(min(measured))
    what = (
        f"campaign {matrix.campaign} is there already with other cells than the matrix "
        f"declares, as {known}"
    )
    remedy = "give the matrix another campaign: name, or another folder with --data"
    raise CollectError(what, where=str(folder), remedy=remedy)


def declare(folder: Path, matrix: Matrix) -> str | None:
    """Write campaign.json with the matrix as run. What people decided in it stays. Returns what changed, in words."""
    path = folder / store.CAMPAIGN_FILE
    document = matrix.document()
    changed = None
    if path.exists():
        known = store.read_campaign(folder)
        if known.matrix is None:
            what = f"campaign {matrix.campaign} was imported without a matrix"
            raise CollectError(
                what, where=str(path), remedy="give the matrix another campaign: name"
            )
        if known.matrix == document:
            return None
        changed = f"{path} declares the changed matrix from now on"
        campaign = known.model_copy(update={"matrix": document, "title": matrix.title})
    else:
        invoker.make_folder(folder)
        campaign = Campaign(
            campaign=matrix.campaign,
            title=matrix.title,
            matrix=document,
            licence=matrix.licence,
        )
    store.write_atomic(path, store.to_json(campaign))
    invoker.give(path)
    return changed
