"""Data folders -> validated records, by campaign.

`load` is strict: one damaged record stops it, unless the caller asks to skip (the preview does, with a line in
its log). A `Loader` knows parsed records by path, size and modification time, and reads only what changed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sparkpub.plan import matrix as matrices
from sparkpub.plan.matrix import Matrix
from sparkpub.record.campaign import Campaign
from sparkpub.record.errors import RecordError
from sparkpub.record.record import Record
from sparkpub.record.store import (
    Stored,
    campaign_folders,
    read_campaign,
    read_record,
    record_paths,
)

FileState = tuple[int, int]
"""Size in bytes and modification time in nanoseconds."""
EvidenceState = tuple[int, list[int | None]]
"""A run, by identity, and when each of its files was modified."""


@dataclass(frozen=True)
class CampaignData:
    """One campaign as loaded. `runs` are in the order in which they ran."""

    info: Campaign
    folder: Path
    runs: tuple[Stored, ...]
    kept: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)
    """What was worked out from this campaign and nothing else: as long as it does not change, it holds."""

    @property
    def name(self) -> str:
        """The campaign's key."""
        return self.info.campaign

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """The records of `runs`, in the same order."""
        return tuple(stored.record for stored in self.runs)

    @cached_property
    def quarantined(self) -> Mapping[str, str]:
        """Run id to the reason for which people took it out."""
        return {item.run: item.reason for item in self.info.quarantined}

    @cached_property
    def matrix(self) -> Matrix | None:
        """The matrix as run, or None for an import without one."""
        return (
            None
            if self.info.matrix is None
            else matrices.from_document(self.info.matrix, str(self.folder))
        )

    @cached_property
    def axes(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Models, environments and workloads in the order of the matrix, then of the runs."""
        models: list[str] = []
        environments: list[str] = []
        workloads: list[str] = []
        if self.matrix is not None:
            models += self.matrix.models
            environments += self.matrix.environments
            workloads += self.matrix.workloads
        for record in self.records:
            models.append(record.model)
            environments.append(record.environment)
            workloads.append(record.workload)
        return (
            tuple(dict.fromkeys(models)),
            tuple(dict.fromkeys(environments)),
            tuple(dict.fromkeys(workloads)),
        )

    @property
    def baseline(self) -> str:
        """The environment that others are compared with: the matrix's, else `native`, else the first that ran."""
        if self.matrix is not None:
            return self.matrix.baseline_environment
        names = [record.environment for record in self.records]
        return "native" if "native" in names else next(iter(names), "")

    @property
    def margin_percent(self) -> float:
        """The equivalence margin that the matrix declares, or the default of one."""
        default = Matrix.model_fields["equivalence_margin_percent"].default
        return float(
            default if self.matrix is None else self.matrix.equivalence_margin_percent
        )

    @cached_property
    def margin_declared(self) -> bool:
        """Whether the margin was declared before the first run: the collector stores the matrix before it measures;
        what was imported got its matrix, and its margin, afterwards."""
        imported = self.info.origin is not None or any(
            record.origin is not None for record in self.records
        )
        return self.matrix is not None and not imported


@dataclass(frozen=True, eq=False)
class Dataset:
    """All campaigns of one or more data folders, by name. Equal to itself alone, so that a review can be kept of it."""

    folder: Path
    """The first folder, for messages."""
    campaigns: Mapping[str, CampaignData]
    skipped: tuple[str, ...] = ()
    """Damaged files that a preview left out, each as one line."""

    @cached_property
    def runs(self) -> tuple[Stored, ...]:
        """The runs of all campaigns."""
        return tuple(
            stored for campaign in self.campaigns.values() for stored in campaign.runs
        )

    @cached_property
    def by_id(self) -> Mapping[str, Stored]:
        """Run id to run."""
        return {stored.record.run_id: stored for stored in self.runs}

    def campaign(self, name: str) -> CampaignData:
        """One campaign. Raises RecordError naming those there are."""
        if name not in self.campaigns:
            raise RecordError(
                f"no campaign {name!r}",
                where=str(self.folder),
                remedy=f"there are: {', '.join(self.campaigns) or 'none'}",
            )
        return self.campaigns[name]


def load(data: Path, *more: Path, skip: Callable[[str], None] | None = None) -> Dataset:
    """Every campaign of the data folders, read once; see `Loader.load`."""
    return Loader().load(data, *more, skip=skip)


class Loader:
    """Reads data folders again and again, as a preview does, and parses only what changed since the last time.

    A campaign in which no file changed is the same object as before, so that what was worked out from it holds.
    """

    def __init__(self) -> None:
        self._records: dict[Path, tuple[FileState, Stored]] = {}
        self._campaigns: dict[Path, tuple[CampaignData, list[EvidenceState]]] = {}

    def load(
        self, data: Path, *more: Path, skip: Callable[[str], None] | None = None
    ) -> Dataset:
        """Every campaign of the data folders.

        Raises RecordError with all damage, unless `skip` takes each as a line.
        """
        campaigns: dict[str, CampaignData] = {}
        problems: list[str] = []
        for folder in (
            folder for root in (data, *more) for folder in campaign_folders(root)
        ):
            loaded, damage = self._campaign(folder)
            problems += damage
            if loaded is not None:
                first = campaigns.setdefault(loaded.name, loaded)
                if first is not loaded:
                    places = f"{first.folder} and {folder}"
                    problems.append(
                        f"campaign {loaded.name} lies in two data folders, {places}; rename one"
                    )
        problems += _identity_problems(campaigns)
        if problems and skip is None:
            raise RecordError(problems[0], others=problems[1:])
        for problem in problems:
            assert skip is not None
            skip(problem)
        return Dataset(data, campaigns, tuple(problems))

    def _campaign(self, folder: Path) -> tuple[CampaignData | None, list[str]]:
        """One campaign's folder, None where campaign.json is damaged; and each damaged file as one line."""
        runs, problems = [], []
        for path in record_paths(folder):
            try:
                runs.append(self._record(path))
            except RecordError as error:
                problems += error.lines()
        try:
            info = read_campaign(folder)
        except RecordError as error:
            return None, problems + error.lines()
        runs.sort(
            key=lambda stored: (
                stored.record.started.value,
                stored.record.plan.position,
                stored.record.run_id,
            )
        )
        evidence = [
            (
                id(run),
                [_modified(run.evidence_path(item)) for item in run.record.evidence],
            )
            for run in runs
        ]
        known, then = self._campaigns.get(folder, (None, None))
        if known is None or known.info != info or then != evidence:
            known = CampaignData(info, folder, tuple(runs))
            self._campaigns[folder] = known, evidence
        return known, problems

    def _record(self, path: Path) -> Stored:
        try:
            status = path.stat()
        except OSError as error:
            what = f"cannot be read: {error.strerror}"
            raise RecordError(
                what, where=str(path), remedy="restore it from git"
            ) from None
        state = (status.st_size, status.st_mtime_ns)
        known = self._records.get(path)
        if known is None or known[0] != state:
            known = state, read_record(path)
            self._records[path] = known
        return known[1]


def _modified(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _identity_problems(campaigns: Mapping[str, CampaignData]) -> list[str]:
    """Run ids that stand twice, and quarantines that name no run."""
    problems, seen = [], dict[str, Path]()
    for campaign in campaigns.values():
        for stored in campaign.runs:
            other = seen.setdefault(stored.record.run_id, stored.path)
            if other != stored.path:
                text = f"run_id: {stored.record.run_id} stands twice, {stored.path} and {other.name}; remove the copy"
                problems.append(text)
        for run in sorted(
            set(campaign.quarantined) - {record.run_id for record in campaign.records}
        ):
            text = f"quarantined: {run} is no run of this campaign, {campaign.folder}/campaign.json; correct the run id"
            problems.append(text)
    return problems
