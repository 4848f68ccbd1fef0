"""Measure a server that is already running with the first client that is installed, and keep what the server says.

openai_endpoint.py: reads endpoint.json beside it and writes report.json and server.json there. The client's exit code
is ours. `{model}` and `{workdir}` in a client's argv become the model's name on the server and this folder.
"""

import json
import os
import shutil
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


def write_prompts(wanted: Any) -> None:
    """One line for each request: `prompt` for vLLM's client, `text` for AIPerf's. Raises ValueError with the line."""
    prompts = []
    for number, line in enumerate(Path(wanted["dataset"]).read_text().splitlines(), 1):
        entry = pages.Page(line).document
        prompt = entry.get("prompt") if isinstance(entry, dict) else None
        if not isinstance(prompt, str):
            raise ValueError(f"line {number} is no JSON object with a prompt")  # noqa: TRY004 - one kind for the caller
        prompts.append(prompt)
    if not prompts:
        raise ValueError("it holds no prompt")
    with (FOLDER / "prompts.jsonl").open("w") as file:
        for index in range(wanted["requests"]):
            prompt = prompts[index % len(prompts)]
            entry = {
                "prompt": prompt,
                "text": prompt,
                "output_tokens": wanted["output_tokens"],
            }
            file.write(json.dumps(entry) + "\n")


def installed(clients: Any) -> Any:
    """The first client that is there, with the path of its program. Raises StopError."""
    for client in clients:
        program = pages.find_program(client["argv"][0])
        if program is not None:
            return client | {"argv": [program, *client["argv"][1:]]}
    programs = ", ".join(client["argv"][0] for client in clients)
    raise pages.StopError(f"none of these clients is installed here: {programs}")


def prepare(wanted: Any) -> tuple[str, dict[str, Any], Any]:
    """Model, what the server says, and the client, with its prompts written. Raises StopError."""
    model, said = pages.choose_model(wanted["url"], wanted["model"])
    client = installed(wanted["clients"])
    if wanted["dataset"] is not None:
        try:
            write_prompts(wanted)
        except (OSError, ValueError) as error:
            what = f"the data set {wanted['dataset']} cannot be used: {error}"
            raise pages.StopError(what, lasts=False) from None  # not the server's fault
    return model, said, client


def main() -> int:
    wanted = json.loads((FOLDER / "endpoint.json").read_text())
    url = wanted["url"]
    try:
        model, said, client = prepare(wanted)
        answer = pages.sensible_answer(
            url, model, random_weights=wanted["random_weights"]
        )
    except pages.StopError as error:
        print(f"openai_endpoint: {error}")
        return pages.LASTING if error.lasts else 1
    argv = [
        word.replace("{model}", model).replace("{workdir}", str(FOLDER))
        for word in client["argv"]
    ]
    server = {
        "url": url,
        "model": model,
        "client": client["name"],
        "client_version": version_of(argv[0]),
        "said": said,
        "answer": answer,
    }
    print("openai_endpoint:", " ".join(argv), flush=True)
    server["metrics_before"] = pages.counters(url)
    code = subprocess.run(
        argv, check=False, cwd=FOLDER, env=os.environ | client["variables"]
    ).returncode
    server["metrics_after"] = pages.counters(url)
    (FOLDER / "server.json").write_text(json.dumps(server))
    report = FOLDER / client["report"]
    if report.is_file() and report.name != "report.json":
        shutil.copy(report, FOLDER / "report.json")
    return code


if __name__ == "__main__":
    sys.exit(main())
