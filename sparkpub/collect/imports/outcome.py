"""What became of everything that an import found, for people and for programs."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sparkpub.collect.imports import starter
from sparkpub.collect.imports.facts import machine_called
from sparkpub.collect.imports.given import Left
from sparkpub.collect.imports.starter import Kind
from sparkpub.record import catalogue
from sparkpub.record.record import Machine, Record
from sparkpub.record.text import counted

_PARTICULAR = re.compile(r", as \S+|'[^']*'|\S+\.[a-z]{2,5}\b|[\d.,]*\d")
"""What differs between reasons that are the same: names in quotes, files, and numbers."""


@dataclass
class ImportOutcome:
    """What became of everything found. With `preview` nothing was written."""

    preview: bool = False
    records: list[Record] = field(default_factory=list)
    unread: list[Kind] = field(default_factory=list)
    """Kinds of files with figures that have no mapping yet."""
    pattern: str | None = None
    """What the names of a tool's files say of builds, where nobody has said it yet."""
    skipped: list[Left] = field(default_factory=list)
    refused: list[Left] = field(default_factory=list)

    @property
    def imported(self) -> list[str]:
        """The ids of the runs."""
        return [record.run_id for record in self.records]

    def on_machines(self, named: str | None) -> Iterator[str]:
        """What is to be said of a machine that nothing is known of, and of runs that do not name theirs."""
        machines, known = catalogue.machines(), ", ".join(catalogue.machines())
        if named is not None and machine_called(named) not in machines:
            yield (
                f"nothing is known of a machine {named!r}, such as its memory and bandwidth (known: {known})"
            )
        machineless = [record.machine for record in self.records].count(Machine())
        if machineless:
            runs = counted(machineless, "run")
            yield f"{runs} without the name of a machine: add --machine ({known})"

    @property
    def split(self) -> int:
        """How many runs may have been computed on several machines, of which nothing says how many."""
        return sum(
            "RPC" in record.observed.settings.get("backends", "")
            and record.machine.count is None
            for record in self.records
        )

    def leave(self, item: Left) -> None:
        """Count something that became no record."""
        (self.refused if item.refused else self.skipped).append(item)

    def lines(self, *, verbose: bool = False) -> list[str]:
        """For people: what was left and why, then the sum; `verbose` lists what is counted otherwise."""
        mappings = [*starter.lines(self.unread)] if self.preview and self.unread else []
        if mappings and not (self.records or self.skipped or self.refused):
            return mappings
        parts = {"skipped": self.skipped, "refused": self.refused}
        texts = [
            line
            for verb, items in parts.items()
            for line in _told(verb, items, verbose=verbose)
        ]
        if self.preview:
            texts += map(_shown, self.records)
        verb = "would be imported" if self.preview else "imported"
        counts = [f"{len(self.records):,} {verb}"]
        counts += [f"{len(items):,} {left}" for left, items in parts.items()]
        texts.append(", ".join(counts))
        if self.pattern:
            texts.append(
                f'the names of the files tell builds apart: write path: "{self.pattern}" into about.yaml'
            )
        if self.split:
            texts.append(
                f"{counted(self.split, 'run')} with RPC among the backends: where several machines computed them, "
                'write {"nodes": 2} into a meta.json beside their files'
            )
        if mappings:
            return [*(f"# {text}" for text in texts), "", *mappings]
        texts += [f"not read: {kind}" for kind in self.unread]
        if self.unread:
            texts.append(
                "--preview prints a mapping for them, to import with --mapping"
            )
        return texts

    def document(self) -> dict[str, Any]:
        """For `--json`."""
        skipped, refused = (
            [{"source": item.source, "reason": item.reason} for item in items]
            for items in (self.skipped, self.refused)
        )
        return {
            "preview": self.preview,
            "imported": self.imported,
            "skipped": skipped,
            "refused": refused,
            "unread": [{"files": kind.sources} for kind in self.unread],
        }


def _told(verb: str, items: Iterable[Left], *, verbose: bool) -> Iterator[str]:
    """A line for each thing that was left; for those of one reason their number and the first."""
    groups: dict[object, list[Left]] = defaultdict(list)
    for place, item in enumerate(items):
        groups[place if verbose else _PARTICULAR.sub("", item.reason)].append(item)
    for left in groups.values():
        many = "" if len(left) == 1 else f" {len(left):,}, e.g."
        yield f"{verb}{many} {left[0].source}: {left[0].reason}"


def _shown(record: Record) -> str:
    """A run for people: cell, iteration, start, status and every figure."""
    figures = [
        f"{name} {'none' if metric.value is None else f'{metric.value:.4g}'}"
        for name, metric in record.metrics.items()
    ]
    said = f"{'/'.join(record.cell)} {record.iteration}, {record.started.value}"
    return f"{said}, {record.status}: {', '.join(figures)}"
