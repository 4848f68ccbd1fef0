"""The address of a server with an OpenAI-compatible interface, however it was written.

People paste what their tools print: with or without `/v1`, with a page behind it, without a scheme, or the port alone.
"""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

_PORT = re.compile(r":?(\d{1,5})(/.*)?")
_PAGES = re.compile(
    r"/+(v1(/+(models|completions|chat/+completions|responses))?|health|metrics|docs|props)?/*$"
)
"""What may stand behind the address itself."""
_LOCAL = re.compile(r"(localhost|127(\.\d{1,3}){3}|0\.0\.0\.0|::1|::)")
LOOPBACK = "127.0.0.1"


def base_of(text: str) -> str:
    """`http://host:port[/path]`, without `/v1` and without a slash at its end. Raises ValueError for what is none."""
    said = text.strip()
    port = _PORT.fullmatch(said)
    if port is not None:
        said = f"{LOOPBACK}:{port[1]}{port[2] or ''}"
    if "://" not in said:
        said = f"http://{said}"
    try:
        parts = urlsplit(said)
        found = parts.port
    except ValueError:
        raise ValueError(_none(text)) from None
    known = parts.scheme in ("http", "https")
    if not known or not parts.hostname or found == 0 or re.search(r"\s", said):
        raise ValueError(_none(text))
    if parts.query or parts.fragment:
        raise ValueError(_none(text))
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "an address with a password would be published; "
            "leave it out and set OPENAI_API_KEY"
        )
    path = _PAGES.sub("", parts.path)
    netloc = parts.netloc
    if parts.hostname == "0.0.0.0":  # noqa: S104 - what servers print when they listen on every address
        netloc = netloc.replace("0.0.0.0", LOOPBACK)  # noqa: S104
    return f"{parts.scheme}://{netloc}{path}"


def _none(text: str) -> str:
    return f"{text!r} is not an address such as http://127.0.0.1:8000"


def _checked(text: str) -> str:
    base_of(text)
    return text


ServerAddress = Annotated[str, AfterValidator(_checked)]
"""An address as people wrote it; `base_of` makes one form of all."""


def host_of(base: str) -> str:
    """The host of an address."""
    return urlsplit(base).hostname or ""


def is_loopback(base: str) -> bool:
    """Whether an address is this machine's own by its form alone."""
    return _LOCAL.fullmatch(host_of(base)) is not None
