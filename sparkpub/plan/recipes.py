"""Recipes of sparkrun and Spark Arena: YAML that says how a model is served. `recipe: FILE` of a matrix is one.

Format: sparkrun's reference of recipes (`model`, `runtime`, `container`, `defaults`, `env`, `command` with
placeholders, `executor_config`, `min_nodes`, hooks), version 2. A recipe becomes an environment of type docker with a
`server`. What changes the image or needs several machines is refused; what else is not done is noted in `left_out`.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    TypeAdapter,
    ValidationError,
)

from sparkpub.record import documents
from sparkpub.record.documents import Lines
from sparkpub.record.errors import MatrixError, field_problems
from sparkpub.record.record import Declared

CACHE = "/cache/huggingface"
"""Where sparkrun shows the machine's cache of models inside, and commands look for them."""
READY_TIMEOUT = "30m"
"""A server loads its weights first, tens of gigabytes of them."""
_PLACEHOLDER = re.compile(r"(?<!\$)\{(\w+)\}")
_DEEPEST = 10
"""Placeholders in the values of placeholders."""
_CHANGES_THE_IMAGE = ("mods", "patches", "build_args", "builder", "build", "pre_exec")
_WITHOUT_EFFECT = frozenset(
    {"recipe_version", "sparkrun_version", "name", "description", "maintainer"}
    | {
        "metadata",
        "benchmark",
        "runtime",
        "runtime_version",
        "max_nodes",
        "solo_only",
        "notes",
    }
    | {*_CHANGES_THE_IMAGE}
)
"""What describes a recipe and starts nothing, or was said before."""
EXECUTOR = ("gpus", "ipc", "network", "shm_size", "privileged", "entrypoint", "user")
"""Keys of `executor_config` that an environment has under the same name."""


class RecipeRuntime(Declared):
    """How the server of a runtime is started: its first words, its port, and flags by name of a default."""

    words: str
    port: int
    flags: dict[str, str]


@cache
def runtimes() -> Mapping[str, RecipeRuntime]:
    """By the name that `runtime:` has without its kind of clustering."""
    (document,) = documents.shipped("plan", "runtimes.yaml")
    return TypeAdapter(dict[str, RecipeRuntime]).validate_python(document)


class Recipe(BaseModel):
    """The parts of a recipe that decide how a server runs. Others are kept in `model_extra`."""

    model_config = ConfigDict(extra="allow", coerce_numbers_to_str=True)

    model: str = Field(min_length=1)
    container: str | None = None
    defaults: dict[str, Any] = {}
    env: dict[str, str | bool | None] = {}
    command: str
    volumes: list[str] | dict[str, str] = []
    executor_config: dict[str, Any] = {}
    min_nodes: PositiveInt = 1
    cluster_only: bool = False
    mode: str = "auto"


def read(path: Path) -> tuple[Recipe, str]:
    """A recipe and the SHA-256 of its file. Raises MatrixError for what is none."""
    text = documents.text_of(path, MatrixError)
    document, _ = documents.parse(text, str(path), MatrixError)
    try:
        recipe = Recipe.model_validate(document)
    except ValidationError as error:
        what = field_problems(error)[0]
        remedy = "a recipe of sparkrun is a mapping with model, runtime, container and command"
        raise MatrixError(what, where=str(path), remedy=remedy) from None
    return recipe, hashlib.sha256(text.encode()).hexdigest()


def key_of(name: str) -> str:
    """A key for a model: the last part of its name, without the ending of a file."""
    last = name.rstrip("/").rpartition("/")[2].removesuffix(".gguf")
    key = re.sub(r"[^a-z0-9.-]+", "-", last.lower())[:40].strip("-.")
    return key or "model"


def fill_in(document: dict[str, Any], folder: Path, lines: Lines) -> list[str]:
    """Replace the recipes that environments of a matrix name, paths from `folder`, by what they become; without
    `models:` the matrix gets theirs. Returns what is wrong, a line each."""
    problems: list[str] = []
    models: dict[str, str] = {}
    for name, declared in _mappings(document.get("environments")).items():
        file = declared.get("recipe")
        if not isinstance(file, str):
            continue
        place = ("environments", name, "recipe")
        try:
            recipe, digest = read(folder / file)
        except MatrixError as error:
            what = f"recipe {file}: {error.what}"
            problems.append(lines.problem(place, what, error.remedy or ""))
            continue
        found = list(obstacles(recipe, declared))
        problems += [lines.problem(place, what, remedy) for what, remedy in found]
        models[name] = recipe.model
        if not found:
            known = _mappings(document.get("models")).values()
            paths = (m.get("path") for m in known if m.get("id") == recipe.model)
            made = environment(recipe, digest, declared, next(paths, None))
            document["environments"][name] = made
    if models:
        problems += _take_models(document, models, lines)
    return problems


def _mappings(part: Any) -> dict[str, dict[str, Any]]:
    """The mappings in a part of a document that nobody has checked yet, by name."""
    named = part.items() if isinstance(part, dict) else ()
    return {name: value for name, value in named if isinstance(value, dict)}


def obstacles(recipe: Recipe, declared: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Why a recipe cannot be measured as it stands, and what to do, with what the matrix declares beside it."""
    if declared.get("type", "docker") != "docker":
        yield "a recipe is an environment of type docker", "remove type:"
    if recipe.cluster_only or recipe.mode == "cluster" or recipe.min_nodes > 1:
        what = "the recipe needs several machines, and a server runs on one"
        yield what, "start it with sparkrun and measure it with sparkpub quick URL"
    if "image" not in declared:
        extra = recipe.model_extra or {}
        changes = " and ".join(name for name in _CHANGES_THE_IMAGE if extra.get(name))
        if changes:
            what = (
                f"the recipe changes its image with {changes}, which is not done here"
            )
            yield what, "build that image and name it: image:"
        if recipe.container is None:
            yield "the recipe names no container", "add image:"
    left = set(_PLACEHOLDER.findall(_filled(recipe.command, recipe, None)))
    for name in sorted(left - {"model_id", "port"}):
        what = f"the command's {{{name}}} has no value"
        yield what, "add it to defaults: of the recipe"


def environment(
    recipe: Recipe, digest: str, declared: Mapping[str, Any], model_path: str | None
) -> dict[str, Any]:
    """The options of the environment. What the matrix declares beside the recipe wins; variables are added."""
    # The operator's shell has the values of some.
    variables = {
        name: str(said)
        for name, said in recipe.env.items()
        if said is not None and "$" not in str(said)
    }
    executor, unknown = _executor(recipe)
    cache = str(Path("~/.cache/huggingface").expanduser())
    unset = recipe.env.keys() - variables
    left_out = [
        *(f"env.{name}, a variable of your shell" for name in sorted(unset)),
        *(f"executor_config.{name}" for name in unknown),
        *sorted((recipe.model_extra or {}).keys() - _WITHOUT_EFFECT),
    ]
    own = {
        "type": "docker",
        "image": recipe.container,
        "gpus": "all",
        "ipc": "host",
        "network": "host",
        "binds": [*_volumes(recipe), f"{cache}:{CACHE}"],
        **executor,
        "server": {
            "argv": command(recipe, model_path),
            "port": _port(recipe),
            "ready_timeout": READY_TIMEOUT,
            "client": "host",
        },
    }
    source: dict[str, Any] = {"file": Path(declared["recipe"]).name, "sha256": digest}
    if left_out:
        source["left_out"] = left_out
    env = {"HF_HOME": CACHE} | variables | dict(declared.get("env") or {})
    return own | dict(declared) | {"env": env, "recipe": source}


def command(recipe: Recipe, model_path: str | None) -> list[str]:
    """The server's words. A command that needs a shell gets one."""
    text = _filled(recipe.command, recipe, model_path)
    # A blank after the backslash of a line that goes on is an oversight that sparkrun forgives, too.
    text = re.sub(r"\\[ \t]*\n", " ", text).strip()
    # Several commands, a pipe, a variable, or one set before the command.
    plain = re.sub(r"'[^']*'", "", text)
    with suppress(ValueError):  # of quotes that are not closed
        if re.search(r"[();<>|&$`\n]|^\w+=", plain) is None:
            return shlex.split(text)
    return ["bash", "-c", text]


def _filled(text: str, recipe: Recipe, model_path: str | None) -> str:
    """The text with its placeholders filled in, those in their values as well; model and port are the matrix's."""
    known = {
        name: json.dumps(value) if isinstance(value, dict | list) else str(value)
        for name, value in recipe.defaults.items()
    }
    known |= {"model": "{model_path}" if model_path else "{model_id}", "port": "{port}"}
    for _ in range(_DEEPEST):
        text = _PLACEHOLDER.sub(lambda found: known.get(found[1], found[0]), text)
    return text


def _port(recipe: Recipe) -> int:
    said = recipe.defaults.get("port")
    if isinstance(said, int):
        return said
    found = re.search(r"--port[ =](\d+)", recipe.command)
    return 8000 if found is None else int(found[1])


def _executor(recipe: Recipe) -> tuple[dict[str, Any], list[str]]:
    """Options of the container, and those that an environment does not have."""
    config = {
        name: value
        for name, value in recipe.executor_config.items()
        if value is not None
    }
    found = {name: config.pop(name) for name in EXECUTOR if name in config}
    if "shm_size" in found:  # Docker takes `10gb`, and the matrix `10g`
        found["shm_size"] = str(found["shm_size"]).lower().removesuffix("b")
    # `memlock=-1:-1`: soft and hard limit are one here.
    if isinstance(config.get("ulimit"), list):
        listed = " ".join(map(str, config.pop("ulimit")))
        limits = re.findall(r"(\w+)=(-?\d+)", listed)
        found["ulimits"] = {name: int(limit) for name, limit in limits}
    return found, sorted(config.keys() - {"auto_remove", "restart_policy"})


def _volumes(recipe: Recipe) -> list[str]:
    """Binds, with the home folder's path for `~`."""
    volumes = recipe.volumes
    if isinstance(volumes, dict):
        volumes = [f"{source}:{target}" for source, target in volumes.items()]
    return [str(Path(volume).expanduser()) for volume in volumes]


def _take_models(
    document: dict[str, Any], wanted: Mapping[str, str], lines: Lines
) -> list[str]:
    """Give the matrix the models of its recipes, unless it has some; leave out cells of another model's recipe."""
    if "models" not in document:
        ids = dict.fromkeys(wanted.values())
        document["models"] = {key_of(name): {"id": name} for name in ids}
    known = _mappings(document["models"])
    problems = []
    rules = list(document.get("exclude") or ())
    for name, model_id in wanted.items():
        others = [key for key, model in known.items() if model.get("id") != model_id]
        if len(others) == len(known):
            what = f"no model of the matrix has the id of the recipe, {model_id}"
            place = ("environments", name, "recipe")
            problems.append(lines.problem(place, what, "add one, or remove models:"))
        added = [{"model": key, "environment": name} for key in others]
        rules += [rule for rule in added if rule not in rules]
    if rules:
        document["exclude"] = rules
    return problems
