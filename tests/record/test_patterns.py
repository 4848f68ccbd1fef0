"""Regular expressions that other people wrote."""

import pytest

from sparkpub.plan.workloads import WORKLOADS
from sparkpub.plan.workloads.command import CommandOptions
from sparkpub.record import patterns


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "not a regular expression of RE2: missing )"),
        ("(?=a)b", "invalid perl operator"),
        ("((a{1,1000}){1,1000}){1,1000}", "invalid repetition size"),
        ("a" * 1001, "a regular expression of 1,001 characters"),
    ],
)
def test_what_cannot_be_bounded_is_refused(
    pattern: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="regular expression") as refused:
        patterns.compiled(pattern)
    assert said in str(refused.value)
    assert capfd.readouterr() == ("", "")  # RE2 itself says nothing to a terminal


def test_no_pattern_of_a_matrix_keeps_a_reader_busy() -> None:
    """Python's engine would take 2**10,000 steps."""
    own = {"unit": "s", "label": "Time", "direction": "lower"}
    options = CommandOptions.model_validate(
        {"argv": ["x"], "metrics": {"time_s": {"regex": "((?:a+)+)$", **own}}}
    )
    log = b"a" * 10_000 + b"!"
    answer = WORKLOADS["command"].parse(log, {}, options)
    assert answer.problems == ("time_s was not found in the log",)
