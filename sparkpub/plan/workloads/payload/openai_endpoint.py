"""Measure a server that is already running with the first client that is installed, and keep what the server says.

openai_endpoint.py: reads endpoint.json beside it and writes report.json and server.json there. The client's exit code
is ours. `{model}` and `{workdir}` in a client's argv become the model's name on the server and this folder.
"""

import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
PAGES = ("/v1/models", "/version", "/props", "/get_model_info")
"""Of any server; the version is of vLLM, the properties of llama-server, the information of SGLang."""
LIMIT = 10
"""Seconds that a page may take."""


def page(url: str, path: str) -> str | None:
    """The text at an address; None where the server has none there."""
    try:
        with urllib.request.urlopen(url + path, timeout=LIMIT) as answer:
            body: bytes = answer.read()
    except (urllib.error.URLError, OSError):
        return None
    return body.decode(errors="replace")


def document(text: str | None) -> Any:
    """What a page says as JSON; None for anything else."""
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return None


def served_model(models: Any) -> str | None:
    """The name of the first model of /v1/models."""
    listed = models.get("data") if isinstance(models, dict) else None
    first = listed[0] if isinstance(listed, list) and listed else None
    name = first.get("id") if isinstance(first, dict) else None
    return name if isinstance(name, str) else None


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
        entry = document(line)
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


def stop(text: str) -> int:
    print(f"openai_endpoint: {text}")
    return 1


def main() -> int:
    wanted = json.loads((FOLDER / "endpoint.json").read_text())
    url = wanted["url"]
    said = {path: document(page(url, path)) for path in PAGES}
    if said["/v1/models"] is None:
        return stop(f"no server answers at {url}/v1/models; start it, or correct url:")
    model = wanted["model"] or served_model(said["/v1/models"])
    if model is None:
        return stop(f"{url}/v1/models names no model; say which in model:")
    installed = [
        client for client in wanted["clients"] if shutil.which(client["argv"][0])
    ]
    if not installed:
        names = ", ".join(client["argv"][0] for client in wanted["clients"])
        return stop(f"none of these clients is installed here: {names}")
    if wanted["dataset"] is not None:
        try:
            write_prompts(wanted)
        except (OSError, ValueError) as error:
            return stop(f"the data set {wanted['dataset']} cannot be used: {error}")
    client = installed[0]
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
    }
    print("openai_endpoint:", " ".join(argv), flush=True)
    server["metrics_before"] = page(url, "/metrics")
    code = subprocess.run(
        argv, check=False, cwd=FOLDER, env=os.environ | client["variables"]
    ).returncode
    server["metrics_after"] = page(url, "/metrics")
    (FOLDER / "server.json").write_text(json.dumps(server))
    report = FOLDER / client["report"]
    if report.is_file() and report.name != "report.json":
        shutil.copy(report, FOLDER / "report.json")
    return code


if __name__ == "__main__":
    sys.exit(main())
