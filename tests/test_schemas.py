"""JSON Schemas for editors: they take what is right in every repository, and show what is wrong where it is typed."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from sparkpub import schemas
from sparkpub.site import manual, starter
from sparkpub.tools import language as mapping

ROOT = Path(__file__).parent.parent
MAPPINGS = Path(mapping.__file__).parent
RIGHT = {
    "matrix": [*ROOT.glob("matrix/*.yaml"), *starter.FILES.glob("matrix/*.yaml")],
    "claims": [starter.FILES / "site_src/claims.yaml"],
    "facts": [manual.FACTS],
    "mapping": list(MAPPINGS.glob("*.yaml")),
    "campaign": list(ROOT.glob("data/comprehensive/*/campaign.json")),
}
WRONG: dict[str, Any] = {
    "matrix": {"campaign": "c", "title": "t", "iteratons": 3},
    "campaign": {"campaign": "c", "title": "t", "acknowleged": []},
    "claims": [{"id": "x", "says": "y", "recorded": "suported"}],
    "facts": [{"id": "x", "says": "y", "value": "many"}],
    "mapping": {"rnu": {"model": "model"}},
}


def faults(name: str, document: Any) -> list[str]:
    schema = schemas.document(name)
    Draft202012Validator.check_schema(schema)
    found = Draft202012Validator(schema).iter_errors(document)
    return [error.message for error in found]


@pytest.mark.parametrize("name", RIGHT)
def test_a_schema_takes_what_sparkpub_takes(name: str) -> None:
    for path in RIGHT[name]:
        document = json.loads(json.dumps(yaml.safe_load(path.read_text()), default=str))
        assert faults(name, document) == [], path


@pytest.mark.parametrize("name", WRONG)
def test_a_schema_shows_a_mistake(name: str) -> None:
    assert faults(name, WRONG[name]) != []


def test_an_environment_of_a_matrix_may_be_a_recipe() -> None:
    matrix = {
        "campaign": "c",
        "title": "t",
        "environments": {"nightly": {"recipe": "recipes/nightly.yaml"}},
        "workloads": {"w": {"type": "llama-benchy"}},
    }
    assert faults("matrix", matrix) == []
    assert faults("matrix", matrix | {"environments": {"nightly": {"reciep": "x"}}})


def test_every_file_of_a_new_repository_names_a_schema_that_is_there(
    tmp_path: Path,
) -> None:
    starter.write(tmp_path / "mine", "T")
    schemas.write_into(tmp_path / "mine")
    files = [
        *tmp_path.glob("mine/matrix/*.yaml"),
        tmp_path / "mine/site_src/claims.yaml",
    ]
    assert len(files) >= 5
    for path in files:
        first = path.read_text().partition("\n")[0]
        named = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
        assert named, path
        assert json.loads((path.parent / named[1]).read_text())["$schema"]
