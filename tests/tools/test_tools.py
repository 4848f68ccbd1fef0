"""What tools of late 2026 write, in the forms that their sources give, and the figures in it; each as arithmetic."""

import json
from pathlib import Path

import pytest

from sparkpub.record.errors import ImportFormatError
from tests.collect.imports.importing import imported

# 128 tokens in 4 s, and 512 in half a second, after 2 s of loading.


def test_the_turns_of_a_conversation_are_kept_with_its_summary(tmp_path: Path) -> None:
    """`profile_export.jsonl` was called a file of no known tool, and so was the summary of the warm-up."""
    fixture = Path(__file__).parents[1] / "data/imports/aiperf/turns-c2"
    outcome, (record,) = imported(fixture, tmp_path / "data")
    assert outcome.unread == []
    (left,) = outcome.skipped
    assert "other files" in left.reason
    kept = record.file("requests")
    assert kept is not None
    lines = (tmp_path / "data/c" / kept.path).read_text().splitlines()
    measured = [json.loads(line)["metadata"]["benchmark_phase"] for line in lines]
    assert measured.count("profiling") == 2 * 3  # of two conversations
    alone = tmp_path / "in/profile_export.jsonl"
    alone.parent.mkdir()
    alone.write_text("\n".join(lines))
    with pytest.raises(ImportFormatError, match="--preview"):
        imported(alone.parent, tmp_path / "alone")
