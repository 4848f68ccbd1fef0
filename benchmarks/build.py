"""`python -m benchmarks.build`: how long the site takes to build, and from a changed digit to the served page.

Works on a copy of the committed files, so that neither local data nor a warm cache helps or hinders. Held against
MkDocs with the same theme, the same number of pages and nothing of ours.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from mkdocs.utils.yaml import yaml_load

from benchmarks import harness
from benchmarks.harness import Row, row
from benchmarks.load import Cost, cost
from benchmarks.serving import served, variables, wait_for
from sparkpub.record.settings import DEFAULT_DATA
from sparkpub.record.store import campaign_folders, record_paths

REPEATS = 3
RELOAD_SECONDS = 120
ONE = "h200"
"""A campaign whose runs have telemetry."""
PAGE = "hardware.md"
"""A page that people wrote, which every project has."""
WORDS = (
    "A paragraph of plain words, as a page without a program behind it would have. "
    * 12
)


def copy(folder: Path) -> Path:
    """The committed files of this repository, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"],
        cwd=harness.ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(harness.ROOT / name, target)
    return folder


def one_campaign(folder: Path, runs: int = 60) -> Path:
    """The repository with the first runs of one campaign that has telemetry, and the pages that speak of no other."""
    project = copy(folder)
    kept = project / DEFAULT_DATA / ONE
    for other in campaign_folders(project / DEFAULT_DATA):
        if other != kept:
            shutil.rmtree(other)
    ordered = sorted(
        record_paths(kept),
        key=lambda path: json.loads(path.read_text())["started"]["value"],
    )
    for path in ordered[runs:]:
        for file in kept.glob(f"{path.stem}.*"):
            file.unlink()
    for page in ("analysis.md", "claims.yaml"):
        (project / "site_src" / page).unlink()
    for post in (project / "site_src/blog/posts").glob("*.md"):
        post.unlink()
    shutil.rmtree(project / "site_src" / "sessions")
    config = project / "mkdocs.yml"
    kept_lines = (
        line
        for line in config.read_text().splitlines(keepends=True)
        if "analysis.md" not in line
    )
    config.write_text("".join(kept_lines))
    return project


def bare(folder: Path, project: Path, pages: int) -> Path:
    """A project with the same theme and number of pages, each with a heading and a few lines."""
    theme = yaml_load((project / "mkdocs.yml").read_text())["theme"]
    settings = {
        "site_name": "bare",
        "theme": theme,
        "plugins": ["search"],
        "nav": [{"Start": "index.md"}],
    }
    docs = folder / "docs"
    docs.mkdir(parents=True)
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(settings))
    for number in range(pages):
        name = "index.md" if number == 0 else f"page{number}.md"
        (docs / name).write_text(f"# Page {number}\n\n{WORDS}\n\n## More\n\n{WORDS}\n")
    return folder


@dataclass
class Builder:
    """Builds a project again and again, as its README says; `spent` has what each build cost."""

    project: Path
    spent: list[Cost] = field(default_factory=list)
    command: Sequence[str] = ("sparkpub", "build")

    def build(self, *, cold: bool = False) -> None:
        """Build it once; `cold` without what earlier builds left."""
        if cold:
            shutil.rmtree(self.project / ".cache", ignore_errors=True)
            shutil.rmtree(self.project / "site", ignore_errors=True)
        argv = ["-m", *self.command]
        self.spent.append(cost(argv, variables(self.project), self.project))

    def rows(self, what: str, goal: float | None, bare: "Builder") -> list[Row]:
        """Time on the clock and of the processors, held against the bare theme."""
        pages = sum(1 for _ in (bare.project / "site").rglob("index.html"))
        name = f"bare Material, {pages} pages"
        clock = [spent.clock for spent in self.spent]
        processor = [spent.processor for spent in self.spent]
        theirs = [spent.clock for spent in bare.spent]
        their_processor = [spent.processor for spent in bare.spent]
        return [
            row(what, clock, "s", against=(name, theirs), goal=goal),
            row(
                f"{what}, processor",
                processor,
                "s of a core",
                against=(name, their_processor),
            ),
        ]


def builds(
    project: Path, scratch: Path, what: str, goals: tuple[float, float], repeats: int
) -> list[Row]:
    """Builds with nothing cached, with nothing changed since the last, and with one page changed; the bare theme takes
    turns with them."""
    # Python compiles its modules, as an installation does.
    argv = ["-c", "import altair, sparkpub.site.mkdocs"]
    cost(argv, variables(project), project)
    again = Builder(project)
    again.build(cold=True)
    pages = _pages(project / "site")
    material = bare(scratch, project, pages)
    plain = Builder(material, command=("mkdocs", "build", "--quiet"))
    first = Builder(project, [again.spent.pop()])
    changed = Builder(project)
    page = project / "site_src" / PAGE
    for _ in range(repeats):
        again.build()
        plain.build()
        page.write_text(f"{page.read_text()}\n{WORDS}\n")
        changed.build()
    for _ in range(repeats - 1):
        first.build(cold=True)
    return [
        *first.rows(f"{what}: build, nothing cached", goals[0], plain),
        *again.rows(f"{what}: build, nothing changed", goals[1], plain),
        *changed.rows(f"{what}: build, one page changed", None, plain),
        row(f"{what}: site", [_megabytes(project / "site")], "MB"),
    ]


def _pages(site: Path) -> int:
    """Pages, those of single runs included."""
    return sum(1 for _ in site.rglob("index.html"))


def _megabytes(site: Path) -> float:
    files = (path for path in site.rglob("*") if path.is_file())
    return sum(path.stat().st_size for path in files) / 1e6


def edit_to_page(project: Path) -> list[float]:
    """Seconds from writing a record to the moment when what is served as the run's page has the new figure."""
    folder = project / DEFAULT_DATA / ONE
    path = next(
        path
        for path in record_paths(folder)
        if '"output_throughput_tok_s"' in path.read_text()
    )
    text = path.read_text()
    document = json.loads(text)
    times = []
    with served(project) as address:
        shown = f"{address}runs/{document['run_id']}/"
        wait_for(shown, document["run_id"], RELOAD_SECONDS)
        try:
            for number in range(REPEATS):
                value = 123.01 + number
                document["metrics"]["output_throughput_tok_s"]["value"] = value
                start = time.perf_counter()
                path.write_text(json.dumps(document, indent=1))
                wait_for(shown, f"{value:.2f}", RELOAD_SECONDS)
                times.append(time.perf_counter() - start)
        finally:
            path.write_text(text)
    return times


def edits(project: Path, what: str) -> list[Row]:
    """From a record that changed to what `mkdocs serve` shows."""
    shown = f"{what}: a record changed, until `mkdocs serve` shows it"
    return [
        row(shown, edit_to_page(project), "s", goal=2.5),
    ]


def main() -> None:
    harness.parser(__doc__).parse_args()
    busy = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as made:
        place = subprocess.run(
            ["stat", "-f", "-c", "%T", made], check=True, capture_output=True, text=True
        ).stdout.strip()
        one = one_campaign(Path(made, "one"))
        found = builds(one, Path(made, "bare-one"), "60 runs", (12, 2), REPEATS)
        found += edits(one, "60 runs")
        project = copy(Path(made, "all"))
        folders = campaign_folders(project / DEFAULT_DATA)
        counts = {folder.name: len(list(record_paths(folder))) for folder in folders}
        what = f"all {sum(counts.values()):,} runs"
        found += builds(project, Path(made, "bare-all"), what, (35, 6), 2)
    busy.append(os.getloadavg()[0])
    harness.save(
        "build",
        title="Building the site",
        question="How long until the site is there: for one campaign of 60 runs with telemetry, and for everything?",
        rows=found,
        notes=[
            "Everything: "
            + ", ".join(f"{name} with {count} runs" for name, count in counts.items())
            + f". The 60 runs are the first of {ONE}, with the pages that speak of no other campaign.",
            "Bare Material has as many pages with the theme, each with two paragraphs, and no data; the short pages of "
            "runs are not among them.",
            "Where nothing changed, the site of the last build stays; where one page changed, all are made again, with "
            "drawings and what the checks find from the cache.",
            "Processor time is that of all processes of a build together; other programs on the machine stretch it "
            "less than the time on the clock. Load average meanwhile: "
            f"{min(busy):.1f} to {max(busy):.1f} on {len(os.sched_getaffinity(0))} cores.",
            f"Projects and sites lie on {place}: TMPDIR chooses.",
        ],
        packages=["mkdocs", "mkdocs-material", "altair", "vl-convert-python"],
    )


if __name__ == "__main__":
    main()
