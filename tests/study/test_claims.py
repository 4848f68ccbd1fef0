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


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("sixty-runs", "refuted"),  # 63 records
        ("kv-is-peak-restated", "supported"),  # slope −0.9000
        ("large-model-less-memory", "void"),  # 72B does not fit
        ("throughput-no-drift", "refuted"),  # Spearman −0.92
        ("overhead-general", "void"),  # identity, order
        ("throughput-range-container", "refuted"),  # highest mean 120.41, not 120.51
        ("temperature-native-mean", "refuted"),  # 60.5 °C over runs
        ("overhead-minus-reduction", "refuted"),  # 3.08 GiB for one model
        ("saving-20-to-44-percent", "refuted"),  # 22 to 30 % of the container's figure
        ("overhead-proportional", "refuted"),  # the same base, another overhead
        ("kv-steady", "refuted"),  # 8.8, 9.6 and 19.4 %
        ("throughput-equal", "undecided"),  # the environments ran in blocks
        ("kv-ceiling", "refuted"),
        ("cgroup-double-counting", "hypothesis"),
        ("memory-total-gib", "supported"),
    ],
)
def test_what_a_hostile_reader_finds(
    verdicts: dict[str, ledger.Verdict], name: str, word: str
) -> None:
    assert verdicts[name].verdict == word


def test_intervals_are_those_of_the_reference(
    verdicts: dict[str, ledger.Verdict],
) -> None:
    """Container − native in tok/s: −0.82…+0.03 and −0.06…+0.42 with every run in full, and wider with effective n."""
    units = {
        unit["unit"]: unit for unit in verdicts["throughput-equal"].evidence["units"]
    }
    for model, low, high, base in (
        ("deepseek", -0.82, 0.03, 119.787),
        ("qwen72b", -0.06, 0.42, 119.3291),
    ):
        percent = units[model]["ci95"]
        assert percent[0] < 100 * low / base < 100 * high / base < percent[1]
