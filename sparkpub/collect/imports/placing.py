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

from sparkpub.collect.imports.drafts import Draft
from sparkpub.collect.imports.facts import of_the_server
from sparkpub.collect.imports.given import Left
from sparkpub.record.errors import UsageError
from sparkpub.record.record import Record
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import read_folder
from sparkpub.tools.asked import as_key
from sparkpub.tools.variant import backend


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


def placed(found: Sequence[Draft | Left], folder: Path) -> Iterator[Draft | Left]:
    """Everything found, each draft with its environment.

    Raises UsageError where there are drafts and none has one.
    """
    drafts = [item for item in found if isinstance(item, Draft)]
    at_home = [draft for draft in drafts if draft.environment is not None]
    if drafts and not at_home:
        raise UsageError(
            "these results don't say where they ran", remedy="add --environment native"
        )
    for item in found:
        if isinstance(item, Left):
            yield item
        elif item.environment is None:
            why = "it does not say where it ran; add --environment"
            yield Left(item.source, why)
    redactor = Redactor()
    known = [item.record for item in read_folder(folder)] if folder.is_dir() else []
    made = [_build(draft, redactor) for draft in at_home]
    names: dict[tuple[str, str], dict[_Build, str]] = defaultdict(dict)
    for draft, build in zip(at_home, made, strict=True):
        names[draft.model, str(draft.environment)][build] = ""
    for (model, plain), builds in names.items():
        there = [
            record
            for record in known
            if (record.model, f"{record.environment}-"[: len(plain) + 1])
            == (model, f"{plain}-")
        ]
        builds |= {build: _name(plain, build, [*builds], there) for build in builds}
    for draft, build in zip(at_home, made, strict=True):
        name = names[draft.model, str(draft.environment)][build]
        yield replace(draft, environment=name)


def _build(draft: Draft, redactor: Redactor) -> _Build:
    """As the record of a draft would have it."""
    seen, facts = draft.observed, draft.facts
    return _Build(
        facts.image,
        draft.machine.count,
        facts.weights and seen.quantization,
        seen.engine_version,
        backend(seen.settings),
        facts.variant,
        of_the_server(redactor.options(facts.settings)),
    )


_NOTHING = _Build(None, None, None, None, None, None, ())


def _name(
    plain: str, build: _Build, builds: Sequence[_Build], there: Sequence[Record]
) -> str:
    """The name of the environment of one of several builds, beside the records that are there already."""
    others = [other for other in builds if other != build]
    if not (others or there) or build == _NOTHING:
        return plain
    for record in there:
        if _is_of(record, build):
            return record.environment
    names = {record.environment for record in there}
    if not others and plain not in names:
        return plain
    own = build.called
    if own is None or own in [other.called for other in others]:
        own = build.apart(others)
    return as_key(f"{plain}-{own or builds.index(build) + 1 + len(names)}")


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
