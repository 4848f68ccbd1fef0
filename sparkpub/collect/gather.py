"""Other owners' campaigns: fetched at a commit, imported where their line says so, kept in a folder that git ignores.

    - {owner: OWNER, repository: https://github.com/OWNER/my-spark, commit: …, campaigns: [chat]}
    - {owner: OWNER, repository: https://github.com/OWNER/results, commit: …, import: results, mapping: maps/owner.yaml}

Nothing of a repository is executed: no hook, no submodule, no link. Its records are data for the checks here, and what
its owner acknowledged does not bind anybody else.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from resource import RLIMIT_FSIZE, setrlimit
from tempfile import TemporaryDirectory

import yaml

from sparkpub.collect.imports import about, import_results
from sparkpub.collect.imports.given import Given
from sparkpub.record import documents, repository
from sparkpub.record.errors import SparkpubError, UsageError, said_by_system
from sparkpub.record.owner import OWNER_FILE, ArenaLine, Owner, gathered, of, read
from sparkpub.record.package import requirement
from sparkpub.record.record import Origin
from sparkpub.record.repository import GitError
from sparkpub.record.store import write_atomic
from sparkpub.record.text import counted

MOST_FILES = 20_000
"""Files of one owner: six times the largest collection that was met."""
MOST_BYTES = 2**30
"""Bytes that are fetched of one owner's repository, and of the files that are made of them."""
PATIENCE = 600.0
"""Seconds for the fetch of one repository."""
_PROTOCOLS = ("https", "http", "file")
_AS_IT_IS = "* -text -filter -ident -working-tree-encoding\n"
"""Attributes that count before those of the repository: no program and no conversion changes a file."""
_LICENCES = ("LICENSE", "LICENCE", "COPYING")


@dataclass(frozen=True)
class Gathered:
    """What became of a line."""

    owner: str
    commit: str
    text: str
    failed: bool = False


@dataclass(frozen=True)
class Hub:
    """Who gathers: what is told of imports goes to `say`, and `verify` raises RecordError for a data folder with
    damage, which would stop every later build."""

    say: Callable[[str], None]
    verify: Callable[[Path], object]


def gather(
    path: Path, out: Path, hub: Hub, known: Path | None = None
) -> Iterator[Gathered]:
    """Every owner of a file of lines, into a data folder each below `out`, but for lines that are in the file `known`.
    A line that fails costs its line: what was gathered of that owner before stays. An owner whose line is gone goes."""
    lines, earlier = read(path), read(known) if known else ()
    out.mkdir(parents=True, exist_ok=True)
    for folder in gathered(out):
        if folder.name not in {line.id for line in lines}:
            shutil.rmtree(folder)
    for line in lines:
        if line not in earlier:
            yield _tried(line, path.parent, out / line.id, hub)


def newer(path: Path, out: Path, hub: Hub) -> Iterator[Gathered]:
    """Every owner whose repository has another newest commit than the line says, gathered at that into a data folder
    below `out`: from then on the line in the file names it. A line that fails stays as it is."""
    for index, line in enumerate(read(path)):
        try:
            commit = _newest(line)
        except GitError as error:
            yield Gathered(line.id, line.commit, str(error), failed=True)
            continue
        if commit == line.commit:
            continue
        moved = line.model_copy(update={"commit": commit})
        found = _tried(moved, path.parent, out / line.id, hub)
        if not found.failed:
            _move(path, index, line.commit, commit)
        yield found


def _move(path: Path, index: int, old: str, new: str) -> None:
    """Write the new commit into one line of a file, and nothing else: a fork's line may name the same commit."""
    text = path.read_text()
    lines = yaml.compose(text, Loader=documents.LOADER)
    assert isinstance(lines, yaml.SequenceNode)  # it was read as one
    node = lines.value[index]
    begin, end = node.start_mark.index, node.end_mark.index
    moved = text[begin:end].replace(old, new)
    write_atomic(path, text[:begin] + moved + text[end:])


def _tried(line: ArenaLine, beside: Path, place: Path, hub: Hub) -> Gathered:
    """Gather one owner, or say why that failed."""
    told = partial(Gathered, line.id, line.commit)
    try:
        return told(_gathered(line, beside, place, hub))
    except (SparkpubError, GitError, OSError) as error:
        said = said_by_system(error) if isinstance(error, OSError) else str(error)
        for part in ("tree", "made"):
            said = said.replace(f"{_work(place)}/{part}/", "")
        return told(said, failed=True)


def _gathered(line: ArenaLine, beside: Path, place: Path, hub: Hub) -> str:
    """Gather one owner, and say what there is of it now."""
    digest = _digest(line, beside)
    with suppress(SparkpubError):
        known = of(place)
        if known is not None and known.made_from == digest:
            return "unchanged"
    if place.exists() and not (place / OWNER_FILE).is_file():
        remedy = "choose another folder with --out"
        raise UsageError("it was not gathered", where=str(place), remedy=remedy)
    work = _work(place)
    shutil.rmtree(work, ignore_errors=True)
    try:
        tree, made = work / "tree", work / "made"
        tree.mkdir(parents=True)
        made.mkdir()
        _fetch(line, tree)
        if line.results is None:
            text = _placed(line, tree / line.data, made)
        else:
            text = _imported(line, tree / line.results, made, beside, hub.say)
        owner = Owner(
            owner=line.id,
            repository=line.repository,
            commit=line.commit,
            folder=line.folder,
            imported=line.results is not None,
            licence=line.licence,
            made_from=digest,
        )
        write_atomic(made / OWNER_FILE, owner.model_dump_json(indent=1))
        hub.verify(made)
        shutil.rmtree(place, ignore_errors=True)
        made.rename(place)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return text


def _work(place: Path) -> Path:
    """Where an owner's data folder is made."""
    return place.with_name(f".{place.name}")


def _digest(line: ArenaLine, beside: Path) -> str:
    """Of the line, of the files that it names, and of this program where it imports."""
    parts = [line.model_dump_json()]
    parts += [
        (beside / name).read_text() for name in (line.mapping, line.about) if name
    ]
    if line.results is not None:
        parts.append(requirement())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _fetch(line: ArenaLine, tree: Path) -> None:
    """The files that a line wants of a repository, at its commit: no history, and of other files their names alone."""
    repository.begin(tree)
    info = tree / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text(_AS_IT_IS)
    git = partial(_git, tree)
    git("remote", "add", "origin", line.repository)
    git(
        *("fetch", "--quiet", "--depth=1", "--filter=blob:none", "--no-tags"),
        *("--no-recurse-submodules", "origin", line.commit),
    )
    listed = git("ls-tree", "-r", "-z", "--full-tree", line.commit).split("\0")
    wanted = list(_wanted(line, filter(None, listed)))
    if not wanted:
        raise GitError(f"there is no {line.folder} at {line.commit[:12]}")
    if len(wanted) > MOST_FILES:
        raise GitError(f"{len(wanted):,} files; {MOST_FILES:,} are taken")
    names = tree.resolve() / ".git" / "wanted"
    names.write_text("\0".join(wanted))
    git(
        *("checkout", "--quiet", f"--pathspec-from-file={names}"),
        *("--pathspec-file-nul", line.commit),
    )
    size = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())
    if size > MOST_BYTES:
        raise GitError(f"{size / 2**20:,.0f} MiB; {MOST_BYTES // 2**20:,} are taken")


def _newest(line: ArenaLine) -> str:
    """The commit at which a repository is now, asked from an empty one."""
    with TemporaryDirectory() as folder:
        work = Path(folder)
        repository.begin(work)
        told = _git(work, "ls-remote", "--exit-code", line.repository, "HEAD")
    return told.partition("\t")[0]


def _git(tree: Path, *arguments: str) -> str:
    """What git prints in a repository of ours, of what it is told by another. Raises GitError with its reason."""
    options = ["-c", "protocol.allow=never", "-c", "core.symlinks=false"]
    for name in _PROTOCOLS:
        options += ["-c", f"protocol.{name}.allow=always"]
    done = repository.ended(
        tree,
        *("--literal-pathspecs", *options, *arguments),
        timeout=PATIENCE,
        process={
            "preexec_fn": partial(setrlimit, RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES)),
            "restore_signals": False,  # so that git says what happened, and is not killed
        },
    )
    return repository.printed(done, arguments[0])


def _wanted(line: ArenaLine, listed: Iterable[str]) -> Iterator[str]:
    """The paths of plain files that a line wants, of a listed tree. Links and submodules are none."""
    folders = [PurePosixPath(line.folder)]
    if line.results is None and line.campaigns:
        folders = [PurePosixPath(line.data, name) for name in line.campaigns]
    for entry in listed:
        about, _, name = entry.partition("\t")
        path = PurePosixPath(name)
        is_licence = "/" not in name and path.stem in _LICENCES
        if about.startswith("100") and (
            is_licence or any(path.is_relative_to(folder) for folder in folders)
        ):
            yield name


def _placed(line: ArenaLine, data: Path, made: Path) -> str:
    """Lay an owner's campaigns into the new data folder: what lies in each folder itself, and nothing below it."""
    names = line.campaigns or sorted(
        path.parent.name for path in data.glob("*/campaign.json")
    )
    missing = [name for name in names if not (data / name / "campaign.json").is_file()]
    if missing or not names:
        raise GitError(f"no campaign {', '.join(missing) or 'at all'} in {line.data}")
    for name in names:
        (made / name).mkdir()
        for path in (data / name).iterdir():
            if path.is_file():
                path.rename(made / name / path.name)
    return counted(len(names), "campaign")


def _imported(
    line: ArenaLine, results: Path, made: Path, beside: Path, say: Callable[[str], None]
) -> str:
    """Import an owner's results into the new data folder."""
    repository_name = PurePosixPath(line.repository).stem
    origin = Origin(
        title=repository_name,
        url=line.repository,
        commit=line.commit,
        licence=line.licence,
    )
    known = about(beside / line.about if line.about else None, results)
    given = Given(
        line.campaigns[0] if line.campaigns else "results",
        about=known.model_copy(
            update={
                "title": known.title or f"{line.id}: {repository_name}",
                "origin": known.origin or origin,
                "licence": line.licence,
            }
        ),
        model=line.model,
        environment=line.environment,
        machine=line.machine,
        mapping=beside / line.mapping if line.mapping else None,
        say=say,
    )
    found = import_results(results, made, given, originals=False)
    text = counted(len(found.records), "run")
    return f"{text}, {len(found.refused):,} refused" if found.refused else text
