"""Pages of owners: whose results are shown, what agrees with others, and what an error of theirs changes."""

from pathlib import Path

import pytest

from sparkpub.record import owner
from sparkpub.record.campaign import Campaign
from sparkpub.record.owner import OWNER_FILE, Owner
from sparkpub.record.record import Machine
from sparkpub.review.dataset import load
from sparkpub.site.build import build, refuse
from sparkpub.site.content import SiteOptions
from sparkpub.site.disk import contents
from tests.collect.test_gather import committed, line
from tests.collect.test_gather import gathered as gather
from tests.leaderboards import LOAD, TPUT, runs_of
from tests.site.conftest import run_of, write_data, write_run

COMMIT = "a" * 40
ONE = {**LOAD, "concurrency": 1}
THEIRS = Owner(
    owner="some",
    repository="https://github.com/some/results.git",
    commit=COMMIT,
    folder="data/comprehensive",
)


@pytest.fixture
def gathered(tmp_path: Path) -> Path:
    """The small campaign as another owner has it."""
    folder = write_data(tmp_path / "gathered" / "some")
    (folder / OWNER_FILE).write_text(THEIRS.model_dump_json())
    return folder


def site(data: Path, gathered: Path, options: SiteOptions) -> dict[str, str]:
    found = dict(contents(build(load(data, gathered), options)))
    return {
        uri: content.decode()
        for uri, content in found.items()
        if uri.endswith((".md", ".json"))
    }


def test_an_owner_has_a_page_and_others_figures_stand_beside(
    data: Path, gathered: Path, options: SiteOptions
) -> None:
    pages = site(data, gathered, options)
    page = pages["owners/some.md"]
    assert f"https://github.com/some/results/tree/{COMMIT}" in page
    assert "No licence is stated" in page
    assert "campaigns/some.c/" in page
    # The same runs on both sides: no difference.
    assert "<td>0.0\u00a0%</td>" in page
    assert "this site" in page
    assert "owners/some/" in pages["owners/index.md"]


def test_evidence_of_an_owner_is_linked_at_the_commit_and_not_copied(
    data: Path, gathered: Path, options: SiteOptions
) -> None:
    pages = site(data, gathered, options)
    assert not [uri for uri in pages if uri.startswith("evidence/some.c/")]
    run = next(
        uri
        for uri in pages
        if uri.startswith("runs/some.c-native_m_w_iter01") and uri.endswith(".md")
    )
    assert f"results/blob/{COMMIT}/data/comprehensive/c/native_m_w_iter01" in pages[run]


def test_an_owners_error_is_told_and_stops_no_build(
    data: Path, gathered: Path, options: SiteOptions
) -> None:
    bad = run_of("m", "native", 5, status="failed", status_reason="x", exit_code=1)
    write_run(gathered / "c", bad, {"log": b"log"})
    (gathered / "c" / f"{bad.stem}.log").write_text("another log")
    refuse(load(data, gathered), options)
    assert (
        "not ranked where a check finds an error"
        in (site(data, gathered, options)["owners/some.md"])
    )


def test_an_owner_who_is_not_gathered_is_named_with_a_link(
    data: Path, gathered: Path, options: SiteOptions
) -> None:
    options.repository.joinpath("arena.yaml").write_text(
        f"- {{owner: other, repository: https://github.com/other/x, commit: {COMMIT}}}\n"
    )
    listed = site(data, gathered, options)["owners/index.md"]
    assert "not gathered here" in listed
    assert "https://github.com/other/x" in listed


def test_owners_of_one_recipe_share_a_cell_of_the_leaderboard(
    tmp_path: Path, data: Path, options: SiteOptions
) -> None:
    lines = []
    for name, values in {"one": [60.0, 60.2], "two": [60.4, 60.6]}.items():
        folder = tmp_path / name / "data" / "comprehensive" / "c"
        machine = Machine(kind="dgx-spark", id=name)
        for record in runs_of("a", values, load=ONE, machine=machine):
            speed = record.metrics[TPUT].model_copy(update={"source": "published"})
            write_run(folder, record.model_copy(update={"metrics": {TPUT: speed}}))
        about = Campaign(campaign="c", title="A")
        (folder / "campaign.json").write_text(about.model_dump_json())
        lines.append(line(name, tmp_path / name, committed(tmp_path / name)))
    hub = tmp_path / "hub"
    assert gather(hub, *lines).exit_code == 0
    everything = load(data, *owner.gathered(hub / "gathered"))
    page = dict(contents(build(everything, options)))["leaderboard/index.md"].decode()
    # The means are 60.1 and 60.5.
    assert ">60.3 <small>2 machines of 2 owners, 60.1 to 60.5</small>" in page
