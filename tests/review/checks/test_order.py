"""Whether environments alternated: the check and the verdict give one answer."""

from collections.abc import Sequence
from typing import Any

import pytest

from sparkpub.record.record import Machine, Plan
from sparkpub.record.store import Stored
from sparkpub.review.checks.spread import order_confound
from sparkpub.review.tables.column import rows
from sparkpub.review.tables.comparisons import comparisons, over_all_machines
from tests.review.checks.in_memory import a_run, a_view

TPUT = "output_throughput_tok_s"
NAMES = {"A": "native", "B": "container"}
SPEED = {"A": (100.0, 100.2, 99.9), "B": (110.0, 110.3, 109.8)}
"""Tokens per second, in turn: but for its order, every comparison of four runs a side or more is decided."""


def in_turn(sequence: str, order: str, done: int = 0, **fields: Any) -> list[Stored]:
    """Runs that began one minute after the other, those of one word in the same minute; a small letter is a repeat.

    Iterations are counted on each side by itself, after those that are `done`: the first A and the first B are a round.
    """
    runs: list[Stored] = []
    seen = {"A": done, "B": done}
    for minute, together in enumerate(
        sequence.split() if " " in sequence else sequence
    ):
        for letter in together:
            side = letter.upper()
            seen[side] += 1
            speed = SPEED[side][seen[side] % 3]
            given = {"plan": Plan(position=minute, order=order)} | fields
            if letter.islower():
                given["repeat_of"] = "another"
            runs.append(
                a_run(
                    {TPUT: speed},
                    environment=NAMES[side],
                    iteration=seen[side],
                    minute=minute,
                    **given,
                )
            )
    return runs


def verdict(runs: Sequence[Stored]) -> str:
    """The verdict of the table: within each machine that ran both sides, then over the machines."""
    reviewed = a_view(*runs).reviewed
    name = reviewed.campaign.name
    table = over_all_machines(comparisons(reviewed.table, {name: reviewed}))
    (row,) = rows(table[table["metric"] == TPUT])
    return str(row.verdict)


def is_error(runs: Sequence[Stored]) -> bool:
    """Whether the check finds blocks; runs out of the order of the plan are a warning of their own."""
    found = order_confound(a_view(*runs))
    return any(finding.severity == "error" for finding in found)


@pytest.mark.parametrize(
    ("order", "sequence", "is_blocked"),
    [
        ("interleaved", "ABBAABBAAB", False),
        ("interleaved", "ABABABABAB", False),
        ("interleaved", "AAAAABBBBB", True),
        # Only three changes in ten runs would be no rarity, but in 24 of 25 pairs A came first.
        ("interleaved", "AAAABABBBB", True),
        ("as-published", "AAAABABBBB", True),
        # Both lie at the same time on average, in one stretch against two.
        ("interleaved", 8 * "A" + 16 * "B" + 8 * "A", True),
        ("random", 8 * "A" + 16 * "B" + 8 * "A", True),
        # A draw that was made beforehand may come out like this, in 4 of 252 cases one way or the other.
        ("random", "AAAABABBBB", False),
        ("random", "AAAAABBBBB", True),
        # 16 of 20 pairs of A first, and 15.
        ("as-published", "AABABBABB", True),
        ("as-published", "ABABABABB", False),
        # What was declared holds, whatever came of it.
        ("blocked", "ABABABABAB", True),
        ("blocked", "AB", True),
        # Few runs: of one a side there is no order, of two only complete separation is one.
        ("interleaved", "AB", False),
        ("interleaved", "AAABB", True),
        ("interleaved", "AABB", True),
        ("interleaved", "ABAB", False),
        ("interleaved", "ABABB", False),
        ("interleaved", "AAB", False),
        # Three whole rounds carry no verdict, and 15 of 18 pairs have A first; four do, whatever came after them.
        ("interleaved", "ABABABBBB", True),
        ("interleaved", "ABBAABBABBBBBB", False),
        ("as-published", "ABBAABBABBBBBB", True),
        # Runs that began together: each pair of them counts half.
        ("interleaved", "A A AB B B", True),
        ("interleaved", "AB AB AB AB", False),
        # Repeats stand outside of the rounds and change nothing for them.
        ("interleaved", "ABBAABBAaaaaaaaaa", False),
    ],
)
def test_the_verdict_and_the_check_agree_on_whether_environments_alternated(
    order: str, sequence: str, is_blocked: bool
) -> None:
    runs = in_turn(sequence, order)
    assert (verdict(runs) == "confounded", is_error(runs)) == (
        is_blocked,
        is_blocked,
    )


@pytest.mark.parametrize(
    ("first", "second", "is_blocked"),
    [
        ("ABBAABBA", "ABBAABBA", False),
        ("ABBAABBA", "AAAABBBB", True),
        ("ABBAABBA", "BAABBAAB", False),
        # A machine that ran one side only compares nothing.
        ("ABBAABBA", "AAAA", False),
    ],
)
def test_with_several_machines_the_order_on_each_of_them_counts(
    first: str, second: str, is_blocked: bool
) -> None:
    runs = [
        *in_turn(first, "interleaved", machine=Machine(id="a")),
        *in_turn(second, "interleaved", done=20, machine=Machine(id="b")),
    ]
    assert (verdict(runs) == "confounded", is_error(runs)) == (
        is_blocked,
        is_blocked,
    )


@pytest.mark.parametrize(
    ("sequence", "words"),
    [
        ("AAABBB", "native began before those of container in 100 of 100 pairs"),
        ("BBBAAA", "container began before those of native in 100 of 100 pairs"),
        ("AAAABABBBB", "in 96 of 100 pairs, and they changed places 3 times in 10"),
        (8 * "A" + 16 * "B" + 8 * "A", "in 50 of 100 pairs, and they changed places 2"),
    ],
)
def test_a_finding_says_how_the_environments_ran(sequence: str, words: str) -> None:
    found, *_ = order_confound(a_view(*in_turn(sequence, "interleaved")))
    assert words in found.message


def test_environments_that_are_not_compared_need_not_alternate() -> None:
    """Both run in turns with the baseline; that one of them came before the other is asked by nobody."""
    sequence = "CABCABCABCAB"
    names = {"A": "one", "B": "other", "C": "native"}
    runs = [
        a_run(environment=names[letter], iteration=1 + place // 3, minute=place)
        for place, letter in enumerate(sequence)
    ]
    assert not is_error(runs)
