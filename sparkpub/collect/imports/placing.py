"""Where runs belong: their environment, and what tells builds of one model apart.

Two builds of a model that are served with other options are two cells. The names of their environments say which is
which: as people call the builds, else by number. A build that the campaign has already keeps its name.
"""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sparkpub.collect.imports.facts import Facts, counted, of_the_server
from sparkpub.collect.imports.given import (
    CONTAINER,
    NAMELESS,
    Draft,
    Given,
    Left,
)
from sparkpub.record.errors import UsageError
from sparkpub.record.record import Record
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import Stored, read_folder
from sparkpub.tools.asked import as_key


def placed(
    found: Sequence[Draft | Left], folder: Path, given: Given
) -> Iterator[Draft | Left]:
    """Everything found, each draft with its environment.

    Raises UsageError where no draft has one, and neither the results nor the command line say where they ran.
    """
    drafts = [_in_environment(item) for item in found if isinstance(item, Draft)]
    lefts = [item for item in found if isinstance(item, Left)]
    homeless = [draft for draft in drafts if draft.environment is None]
    nameless = [left for left in lefts if left.reason == NAMELESS]
    if given.environment is None and len(homeless) == len(drafts):
        _ask(homeless, nameless, given)
    yield from lefts
    for draft in homeless:
        yield Left(draft.source, "it does not say where it ran; add --environment")
    at_home = [draft for draft in drafts if draft.environment is not None]
    stored = read_folder(folder) if folder.is_dir() else ()
    names = _EnvironmentKeys(at_home, stored, given.about.machine.count)
    for draft in at_home:
        yield replace(draft, environment=names.of(draft))


def _ask(homeless: Sequence[Draft], nameless: Sequence[Left], given: Given) -> None:
    """Raise UsageError with the command to type, where all that is missing is what it can say."""
    what, wanted = "where they ran", ["--environment native"]
    if nameless:
        what += " and which model it was"
        wanted.append("--model NAME")
    if homeless or nameless:
        flags = " and ".join(flag.split()[0] for flag in wanted)
        raise UsageError(
            f"add {flags}: these results don't say {what}",
            remedy=" ".join(["type:", shlex.join(given.typed), *wanted]),
        )


def _in_environment(draft: Draft) -> Draft:
    """With the environment and the number of machines that the facts beside the results show, else its name and that
    of the model."""
    if draft.facts.nodes is None:
        named = counted(draft.source) or counted(draft.model_id or draft.model)
        draft = replace(draft, facts=replace(draft.facts, nodes=named))
    if draft.environment is None and draft.facts.image is not None:
        draft = replace(draft, environment=CONTAINER)
    return draft


class _EnvironmentKeys:
    """The names of the environments of builds."""

    def __init__(
        self, drafts: Iterable[Draft], stored: Iterable[Stored], machines: int | None
    ) -> None:
        self._redactor = Redactor()
        self._machines = machines
        self._there: dict[tuple[str, str], list[Build]] = defaultdict(list)
        for item in stored:
            record = item.record
            builds = self._there[record.model, record.environment]
            build = _build(record)
            if build not in builds:
                builds.append(build)
        self._facts: dict[tuple[str, str], list[Facts]] = defaultdict(list)
        for draft in drafts:
            known = self._facts[draft.model, str(draft.environment)]
            if draft.facts.build not in [facts.build for facts in known]:
                known.append(draft.facts)

    def of(self, draft: Draft) -> str:
        """The name of a draft's environment."""
        plain, facts = str(draft.environment), draft.facts
        if facts.build == Facts().build:
            return plain
        there = [
            environment
            for model, environment in self._there
            if model == draft.model and f"{environment}-".startswith(f"{plain}-")
        ]
        build = self._build_of(draft)
        for environment in there:
            if build in self._there[draft.model, environment]:
                return environment
        known = self._facts[draft.model, plain]
        if len(known) == 1 and plain not in there:
            return plain
        names = [other.name for other in known]
        own = facts.name
        if own is None or names.count(own) > 1:
            number = [other.build for other in known].index(facts.build) + 1
            own = str(number + len(there))
        return as_key(f"{plain}-{own}")

    def _build_of(self, draft: Draft) -> "Build":
        """As the record of a draft would have it."""
        seen = draft.observed
        settings = self._redactor.options(seen.settings)
        return (
            draft.facts.image,
            self._machines or draft.facts.nodes,
            seen.quantization,
            seen.engine_version,
            of_the_server(settings),
        )


Build = tuple[
    str | None, int | None, str | None, str | None, tuple[tuple[str, str], ...]
]
"""Image, number of machines, format of the weights, version of the engine, and settings."""


def _build(record: Record) -> Build:
    seen = record.observed
    settings = of_the_server(seen.settings)
    image = record.requested.environment.get("image")
    made = (image, record.machine.count, seen.quantization, seen.engine_version)
    return *made, settings
