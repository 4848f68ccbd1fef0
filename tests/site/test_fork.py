"""A fork of this repository, the study taken out by the commands of the README: green, and silent about the study."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from sparkpub.record.settings import DEFAULT_DATA
from sparkpub.record.store import CAMPAIGN_FILE, record_paths
from sparkpub.site.crawl import dead_links
from tests.site.test_starter import ROOT, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (ROOT / DEFAULT_DATA / "phase1").is_dir(), reason="this is such a fork"
    ),
]
_COMMANDS = re.compile(r"```sh\n(git rm .*?)```", re.DOTALL)
_DRAWN_LINE = re.compile(r' d="[^"]*"')
"""The path of an SVG: in it, h200 is a line."""


@pytest.fixture(scope="module")
def fork(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone after the commands of the README. Its editor is a script that names the site."""
    folder = tmp_path_factory.mktemp("fork") / "sparkpub"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    found = _COMMANDS.search((folder / "README.md").read_text())
    assert found is not None
    editor = folder.parent / "editor"
    editor.write_text(
        "#!/bin/sh\n"
        "sed -i 's/^site_name:.*/site_name: Mine/; s/^site_description:.*/site_description: My machine/' \"$1\"\n"
        "printf '# Blog\\n' > \"$2\"\n"
    )
    editor.chmod(0o755)
    done = run("bash", "-euc", found[1], cwd=folder, EDITOR=str(editor))
    assert done.returncode == 0, done.stderr
    return folder


def words_of_the_study() -> set[str]:
    """Its campaigns, the keys of its models, and its posts."""
    words = {"analysis report", "published study"}
    for campaign in (ROOT / DEFAULT_DATA).glob(f"*/{CAMPAIGN_FILE}"):
        words.add(campaign.parent.name)
        names = [path.name.split("_")[1] for path in record_paths(campaign.parent)]
        words |= set(names) - {"gemm"}
    for post in (ROOT / "site_src/blog/posts").glob("*.md"):
        front = yaml.safe_load(
            re.sub(r"\{\{.*?\}\}", "x", post.read_text().split("---\n")[1])
        )
        words |= {str(front["title"]), str(front["slug"])}
    return words


def test_a_fork_builds_a_site_that_says_nothing_of_the_study(fork: Path) -> None:
    cache = str(fork.parent / "cache")
    command = (sys.executable, "-m", "sparkpub", "build")
    built = run(*command, cwd=fork, XDG_CACHE_HOME=cache, PYTHONPATH=str(fork))
    assert built.returncode == 0, built.stderr
    site = fork / "site"
    assert dead_links(site, "") == []
    for gone in (
        "analysis",
        "sessions",
        "blog/part-1",
    ):
        assert not (site / gone).exists()
    words = words_of_the_study()
    assert {"phase1", "h200", "deepseek", "dense7b"} <= words
    pattern = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    said = {}
    for path in [*site.rglob("*.html"), *site.rglob("*.xml"), *site.rglob("*.json")]:
        found = pattern.search(_DRAWN_LINE.sub("", path.read_text()))
        if found is not None:
            said[path.relative_to(site).as_posix()] = found[0]
    assert said == {}
    shutil.rmtree(site)


def test_a_forks_tests_are_green(fork: Path) -> None:
    """All tests, or those that SPARKPUB_FORK_TESTS names. Those of the study are skipped."""
    chosen = os.environ.get("SPARKPUB_FORK_TESTS", "tests").split()
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs")
    done = run(*command, *chosen, cwd=fork, PYTHONPATH=str(fork))
    print(done.stdout[-4000:])
    assert done.returncode == 0, done.stdout[-4000:]
