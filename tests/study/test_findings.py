"""What the review finds in the committed campaigns, and of the published study in which words.

Expected figures are those of the study's own records, worked out apart from sparkpub. These numbers were counted in the
JSON of the records, with no part of sparkpub:

- `small-sample`: cells with fewer than four runs whose status is `ok`, and their runs; `exit-status`: other statuses;
- `unbalanced` of h200-vllm: 7 and 6 of ten runs;
- `missing-log`: records without evidence of the role `log`;
- `inconsistent-report` as a note: a P99 that is the maximum of 100 requests or fewer (h200, h200-sweep), and ITL of
  more than 1.1 TPOT (h200-vllm, h200-vllm-sweep: 1.3 to 17 tokens a chunk); as a warning of the closed loops: TTFT of
  more than twice prompt and depth × users / prompt throughput;
- `failed-requests`: 1 % or more, and less than 1 %;
- `answer-length`: mean answers further than 20 % from those asked for;
- `offered-load`: a mean latency of more than a fifth of requests / rate;
- `repetitions`: a deviation from which Student's interval of the mean begins at zero, and 40 % of it at least;
- `users-scaling`: cells with more than 1.05 × users × the throughput of one user, beyond the deviations of both,
  and the cells of those single users.
"""

import pytest

from sparkpub.review.checks import Review
from sparkpub.review.checks.reviewing import as_text, by_cause

FOUND: dict[str, list[tuple[str, str, int, int]]] = {
    "h200": [
        ("warning", "outlier", 1, 1),
        ("info", "exit-status", 1, 1),
        ("info", "inconsistent-report", 8, 80),
        ("info", "mixed-machines", 10, 100),
    ],
    "h200-graphs": [
        ("info", "outlier", 1, 2),
        ("info", "high-variation", 2, 0),
    ],
    "h200-sweep": [
        ("warning", "small-sample", 6, 18),
        ("info", "inconsistent-report", 4, 12),
    ],
    "h200-vllm": [
        ("warning", "exit-status", 1, 1),
        ("warning", "unbalanced", 2, 0),
        ("warning", "high-variation", 1, 0),
        ("warning", "small-sample", 6, 6),
        ("info", "outlier", 1, 1),
        ("info", "inconsistent-report", 2, 2),
    ],
    "h200-vllm-repeat": [
        ("warning", "high-variation", 1, 0),
        ("info", "outlier", 1, 1),
    ],
    "h200-vllm-sweep": [
        ("warning", "unbalanced", 4, 0),
        ("warning", "order-confound", 4, 4),
        ("warning", "high-variation", 5, 0),
        ("warning", "small-sample", 11, 18),
        ("info", "inconsistent-report", 2, 4),
    ],
    "phase1": [
        ("error", "duplicate-iteration", 1, 4),
        ("error", "same-numbers", 6, 0),
        ("error", "order-confound", 6, 0),
        ("error", "does-not-fit", 2, 20),
        ("error", "roofline", 2, 20),
        ("warning", "missing-log", 0, 63),
        ("warning", "identity", 0, 63),
        ("warning", "dependent-metrics", 6, 0),
        ("warning", "drift", 1, 0),
        ("warning", "drift", 3, 3),
        ("warning", "high-variation", 2, 0),
        ("warning", "roofline", 2, 23),
    ],
    "spark-closed-loop": [
        ("warning", "identity", 0, 950),
        ("warning", "small-sample", 950, 950),
        ("warning", "repetitions", 26, 26),
        ("warning", "users-scaling", 12, 0),
        ("warning", "inconsistent-report", 24, 24),
        ("warning", "roofline", 1, 1),
        ("info", "not-as-requested", 0, 950),
    ],
    "spark-open-loop": [
        ("warning", "identity", 0, 364),
        ("warning", "small-sample", 364, 364),
        ("warning", "inconsistent-report", 2, 2),
        ("warning", "failed-requests", 1, 1),
        ("warning", "answer-length", 6, 6),
        ("info", "failed-requests", 2, 2),
        ("info", "offered-load", 162, 162),
    ],
}
"""Campaign to its findings: severity, check, and of how many cells and runs by name; none where all are meant."""


def test_each_campaign_has_these_findings_and_no_others(committed: Review) -> None:
    found: dict[str, list[tuple[str, str, int, int]]] = {}
    for item in committed.findings:
        told = (item.severity, item.check, len(item.cells), len(item.runs))
        found.setdefault(item.campaign, []).append(told)
    assert {name: sorted(rows) for name, rows in found.items()} == {
        name: sorted(rows) for name, rows in FOUND.items()
    }


@pytest.mark.parametrize(
    ("check", "words"),
    [
        # kv = 0.9 × (119.708 − peak), by numpy.polyfit; 0.9 × 119.708 is 107.737.
        (
            "dependent-metrics",
            "= −0.9000 × Peak memory (engine-profiled) + 107.736 GiB",
        ),
        # 142.9 and 14.14 GB.
        ("same-numbers", "10.1 times the bytes"),
        # 72,706,203,648 parameters × 2 bytes.
        ("does-not-fit", "135.4 GiB"),
        # 119.53 tok/s at batch 8 are 14.9 steps a second, of 142.9 GB each.
        ("roofline", "2,124 GB/s, and the machine has 273 GB/s"),
        # Highest of ten in each of three cells: 2 of 10³ orders, corrected over six groups of cells.
        ("drift", "corrected p = 0.012"),
    ],
)
def test_the_published_study_is_told_what_does_not_fit(
    committed: Review, check: str, words: str
) -> None:
    of_check = [
        item.message
        for item in committed.findings
        if (item.campaign, item.check) == ("phase1", check)
    ]
    assert any(words in message for message in of_check)


def test_the_first_record_of_an_iteration_counts_and_errors_void_what_rests_on_them(
    committed: Review,
) -> None:
    (double,) = [
        item for item in committed.findings if item.check == "duplicate-iteration"
    ]
    left_out = [run for run in committed.excluded if run.startswith("phase1-")]
    assert sorted(left_out) == sorted(double.runs)[1:]
    assert not [
        item for item in committed.unacknowledged("error") if item.campaign == "phase1"
    ]
    of_study = [item for item in committed.findings if item.campaign == "phase1"]
    assert {item.check for item in of_study if committed.voids(item)} == {
        "identity",
        *(item.check for item in of_study if item.severity == "error"),
    }


def test_the_signs_of_one_cause_are_told_in_one_line(committed: Review) -> None:
    """Of the same cells: two signs in six cells are not folded below those of two of these."""
    lines = [line for line in as_text(committed) if " phase1" in line]
    (folded,) = [line for line in lines if "Further signs" in line]
    assert len(lines) == 3
    assert folded.startswith("error   same-numbers ")
    assert folded.endswith("signs: does-not-fit and roofline. (acknowledged)")
    by_check = {item.check: [item] for item in committed.findings}
    turned = [by_check[name] for name in ("does-not-fit", "same-numbers")]
    assert by_cause(turned) == turned
