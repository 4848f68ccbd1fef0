"""Pages of owners: whose results are shown, what agrees with others, and what an error of theirs changes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record import owner
from sparkpub.record.campaign import Campaign
from sparkpub.record.errors import RecordError
from sparkpub.record.owner import OWNER_FILE, Owner
from sparkpub.record.record import Machine
from sparkpub.review.checks import review
from sparkpub.review.dataset import CampaignData, load
from sparkpub.review.results import Results
from sparkpub.review.tables.column import rows
from sparkpub.site import kept
from sparkpub.site.build import build, loaded, publish, refuse
from sparkpub.site.cache import WORK
from sparkpub.site.content import Page, SiteOptions
from sparkpub.site.disk import contents
from sparkpub.site.pages import campaigns
from sparkpub.site.publication import Publication
from tests.collect.test_gather import committed, line
from tests.collect.test_gather import gathered as gather
from tests.leaderboards import LOAD, published, runs_of
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
    found = dict(contents(build(load(data, gathered), options)))
    apart = ("evidence/", "runs/")
    assert [uri for uri in found if uri.startswith(tuple(f"{one}c" for one in apart))]
    assert not [uri for uri in found if "some.c" in uri and uri.startswith(apart)]
    campaign = found["campaigns/some.c.md"].decode()
    address = f"https://github.com/some/results/tree/{COMMIT}/data/comprehensive/c"
    assert f'href="{address}"' in campaign
    assert 'href="../../campaigns/some.c/#evidence"' in campaign


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
            write_run(folder, published(record))
        about = Campaign(campaign="c", title="A")
        (folder / "campaign.json").write_text(about.model_dump_json())
        lines.append(line(name, tmp_path / name, committed(tmp_path / name)))
    hub = tmp_path / "hub"
    assert gather(hub, *lines).exit_code == 0
    everything = load(data, *owner.gathered(hub / "gathered"))
    page = dict(contents(build(everything, options)))["leaderboard/index.md"].decode()
    # The means are 60.1 and 60.5.
    assert ">60.3 <small>2 machines of 2 owners, 60.1 to 60.5</small>" in page


def test_what_is_found_in_a_campaign_is_kept_until_a_file_of_it_changes(
    data: Path,
    gathered: Path,
    options: SiteOptions,
    judged_here: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Findings and tables are those of a review that keeps nothing, and a table that is damaged is made again."""

    def published() -> list[str]:
        judged_here.clear()
        found = publish(load(data, gathered), options)
        reviewed = review(load(data, gathered))
        whole = Results(reviewed)
        assert found.review.findings == reviewed.findings
        for name in ("runs", "cells", "comparisons"):
            now, then = (getattr(each, name) for each in (found.results, whole))
            assert rows(now) == rows(then)
        return [*judged_here]

    assert published() == ["c", "some.c"]
    assert published() == []
    for entry in (options.cache / WORK).glob("*/*"):
        if entry.read_bytes().startswith(b"PAR1"):
            entry.write_bytes(b"PAR1")
    assert published() == []
    come(gathered, "b" * 40)
    assert published() == ["some.c"]
    campaign = data / "c" / "campaign.json"
    campaign.write_text(campaign.read_text() + "\n")
    assert published() == ["c"]
    monkeypatch.setattr(kept, "head", lambda _: "another commit of the hub")
    assert published() == ["c"]


def come(gathered: Path, commit: str) -> None:
    """The owner's folder as gathered at another commit."""
    owner = THEIRS.model_copy(update={"commit": commit})
    (gathered / OWNER_FILE).write_text(owner.model_dump_json())


def test_of_an_owner_who_has_not_changed_no_record_is_opened(
    data: Path, gathered: Path, options: SiteOptions, tmp_path: Path
) -> None:
    """Nor any evidence; what of the kept is lost is read from them again, or said in one line where they are damaged
    meanwhile."""
    # What is deleted here is missed by no other test.
    options = replace(options, cache=tmp_path / "cache")

    def built() -> dict[str, bytes]:
        found = loaded([data, gathered], options)
        refuse(found, options)
        return dict(contents(build(found, options)))

    first = built()
    runs = {path: path.read_bytes() for path in (gathered / "c").glob("*_iter*")}
    assert len(runs) > 8
    for path in runs:
        path.write_text("what nobody opens")
    assert built() == first
    for entry in (options.cache / WORK).glob("*/*"):
        if b"some.c" in entry.read_bytes():
            entry.unlink()
    with pytest.raises(RecordError, match="not JSON"):
        built()
    for path, content in runs.items():
        path.write_bytes(content)
    assert built() == first


def test_the_page_of_a_campaign_is_made_once_for_what_it_shows(
    data: Path, gathered: Path, options: SiteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes from the cache is what was made, charts included; another file of the campaign, or another name of
    its model in the hub, makes the page anew."""
    made: list[str] = []
    make = campaigns.page

    def counting(site: Publication, of: CampaignData, *given: Any) -> Page:
        made.append(of.name)
        return make(site, of, *given)

    monkeypatch.setattr(campaigns, "page", counting)
    monkeypatch.setattr(kept, "program", lambda: str(data))  # that nobody else has

    def built() -> dict[str, bytes]:
        made.clear()
        return dict(contents(build(load(data, gathered), options)))

    first = built()
    assert sorted(made) == ["c", "some.c"]
    charts = [uri for uri in first if uri.startswith("charts/some.c-")]
    assert {uri.rpartition(".")[2] for uri in charts} == {"svg", "json", "csv"}
    assert built() == first
    assert made == []
    campaign = data / "c" / "campaign.json"
    campaign.write_text(campaign.read_text() + "\n")
    assert built() == first
    assert made == ["c"]
    log = next((gathered / "c").glob("*.log"))
    log.write_text(log.read_text() + "\n")
    come(gathered, "b" * 40)
    assert built() != first  # a check finds that the log is another one
    assert made == ["some.c"]
    for run in (data / "c").glob("*_iter*.json"):
        run.write_text(run.read_text().replace('"x/m"', '"x/M"'))
    built()
    assert sorted(made) == ["c", "some.c"]
