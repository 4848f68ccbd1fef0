"""The whole command line called in this process: most commands take less time than a process of their own to start."""

import contextlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from sparkpub import cli


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


def sparkpub(*arguments: object, cwd: Path | None = None, **variables: str) -> Done:
    """Call `sparkpub` with arguments, in the current folder or another, with more variables."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd or Path.cwd())
        for name, value in {"COLUMNS": "100", **variables}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["sparkpub", *map(str, arguments)])
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as ended,
        ):
            cli.main()
    return Done(int(ended.value.code or 0), _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
