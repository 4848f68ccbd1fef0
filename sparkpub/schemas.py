"""JSON Schemas of the files that people write, so that an editor completes and checks them as they type."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from sparkpub.plan.matrix import Matrix
from sparkpub.record.campaign import Campaign
from sparkpub.record.store import write_atomic
from sparkpub.review.claims.claim import Claim
from sparkpub.review.claims.facts import Fact
from sparkpub.tools.language import ResultMapping

FOLDER = ".schemas"
"""Where a repository has them."""
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DESCRIBED: Mapping[str, tuple[str, Any]] = {
    "matrix": ("What is to be measured", Matrix),
    "campaign": ("What was measured, and what people decided about it", Campaign),
    "claims": ("Statements that the data test", list[Claim]),
    "facts": ("Figures from elsewhere, with their sources", list[Fact]),
    "mapping": ("What results that are imported mean", ResultMapping),
}
"""Name of a schema to its title and to what reads such a file."""
_WRITTEN = {"matrix/*.yaml": "matrix", "site_src/claims.yaml": "claims"}
"""Files of a new repository to the schema that their first line names."""


def document(name: str) -> dict[str, Any]:
    """The schema of a kind of file, with the words of this documentation at every key."""
    title, read = _DESCRIBED[name]
    schema = TypeAdapter(read).json_schema()
    if isinstance(read, type) and issubclass(read, BaseModel):
        schema["properties"]["$schema"] = {"type": "string"}
    if read is Matrix:
        _take_recipes(schema)
    return {"$schema": _DIALECT} | schema | {"title": f"{title} (sparkpub)"}


def _take_recipes(schema: dict[str, Any]) -> None:
    """An environment may be the path of a recipe, from which the matrix then gets its models."""
    schema["required"].remove("models")
    path = {"type": "string", "description": "Path of a recipe of sparkrun"}
    recipe = {
        "type": "object",
        "required": ["recipe"],
        "properties": {"recipe": path},
    }
    patterns = schema["properties"]["environments"]["patternProperties"]
    for pattern, options in patterns.items():
        patterns[pattern] = {"anyOf": [options, recipe]}


def write(folder: Path) -> list[Path]:
    """Write every schema into `folder`, as `NAME.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in _DESCRIBED:
        path = folder / f"{name}.json"
        write_atomic(path, json.dumps(document(name), indent=1) + "\n")
        written.append(path)
    return written


def write_into(repository: Path) -> None:
    """The schemas of a new repository; each file that somebody edits there names its own in the first line."""
    write(repository / FOLDER)
    for pattern, name in _WRITTEN.items():
        for path in repository.glob(pattern):
            up = "../" * (len(path.relative_to(repository).parts) - 1)
            line = f"# yaml-language-server: $schema={up}{FOLDER}/{name}.json\n"
            path.write_text(line + path.read_text(encoding="utf-8"), encoding="utf-8")
