"""Recipes of sparkrun: what they become, and what of them is refused. The samples are our own, in its format."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkpub.plan import matrix as matrices
from sparkpub.plan.environments import DockerOptions
from sparkpub.plan.matrix import Matrix
from sparkpub.record.errors import MatrixError

RECIPES = json.loads((Path(__file__).parents[1] / "data/recipes.json").read_text())
WALKER: dict[str, Any] = RECIPES["walker"]


def matrix(
    folder: Path, *recipes: dict[str, Any], beside: Any = None, **parts: Any
) -> Matrix:
    environments = {}
    for index, recipe in enumerate(recipes):
        file = folder / f"r{index}.yaml"
        file.write_text(yaml.safe_dump(recipe, sort_keys=False))
        environments[f"e{index}"] = {"recipe": file.name} | (beside or {})
    document = {
        "campaign": "c",
        "title": "t",
        "environments": environments,
        "workloads": {"w": {"type": "llama-benchy"}},
    }
    text = yaml.safe_dump(document | parts, sort_keys=False)
    return matrices.parse(text, str(folder / "m.yaml"))


def only(found: Matrix) -> DockerOptions:
    (options,) = found.environments.values()
    assert isinstance(options, DockerOptions)
    return options


def test_a_recipe_is_a_container_with_a_server(tmp_path: Path) -> None:
    found = matrix(tmp_path, WALKER)
    options = only(found)
    assert options.server is not None
    assert options.server.argv == (
        *("vllm", "serve", "{model_id}", "--port", "{port}", "-tp", "1"),
        *("--base", "http://0.0.0.0:{port}"),
        *("--speculative-config", '{"method": "mtp"}'),
    )
    assert (options.server.port, options.server.client) == (8200, "host")
    assert (options.image, options.gpus, options.network) == (
        "acme/vllm:1",
        "all",
        "host",
    )
    assert options.env == {"ATOMIC_ADD": "1", "HF_HOME": "/cache/huggingface"}
    assert (options.shm_size, options.ulimits) == ("10g", {"memlock": -1})
    assert options.recipe is not None
    assert options.recipe.file == "r0.yaml"
    assert options.recipe.left_out == (
        "env.HF_TOKEN, a variable of your shell",
        "executor_config.cap_add",
        "post_exec",
    )
    assert found.models["walker-8b"].id == "acme/Walker-8B"
    # As campaign.json has it, the matrix needs the file no more.
    assert matrices.from_document(found.document(), "c") == found


def test_what_stands_beside_a_recipe_wins(tmp_path: Path) -> None:
    beside = {
        "env": {"HF_TOKEN": "$HF_TOKEN", "ATOMIC_ADD": "0"},
        "gpus": ["0"],
        "binds": [],
    }
    models = {"w8": {"id": "acme/Walker-8B", "path": "/data/w8"}}
    options = only(matrix(tmp_path, WALKER, beside=beside, models=models))
    assert (options.gpus, options.binds) == (("0",), ())
    assert options.env["ATOMIC_ADD"] == "0"
    assert options.env["HF_TOKEN"] == "$HF_TOKEN"
    assert options.server is not None
    assert options.server.argv[2] == "{model_path}"


def test_each_recipe_serves_its_own_model(tmp_path: Path) -> None:
    other = WALKER | {"model": "acme/Runner-70B"}
    found = matrix(tmp_path, WALKER, other, WALKER | {"container": "acme/vllm:2"})
    assert list(found.cells()) == [
        ("walker-8b", "e0", "w"),
        ("walker-8b", "e2", "w"),
        ("runner-70b", "e1", "w"),
    ]


def test_a_command_that_needs_a_shell_gets_one(tmp_path: Path) -> None:
    options = only(matrix(tmp_path, WALKER | {"command": "run $(nproc) {model}"}))
    assert options.server is not None
    assert options.server.argv == ("bash", "-c", "run $(nproc) {model_id}")


@pytest.mark.parametrize("row", RECIPES["refused"], ids=lambda row: row["words"])
def test_what_cannot_be_done_is_said_with_its_line(
    tmp_path: Path, row: dict[str, Any]
) -> None:
    with pytest.raises(MatrixError) as refused:
        matrix(tmp_path, WALKER | row["change"])
    (line,) = refused.value.lines()
    assert row["words"] in line
    assert "m.yaml:" in line


def test_a_recipe_that_is_not_there_and_another_model_are_said(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=r"no model of the matrix has the id"):
        matrix(tmp_path, WALKER, models={"m": {"id": "other"}})
    with pytest.raises(MatrixError, match=r"none\.yaml"):
        matrix(tmp_path, WALKER, beside={"recipe": "none.yaml"})
    with pytest.raises(MatrixError, match="a recipe is an environment of type docker"):
        matrix(tmp_path, WALKER, beside={"type": "host"})
