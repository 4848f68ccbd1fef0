"""Measure a server that is already running with llama-benchy, and keep what the server says.

llama_benchy.py: reads benchy.json beside it and writes report.json, requests.json and server.json there. The tool's
exit code is ours.

The tool cuts its prompts from a text that it looks for in a folder of its own, and downloads where it is not there; and
it counts with a tokenizer, which it downloads, too. Here the text is always `prose.txt`, and the tokenizer the one of
the model's folder. Where there is none, the server counts: it is asked how many tokens parts of the text have, and the
text is cut into pieces that are as long on average. The tool takes the pieces for tokens, and the server says in each
answer how many there really were.
"""

import hashlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkpub.plan.workloads.payload import client, pages
else:
    import client
    import pages

FOLDER = Path(__file__).resolve().parent
TOKENIZER, WITH_KEY = "tokenizer.json", "with_key.py"
TOOL = "llama-benchy"
INSTALL = f"install it with: uv tool install {TOOL}"
INTERPRETER = re.compile(
    rb"#!(?:/bin/sh\n'''exec' )?(?:/usr/bin/env )?[\"']?([^\n\"']*?python[\w.]*)"
)
"""How the scripts begin that pip and uv write; a path that is long or has blanks does not fit into the first line."""
BETWEEN = "\u2063"
"""An invisible separator: it ends a piece, and is in no prompt."""
EXCERPT, EXCERPTS = 300, 10
"""Characters of each part of the text that the server counts, and how many of them: together they fit into any
context."""
WARMUP = "Warmup " * 10
"""What llama-benchy sends first: it takes what the server counts besides for the template of the chat."""


def with_key(program: str) -> list[str]:
    """The command that gives the tool its key within its own process: everybody may read a command line. Raises
    StopError where the tool is no program of Python's."""
    with Path(program).open("rb") as file:
        found = INTERPRETER.match(file.read(1000))
    if found is None:
        why = f"{program} is no script of Python's: the key cannot be given to it unseen; {INSTALL}"
        raise pages.StopError(why)
    return [os.fsdecode(found[1]), str(FOLDER / WITH_KEY), Path(program).name]


def make_tokenizer(url: str, model: str, text: str) -> tuple[str, dict[str, Any]]:
    """The text in the pieces that count as tokens, and who cut it; writes a tokenizer that knows them. Raises
    StopError."""
    template = pages.counted(url, model, ".") - 1
    warmup = max(1, pages.counted(url, model, WARMUP) - template)
    step = len(text) // EXCERPTS
    sampled = "".join(
        text[start : start + EXCERPT] for start in range(0, step * EXCERPTS, step)
    )
    sample = max(1, pages.counted(url, model, sampled) - template)
    count = round(len(text) * sample / len(sampled))
    ends = [round(index * len(text) / count) for index in range(count + 1)]
    pieces = [text[start:end] for start, end in itertools.pairwise(ends) if end > start]
    write_tokenizer(pieces, warmup)
    how = "pieces of even length"
    counted = {"how": how, "text_tokens": len(pieces), "text_characters": len(text)}
    return BETWEEN.join(pieces), counted | {"template_tokens": template}


def write_tokenizer(pieces: list[str], warmup: int) -> None:
    """A tokenizer that takes each piece for a token, and the tool's own text for as many as the server counts."""
    vocabulary = {"<unknown>": 0}
    for piece in [*pieces, "W"]:
        vocabulary.setdefault(piece, len(vocabulary))
    document: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {
            "type": "Replace",
            "pattern": {"String": WARMUP},
            "content": BETWEEN.join("W" * warmup),
        },
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"String": BETWEEN},
            "behavior": "Removed",
            "invert": False,
        },
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unknown>"},
    }
    (FOLDER / TOKENIZER).write_text(json.dumps(document), encoding="utf-8")


def prepare(
    wanted: dict[str, Any], server: dict[str, Any], text: str
) -> tuple[str, str]:
    """The tokenizer and the text for the tool; notes in `server` who counts. Raises StopError."""
    named = wanted["tokenizer"]
    place = Path(named or wanted["folder"] or "").expanduser()
    found = place if place.suffix == ".json" else place / TOKENIZER
    if found.is_file():
        by = "matrix" if named else "model"
        server["tokenizer"] = {"file": str(found), "by": by}
        return str(found), text
    if named is None:
        cut, counts = make_tokenizer(server["url"], server["model"], text)
        server["tokenizer"] = {"file": None, "by": "server", **counts}
        return str(FOLDER / TOKENIZER), cut
    if re.fullmatch(r"[\w.-]+(/[\w.-]+)?", named) is None:
        why = f"no tokenizer at {named}; name a folder with {TOKENIZER}"
        raise pages.StopError(why)
    server["tokenizer"] = {"file": named, "by": "matrix"}
    return named, text


def measure(client: list[str], argv: list[str], text: str, *, offline: bool) -> int:
    """Run the tool with its text where it looks for one; returns its exit code."""
    address = f"sparkpub:{hashlib.sha256(f'{FOLDER}{text}'.encode()).hexdigest()}"
    name = hashlib.md5(address.encode()).hexdigest()
    cached = Path("~/.cache/llama-benchy").expanduser() / f"{name}.txt"
    variables = dict(os.environ)
    if offline:  # the tokenizer is a file: nothing is fetched meanwhile
        variables |= {"HF_HUB_OFFLINE": "1"}
    argv = [*client, *argv, "--book-url", address]
    print("llama_benchy:", " ".join(argv), flush=True)
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        cached.write_text(text, encoding="utf-8")
        return subprocess.run(argv, check=False, cwd=FOLDER, env=variables).returncode
    finally:
        cached.unlink(missing_ok=True)


NOTED = {
    "request_start": {"run_index": "run_index", "started": "ts"},
    "request_first_token": {"ttft_s": "ttft_s"},
    "request_end": {
        "total_tokens": "total_tokens",
        "prompt_tokens": "prompt_tokens",
        "decode_seconds": "decode_seconds",
        "error": "error",
        "ended": "ts",
    },
}
"""What is kept of the tool's events, by our name and its own."""


def requests() -> list[dict[str, Any]]:
    """What the tool noted of each request, without the tokens one by one."""
    found: dict[int, dict[str, Any]] = {}
    path = FOLDER / "progress.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue  # the last line of a tool that was ended
        number, kind = event.get("request_id"), event.get("type")
        if number is None or kind not in NOTED:
            continue
        request = found.setdefault(number, {"request_id": number})
        request |= {ours: event.get(theirs) for ours, theirs in NOTED[kind].items()}
    return list(found.values())


def main() -> int:
    """Raises StopError."""
    wanted = json.loads((FOLDER / "benchy.json").read_text(encoding="utf-8"))
    text = (FOLDER / "prose.txt").read_text(encoding="utf-8")
    # Ended from outside, it takes its text out of the tool's folder as it does otherwise.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    program = pages.find_program(TOOL)
    if program is None:
        raise pages.StopError(f"{TOOL} is not installed; {INSTALL}")
    keyed = bool(os.environ.get("OPENAI_API_KEY"))
    tool = with_key(program) if keyed else [program]
    server = client.looked_at(wanted)
    server["client"] = TOOL
    server["text_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    tokenizer, text = prepare(wanted, server, text)
    fixed = {"{model}": server["model"], "{tokenizer}": tokenizer}
    argv = [
        fixed.get(word, word).replace("{folder}", str(FOLDER))
        for word in wanted["argv"]
    ]
    offline = Path(tokenizer).is_file()
    code = client.measured(server, lambda: measure(tool, argv, text, offline=offline))
    (FOLDER / "requests.json").write_text(json.dumps(requests()), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(client.ended(main))
