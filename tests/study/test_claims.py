"""The claims about the published study: the recorded verdicts hold, and a hostile reader's findings come out."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from sparkpub.cli import cli
from sparkpub.review.checks import Review
from sparkpub.review.claims import ledger

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def verdicts(committed: Review) -> dict[str, ledger.Verdict]:
    found = ledger.judge(ledger.read(ROOT / "site_src" / "claims.yaml"), committed)
    return {verdict.claim.id: verdict for verdict in found}


@pytest.mark.parametrize(("recorded", "code"), [("refuted", 0), ("supported", 1)])
def test_the_command_fails_where_a_verdict_differs_and_says_what_to_reread(
    published_data: Path, tmp_path: Path, recorded: str, code: int
) -> None:
    (tmp_path / "claims.yaml").write_text(
        "- id: sixty\n  source: {document: part 4}\n  about: data\n  campaign: phase1\n"
        f'  include: all\n  expect: {{holds: "runs = 60"}}\n  recorded: {recorded}\n'
    )
    (tmp_path / "post.md").write_text('Text.\n\nSixty runs {{ claim("sixty") }}.\n')
    done = CliRunner().invoke(
        cli, ["claims", str(published_data), "--sources", str(tmp_path)]
    )
    assert (done.exit_code, "reread post.md:3" in done.output) == (code, code == 1)


def test_no_verdict_changed(verdicts: dict[str, ledger.Verdict]) -> None:
    assert [f"{v.claim.id}: {v.verdict}" for v in verdicts.values() if v.changed] == []
