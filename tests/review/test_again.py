"""Committed evidence read again: a record gains what it lacks, and nothing else in it changes."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparkpub.cli import cli
from sparkpub.record.errors import UsageError
from sparkpub.record.store import read_record

DATA = Path(__file__).parents[2] / "data/comprehensive/spark-open-loop"
RUN = "container-bf16-spec_muse-glimmer-30b_serve-openai-chat-in1024-out4096-range0.9-rate0.2-n50_iter01_"


def test_evidence_read_again_adds_and_changes_nothing(tmp_path: Path) -> None:
    """Its log says how many drafts were accepted; a second time nothing is new."""
    folder = tmp_path / DATA.name
    folder.mkdir()
    (stored,) = map(read_record, DATA.glob(f"{RUN}*[0-9].json"))
    for path in (DATA / "campaign.json", *stored.files):
        shutil.copy(path, folder)
    record = folder / stored.path.name
    document = json.loads(record.read_text())
    document["metrics"] = {
        name: metric
        for name, metric in document["metrics"].items()
        if "accept" not in name
    }
    figure = document["metrics"].pop("ttft_mean_ms")
    record.write_text(json.dumps(document))
    command = ["import", str(folder), "--again"]
    preview = CliRunner().invoke(cli, [*command, "--preview", "--json"])
    assert json.loads(preview.stdout) == {
        "preview": True,
        "gained": [stored.record.run_id],
    }
    assert CliRunner().invoke(cli, command).output == "1 record gained something\n"
    after = json.loads(record.read_text())
    assert after["metrics"].pop("ttft_mean_ms") == figure
    assert "draft_acceptance_percent" in after["metrics"]
    for name in after["metrics"].keys() - document["metrics"].keys():
        del after["metrics"][name]
    assert after == document
    assert CliRunner().invoke(cli, command).output == "0 records gained something\n"


@pytest.mark.parametrize("option", ["--no-originals", "--machine=h200"])
def test_what_has_no_effect_on_evidence_read_again_is_refused(option: str) -> None:
    done = CliRunner().invoke(cli, ["import", str(DATA), "--again", option])
    assert isinstance(done.exception, UsageError)
    assert option.partition("=")[0] in str(done.exception)
