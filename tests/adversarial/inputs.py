"""Inputs of every kind that commands read from outside: good ones, and what reads them."""

import gzip
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from sparkpub.collect.imports import import_results
from sparkpub.collect.imports.given import Given
from sparkpub.plan import matrix as matrices
from sparkpub.plan.plan import plan
from sparkpub.plan.workloads import WORKLOADS
from sparkpub.record import telemetry
from sparkpub.record.errors import SparkpubError
from sparkpub.record.record import Record
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import (
    CAMPAIGN_FILE,
    read_campaign,
    read_record,
    record_paths,
    to_json,
)
from sparkpub.review import told
from sparkpub.review.checks import review
from sparkpub.review.claims import facts, ledger
from sparkpub.review.dataset import load
from sparkpub.review.results import Results
from sparkpub.review.tables.runs import of_all
from sparkpub.site import manual, sources, starter
from sparkpub.site.figures.telemetry import read as read_telemetry
from sparkpub.site.proofreading import read_page
from sparkpub.tools.language import of_tools
from tests.adversarial.mutations import LONGEST, damaged, with_other_values
from tests.published import MEASURED

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests/data"
TOOLS = ROOT / "sparkpub/tools"


@dataclass(frozen=True)
class Kind:
    """A kind of input: good ones by their names, and what reads one in a folder of its own."""

    corpus: Mapping[str, bytes]
    read: Callable[[str, bytes, Path], object]
    damage: Callable[[bytes, Random], bytes] = damaged

    def input(self, random: Random) -> tuple[str, bytes]:
        """Name and content of one damaged input."""
        name = random.choice(sorted(self.corpus))
        return name, self.damage(self.corpus[name], random)


def _files(folder: Path, *patterns: str, most: int = 12) -> dict[str, bytes]:
    found = sorted({path for pattern in patterns for path in folder.rglob(pattern)})
    chosen = [path for path in found if path.is_file()][:: max(1, len(found) // most)]
    return {path.name.removesuffix(".gz"): _content(path) for path in chosen}


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    return content[:LONGEST]


def _matrix(_: str, content: bytes, folder: Path) -> None:
    (folder / "m.yaml").write_bytes(content)
    matrix = matrices.read(folder / "m.yaml")
    if len(list(matrix.cells())) * matrix.most_iterations < 10_000:
        plan(matrix)
    matrices.from_document(json.loads(json.dumps(matrix.document())), "m")


def _record(_: str, content: bytes, folder: Path) -> None:
    path = folder / "r.json"
    path.write_bytes(content)
    document = Redactor().record(read_record(path).record.model_dump())
    to_json(Record.model_validate(document, strict=False))


def _runs(name: str, content: bytes, folder: Path) -> None:
    """The document among good runs, reviewed, summed up and exported: what commands do with any data folder."""
    data = folder / "data"
    shutil.copytree(MEASURED, data)
    (data / "h200" / name).write_bytes(content)
    _reviewed(data)


def _reviewed(data: Path) -> None:
    dataset = load(data)
    found = review(dataset)
    summed = Results(found)
    for form in ("json", "markdown"):
        told.render(summed, form)
    for write in told.FORMATS.values():
        write(of_all([each.runs for each in found.campaigns.values()]))


def _evidence(name: str, content: bytes, folder: Path) -> None:
    """A file of a run, with the record's digest of it: whoever makes up a record makes up that, too."""
    data = folder / "data"
    shutil.copytree(MEASURED, data)
    (data / "h200" / name).write_bytes(content)
    for path in record_paths(data / "h200"):
        document = json.loads(path.read_bytes())
        for item in document["evidence"]:
            if item["path"] == name:
                item["sha256"] = hashlib.sha256(content).hexdigest()
                item["bytes"] = len(content)
        path.write_text(json.dumps(document))
    _reviewed(data)
    for path in record_paths(data / "h200"):
        read_telemetry(read_record(path))


def _campaign(_: str, content: bytes, folder: Path) -> None:
    (folder / CAMPAIGN_FILE).write_bytes(content)
    campaign = read_campaign(folder)
    if campaign.matrix is not None:
        matrices.from_document(campaign.matrix, "c")


def _page(_: str, content: bytes, folder: Path) -> None:
    (folder / "p.md").write_bytes(content)
    read_page(sources.read(folder / "p.md", "p.md"))


def _claims(_: str, content: bytes, folder: Path) -> None:
    (folder / "claims.yaml").write_bytes(content)
    ledger.read(folder / "claims.yaml")


def _facts(_: str, content: bytes, folder: Path) -> None:
    (folder / "facts.yaml").write_bytes(content)
    facts.read(folder / "facts.yaml")


def _telemetry(_: str, content: bytes, __: Path) -> None:
    telemetry.parse(content.decode("utf-8", errors="replace"))


def _log(_: str, content: bytes, __: Path) -> None:
    for workload in WORKLOADS.values():
        workload.parse(content, {"report": content, "requests": content}, None)
    Redactor().content(content)


def _import(name: str, content: bytes, folder: Path) -> None:
    place = folder / "results"
    place.mkdir()
    (place / name).write_bytes(content)
    source = place if name.endswith("_metadata.json") else place / name
    given = Given("c", environment="native", model="m")
    import_results(source, folder / "data", given)


def _table(name: str, content: bytes, folder: Path) -> None:
    """A table with what its columns mean."""
    (folder / "mapping.yaml").write_bytes(MAPPING)
    (folder / name).write_bytes(content)
    given = Given("c", environment="native", model="m", mapping=folder / "mapping.yaml")
    import_results(folder / name, folder / "data", given)


SPARK = {
    "native_deepseek_iter1_20251108_195154_metadata.json": b"""{"environment": "native", "model_name": "deepseek",
 "model_id": "x/deepseek", "model_path": "/data/deepseek", "iteration": 1, "timestamp": "20251108_195154",
 "exit_code": 0, "start_temp_celsius": 40, "end_temp_celsius": 61}""",
    "all.json": b"""[{"environment": "native", "model_name": "deepseek", "iteration": 1, "timestamp":
 "20251108_195154", "output_throughput": 119.79, "throughput": 0.94, "peak_memory": 70.47, "latency": 8.4}]""",
    "models.json": b"""{"models": {"deepseek": {"native": [{"iteration": 1, "timestamp": "20251108_195154",
 "output_throughput": 119.79, "kv_cache": 44.3, "end_temp_celsius": -1}]}}}""",
}


TABLE = """\
Model;where;clients;when;tok/s;ttft s;Score
Qwen/Qwen3-8B;native;8;2026-03-01 10:00:00;1,204.5;0.31;7
Qwen/Qwen3-8B;native;8;2026-03-01T10:10:00+01:00;1210.5;0.30;8
Qwen/Qwen3-8B;container;8;2026-03-02;1190;;8
"""
MAPPING = b"""run: {model: Model, environment: where, started: when}
same: {engine: vllm, weights: fp8}
load: {concurrency: clients}
metrics:
  output_throughput_tok_s: {at: tok/s}
  ttft_p50_ms: {at: ttft s, unit: s}
  judge_score: {at: Score, unit: points, direction: higher, label: Score, definition: Mean grade of a judge.}
"""


def kinds() -> dict[str, Kind]:
    """Every kind of input from outside."""
    campaigns = {
        path.parent.name: path.read_bytes()
        for path in MEASURED.glob(f"*/{CAMPAIGN_FILE}")
    }
    parts = ("log", "telemetry.csv", "report.json", "requests.json")
    evidence = _files(MEASURED, *(f"native*iter01*.{part}" for part in parts))
    documents = _records() | {CAMPAIGN_FILE: campaigns["h200"]}
    pages = _files(manual.FOLDER, "*.md") | _files(starter.FILES, "*.md")
    return {
        "matrix": Kind(_files(ROOT / "matrix", "*.yaml"), _matrix),
        "record": Kind(_records(), _record),
        "campaign": Kind(campaigns, _campaign),
        "runs, values": Kind(documents, _runs, with_other_values),
        "evidence": Kind(evidence, _evidence),
        "page": Kind(pages, _page),
        "claims": Kind(_files(starter.FILES / "site_src", "claims.yaml"), _claims),
        "facts": Kind({"facts.yaml": manual.FACTS.read_bytes()}, _facts),
        "telemetry": Kind(_files(MEASURED, "*.telemetry.csv", most=4), _telemetry),
        "log": Kind(_files(DATA, "*.log", "*.json"), _log),
        "import benchmark-spark": Kind(SPARK, _import),
        "import table": Kind({"runs.csv": TABLE.encode()}, _table),
        **{
            f"import {tool}": Kind(_files(DATA / "imports" / tool, *REPORTS), _import)
            for tool in sorted(of_tools())
            if (DATA / "imports" / tool).is_dir()
        },
    }


REPORTS = ("*.json", "*.jsonl", "*.csv", "*.md", "*.log", "*.gz")


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
        yield number, name, content
