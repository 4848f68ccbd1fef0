"""YAML that people write, with the line of every key: so that a mistake is reported where it stands."""

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from sparkpub.record import outside
from sparkpub.record.errors import SparkpubError, worded
from sparkpub.record.record import Declared

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class ListEntry(Declared):
    """One entry of a file that is a list."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,62}$")]


P = TypeVar("P", bound=ListEntry)
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's where PyYAML was built with it: twenty times as fast, with the same marks."""
MOST_PROBLEMS = 100
"""Mistakes of one document that are told."""
MOST_LISTED = 30
"""Names that a line lists."""


class Lines:
    """Where each key of a YAML document stands, and which keys stand twice."""

    def __init__(self, node: yaml.Node | None, name: str) -> None:
        self._name = name
        self._lines: dict[tuple[str, ...], int] = {(): 1}
        self.duplicates: list[str] = []
        if node is not None:
            self._walk(node, ())

    def _walk(self, node: yaml.Node, path: tuple[str, ...]) -> None:
        self._lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                child = (*path, str(key.value))
                line = key.start_mark.line + 1
                if child in self._lines:
                    what = f"{'.'.join(child)} stands twice"
                    self.duplicates.append(self.problem(child, what, "keep one", line))
                self._lines[child] = line
                self._walk(value, child)
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                self._walk(value, (*path, str(index)))

    def where(self, path: Sequence[str], line: int | None = None) -> str:
        """`file:line` of the key at `path`, or of the nearest part around it."""
        known = tuple(path)
        while known not in self._lines:
            known = known[:-1]
        return f"{self._name}:{line or self._lines[known]}"

    def problem(
        self, path: Sequence[str], what: str, remedy: str, line: int | None = None
    ) -> str:
        """A mistake at `path` as one line: `what, file:line; remedy`."""
        return f"{what}, {self.where(path, line)}; {remedy}"

    def described(
        self,
        error: ValidationError,
        prefix: Sequence[str],
        model: type[BaseModel],
        document: str,
    ) -> list[str]:
        """A validation error of `model` at `prefix` with lines; an unknown key gets the nearest known one.

        `document` is the word for the whole where no key is concerned, e.g. "matrix".
        """
        texts = []
        for item in error.errors(include_url=False)[:MOST_PROBLEMS]:
            path = self._path_of(item, prefix)
            around = _models_at(model, item["loc"])
            name = ".".join(path) or document
            context = item.get("ctx", {})
            tag = str(context.get("discriminator")).strip("'")
            match item["type"]:
                case "extra_forbidden":
                    what = f"unknown key {name}"
                    known = [key for part in around for key in part.model_fields]
                    remedy = suggestion(path[-1], known)
                case "missing":
                    what, remedy = f"{name} is missing", f"add {path[-1]}:"
                case "union_tag_not_found":
                    what = f"{name}.{tag} is missing"
                    remedy = f"add {tag}: {' | '.join(_tags(around))}"
                case "union_tag_invalid":
                    what = f"unknown {tag} {context['tag']!r} of {name}"
                    known = re.findall(r"'([^']+)'", context["expected_tags"])
                    remedy = suggestion(context["tag"], known)
                    path = (*path, tag)
                case _:
                    message = worded(item)
                    what = f"{name}: {message[:1].lower()}{message[1:]}"
                    remedy = f"correct {path[-1] if path else document}"
            texts.append(self.problem(path, what, remedy))
        return texts

    def _path_of(self, item: "ErrorDetails", prefix: Sequence[str]) -> tuple[str, ...]:
        """Where an error lies in the document: pydantic names the member of a union in its path as well."""
        path, is_known = tuple(prefix), True
        for key in item["loc"]:
            is_known = (*path, str(key)) in self._lines
            if is_known:
                path = (*path, str(key))
        # A key that `<<` merges in stands elsewhere.
        if not is_known and item["type"] in ("missing", "extra_forbidden"):
            path = (*path, str(item["loc"][-1]))
        return path


def _models_at(model: type[BaseModel], loc: Iterable[object]) -> list[type[BaseModel]]:
    """The models of which one holds the place of an error: several, where none of a union is chosen."""
    found = members = [model]
    for key in loc:
        tagged = [member for member in members if _tag(member) == key]
        fields = [member.model_fields.get(str(key)) for member in found]
        inner = _models_in(fields[0].annotation) if fields[0] else []
        if tagged:
            found = tagged
        elif inner:
            found = members = inner
    return found


def _tags(models: Iterable[type[BaseModel]]) -> list[str]:
    """The tags of the members of a union, but for deprecated ones."""
    current = [
        part for part in models if not part.model_config.get("json_schema_extra")
    ]
    return [tag for tag in map(_tag, current) if tag is not None]


def _tag(model: type[BaseModel]) -> str | None:
    """What a member of a union is told by: the only value of its `type`."""
    field = model.model_fields.get("type")
    return None if field is None else str(field.default)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that a type mentions, in order: `Model` of `dict[Key, Model]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in get_args(annotation) for found in _models_in(part)]


def suggestion(name: str, known: Collection[str]) -> str:
    """What to do about a wrong name: the nearest right one, else all of them, of many the three nearest."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]}?"
    if not known:
        return "there are none"
    if len(known) <= MOST_LISTED:
        return f"known are {', '.join(sorted(known))}"
    nearest = difflib.get_close_matches(name, known, n=3, cutoff=0)
    return f"the nearest are {', '.join(nearest)}"


def refuse(problems: Iterable[str], error: type[SparkpubError]) -> None:
    """Raise `error` with every problem, each once and by line, where there is one."""

    def line_of(problem: str) -> int:
        found = re.search(r":(\d+)(?:;|$)", problem)
        return int(found[1]) if found else 0

    found = sorted(dict.fromkeys(problems), key=line_of)
    if found:
        raise error(found[0], others=found[1:])


def parse(text: str, name: str, error: type[SparkpubError]) -> tuple[Any, Lines]:
    """A YAML document and its lines. Raises `error` with file and line where it is not YAML, or beyond the bounds."""
    line: int | None = None
    remedy = "fix the syntax there"
    try:
        _refuse_unbounded(text)
        loader = LOADER(text)
        node = loader.get_single_node()
        lines = Lines(node, name)  # before what `<<` merges is written out
        return None if node is None else loader.construct_document(node), lines
    except yaml.MarkedYAMLError as problem:
        what = f"not YAML: {problem.problem}"
        if isinstance(problem, _UnboundedError):
            what, remedy = str(problem.problem), "write it as plain YAML"
        if problem.problem_mark is not None:
            line = problem.problem_mark.line + 1
    except (yaml.YAMLError, *_OF_VALUES) as problem:
        what = f"not YAML: {problem}"
    where = name if line is None else f"{name}:{line}"
    raise error(what, where=where, remedy=remedy)


def shipped(folder: str, ending: str = ".yaml") -> list[Any]:
    """The YAML documents in a folder of the package whose files' names end so, by name."""
    files = resources.files("sparkpub").joinpath(folder).iterdir()
    wanted = [file for file in files if file.name.endswith(ending)]
    wanted.sort(key=lambda file: file.name)
    return [parse(file.read_text(), file.name, SparkpubError)[0] for file in wanted]


_OF_VALUES = (ValueError, OverflowError, KeyError, AttributeError)
"""What PyYAML lets through of values that cannot be read: the last two of `!!bool maybe` and `!!timestamp x`."""


class _UnboundedError(yaml.MarkedYAMLError):
    """YAML that is not read; the text says why, and the mark where."""

    def __init__(self, what: str, part: Any) -> None:
        super().__init__(problem=what, problem_mark=part.start_mark)


def _refuse_unbounded(text: str) -> None:
    """Raise _UnboundedError for YAML nested too deep, and for aliases in what another alias may name: they multiply, or
    contain themselves. Reads events only, which builds nothing."""
    around: list[str | None] = []
    """The anchors of the lists and mappings around the present place."""
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            around.append(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            around.pop()
        elif isinstance(event, yaml.AliasEvent) and any(around):
            what = f"*{event.anchor} within what another alias may name"
            raise _UnboundedError(what, event)
        if len(around) > outside.DEEPEST:
            raise _UnboundedError(f"nested deeper than {outside.DEEPEST} levels", event)


def text_of(path: Path, error: type[SparkpubError]) -> str:
    """A file's text. Raises `error` where it cannot be read."""
    return outside.text(path, error, "give a YAML file")


def read_parts(path: Path, part: type[P], error: type[SparkpubError]) -> list[P]:
    """A YAML file that is a list of parts with an `id` each; none where there is no file. Raises `error` with
    every mistake, by line."""
    if not path.exists():
        return []
    document, lines = parse(text_of(path, error), str(path), error)
    problems, parts = list(lines.duplicates), list[P]()
    try:
        parts = TypeAdapter(list[part]).validate_python(document or [])  # type: ignore[valid-type]
    except ValidationError as mistakes:
        problems += lines.described(mistakes, (), part, path.stem)
    seen: set[str] = set()
    for index, item in enumerate(parts):
        if item.id in seen:
            what = f"id {item.id!r} stands twice"
            problems.append(
                lines.problem((str(index), "id"), what, "give each its own")
            )
        seen.add(item.id)
    refuse(problems, error)
    return parts
