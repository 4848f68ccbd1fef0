"""How a command says what it found: lines for people, JSON for programs, and the exit status."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Event
from typing import Any, NoReturn

import click

from sparkpub.record import outside
from sparkpub.record.settings import DEFAULT_DATA


def print_as(
    as_json: bool,
    document: Callable[..., Any],
    lines: Callable[..., Iterable[str]],
    *about: Any,
) -> None:
    """What there is to say of something: its document as JSON, or its lines."""
    if as_json:
        click.echo(json.dumps(document(*about), indent=1))
        return
    for line in lines(*about):
        click.echo(coloured(line))


def next_step(*words: object) -> None:
    """The command that follows, as the last line for a person. A pipe, a file and a log do without."""
    if sys.stdout.isatty():
        click.echo(f"next: {' '.join(map(str, words))}")


def on_data(data: Path) -> str:
    """The option that names a data folder, where it is not the default."""
    if data == DEFAULT_DATA:
        return ""
    return f" --data {shlex.quote(str(data))}"


def finish(*, failed: bool) -> NoReturn:
    """End with the exit status that says whether problems were found, or something was refused."""
    sys.exit(int(failed))


_COLOURS = {"error": "red", "missing": "red", "warning": "yellow"}
"""First words of a line that stand out. A pipe, a file and NO_COLOR get them plain."""


def coloured(line: str) -> str:
    """A line for a terminal: names and texts from outside cannot steer it."""
    line = outside.plain(line)
    first, space, rest = line.partition(" ")
    colour = _COLOURS.get(first.rstrip(":"))
    if colour is None:
        return line
    return click.style(first, fg=colour) + space + rest


def show_page(address: str, end: Event, say: Callable[[str], None]) -> None:
    """Show a page in the browser until Ctrl-C."""
    say(f"page {address} (Ctrl-C ends it)")
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        click.launch(address)
    try:
        end.wait()
    except KeyboardInterrupt:
        say("")
