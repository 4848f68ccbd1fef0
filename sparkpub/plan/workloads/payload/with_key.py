"""Run a command of Python's with the server's key, which no list of processes shows.

with_key.py PROGRAM ARG...: what the package that is installed here calls by the name PROGRAM, in this process, with
`--api-key` and the variable `OPENAI_API_KEY` behind its arguments. Everybody may read the command line of a process,
and nobody else what it adds to that.
"""

import os
import sys
from importlib.metadata import entry_points
from typing import Any


def main() -> Any:
    """What the command returns."""
    del sys.path[0]  # this folder, in which a driver may have the package's name
    (command,) = entry_points(group="console_scripts", name=sys.argv[1])
    sys.argv = [*sys.argv[1:], "--api-key", os.environ["OPENAI_API_KEY"]]
    return command.load()()


if __name__ == "__main__":
    sys.exit(main())
