"""YAML that people write, with the line of every key: so that a mistake is reported where it stands."""

import difflib
import math
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from sparkpub.record import outside
from sparkpub.record.errors import SparkpubError, worded
from sparkpub.record.record import Declared


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
MOST_PARTS = 100_000
"""Values and keys of a YAML document, aliases written out."""
MOST_CHARACTERS = 20_000
"""Characters of one text in a YAML document."""
_TEXT_TAG = "tag:yaml.org,2002:str"
_NUMBER = re.compile(
    r"[-+]?(?:0[xb][0-9a-fA-F_]+|\d[\d_:]*(?:\.[\d_]*)?(?:[eE][-+]?\d+)?)"
)
"""What YAML reads as a number: decimal, hexadecimal, binary, or in parts of sixty."""
_EXPONENT = re.compile(r"^[^x:]*[eE]")
_ENDLESS = re.compile(r"[-+]?\.(?:inf|nan)", re.IGNORECASE)


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
            loc = [part for part in item["loc"] if part != "[key]"]
            inside, part = _located(model, loc)
            path: tuple[str, ...] = (*prefix, *inside)
            name = ".".join(path) or document
            context = item.get("ctx", {})
            if item["type"] == "extra_forbidden":
                what = f"unknown key {name}"
                remedy = suggestion(path[-1], list(part.model_fields))
            elif item["type"] == "missing":
                what, remedy = f"{name} is missing", f"add {path[-1]}:"
                path = path[:-1]
            elif item["type"] == "union_tag_not_found":
                tag = _unquoted(context["discriminator"])[0]
                what = f"{name}.{tag} is missing"
                remedy = f"add {tag}: {' | '.join(_tags(model, loc))}"
            elif item["type"] == "union_tag_invalid":
                tag = _unquoted(context["discriminator"])[0]
                what = f"unknown {tag} {context['tag']!r} of {name}"
                remedy = suggestion(context["tag"], _unquoted(context["expected_tags"]))
                path = (*path, tag)
            else:
                message = worded(item)
                what = f"{name}: {message[:1].lower()}{message[1:]}"
                remedy = f"correct {path[-1] if path else document}"
            texts.append(self.problem(path, what, remedy))
        return texts


def _unquoted(text: str) -> list[str]:
    """The words of `'host', 'docker'`, as pydantic lists tags."""
    return re.findall(r"'([^']+)'", text)


def _located(
    model: type[BaseModel], loc: Sequence[int | str]
) -> tuple[list[str], type[BaseModel]]:
    """Where an error lies in the document, and the innermost model around it.

    pydantic names the member of a discriminated union in an error's path, and the document does not.
    """
    path: list[str] = []
    members: list[type[BaseModel]] = []
    keys_ahead = 0
    for key in loc:
        member = next((member for member in members if _tag(member) == key), None)
        if keys_ahead == 0 and member is not None:
            model, members = member, []
            continue
        path.append(str(key))
        if keys_ahead:
            keys_ahead -= 1
            continue
        field = model.model_fields.get(str(key))
        if field is None:
            continue
        members = _models_in(field.annotation)
        keys_ahead = 1 if get_origin(field.annotation) in (dict, tuple, list) else 0
        if len(members) == 1:
            model, members = members[0], []
    return path, model


def _tags(model: type[BaseModel], loc: Sequence[int | str]) -> list[str]:
    """The tags of the members of the union at `loc`, but for deprecated ones."""
    for key in loc:
        field = model.model_fields.get(str(key))
        members = _models_in(field.annotation) if field else []
        members = [
            part for part in members if not part.model_config.get("json_schema_extra")
        ]
        found = [tag for tag in map(_tag, members) if tag is not None]
        if found:
            return found
    return []


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
    return f"the nearest of {len(known)} are {', '.join(nearest)}"


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
    remedy = "write it as plain YAML"
    try:
        refuse_unbounded(text)
        node = yaml.compose(text, Loader=LOADER)
        document = yaml.load(text, Loader=LOADER)  # noqa: S506 - either is a safe loader
        return document, Lines(node, name)
    except _UnboundedError as problem:
        what, line = str(problem), problem.line
    except yaml.MarkedYAMLError as problem:
        what, remedy = f"not YAML: {problem.problem}", "fix the syntax there"
        if problem.problem_mark is not None:
            line = problem.problem_mark.line + 1
    except (yaml.YAMLError, ValueError, OverflowError) as problem:
        what, remedy = f"not YAML: {problem}", "fix the syntax there"
    where = name if line is None else f"{name}:{line}"
    raise error(what, where=where, remedy=remedy)


class _UnboundedError(ValueError):
    """YAML that is not read; the text says why, `line` where."""

    def __init__(self, what: str, event: yaml.Event) -> None:
        super().__init__(what)
        mark = event.start_mark
        self.line: int | None = None if mark is None else mark.line + 1


def refuse_unbounded(text: str) -> None:
    """Raise a ValueError for YAML that would take more than it seems to: nested too deep, aliases that multiply or
    contain themselves, tags, numbers without bounds, control characters. Reads events only, which builds nothing."""
    size = _Size()
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            size.enter(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            size.leave(event)
        elif isinstance(event, yaml.AliasEvent):
            size.repeat(event)
        elif isinstance(event, yaml.ScalarEvent):
            _refuse_scalar(event)
            size.add(1, event.anchor, event)


class _Size:
    """How many parts a document has when every alias is written out."""

    def __init__(self) -> None:
        self._around: list[tuple[str | None, int]] = []
        """The lists and mappings around the present place: anchor, and parts so far."""
        self._anchored: dict[str, int] = {}

    def enter(self, event: yaml.CollectionStartEvent) -> None:
        _refuse_tag(event, event.tag, event.implicit)
        self._around.append((event.anchor, 1))
        if len(self._around) > outside.DEEPEST:
            raise _UnboundedError(f"nested deeper than {outside.DEEPEST} levels", event)

    def leave(self, event: yaml.Event) -> None:
        anchor, parts = self._around.pop()
        self.add(parts, anchor, event)

    def repeat(self, event: yaml.AliasEvent) -> None:
        if event.anchor not in self._anchored:
            anchors = [anchor for anchor, _ in self._around]
            what = "contains itself" if event.anchor in anchors else "is not defined"
            raise _UnboundedError(f"*{event.anchor} {what}", event)
        self.add(self._anchored[event.anchor], None, event)

    def add(self, parts: int, anchor: str | None, event: yaml.Event) -> None:
        if anchor is not None:
            self._anchored[anchor] = parts
        if not self._around:
            return
        outer, before = self._around[-1]
        self._around[-1] = outer, before + parts
        if before + parts > MOST_PARTS:
            raise _UnboundedError(f"more than {MOST_PARTS:,} parts", event)


def _refuse_tag(event: yaml.Event, tag: str | None, implicit: bool) -> None:
    if tag not in (None, "!", _TEXT_TAG) and not implicit:
        raise _UnboundedError(f"tag {str(tag)[:80]} has no meaning here", event)


def _refuse_scalar(event: yaml.ScalarEvent) -> None:
    plain, quoted = event.implicit
    _refuse_tag(event, event.tag, plain or quoted)
    value = event.value
    if len(value) > MOST_CHARACTERS:
        raise _UnboundedError(f"a text of {len(value):,} characters", event)
    # Lines that end as on Windows are text: sparkrun exports a CSV within its YAML.
    unwanted = outside.CONTROL.search(value.replace("\r\n", "\n"))
    if unwanted is not None:
        raise _UnboundedError(f"a control character, U+{ord(unwanted[0]):04X}", event)
    if plain and _NUMBER.fullmatch(value):
        if len(value) > outside.MOST_DIGITS:
            raise _UnboundedError(f"a number with {len(value)} digits", event)
        if _EXPONENT.search(value) and math.isinf(float(value.replace("_", ""))):
            raise _UnboundedError(f"{value} is larger than any number here", event)
    if plain and _ENDLESS.fullmatch(value):
        raise _UnboundedError(f"{value} is not a number here", event)


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
