"""What no check could judge. Each check says so itself, by `View.unjudged`: no check skips in silence.

A campaign tells it in one note: many checks lack the same data, and a reader asks one thing, what to record next time.
"""

from collections.abc import Iterable
from itertools import chain

from sparkpub.record.text import listed
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding

CHECKS = (
    Check(
        "unjudged",
        "evidence",
        ("info",),
        "Which checks lack data?",
    ),
)


def together(findings: Iterable[Finding]) -> list[Finding]:
    """The findings of a campaign, with one note in place of those of single checks that lack data."""
    found = list(findings)
    notes = [finding for finding in found if finding.check == "unjudged"]
    if len(notes) < 2:
        return found
    checks: dict[str, list[str]] = {}
    for note in notes:
        for lacking in note.evidence["lacking"]:
            checks.setdefault(lacking, []).extend(note.evidence["about"])
    parts = [f"{lacking}, for {_named(names)}" for lacking, names in checks.items()]
    missing = chain.from_iterable(note.evidence["missing"] for note in notes)
    note = Finding(
        "unjudged",
        "info",
        notes[0].campaign,
        None,
        None,
        "Some checks lack data: " + "; ".join(parts) + ".",
        {
            "cells": list(
                dict.fromkeys(chain.from_iterable(one.cells for one in notes))
            ),
            "about": list(chain.from_iterable(one.evidence["about"] for one in notes)),
            "missing": list(dict.fromkeys(missing)),
            "lacking": list(checks),
        },
    )
    return [*(item for item in found if item.check != "unjudged"), note]


def _named(checks: Iterable[str]) -> str:
    return listed(tuple(dict.fromkeys(checks)))
