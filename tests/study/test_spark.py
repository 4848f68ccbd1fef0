"""The public results of a DGX Spark are in the tree as one import command writes them."""

from pathlib import Path

import pytest

from sparkpub.collect import importers
from sparkpub.collect.importers.base import Given
from sparkpub.record.record import Record
from sparkpub.record.store import DEFAULT_DATA, read_campaign, read_folder
from tests.study.conftest import ROOT

ABOUT = ROOT / "matrix/imports/dgx-spark-benchmarks.yaml"
PART = ROOT / "tests/data/imports/bench-spark"
CAMPAIGNS = ("spark-closed-loop", "spark-open-loop")


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three builds of the collection, imported by the command of the guide."""
    data = tmp_path_factory.mktemp("data")
    given = Given("rest", about=importers.about(ABOUT, PART))
    importers.import_results(None, PART, data, given)
    return data


def records(folder: Path) -> dict[str, Record]:
    return {item.record.run_id: item.record for item in read_folder(folder)}


@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_the_records_are_those_that_the_import_writes(
    campaign: str, imported: Path
) -> None:
    """The part lacks some logs, answers and telemetry, and its runs are counted by themselves."""
    written, committed = (
        records(data / campaign) for data in (imported, ROOT / DEFAULT_DATA)
    )
    assert len(written) == {"spark-closed-loop": 13, "spark-open-loop": 8}[campaign]
    other = {"plan", "events", "evidence", "unavailable", "phases", "metrics"}
    for name, record in written.items():
        whole = committed[name]
        assert record.model_dump(exclude=other) == whole.model_dump(exclude=other)
        assert record.metrics.items() <= whole.metrics.items()


@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_a_campaign_names_author_licence_and_footnotes(
    campaign: str, imported: Path
) -> None:
    """Each footnote is about cells that are there."""
    info = read_campaign(ROOT / DEFAULT_DATA / campaign)
    assert info == read_campaign(imported / campaign)
    origin = info.origin
    assert origin is not None
    assert (origin.author, origin.licence) == ("Django de Vreng", "CC BY 4.0")
    builds = {
        record.cell[:2] for record in records(ROOT / DEFAULT_DATA / campaign).values()
    }
    assert len(builds) == 38
    assert len(info.footnotes) == 11
    for footnote in info.footnotes:
        for cell in footnote.cells:
            model, environment, _ = cell.split("/")
            assert any(
                model == build[0] and environment in ("*", build[1]) for build in builds
            )


def test_every_build_says_what_ran_and_where() -> None:
    for campaign in CAMPAIGNS:
        for record in records(ROOT / DEFAULT_DATA / campaign).values():
            seen, machine = record.observed, record.machine
            assert (machine.kind, machine.count) == ("dgx-spark", 1)
            assert machine.gpus[0].name == "NVIDIA GB10"
            assert machine.driver is not None
            assert "image" in record.requested.environment
            assert record.requested.model_id is not None
            assert seen.quantization in ("bf16", "fp8", "nvfp4", "mxfp4")
            assert seen.engine == "vLLM"
            assert seen.engine_version is not None
            assert "max_model_len" in seen.settings


def test_the_evidence_is_small_enough_for_a_clone() -> None:
    """12 MB is what the project gives to these results; a log keeps no state of a progress bar but the last."""
    files = [
        path
        for campaign in CAMPAIGNS
        for path in (ROOT / DEFAULT_DATA / campaign).iterdir()
    ]
    assert sum(path.stat().st_size for path in files) < 12e6
    logs = [path.read_bytes() for path in files if path.suffix == ".log"]
    assert logs
    assert not any(b"\r" in log for log in logs)
