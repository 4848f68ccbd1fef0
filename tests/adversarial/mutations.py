"""Inputs of every kind, damaged in ways that people, programs and attackers damage them; repeatable by their seed."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from sparkpub.collect.importers import IMPORTERS, import_results
from sparkpub.collect.importers.base import Given, read_about
from sparkpub.collect.public import public, published
from sparkpub.plan import matrix as matrices
from sparkpub.plan.plan import plan
from sparkpub.plan.workloads import WORKLOADS
from sparkpub.record import telemetry
from sparkpub.record.errors import SparkpubError
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import (
    CAMPAIGN_FILE,
    read_campaign,
    read_record,
    record_paths,
    to_json,
)
from sparkpub.review.claims import facts, ledger
from sparkpub.site import manual, starter
from sparkpub.site.proofreading import read_page
from sparkpub.site.sources import page_text
from tests.published import MEASURED

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests/data"
_LONGEST = 200_000
"""Bytes of an input before it is damaged."""

TOKENS: tuple[bytes, ...] = (
    *(b"", b" ", b"\n", b"\r", b"\t", b"\0", b"\x1b[31m", b"\x7f", b"\xff", b"\xc3"),
    *(b"0", b"-1", b"1e999", b"-1e-999", b"NaN", b"Infinity", b".inf", b"9" * 400),
    *(b"9" * 5000, b"0x" + b"f" * 300, b"1:59:59", b"null", b"true", b"2024-13-45"),
    *(b"[" * 200, b"{" * 200, b"]", b"}", b'"', b"'", b",", b":", b"- ", b"? ", b"| "),
    *(
        b"&a ",
        b"*a",
        b"<<: *a",
        b"!!python/name:os.system ",
        b"!!binary ",
        b"%YAML 9.9",
    ),
    *(
        b"{{ value( }}",
        b"{% for a in b %}",
        b"{{ 1/0 }}",
        b"{#",
        b"{{ [[[ }}",
        b"---\n",
    ),
    *(b"<script>", b"](javascript:1)", b"[[[[", b"![](", b"```\n", b"| a |\n|---|\n"),
    *(b"\\ud800", b"\\u0000", b"\xe2\x80\xae", b"\xef\xbb\xbf", "é\U0001f600".encode()),
    *(
        b"../../etc/passwd",
        b"/dev/zero",
        b"C:\\x",
        b"a" * 10_000,
        b"(a+)+$",
        b"(" * 300,
    ),
    *(b"hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345", b"password=hunter2hunter2", b"://a:b@"),
    *(
        b"index",
        b"type",
        b"command",
        b"host",
        b"native",
        b'{"a": 1, "a": 2}',
        b"id: id",
    ),
)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_WORD = re.compile(rb"[A-Za-z_]{3,}")


def damaged(content: bytes, random: Random) -> bytes:
    """The content with one to four things wrong with it."""
    for _ in range(random.randint(1, 4)):
        content = random.choice(_DAMAGES)(content, random)
    return content[: 4 * _LONGEST]


def _place(content: bytes, random: Random) -> int:
    return random.randint(0, len(content))


def _inserted(content: bytes, random: Random) -> bytes:
    place = _place(content, random)
    return content[:place] + random.choice(TOKENS) + content[place:]


def _cut(content: bytes, random: Random) -> bytes:
    return content[: _place(content, random)]


def _without_part(content: bytes, random: Random) -> bytes:
    start, end = sorted((_place(content, random), _place(content, random)))
    return content[:start] + content[end:]


def _repeated(content: bytes, random: Random) -> bytes:
    start = _place(content, random)
    part = content[start : start + random.choice((1, 10, 1000))]
    return content[:start] + part * random.choice((2, 50, 500)) + content[start:]


def _flipped(content: bytes, random: Random) -> bytes:
    changed = bytearray(content)
    for _ in range(random.choice((1, 5, 50)) if changed else 0):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _replaced(pattern: re.Pattern[bytes]) -> Callable[[bytes, Random], bytes]:
    def replace(content: bytes, random: Random) -> bytes:
        found = list(pattern.finditer(content))
        if not found:
            return content
        chosen = random.choice(found)
        return (
            content[: chosen.start()] + random.choice(TOKENS) + content[chosen.end() :]
        )

    return replace


def _lines_mixed(content: bytes, random: Random) -> bytes:
    lines = content.split(b"\n")
    for _ in range(random.choice((1, 3, 20))):
        one, other = random.randrange(len(lines)), random.randrange(len(lines))
        lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _in_another_coding(content: bytes, random: Random) -> bytes:
    coding = random.choice(("utf-16", "utf-16-le", "utf-32", "latin-1"))
    return content.decode(errors="ignore").encode(coding, errors="ignore")


_DAMAGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_inserted, _inserted, _cut, _without_part, _repeated, _flipped, _lines_mixed),
    *(_replaced(_NUMBER), _replaced(_NUMBER), _replaced(_WORD), _replaced(_WORD)),
    _in_another_coding,
)


@dataclass(frozen=True)
class Kind:
    """A kind of input: good ones by their names, and what reads one in a folder of its own."""

    corpus: Mapping[str, bytes]
    read: Callable[[str, bytes, Path], object]

    def input(self, random: Random) -> tuple[str, bytes]:
        """Name and content of one damaged input."""
        name = random.choice(sorted(self.corpus))
        return name, damaged(self.corpus[name], random)


def _files(folder: Path, *patterns: str, most: int = 12) -> dict[str, bytes]:
    found = sorted({path for pattern in patterns for path in folder.rglob(pattern)})
    chosen = [path for path in found if path.is_file()][:: max(1, len(found) // most)]
    return {path.name: path.read_bytes()[:_LONGEST] for path in chosen}


def _matrix(_: str, content: bytes, folder: Path) -> None:
    (folder / "m.yaml").write_bytes(content)
    matrix = matrices.read(folder / "m.yaml")
    if len(list(matrix.cells())) * matrix.most_iterations < 10_000:
        plan(matrix)
    shown, _redactor = public(matrix)
    matrices.from_document(json.loads(json.dumps(shown.document())), "m")


def _record(_: str, content: bytes, folder: Path) -> None:
    path = folder / "r.json"
    path.write_bytes(content)
    record = read_record(path).record
    to_json(published(record, Redactor()))


def _campaign(_: str, content: bytes, folder: Path) -> None:
    (folder / CAMPAIGN_FILE).write_bytes(content)
    campaign = read_campaign(folder)
    if campaign.matrix is not None:
        matrices.from_document(campaign.matrix, "c")


def _page(_: str, content: bytes, folder: Path) -> None:
    (folder / "p.md").write_bytes(content)
    read_page(page_text(folder / "p.md", "p.md"), "p.md")


def _claims(_: str, content: bytes, folder: Path) -> None:
    (folder / "claims.yaml").write_bytes(content)
    ledger.read(folder / "claims.yaml")


def _facts(_: str, content: bytes, folder: Path) -> None:
    (folder / "facts.yaml").write_bytes(content)
    facts.read(folder / "facts.yaml")


def _about(_: str, content: bytes, folder: Path) -> None:
    (folder / "about.yaml").write_bytes(content)
    read_about(folder / "about.yaml")


def _telemetry(_: str, content: bytes, __: Path) -> None:
    telemetry.parse(content.decode("utf-8", errors="replace"))


def _log(_: str, content: bytes, __: Path) -> None:
    for workload in WORKLOADS.values():
        workload.parse(content, {"report": content, "requests": content}, None)
    Redactor().content(content)


def _import(kind: str) -> Callable[[str, bytes, Path], None]:
    def read(name: str, content: bytes, folder: Path) -> None:
        place = folder / "results"
        place.mkdir()
        (place / name).write_bytes(content)
        source = place if name.endswith("_metadata.json") else place / name
        given = Given("c", environment="native", model="m")
        import_results(kind, source, folder / "data", given)

    return read


ABOUT = b"""title: Results of somebody
origin: {title: A repository, url: https://example.org/x, commit: abc, file: a.json, licence: MIT}
machine: {kind: dgx-spark, arch: aarch64, cpu_count: 20, memory_total_gib: 119.6}
note: measured in the spring
disputed: {batch_size: the log says another one}
unavailable: {log: was not kept}
"""


SPARK = {
    "native_deepseek_iter1_20251108_195154_metadata.json": b"""{"environment": "native", "model_name": "deepseek",
 "model_id": "x/deepseek", "model_path": "/data/deepseek", "iteration": 1, "timestamp": "20251108_195154",
 "exit_code": 0, "start_temp_celsius": 40, "end_temp_celsius": 61}""",
    "all.json": b"""[{"environment": "native", "model_name": "deepseek", "iteration": 1, "timestamp":
 "20251108_195154", "output_throughput": 119.79, "throughput": 0.94, "peak_memory": 70.47, "latency": 8.4}]""",
    "models.json": b"""{"models": {"deepseek": {"native": [{"iteration": 1, "timestamp": "20251108_195154",
 "output_throughput": 119.79, "kv_cache": 44.3, "end_temp_celsius": -1}]}}}""",
}


def kinds() -> dict[str, Kind]:
    """Every kind of input from outside."""
    found = {
        "matrix": Kind(_files(ROOT / "matrix", "*.yaml"), _matrix),
        "record": Kind(_records(), _record),
        "campaign": Kind(
            {
                path.parent.name: path.read_bytes()
                for path in MEASURED.glob(f"*/{CAMPAIGN_FILE}")
            },
            _campaign,
        ),
        "page": Kind(
            _files(manual.FOLDER, "*.md") | _files(starter.FILES, "*.md"), _page
        ),
        "claims": Kind(_files(starter.FILES / "site_src", "claims.yaml"), _claims),
        "facts": Kind({"facts.yaml": manual.FACTS.read_bytes()}, _facts),
        "about": Kind({"about.yaml": ABOUT}, _about),
        "telemetry": Kind(_files(MEASURED, "*.telemetry.csv", most=4), _telemetry),
        "log": Kind(_files(DATA, "*.log", "*.json"), _log),
        "import benchmark-spark": Kind(SPARK, _import("benchmark-spark")),
    }
    for kind in sorted(IMPORTERS):
        folder = DATA / "imports" / kind
        if folder.is_dir():
            files = _files(
                folder, "*.json", "*.jsonl", "*.csv", "*.sql", "*.md", "*.log"
            )
            found[f"import {kind}"] = Kind(files, _import(kind))
    return found


def _records() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in record_paths(MEASURED / "h200")}


def outcome(
    kind: Kind, name: str, content: bytes, folder: Path
) -> BaseException | None:
    """What an input did other than to be read, or refused in a line or a few: the exception, else None."""
    try:
        kind.read(name, content, folder)
    except SparkpubError as error:
        lines = error.lines()
        said = all(line and "\n" not in line for line in lines)
        return None if said else AssertionError("no line")
    except (FileNotFoundError, IsADirectoryError):
        return None  # one line of the command line, which names the file
    except BaseException as error:  # whatever it is, it is what is looked for
        return error
    return None


def inputs(kind: Kind, seed: int, count: int) -> Iterator[tuple[int, str, bytes]]:
    """Seed, name and content of so many damaged inputs."""
    for number in range(seed, seed + count):
        name, content = kind.input(Random(number))
        yield number, Path(name).name, content
