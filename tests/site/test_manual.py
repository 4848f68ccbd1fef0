"""The guide that comes with every site: its commands are there, with the options it names."""

import re
import shlex
from pathlib import Path

import pytest

from sparkpub import cli
from sparkpub.site import manual

COMMAND = re.compile(r"(?:^ *|`)sparkpub ([a-z]+)([^`\n#]*)", re.MULTILINE)
GUIDES = sorted(manual.FOLDER.glob("guide/*.md"))


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_its_commands_can_be_given(path: Path) -> None:
    text = path.read_text().replace("\\\n", " ")
    for name, rest in COMMAND.findall(text):
        command = cli.cli.commands[name]
        options = {option for item in command.params for option in item.opts}
        given = {word for word in shlex.split(rest) if word.startswith("-")}
        assert given <= options, f"sparkpub {name}{rest}"
