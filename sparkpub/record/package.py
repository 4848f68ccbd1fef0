"""Where this sparkpub was installed from, as pip, pipx and uv take it.

Until a release is on the index, a git address with a commit is the only name that works elsewhere. Installers note it
in `direct_url.json` (PEP 610); a clone knows it from its remote.
"""

import json
import re
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from sparkpub import __version__
from sparkpub.record import repository

UNKNOWN = "git+https://github.com/OWNER/sparkpub"
"""What a page says where the repository has no public address."""
_SSH = re.compile(r"(?:ssh://)?git@(?P<host>[^:/]+)[:/](?P<path>.+)")
EXTRAS = {
    "site": "mkdocs",
    "demo": "ctranslate2",
    "quick": "llama_benchy",
    "fleet": "ray",
}
"""The extras for users, each with a module that it brings."""
_INSTALLERS = {
    "uv-receipt.toml": "uv tool install --force",
    "pipx_metadata.json": "pipx install --force",
}
"""What installers of programs leave beside one, and how each makes it anew."""
_OF_UVX = re.compile(r"/(archive|environments)-v\d+/")
"""Folders of uv's cache: what is installed there is for one command."""


def install_command(extras: str) -> str:
    """What to type to have the packages of extras as well, for the installer that made this installation: pipx and uv
    make it anew, with the extras that it has."""
    whole = requirement(",".join(sorted({*extras.split(","), *installed_extras()})))
    place = Path(sys.prefix)
    for file, command in _INSTALLERS.items():
        if (place / file).is_file():
            return f"{command} '{whole}'"
    if _OF_UVX.search(f"{place.resolve()}/"):
        return f"uvx --from '{whole}' sparkpub"
    installer = "uv pip" if find_spec("pip") is None else "pip"
    return f"{installer} install '{requirement(extras)}'"


def installed_extras() -> list[str]:
    """The extras for users that are installed."""
    return [extra for extra, module in EXTRAS.items() if find_spec(module) is not None]


def requirement(extras: str = "") -> str:
    """What to give pip, pipx or uv for this very version: `sparkpub[site] @ git+https://…@COMMIT`, or
    `sparkpub[site]==VERSION` where it came from an index."""
    name = "sparkpub"
    if extras:
        name += f"[{extras}]"
    address = source()
    if address is None:
        return f"{name}=={__version__}"
    # A requirement has a host between its slashes, that of a folder too.
    address = address.replace("git+file:///", "git+file://localhost/")
    return f"{name} @ {address}"


@cache
def public_source() -> str:
    """The git address without its commit for pages that others read: never a folder of this machine."""
    address = source() or UNKNOWN
    if not address.startswith("git+https://"):
        return UNKNOWN
    return address.rpartition("@")[0] or UNKNOWN


def source() -> str | None:
    """The address of what is installed, without a password in it; None for a release of an index."""
    try:
        noted = distribution("sparkpub").read_text("direct_url.json")
    except PackageNotFoundError:
        noted = None
    if noted is None:
        return None
    origin: dict[str, Any] = json.loads(noted)
    url = str(origin["url"])
    if "vcs_info" in origin:
        return f"git+{public_address(url)}@{origin['vcs_info']['commit_id']}"
    if "dir_info" not in origin:
        digest = origin.get("archive_info", {}).get("hashes", {}).get("sha256")
        return public_address(url) + (f"#sha256={digest}" if digest else "")
    # A clone, at its commit: its remote, or the folder where it has none.
    folder = Path(unquote(urlsplit(url).path))
    commit = repository.told(folder, "rev-parse", "HEAD")
    if commit is None:
        return folder.as_uri()
    remote = repository.told(folder, "config", "--get", "remote.origin.url") or "/"
    address = folder.as_uri() if remote.startswith("/") else public_address(remote)
    return f"git+{address}@{commit}"


def public_address(url: str) -> str:
    """An address as anybody can fetch it: without a login, and by no key as `git@github.com:you/sparkpub.git`."""
    by_ssh = _SSH.fullmatch(url)
    if by_ssh is not None:
        return f"https://{by_ssh['host']}/{by_ssh['path']}"
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
