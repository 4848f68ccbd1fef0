"""Where runs belong: their environment, which tells builds of one model apart.

Two builds of a model are two cells, and only what has the same variant is a repetition. An environment is called as the
results or the command line say, else by the variant: `vllm-nvfp4-mtp`. Where one name stands for several builds, what
people call them follows it, else what differs. A build that the campaign has already keeps its name.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from sparkpub.collect.imports.facts import counted, of_the_server
from sparkpub.collect.imports.given import (
    CONTAINER,
    Draft,
    Given,
    Left,
)
from sparkpub.record.errors import UsageError
from sparkpub.record.record import Record
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import read_folder
from sparkpub.tools.asked import as_key
from sparkpub.tools.variant import backend, variant


class _Build(NamedTuple):
    """What makes two builds of one model different ones."""

    image: str | None
    machines: int | None
    weights: str | None
    version: str | None
    backend: str | None
    called: str | None
    settings: tuple[tuple[str, str], ...]

    def apart(self, others: Sequence["_Build"]) -> str:
        """What this build has otherwise than any of the others; empty where only settings tell them apart."""
        said = [
            str(getattr(self, name))
            for name in ("called", "backend", "version", "weights")
            if getattr(self, name)
            and any(getattr(self, name) != getattr(each, name) for each in others)
        ]
        if self.machines and any(self.machines != each.machines for each in others):
            said.append(f"{self.machines}-machine{'s' if self.machines > 1 else ''}")
        return "-".join(said)


def placed(
    found: Sequence[Draft | Left], folder: Path, given: Given
) -> Iterator[Draft | Left]:
    """Everything found, each draft with its environment.

    Raises UsageError where there are drafts and none has one.
    """
    drafts = [_in_environment(item) for item in found if isinstance(item, Draft)]
    lefts = [item for item in found if isinstance(item, Left)]
    homeless = [draft for draft in drafts if draft.environment is None]
    if homeless and given.environment is None and len(homeless) == len(drafts):
        raise UsageError(
            "these results don't say where they ran", remedy="add --environment native"
        )
    yield from lefts
    for draft in homeless:
        yield Left(draft.source, "it does not say where it ran; add --environment")
    at_home = [draft for draft in drafts if draft.environment is not None]
    names = _EnvironmentKeys(at_home, folder, given.about.machine.count)
    for draft in at_home:
        yield replace(draft, environment=names.of(draft))


def _in_environment(draft: Draft) -> Draft:
    """With the number of machines that the facts or the names say, and the environment: the variant of a table's row
    that names its engine, else a container where an image is named."""
    facts = draft.facts
    if facts.nodes is None:
        named = counted(draft.source) or counted(draft.model_id or draft.model)
        facts = replace(facts, nodes=named)
    environment = draft.environment
    if environment is None and draft.is_of_table and draft.observed.engine:
        parts = variant(draft.observed, facts.nodes).values()
        environment = as_key("-".join([*parts, facts.variant or ""]))
    elif environment is None and facts.image is not None:
        environment = CONTAINER
    return replace(draft, facts=facts, environment=environment)


class _EnvironmentKeys:
    """The names of the environments of builds."""

    def __init__(
        self, drafts: Sequence[Draft], folder: Path, machines: int | None
    ) -> None:
        self._redactor = Redactor()
        self._machines = machines
        self._builds: dict[object, dict[_Build, None]] = defaultdict(dict)
        for draft in drafts:
            self._builds[_place(draft)][self._build(draft)] = None
        self._there: dict[str, dict[str, list[Record]]] = defaultdict(dict)
        for stored in read_folder(folder) if folder.is_dir() else ():
            record = stored.record
            records = self._there[record.model].setdefault(record.environment, [])
            records.append(record)

    def of(self, draft: Draft) -> str:
        """The name of a draft's environment."""
        plain, build = str(draft.environment), self._build(draft)
        builds = [*self._builds[_place(draft)]]
        others = [other for other in builds if other != build]
        there = {
            name: records
            for name, records in self._there[draft.model].items()
            if f"{name}-".startswith(f"{plain}-")
        }
        if not (others or there) or build == _NOTHING:
            return plain
        for name, records in there.items():
            if any(_is_of(record, build) for record in records):
                return name
        if not others and plain not in there:
            return plain
        own = build.called
        if own is None or [other.called for other in builds].count(own) > 1:
            own = build.apart(others) if others else ""
        return as_key(f"{plain}-{own or builds.index(build) + 1 + len(there)}")

    def _build(self, draft: Draft) -> _Build:
        """As the record of a draft would have it."""
        seen, facts = draft.observed, draft.facts
        settings = self._redactor.options(facts.settings)
        return _Build(
            facts.image,
            self._machines or facts.nodes,
            facts.weights and seen.quantization,
            seen.engine_version,
            backend(seen.settings),
            facts.variant,
            of_the_server(settings),
        )


_NOTHING = _Build(None, None, None, None, None, None, ())


def _place(draft: Draft) -> tuple[str, str | None]:
    return draft.model, draft.environment


def _is_of(record: Record, build: _Build) -> bool:
    """Whether a record is of a build, by what both say; settings that only the tool says are not compared."""
    seen = record.observed
    own = (
        record.requested.environment.get("image"),
        record.machine.count,
        seen.engine_version or build.version,
        backend(seen.settings),
    )
    if own != (build.image, build.machines, build.version, build.backend):
        return False
    is_weighed = build.weights in (None, seen.quantization)
    said = seen.settings
    return is_weighed and all(said.get(name) == value for name, value in build.settings)
