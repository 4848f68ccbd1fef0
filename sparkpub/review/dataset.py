"""Data folders -> validated records, by campaign.

`load` is strict: one damaged record stops it, unless the caller asks to skip (the preview does, with a line in
its log).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sparkpub.plan import coverage
from sparkpub.plan import matrix as matrices
from sparkpub.plan.coverage import Coverage
from sparkpub.plan.matrix import Matrix
from sparkpub.record import owner as owners
from sparkpub.record.campaign import Campaign
from sparkpub.record.derived import derived
from sparkpub.record.errors import CollectError, MatrixError, RecordError
from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.record import Record, metric_of
from sparkpub.record.store import (
    Stored,
    campaign_folders,
    everything,
    file_sha256,
    read_campaign,
    read_record,
    record_paths,
)


class Later(Sequence[Stored]):
    """The runs of a campaign of which is kept how many they are, and some examples: their records are read where
    somebody asks for one. Raises RecordError then, where they are damaged meanwhile."""

    def __init__(
        self, known: "Kept", read: Callable[[], tuple[Sequence[Stored], object]]
    ) -> None:
        self._known, self._read = known, read

    @cached_property
    def _runs(self) -> Sequence[Stored]:
        return self._read()[0]

    def __len__(self) -> int:
        return self._known[0]

    def examples(self) -> Sequence[Record] | None:
        """See `CampaignData.examples`; None where they are lost."""
        return self._known[1]()

    def __getitem__(self, index: Any) -> Any:
        return self._runs[index]


Kept = tuple[int, Callable[[], Sequence[Record] | None]]
"""How many runs a campaign has, and what gives its examples."""
KeptOf = Callable[[Path, owners.Owner], Kept | None]
"""What is kept of an owner's campaign, by its folder; None where all has to be read."""


@dataclass(frozen=True)
class CampaignData:
    """One campaign as loaded. `runs` are in the order in which they ran."""

    info: Campaign
    folder: Path
    runs: Sequence[Stored]
    owner: owners.Owner | None = None
    """Whose it is, where it was gathered; None of one's own."""

    @property
    def name(self) -> str:
        """The campaign's key."""
        return self.info.campaign

    @property
    def address(self) -> str:
        """Where a gathered campaign lies at its owner's commit: its folder, or the results that were imported."""
        assert self.owner is not None
        at = self.owner.address
        return at if self.owner.imported else f"{at}/{self.folder.name}"

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """The records of `runs`, in the same order."""
        return tuple(stored.record for stored in self.runs)

    @cached_property
    def examples(self) -> Sequence[Record]:
        """The first run of each kind, and the last of all, in order of time. Which cells, machines, metrics and origins
        there are is the same of them as of all."""
        kept = self.runs.examples() if isinstance(self.runs, Later) else None
        if kept is not None:
            return kept
        last = {record.run_id: record for record in self.records[-1:]}
        firsts: dict[object, Record] = {}
        for record in self.records:
            firsts.setdefault(_kind(record), record)
        named = {record.run_id: record for record in firsts.values()}
        return tuple((named | last).values())

    @cached_property
    def digests(self) -> Sequence[tuple[str, str]]:
        """The name of every file in its folder, and the SHA-256 of what it holds."""
        return [
            (entry.name, file_sha256(Path(entry.path)))
            for entry in everything(self.folder)
            if entry.is_file(follow_symlinks=False)
        ]

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """Every metric of its runs, by name, in the order met; behind them those that follow from others."""
        found: dict[str, Metric] = {}
        follow: dict[str, Metric] = {}
        for record in self.examples:
            for name, value in record.metrics.items():
                if name not in found:
                    found[name] = metric_of(name, value)
            follow |= {name: METRICS[name] for name in derived(record)}
        return {**found, **follow}

    @cached_property
    def quarantined(self) -> Mapping[str, str]:
        """Run id to the reason for which people took it out."""
        return {item.run: item.reason for item in self.info.quarantined}

    @cached_property
    def matrix(self) -> Matrix | None:
        """The matrix as run, or None for an import without one."""
        if self.info.matrix is None:
            return None
        return matrices.from_document(self.info.matrix, str(self.folder))

    @cached_property
    def axes(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Models, environments and workloads in the order of the matrix, then of the runs."""

        def keys(axis: str) -> tuple[str, ...]:
            declared = getattr(self.matrix, f"{axis}s", ())
            ran = map(attrgetter(axis), self.examples)
            return tuple(dict.fromkeys([*declared, *ran]))

        return keys("model"), keys("environment"), keys("workload")

    @cached_property
    def baseline(self) -> str:
        """The environment that others are compared with: the matrix's, else `native`, else the first that ran."""
        if self.matrix is not None:
            return self.matrix.baseline_environment
        names = [record.environment for record in self.examples]
        return "native" if "native" in names else next(iter(names), "")

    @property
    def margin_percent(self) -> float:
        """The equivalence margin that the matrix declares, or the default of one."""
        declared = Matrix.model_fields["equivalence_margin_percent"].default
        return float(getattr(self.matrix, "equivalence_margin_percent", declared))

    @property
    def imported(self) -> bool:
        """Whether runs of the campaign were measured elsewhere: its matrix was then written afterwards."""
        return self.info.origin is not None or any(
            record.origin is not None for record in self.examples
        )

    @cached_property
    def published(self) -> bool:
        """Whether others measured all of its runs."""
        return all(record.plan.order == "as-published" for record in self.examples)

    @cached_property
    def covered(self) -> Mapping[tuple[str, str, str], Coverage]:
        """Planned runs by cell: done, failed, quarantined and missing; empty where nothing says what was planned."""
        if self.matrix is None:
            return {}
        try:
            return coverage.by_cell(self.matrix, self.records, self.quarantined)
        except CollectError:
            return {}  # the runs are of another matrix; `collect` refuses to go on with this one

    @cached_property
    def unfinished_cells(self) -> Collection[tuple[str, str, str]]:
        """Cells of which `collect` would still measure runs. An import has none, nor has a campaign that was ended."""
        if self.imported or self.info.ended is not None:
            return ()
        return {cell for cell, found in self.covered.items() if found.missing}

    def awaits(self, cells: Collection[tuple[str, str, str]] | None = None) -> bool:
        """Whether good runs of these cells, by default of any, are all still to come."""
        if self.imported or self.info.ended is not None:
            return False
        return not any(
            record.status == "ok" and (cells is None or record.cell in cells)
            for record in self.records
        )

    @property
    def planned_and_done(self) -> tuple[int, int]:
        """How many runs are planned, and how many of them are done."""
        found = self.covered.values()
        return sum(each.planned for each in found), sum(each.done for each in found)

    @property
    def progress(self) -> str:
        """How far the collection is, in words: `4 of 20 planned runs are done`."""
        planned, done = self.planned_and_done
        return f"{done} of {planned} planned runs are done"

    @cached_property
    def margin_declared(self) -> bool:
        """Whether the margin was declared before the first run: the collector stores the matrix before it measures, and
        each run records its margin; what was imported got its matrix, and its margin, afterwards."""
        if self.matrix is None or self.imported:
            return False
        recorded = [record.plan.analysis for record in self.records]
        margins = {found.margin_percent for found in recorded if found is not None}
        return margins <= {self.margin_percent}


@dataclass(frozen=True, eq=False)
class Dataset:
    """All campaigns of one or more data folders, by name. Equal to itself alone, so that a review can be kept of it."""

    folder: Path
    """The first folder, for messages."""
    campaigns: Mapping[str, CampaignData]
    damage: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What could not be read and was left out, a line each, by the name of the campaign's folder. Where the data folder
    lies is nobody's business on a page: files are named from there."""

    @cached_property
    def runs(self) -> tuple[Stored, ...]:
        """The runs of all campaigns."""
        return tuple(chain(*(each.runs for each in self.campaigns.values())))

    @cached_property
    def by_id(self) -> Mapping[str, Stored]:
        """Run id to run."""
        return {stored.run_id: stored for stored in self.runs}

    def campaign(self, name: str) -> CampaignData:
        """One campaign. Raises RecordError naming those there are."""
        if name not in self.campaigns:
            raise RecordError(
                f"no campaign {name!r}",
                where=str(self.folder),
                remedy=f"there are: {', '.join(self.campaigns) or 'none'}",
            )
        return self.campaigns[name]

    def is_gathered(self, campaign: str) -> bool:
        """Whether a campaign is another owner's."""
        found = self.campaigns.get(campaign)
        return found is not None and found.owner is not None

    def only(self, name: str) -> "Dataset":
        """The same with one campaign, and its damage."""
        campaigns = {name: self.campaigns[name]} if name in self.campaigns else {}
        damage = {name: self.damage[name]} if name in self.damage else {}
        return replace(self, campaigns=campaigns, damage=damage)


def load(
    data: Path,
    *more: Path,
    skip: Callable[[str], None] | None = None,
    kept_of: KeptOf = lambda _folder, _owner: None,
    known: Mapping[Path, "CampaignData"] = MappingProxyType({}),
) -> Dataset:
    """Every campaign of the data folders; those of owners of which something is kept have their runs `Later`. What is
    `known` of a folder is not read again.

    Raises RecordError with all damage, unless `skip` takes each as a line.
    """
    campaigns: dict[str, CampaignData] = {}
    found: list[tuple[Path, str]] = []
    for folder in chain(*map(campaign_folders, (data, *more))):
        loaded, damage = known.get(folder), list[str]()
        if loaded is None:
            loaded, damage = _campaign(folder, kept_of)
        found += [(folder, line) for line in damage]
        if loaded is None:
            continue
        first = campaigns.setdefault(loaded.name, loaded)
        if first is not loaded:
            line = f"campaign {loaded.name} lies in two data folders, {first.folder} and {folder}; rename one"
            found.append((first.folder, line))
    found += _twice(campaigns)
    lines = [line for _, line in found]
    if lines and skip is None:
        raise RecordError(lines[0], others=lines[1:])
    by_campaign: dict[str, list[str]] = {}
    for folder, line in found:
        named = line.replace(f"{folder.parent}/", "")
        by_campaign.setdefault(folder.name, []).append(named)
        if skip is not None:
            skip(line)
    return Dataset(data, campaigns, by_campaign)


FilesState = Mapping[Path, tuple[int, int, int]]
"""Path to inode, size and time of modification of every file of data folders."""


def state_of(folders: Iterable[Path]) -> FilesState:
    """The files of data folders as they are now: where nothing differs, a preview need not read them again."""
    found = {}
    for folder in folders:
        for path in folder.glob("*/*"):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue  # gone meanwhile
            found[path] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return found


def _campaign(folder: Path, kept_of: KeptOf) -> tuple[CampaignData | None, list[str]]:
    """One campaign's folder, None where campaign.json is damaged; and each damaged file as one line."""
    damage: list[str] = []
    try:
        owner, info = owners.of(folder.parent), read_campaign(folder)
    except RecordError as error:
        return None, [*_runs(folder, None)[1], *error.lines()]
    if owner is not None:
        # What its owner acknowledges binds nobody here.
        info = owners.as_owned(info, owner).model_copy(update={"acknowledged": ()})
        known = kept_of(folder, owner)
        if known is not None:
            later = Later(known, partial(_runs, folder, owner))
            return CampaignData(info, folder, later, owner), []
    runs, damage = _runs(folder, owner)
    try:
        campaign = CampaignData(info, folder, tuple(runs), owner)
        _ = campaign.matrix
    except MatrixError as error:
        return None, damage + error.lines()
    for run in sorted(campaign.quarantined.keys() - {stored.run_id for stored in runs}):
        text = f"quarantined: {run} is no run of this campaign, {folder}/campaign.json; correct the run id"
        damage.append(text)
    return campaign, damage


def _kind(record: Record) -> object:
    """What may differ between two runs of a cell, but for their figures."""
    about = record.machine.id, record.plan.order, record.origin, record.status
    return record.cell, about, tuple(record.metrics)


def _runs(folder: Path, owner: owners.Owner | None) -> tuple[list[Stored], list[str]]:
    """The runs of a campaign's folder in order of time, and each damaged record as one line."""
    runs: list[Stored] = []
    damage: list[str] = []
    for path in record_paths(folder):
        try:
            run = read_record(path)
        except RecordError as error:
            damage += error.lines()
            continue
        if owner is not None:
            owned = owners.as_owned(run.record, owner)
            run = replace(run, record=owned, is_gathered=True)
        runs.append(run)
    return sorted(runs, key=in_order_of_time), damage


def in_order_of_time(stored: Stored) -> tuple[str, int, str]:
    """What runs are sorted by: when they began, then place in the plan."""
    record = stored.record
    return record.started.value, record.plan.position, record.run_id


def _twice(campaigns: Mapping[str, CampaignData]) -> Iterator[tuple[Path, str]]:
    """Run ids that stand twice, each with the campaign's folder."""
    seen: dict[str, Path] = {}
    for campaign in campaigns.values():
        if isinstance(campaign.runs, Later):
            continue  # its runs bear its owner's name, and were read when it was kept
        for run in campaign.runs:
            other = seen.setdefault(run.run_id, run.path)
            if other is not run.path:
                text = f"run_id: {run.run_id} stands twice, {run.path} and {other.name}; remove the copy"
                yield campaign.folder, text
