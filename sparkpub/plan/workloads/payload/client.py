"""Run a client of a server that is already running, and keep what the server says before and after.

client.py PROGRAM ARG...: reads client.json beside it and writes server.json there. The client's exit code is ours.
`{model}` in its arguments becomes the model's name on the server.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkpub.plan.workloads.payload import pages
else:
    import pages

FOLDER = Path(__file__).resolve().parent


def version_of(program: str) -> str | None:
    """The last word of the last line that `--version` prints."""
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.split()
    return words[-1] if words else None


def looked_at(wanted: Any, name: str) -> tuple[str, dict[str, Any]]:
    """The path of the client's program, and who the server is, with one answer of its model. Raises StopError."""
    url = wanted["url"]
    model, said = pages.choose_model(url, wanted["model"])
    program = pages.find_program(name)
    if program is None:
        raise pages.StopError(f"{name} is not installed here")
    answer = pages.sensible_answer(url, model, random_weights=wanted["random_weights"])
    server = {"url": url, "model": model, "said": said, "answer": answer}
    if wanted["client"] is not None:
        server |= {"client": wanted["client"], "client_version": version_of(program)}
    return program, server


def main() -> int:
    wanted = json.loads((FOLDER / "client.json").read_text())
    try:
        program, server = looked_at(wanted, sys.argv[1])
    except pages.StopError as error:
        print(f"client: {error}")
        return pages.LASTING if error.lasts else 1
    words = [word.replace("{model}", server["model"]) for word in sys.argv[2:]]
    server["metrics_before"] = pages.counters(wanted["url"])
    code = subprocess.run([program, *words], check=False, cwd=FOLDER).returncode
    server["metrics_after"] = pages.counters(wanted["url"])
    (FOLDER / "server.json").write_text(json.dumps(server))
    return code


if __name__ == "__main__":
    sys.exit(main())
