"""This repository as a hub: the four owners of `arena.yaml`, gathered from bare repositories of their files that are
committed here, by the maps that it uses. Their figures stand on the pages that they answer.
"""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from sparkpub.record import owner
from sparkpub.review.dataset import load
from sparkpub.site.build import build
from sparkpub.site.disk import contents
from tests.collect.test_gather import committed, git
from tests.collect.test_gather import gathered as gather
from tests.site.conftest import options_of, write_data

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "tests/data/strangers"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Address to what a reader sees of each page, without marks."""
    folder = tmp_path_factory.mktemp("hub")
    lines = []
    for line in yaml.safe_load((ROOT / "arena.yaml").read_text()):
        work, bare = folder / line["owner"], folder / f"{line['owner']}.git"
        shutil.copytree(BUNDLE / Path(line["mapping"]).stem, work)
        line["commit"] = committed(work)
        git(folder, "clone", "--quiet", "--bare", str(work), str(bare))
        line["repository"] = f"file://{bare}"
        lines.append(str(line).strip("{}"))
    hub = folder / "hub"
    shutil.copytree(ROOT / "maps", hub / "maps")
    done = gather(hub, *lines)
    assert done.exit_code == 0, done.output
    own = write_data(hub / "data" / "comprehensive")
    (hub / "pages").mkdir()
    data = load(own, *owner.gathered(hub / "gathered"))
    found = contents(build(data, options_of(hub, folder / "cache")))
    return {
        uri: " ".join(re.sub(r"<[^>]*>|&#?\w+;", " ", content.decode()).split())
        for uri, content in found
        if uri.endswith(".md")
    }


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        # Two Sparks among jvr0x's: one series of one user.
        ("index.md", "MiniMax-M3 428B [DUAL 2xSpark] W4A16, speculative, jvr0x 10.0"),
        # 30 and 31 of 32 answers, beside the first of four levels.
        ("index.md", "Tasks solved, in %: qwen3.8-27b 94 to 97."),
        ("models/qwen3.8-27b.md", "coding Tasks solved 96.88 %"),
        ("models/qwen3.8-27b.md", "one user 30.4 30.4 0.865 1"),
        # Means of 72.0, 66.7, 71.9 and 70.9, of 20 windows in ten minutes, and of 6 probes; 5 positions beside these.
        ("models/deepseek-v4-flash-dspark.md", "one user, 300 out 70.4"),
        ("models/deepseek-v4-flash-dspark.md", "4 users, 400 out 139"),
        (
            "models/deepseek-v4-flash-dspark.md",
            "Accepted draft tokens 46.3 %, and 5 more",
        ),
        ("leaderboard/index.md", "4 bits AWQ dense-27b 72.1 light-heart-labs"),
        ("owners/light-heart-labs.md", "28 runs on RTX PRO 6000 Blackwell"),
        ("owners/jvr0x.md", "Licence: MIT"),
    ],
)
def test_an_owners_figures_are_read_on_the_page_that_they_answer(
    uri: str, said: str, pages: Mapping[str, str]
) -> None:
    assert said in pages[uri]


def test_a_card_of_another_machine_says_nothing_of_a_sparks_heat(
    pages: Mapping[str, str],
) -> None:
    """Its caps are 300 to 600 W; the Sparks of jvr0x were asked for 32 to 76."""
    front = pages["index.md"]
    assert "means of 139 runs 32 to 76 W" in front
    assert "light-heart-labs" not in front.partition("Measure")[0].partition("hot")[2]
