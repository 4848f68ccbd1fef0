"""What is worked out once for the data, their commits and this program, and kept in the cache: what the checks find in
a campaign, with its three tables as Parquet, and all pages but those that people wrote. What is gone or damaged there
is worked out again.
"""

import io
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from sparkpub.record import package
from sparkpub.record.owner import ARENA_FILE, Owner
from sparkpub.record.record import Record
from sparkpub.record.store import file_sha256
from sparkpub.review.checks import Finding, Review
from sparkpub.review.checks.copies import RunTrace
from sparkpub.review.checks.reviewing import Judged, judged, traces
from sparkpub.review.committed import head
from sparkpub.review.dataset import CampaignData, Dataset, Kept
from sparkpub.review.names import Names
from sparkpub.review.results import Results
from sparkpub.review.reviewed import ReviewedCampaign, ReviewedDataset
from sparkpub.review.tables.column import Columns, table
from sparkpub.site import workers
from sparkpub.site.cache import Cache, key
from sparkpub.site.content import File, Packed, SiteOptions, packed
from sparkpub.site.pages.downloads import TABLES
from sparkpub.site.sources import CLAIMS_FILE, FACTS_FILE
from sparkpub.site.stamp import program

Said = tuple[int, dict[str, str], Sequence[Finding]]
"""How many runs a campaign has, which of them are out and why, and what was found in it."""
AHEAD_FROM = 300
"""Runs to be judged from which other processes take part: fewer do not pay for their start."""


def judging(dataset: Dataset, cache: Cache) -> Callable[[Dataset, str], Judged]:
    """What judges the campaigns of a dataset, with their tables: as kept, else worked out. Where that is much, all are
    judged at once, here beginning with the largest."""
    named = {name: _made_from(campaign) for name, campaign in dataset.campaigns.items()}
    sizes = {
        name: len(dataset.campaigns[name].runs)
        for name, made_from in named.items()
        if made_from and cache.get(key(made_from, "said")) is None
    }
    if sum(sizes.values()) >= AHEAD_FROM:
        begun = [
            workers.begin(_keep, dataset.only(name), name, named[name], cache)
            for name in sorted(sizes, key=sizes.__getitem__)
        ]
        for result in reversed(begun):
            result()

    def judge(dataset: Dataset, name: str) -> Judged:
        made_from, campaign = named[name], dataset.campaigns[name]
        if not made_from:  # nothing would tell two campaigns apart
            return judged(dataset, name)
        last = _last.get(name)
        if last and last[0].campaign is campaign and last[0].made_from == made_from:
            return last
        said = _said(cache, made_from)
        _, out, findings = said or _keep(dataset, name, made_from, cache)
        kept = partial(_kept, cache, made_from, campaign.folder)
        _last[name] = ReviewedCampaign(campaign, out, kept, made_from), findings
        return _last[name]

    return judge


_last: dict[str, Judged] = {}
"""The campaigns that were judged last, whose tables are there: most of a preview are as they were."""


def kept_of(cache: Cache, folder: Path, owner: Owner) -> Kept | None:
    """What is kept of an owner's campaign; None where it has to be judged."""
    made_from = _made_from_owner(folder, owner)
    said = _said(cache, made_from)
    if said is None:
        return None
    return said[0], partial(_kept, cache, made_from, folder, "examples")


def _made_from(campaign: CampaignData) -> str:
    """A digest of what decides what is found in a campaign; empty where no file of it is there."""
    if campaign.owner is not None:
        return _made_from_owner(campaign.folder, campaign.owner)
    files = campaign.digests
    return key(program(), head(campaign.folder), files) if files else ""


def _made_from_owner(folder: Path, owner: Owner) -> str:
    """The same of an owner's: `gather` verified what it placed there, and its commit names it."""
    return key(program(), owner.model_dump(), folder.name)


def _said(cache: Cache, made_from: str) -> Said | None:
    """What was said of a campaign; None where it has to be judged."""
    with suppress(ValidationError):
        return _SAID.validate_json(cache.get(key(made_from, "said")) or b"")
    return None


def _kept(cache: Cache, made_from: str, folder: Path, name: str) -> Any:
    """A table, the traces, or the examples; None for what is not there, or damaged."""
    part = cache.get(key(made_from, name)) or b""
    with suppress(ValueError, TypeError, zlib.error):
        if name in TABLES:
            return _read(part, TABLES[name])
        if name == "examples":
            return _RECORDS.validate_json(zlib.decompress(part))
        found = _TRACES.validate_json(part)
        return [one._replace(path=folder / one.path.name) for one in found]
    return None


def _keep(dataset: Dataset, name: str, made_from: str, cache: Cache) -> Said:
    """Judge a campaign, and keep what is said of it, what follows and what it was judged by."""
    reviewed, findings = judged(dataset, name)
    results = Results(ReviewedDataset(dataset, {name: reviewed}))
    for about in TABLES:
        rows = getattr(results, about).to_parquet(index=False)
        cache.put(key(made_from, about), rows)
    cache.put(key(made_from, "traces"), _TRACES.dump_json([*traces(reviewed)]))
    campaign = dataset.campaigns[name]
    examples = _RECORDS.dump_json([*campaign.examples], exclude_defaults=True)
    cache.put(key(made_from, "examples"), zlib.compress(examples, 1))
    said = len(campaign.runs), {**reviewed.out}, findings
    cache.put(key(made_from, "said"), _SAID.dump_json(said))
    return said


def beside(options: SiteOptions) -> str:
    """A digest of what decides what pages say beside campaigns and their own text."""
    sources = options.sources
    files = (
        options.repository / ARENA_FILE,
        sources / CLAIMS_FILE,
        sources / FACTS_FILE,
    )
    return key(
        program(),
        package.public_source(),
        (options.name, options.url, options.home, options.repo_url),
        [file_sha256(path) if path.is_file() else None for path in files],
    )


def decided_by(review: Review, options: SiteOptions) -> str:
    """A digest of all that decides what pages say but their own text; empty where nothing says it."""
    campaigns = [each.made_from for each in review.campaigns.values()]
    return key(beside(options), options.commits, campaigns) if all(campaigns) else ""


def basis(review: Review, names: Names, campaigns: Iterable[str]) -> str:
    """A digest of what decides what is said of these campaigns alone: their data, what was found in them, and what they
    are called beside others; empty where nothing says it."""
    parts: list[object] = []
    for campaign in campaigns:
        reviewed = review.campaigns.get(campaign)
        if reviewed is None or not reviewed.made_from:
            return ""
        called = names.campaign(campaign)
        found = [
            each.document() for each in review.findings if each.campaign == campaign
        ]
        about = reviewed.made_from, reviewed.out, called.models, called.by_axis
        parts.append((campaign, *about, found))
    return key(parts)


def files_once(
    name: str, cache: Cache, begin: Callable[[], Callable[[], dict[str, File]]]
) -> Callable[[], Mapping[str, File]]:
    """What gives pages and files by address: those that are kept under a name, else what `begin` gives."""
    known = files(name, cache)
    if known is not None:
        return lambda: known
    finish = begin()

    def made() -> dict[str, File]:
        found = finish()
        keep_files(name, cache, found)
        return found

    return made


def keep_files(name: str, cache: Cache, files: Mapping[str, File]) -> None:
    """Keep pages and files by address; nothing without a name."""
    if name:
        cache.put(name, packed(files))


def files(name: str, cache: Cache) -> Packed | None:
    """The same again; None for what is not there, or damaged."""
    with suppress(BadZipFile):
        return Packed([cache.get(name) or b""])
    return None


_SAID = TypeAdapter(Said)
_TRACES = TypeAdapter(list[RunTrace])
_RECORDS = TypeAdapter(list[Record])


def _read(content: bytes, columns: Columns) -> pd.DataFrame:
    """A table as it was before it was Parquet, which has arrays for lists."""
    found = pd.read_parquet(io.BytesIO(content))
    lists: dict[str, Any] = {
        name: [tuple(value.tolist()) for value in found[name]]
        for name, column in columns.items()
        if column.kind == "list"
    }
    return table(columns, found.assign(**lists))
