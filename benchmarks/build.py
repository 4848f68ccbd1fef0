"""`python -m benchmarks.build`: how long the site takes to build, and from a changed digit to the served page.

Works on a copy of the committed files, so that neither local data nor a warm cache helps or hinders. Held against
MkDocs with the same theme, the same number of pages and nothing of ours.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import yaml
from mkdocs.utils.yaml import yaml_load

from benchmarks import harness
from benchmarks.harness import Row, row
from benchmarks.serving import served, wait_for, with_cache_in
from sparkpub.record.store import (
    CAMPAIGN_FILE,
    DEFAULT_DATA,
    campaign_folders,
    record_paths,
)

REPEATS = 5
RELOAD_SECONDS = 120
ONE = "h200"
"""A campaign whose runs have telemetry."""
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
    for page in ("analysis.md", "sessions.md", "claims.yaml"):
        (project / "site_src" / page).unlink()
    for post in (project / "site_src/blog/posts").glob("*.md"):
        post.unlink()
    return project


def many_campaigns(folder: Path, copies: int = 10) -> Path:
    """The same repository with the campaign's runs again and again, each time in a campaign of its own."""
    project = one_campaign(folder)
    first = project / DEFAULT_DATA / ONE
    for number in range(2, copies + 1):
        name = f"{ONE}-{number}"
        place = shutil.copytree(first, first.with_name(name))
        for path in [*record_paths(place), place / CAMPAIGN_FILE]:
            text = path.read_text().replace(
                f'"campaign": "{ONE}"', f'"campaign": "{name}"'
            )
            path.write_text(text.replace(f'"run_id": "{ONE}-', f'"run_id": "{name}-'))
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


def builder(project: Path) -> Callable[[], object]:
    argv = [sys.executable, "-m", "mkdocs", "build", "--quiet"]
    return lambda: subprocess.run(
        argv, cwd=project, env=with_cache_in(project), check=True, capture_output=True
    )


def cold(project: Path, build: Callable[[], object]) -> Callable[[], object]:
    """A build that finds no cache."""

    def work() -> None:
        shutil.rmtree(project / ".cache", ignore_errors=True)
        build()

    return work


def edit_to_page(project: Path, *options: str) -> list[float]:
    """Seconds from writing a record to the moment when the served page shows the new figure."""
    folder = project / DEFAULT_DATA / ONE
    path = next(
        path
        for path in record_paths(folder)
        if '"output_throughput_tok_s"' in path.read_text()
    )
    text = path.read_text()
    document = json.loads(text)
    times = []
    with served(project, *options) as address:
        page = f"{address}runs/{document['run_id']}/"
        wait_for(page, document["run_id"], RELOAD_SECONDS)
        try:
            for number in range(REPEATS):
                value = 123.01 + number
                document["metrics"]["output_throughput_tok_s"]["value"] = value
                start = time.perf_counter()
                path.write_text(json.dumps(document, indent=1))
                wait_for(page, f"{value:.2f}", RELOAD_SECONDS)
                times.append(time.perf_counter() - start)
        finally:
            path.write_text(text)
    return times


def rows(project: Path, scratch: Path, what: str) -> list[Row]:
    build = builder(project)
    build()
    pages = sum(1 for _ in (project / "site").rglob("index.html"))
    plain = builder(bare(scratch, project, pages))
    warm_times, bare_times = harness.alternating(build, plain, REPEATS)
    cold_times = [harness.seconds(cold(project, build)) for _ in range(3)]
    against = (f"bare Material, {pages} pages", bare_times)
    return [
        row(
            f"{what}: build, nothing cached", cold_times, "s", against=against, goal=14
        ),
        row(
            f"{what}: build, nothing changed", warm_times, "s", against=against, goal=3
        ),
        row(
            f"{what}: a record changed, until `mkdocs serve` shows it",
            edit_to_page(project),
            "s",
            goal=2.5,
        ),
        row(
            f"{what}: the same with `--dirty`",
            edit_to_page(project, "--dirty"),
            "s",
            goal=2.5,
        ),
    ]


def long_rows(project: Path, scratch: Path) -> list[Row]:
    build = builder(project)
    cold_time = harness.seconds(cold(project, build))
    pages = sum(1 for _ in (project / "site").rglob("index.html"))
    warm_times, bare_times = harness.alternating(
        build, builder(bare(scratch, project, pages)), 3
    )
    against = (f"bare Material, {pages} pages", bare_times)
    return [
        row(
            "600 runs: build, nothing cached",
            [cold_time],
            "s",
            against=against,
            goal=90,
        ),
        row(
            "600 runs: build, nothing changed",
            warm_times,
            "s",
            against=against,
            goal=10,
        ),
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        place = subprocess.run(
            ["stat", "-f", "-c", "%T", made], check=True, capture_output=True, text=True
        ).stdout.strip()
        project = copy(Path(made, "all"))
        folders = campaign_folders(project / DEFAULT_DATA)
        campaigns = [
            (folder.name, sum(1 for _ in record_paths(folder))) for folder in folders
        ]
        runs = sum(count for _, count in campaigns)
        found = [
            *rows(one_campaign(Path(made, "one")), Path(made, "bare-one"), "60 runs"),
            *rows(project, Path(made, "bare-all"), f"all {runs} runs"),
            *long_rows(many_campaigns(Path(made, "many")), Path(made, "bare-many")),
        ]
    harness.save(
        "build",
        title="Building the site",
        question="How long until the site is there: for one campaign of 60 runs with telemetry, and for everything?",
        rows=found,
        notes=[
            "Everything: "
            + ", ".join(f"{name} with {count} runs" for name, count in campaigns)
            + ".",
            f"The 60 runs are the first of {ONE}, with the pages that speak of no other campaign; the 600 are"
            " those ten times, each time in a campaign of its own.",
            f"Projects and sites lie on {place}: TMPDIR chooses. On ext4 without a journal, creating a file soon after"
            " others were removed takes 0.4 ms, and each build makes about a thousand anew.",
        ],
        packages=["mkdocs", "mkdocs-material", "altair", "vl-convert-python"],
    )


if __name__ == "__main__":
    main()
