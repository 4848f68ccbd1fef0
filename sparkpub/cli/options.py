"""Options and arguments that several commands have."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sparkpub.record.errors import UsageError
from sparkpub.record.settings import DEFAULT_DATA

if TYPE_CHECKING:
    from sparkpub.plan.matrix import Matrix

PATH, FOLDER = click.Path(path_type=Path), click.Path(path_type=Path, file_okay=False)
PRESENT = click.Path(path_type=Path, exists=True, file_okay=False)
MATRIX = click.argument("matrix_file", metavar="MATRIX", type=PATH)
DATA = click.option(
    "--data",
    type=FOLDER,
    default=DEFAULT_DATA,
    help="Folder of the campaigns.",
)
SITE = Path("site_src")
SOURCES = click.option(
    "--sources",
    type=PRESENT,
    default=SITE,
    help="Folder of pages, claims.yaml and facts.yaml.",
)
ON = click.option(
    "--on",
    "address",
    metavar="ADDRESS",
    help="Use the machines of a Ray cluster: HOST:PORT, or auto on one of its machines.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON only.")

_OF_RESULTS = (
    click.option("--campaign", help="Name of the campaign. [default: that of PATH]"),
    click.option(
        "--machine",
        help="Kind of machine, such as dgx-spark, if the results do not name it.",
    ),
    click.option(
        "--environment",
        help="Key of the environment. [default: container, where an image is named beside the results]",
    ),
    click.option("--model", help="Key of the model, if the results do not name it."),
    click.option(
        "--mapping", type=PATH, help="File that maps the columns of a table (YAML)."
    ),
    click.option("--about", "about_file", type=PATH, help="Extra metadata (YAML)."),
)


def of_results(command: Callable[..., None]) -> Callable[..., None]:
    """What can be said of results that are imported."""
    for option in reversed(_OF_RESULTS):
        command = option(command)
    return command


def on_folder(command: Callable[..., None]) -> Callable[..., None]:
    """The data folder as an argument, or with `--data` as everywhere else."""

    @click.argument("folder", metavar="[DIR]", type=PATH, required=False)
    @DATA
    @wraps(command)
    def with_folder(folder: Path | None, data: Path, **given: Any) -> None:
        command(data=folder or data, **given)

    return with_folder


def on_campaign(command: Callable[..., None]) -> Callable[..., None]:
    """The same, where the argument may also name a campaign of the data folder, or be its folder."""

    @on_folder
    @wraps(command)
    def with_campaign(data: Path, **given: Any) -> None:
        named = click.get_current_context().params["folder"]
        if named is not None:
            data, campaign = _named(named, click.get_current_context().params["data"])
            given["campaign"] = given.get("campaign") or campaign
        command(data=data, **{"campaign": None, **given})

    return with_campaign


def _named(path: Path, data: Path) -> tuple[Path, str | None]:
    """The data folder and the campaign that an argument means; None for all of them."""
    from sparkpub.record.store import CAMPAIGN_FILE

    if (path / CAMPAIGN_FILE).is_file():
        return path.parent, path.resolve().name
    if not path.exists() and (data / path / CAMPAIGN_FILE).is_file():
        return data, path.name
    return path, None


def refuse_beside(option: str, *fitting: str) -> None:
    """Raise UsageError for an option on the command line that has no effect with another one; `fitting` have."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = str(parameter.name)
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        is_option = isinstance(parameter, click.Option)
        if is_given and is_option and name not in (option, *fitting):
            called = "/".join([*parameter.opts, *parameter.secondary_opts])
            what = f"{called} has no effect with --{option}"
            raise UsageError(what, remedy="leave it out")


def declared_in(matrix_file: Path | None) -> "Matrix | None":
    """The matrix in a file, where one is given."""
    from sparkpub.plan import matrix

    if matrix_file is None:
        return None
    return matrix.read(matrix_file)
