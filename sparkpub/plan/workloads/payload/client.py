"""Run a client of a server that is already running, and keep what the server says before and after.

client.py PROGRAM ARG...: reads client.json beside it and writes server.json there. The client's exit code is ours.
`{model}` in its arguments becomes the model's name on the server.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkpub.plan.workloads.payload import pages
else:
    import pages

FOLDER = Path(__file__).resolve().parent


def version_of(program: str) -> str | None:
    """The last word of the last line that `--version` prints."""
    argv = [program, "--version"]
    try:
        done = subprocess.run(
            argv, check=False, capture_output=True, text=True, timeout=120
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.split()
    return words[-1] if words else None


def looked_at(wanted: Any) -> dict[str, Any]:
    """Who the server is, with one answer of its model. Raises StopError."""
    random = wanted["random_weights"]
    return pages.look(wanted["url"], wanted["model"], random_weights=random)


def measured(server: dict[str, Any], run: Callable[[], int]) -> int:
    """What a client ends with; the server's counters before and after it are kept with what the server said."""
    kept = FOLDER / "server.json"
    server["metrics_before"] = pages.counters(server["url"])
    kept.write_text(json.dumps(server))
    code = run()
    server["metrics_after"] = pages.counters(server["url"])
    kept.write_text(json.dumps(server))
    return code


def ended(main: Callable[[], int]) -> int:
    """The exit code of a driver; one that cannot measure says why."""
    try:
        return main()
    except pages.StopError as error:
        print(f"{Path(sys.argv[0]).stem}: error: {error}")
        return pages.LASTING if error.lasts else 1


def main() -> int:
    """Raises StopError."""
    wanted = json.loads((FOLDER / "client.json").read_text())
    name, *words = sys.argv[1:]
    program = pages.find_program(name)
    if program is None:
        raise pages.StopError(f"{name} is not installed here")
    server = looked_at(wanted)
    if wanted["client"] is not None:
        server["client"] = wanted["client"]
        server["client_version"] = version_of(program)
    argv = [program, *(word.replace("{model}", server["model"]) for word in words)]
    return measured(
        server, lambda: subprocess.run(argv, check=False, cwd=FOLDER).returncode
    )


if __name__ == "__main__":
    sys.exit(ended(main))
