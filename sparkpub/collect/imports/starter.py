"""A mapping to begin with, for each kind of table or JSON of anybody's.

People read it, correct it, and import with it.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from os.path import commonprefix
from pathlib import Path

import yaml

from sparkpub.collect.imports.folder import Folder, is_notes
from sparkpub.collect.imports.guesses import Proposal, proposal
from sparkpub.tools import forms
from sparkpub.tools.forms import ResultFile
from sparkpub.tools.language import named_in

_MOST_FILES = 300
"""Of a folder, so many files are looked at."""
_MOST_LEFT = 30
"""So many columns without use are named."""
_FEW_FIGURES = 3
"""Of a kind of files, so many are told."""
_SIZED = re.compile(r"\d+(?:\.\d+)?b\b", re.IGNORECASE)
"""A number of parameters, in the name of a model."""
_LONGEST = 1000
"""Characters of a line of YAML."""
_BETWEEN = "__"
"""What parts the name of a file where people put several things into it."""


@dataclass(frozen=True)
class Kind:
    """Files of one form that no tool is known for."""

    proposal: Proposal
    sources: Sequence[str]
    others: Collection[str]
    """All other files of the folder."""

    def __str__(self) -> str:
        files = "file" if len(self.sources) == 1 else f"{len(self.sources)} files like"
        figures = [*self.proposal.metrics]
        more = ", …" if len(figures) > _FEW_FIGURES else ""
        told = ", ".join(figures[:_FEW_FIGURES])
        return f"{files} {self.sources[0]} with {told}{more}"

    def _path(self) -> str | None:
        """What the names of the files say, where their rows do not say the model."""
        pattern = _parted(self.sources)
        is_nameless = "model" not in self.proposal.run
        if pattern is None and is_nameless and len(self.sources) > 1:
            first, *others = map(Path, self.sources)
            # Files of one name are told apart by their folders.
            is_alone = all(first.name == other.name for other in others)
            return "{model}" + (f"/{first.name}" if is_alone else first.suffix)
        return pattern

    def lines(self) -> Iterator[str]:
        """A mapping as YAML."""
        found, pattern = self.proposal, self._path()
        run = dict(found.run)
        for name in ("model", "variant"):
            if f"{{{name}}}" in (pattern or ""):
                run.setdefault(name, f"path.{name}")
        document = {
            "files": _pattern(self.sources) if self.others else None,
            "path": pattern,
            "rows": found.rows,
            "same": {} if "model" in run else {"model": "..."},
            "run": run,
            "load": found.load,
            "metrics": found.metrics,
        }
        said = {name: value for name, value in document.items() if value}
        text = yaml.safe_dump(said, sort_keys=False, allow_unicode=True, width=_LONGEST)
        yield f"# {_in_line(str(self))}"
        yield from text.splitlines()
        if found.left:
            yield f"# not used: {_in_line(', '.join(found.left[:_MOST_LEFT]))}"


def kinds(folder: Folder, unread: Collection[str]) -> list[Kind]:
    """The kinds of files with figures among those that were not read; what says most first."""
    found: dict[object, list[tuple[Proposal, str]]] = defaultdict(list)
    there = []
    for file in islice(folder.files(), _MOST_FILES):
        if not isinstance(file, ResultFile) or file.suffix not in forms.TABLES:
            continue
        there.append(file.source)
        if is_notes(file) or file.source not in unread:
            continue
        said = proposal(file)
        if said is not None and said.says[0]:
            found[said.form].append((said, file.source))
    listed = []
    for items in found.values():
        fullest, _ = max(items, key=lambda item: item[0].says)
        sources = [source for _, source in items]
        listed.append(Kind(fullest, sources, {*there} - {*sources}))
    return sorted(listed, key=lambda kind: -len(kind.sources) * kind.proposal.says[0])


def lines(found: Sequence[Kind]) -> Iterator[str]:
    """The mappings of all kinds, as the documents of one file of YAML."""
    yield "# A mapping to begin with: correct it, and save it as map.yaml."
    for number, kind in enumerate(found):
        if number:
            yield "---"
        yield from kind.lines()


def builds(sources: Sequence[str]) -> str | None:
    """The pattern of files of a tool whose names say the build after the model; None where they do not."""
    parted = [source for source in sources if _BETWEEN in Path(source).name]
    pattern = _parted(parted) if 2 * len(parted) > len(sources) else None
    if pattern is None:
        return None
    found = [named_in(pattern, source) or {} for source in sources]
    models = {named.get("model") for named in found}
    variants = {(named.get("model"), named.get("variant")) for named in found}
    return pattern if len(variants) > len(models) else None


def _pattern(sources: Sequence[str]) -> str:
    """The names of some files, with `*` for what differs."""
    if len(sources) == 1:
        return sources[0]
    begin = commonprefix(sources)  # noqa: RUF071 - of letters, not of folders
    ends = [source.removeprefix(begin)[::-1] for source in sources]
    end = commonprefix(ends)[::-1]  # noqa: RUF071
    return f"{begin}*{end}"


def _parted(sources: Sequence[str]) -> str | None:
    """The pattern of files whose names have parts, the first one a model, by the sizes of most; None for others."""
    parts = [Path(source).name.split(_BETWEEN) for source in sources]
    sized = sum(_SIZED.search(part[0]) is not None for part in parts)
    if 2 * sized <= len(parts) or not all(len(part) > 1 for part in parts):
        return None
    is_longer = all(len(part) > 2 for part in parts)
    names = ["{model}", "{variant}", *["{rest}"] * is_longer]
    return _BETWEEN.join(names) + Path(sources[0]).suffix


def _in_line(text: str) -> str:
    """Without breaks, for a comment."""
    return " ".join(text.split())
