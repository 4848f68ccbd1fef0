"""Where this sparkpub was installed from, as pip, pipx and uv take it.

Until a release is on the index, a git address with a commit is the only name that works elsewhere. Installers note it
in `direct_url.json` (PEP 610); a clone knows it from its remote.
"""

import json
import re
import sys
from collections import defaultdict
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

_OF_EXTRA = re.compile(r"(?P<name>[\w.-]+).*\bextra == ['\"](?P<extra>\w+)['\"]")
"""A requirement of an extra, as the metadata of a package have it."""
_OF_UVX = re.compile(r"/(archive|environments)-v\d+/")
"""Folders of uv's cache: what is installed there is for one command."""


def install_command(extras: str) -> str:
    """What to type to have the packages of extras as well, for the installer that made this installation: pipx and uv
    make it anew, with the extras that it has."""
    whole = requirement(",".join(sorted({*extras.split(","), *installed_extras()})))
    place = Path(sys.prefix)
    if (place / "uv-receipt.toml").is_file():
        return f"uv tool install --force '{whole}'"
    if (place / "pipx_metadata.json").is_file():
        return f"pipx install --force '{whole}'"
    if _OF_UVX.search(f"{place.resolve()}/"):
        return f"uvx --from '{whole}' sparkpub"
    installer = "uv pip" if find_spec("pip") is None else "pip"
    return f"{installer} install '{requirement(extras)}'"


def installed_extras() -> list[str]:
    """The extras for users of which every package is installed."""
    try:
        required = distribution("sparkpub").requires or []
    except PackageNotFoundError:
        return []
    needs: dict[str, list[str]] = defaultdict(list)
    for line in required:
        found = _OF_EXTRA.match(line)
        if found is not None and found["extra"] != "dev":
            needs[found["extra"]].append(found["name"])
    return [extra for extra, names in needs.items() if all(map(_is_there, names))]


def _is_there(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


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
    url = _without_login(str(origin["url"]))
    if "vcs_info" in origin:
        return f"git+{url}@{origin['vcs_info']['commit_id']}"
    if "dir_info" in origin:
        return _of_folder(Path(unquote(urlsplit(url).path)))
    hashes = origin.get("archive_info", {}).get("hashes", {})
    digest = hashes.get("sha256")
    if digest:
        return f"{url}#sha256={digest}"
    return url


def _of_folder(folder: Path) -> str:
    """The address of a clone at its commit: its remote, or the folder where it has none."""
    commit = repository.told(folder, "rev-parse", "HEAD")
    if commit is None:
        return folder.as_uri()
    remote = repository.told(folder, "config", "--get", "remote.origin.url")
    address = folder.as_uri()
    if remote is not None:
        address = _as_https(remote)
    return f"git+{address}@{commit}"


def _as_https(remote: str) -> str:
    """A remote as anybody can fetch it: `git@github.com:you/sparkpub.git` needs a key."""
    by_ssh = _SSH.fullmatch(remote)
    if by_ssh is not None:
        return f"https://{by_ssh['host']}/{by_ssh['path']}"
    if remote.startswith("/"):
        return Path(remote).as_uri()
    return _without_login(remote)


def _without_login(url: str) -> str:
    """A URL without user name and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
