"""Data folders -> validated records, by campaign.

`load` is strict: one damaged record stops it, unless the caller asks to skip (the preview does, with a line in
its log). A `Loader` reads only what changed since it read last and, with a keeper, since any command read last.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sparkpub.plan import matrix as matrices
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.requested import problems
from sparkpub.record.campaign import Campaign
from sparkpub.record.errors import MatrixError, RecordError
from sparkpub.record.record import Record
from sparkpub.record.shared_parts import SharedParts
from sparkpub.record.store import (
    REMEDY,
    Stored,
    campaign_folders,
    read_campaign,
    read_record,
    record_paths,
)
from sparkpub.review.memory import FileState, Keeper, Memory, state_of


@dataclass(frozen=True)
class CampaignData:
    """One campaign as loaded. `runs` are in the order in which they ran."""

    info: Campaign
    folder: Path
    runs: tuple[Stored, ...]
    memory: Memory = field(default_factory=Memory, compare=False, repr=False)
    """What was worked out from this campaign and nothing else: as long as no file of it changes, it holds."""

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
        if self.info.matrix is None:
            return None
        return matrices.from_document(self.info.matrix, str(self.folder))

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
        if "native" in names:
            return "native"
        return next(iter(names), "")

    @property
    def margin_percent(self) -> float:
        """The equivalence margin that the matrix declares, or the default of one."""
        if self.matrix is not None:
            return float(self.matrix.equivalence_margin_percent)
        return float(Matrix.model_fields["equivalence_margin_percent"].default)

    @cached_property
    def margin_declared(self) -> bool:
        """Whether the margin was declared before the first run: the collector stores the matrix before it measures, and
        each run records its margin; what was imported got its matrix, and its margin, afterwards."""
        imported = self.info.origin is not None or any(
            record.origin is not None for record in self.records
        )
        if self.matrix is None or imported:
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


def load(
    data: Path,
    *more: Path,
    skip: Callable[[str], None] | None = None,
    keeper: Keeper | None = None,
) -> Dataset:
    """Every campaign of the data folders, read once; see `Loader.load`."""
    return Loader(keeper).load(data, *more, skip=skip)


class Loader:
    """Reads data folders again and again, as a preview does, and parses only what changed since the last time.

    A campaign in which no file changed is the same object as before, so that what was worked out from it holds. With a
    keeper, records that an earlier command found whole are not read until somebody asks for them.
    """

    def __init__(self, keeper: Keeper | None = None) -> None:
        self._keeper = keeper
        self._records: dict[Path, tuple[FileState, Stored]] = {}
        self._campaigns: dict[Path, CampaignData] = {}
        self._looked_at: dict[Path, Memory] = {}

    def load(
        self, data: Path, *more: Path, skip: Callable[[str], None] | None = None
    ) -> Dataset:
        """Every campaign of the data folders.

        Raises RecordError with all damage, unless `skip` takes each as a line.
        """
        campaigns: dict[str, CampaignData] = {}
        problems: list[str] = []
        for root in (data, *more):
            for folder in campaign_folders(root):
                loaded, damage = self._campaign(folder)
                problems += damage
                if loaded is None:
                    continue
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

    def load_campaign(self, folder: Path) -> Dataset | None:
        """One campaign alone; None where any of its files is damaged."""
        loaded, damage = self._campaign(folder)
        if loaded is None or damage:
            return None
        return Dataset(folder.parent, {loaded.name: loaded})

    def memory(self, folder: Path) -> Memory:
        """What is known of a campaign's folder as it is now; the campaign is loaded as it is now, too."""
        memory = Memory(folder, state_of(folder), self._keeper)
        self._looked_at[folder] = memory
        return memory

    def _campaign(self, folder: Path) -> tuple[CampaignData | None, list[str]]:
        """One campaign's folder, None where campaign.json is damaged; and each damaged file as one line."""
        memory = self._looked_at.pop(folder, None)
        if memory is None:
            memory = Memory(folder, state_of(folder), self._keeper)
        known = self._campaigns.get(folder)
        if known is not None and known.memory.state == memory.state:
            return known, []
        runs, problems = self._runs(folder, memory)
        try:
            campaign = CampaignData(read_campaign(folder), folder, runs, memory)
            _ = campaign.matrix
        except (RecordError, MatrixError) as error:
            return None, problems + error.lines()
        if not problems:
            self._campaigns[folder] = campaign
        return campaign, problems

    def _runs(
        self, folder: Path, memory: Memory
    ) -> tuple[tuple[Stored, ...], list[str]]:
        """The runs in the order in which they ran, and each damaged file as one line."""
        listed = memory.document(_RUNS)
        if listed is not None:
            parts = SharedParts()
            runs = [Stored(None, folder / name, run, parts) for run, name in listed]
            return tuple(runs), []
        runs, problems = [], []
        for path in record_paths(folder):
            try:
                runs.append(self._record(path, memory.state.get(path.name)))
            except RecordError as error:
                problems += error.lines()
        runs.sort(key=_when)
        if not problems:
            memory.keep(_RUNS, [(run.run_id, run.path.name) for run in runs])
        return tuple(runs), problems

    def _record(self, path: Path, state: FileState | None) -> Stored:
        """A record, as it was read before where its file did not change."""
        known = self._records.get(path)
        if known is not None and known[0] == state:
            return known[1]
        stored = read_record(path)
        damage = [f"{problem}, {path}; {REMEDY}" for problem in problems(stored.record)]
        if damage:
            raise RecordError(damage[0], others=damage[1:])
        if state is not None:
            self._records[path] = state, stored
        return stored


_RUNS = ("runs",)
"""Under which a campaign's memory holds the id and file name of each run."""


def _when(stored: Stored) -> tuple[str, int, str]:
    """What runs are ordered by: time, then place in the plan."""
    record = stored.record
    return record.started.value, record.plan.position, record.run_id


def _identity_problems(campaigns: Mapping[str, CampaignData]) -> list[str]:
    """Run ids that stand twice, and quarantines that name no run."""
    problems = []
    seen: dict[str, Path] = {}
    for campaign in campaigns.values():
        for stored in campaign.runs:
            other = seen.setdefault(stored.run_id, stored.path)
            if other is not stored.path:
                text = f"run_id: {stored.run_id} stands twice, {stored.path} and {other.name}; remove the copy"
                problems.append(text)
        runs = {stored.run_id for stored in campaign.runs}
        for run in sorted(set(campaign.quarantined) - runs):
            text = f"quarantined: {run} is no run of this campaign, {campaign.folder}/campaign.json; correct the run id"
            problems.append(text)
    return problems
