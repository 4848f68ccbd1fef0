"""The checks of pages, by name. `sparkpub.site.proofreading` reads the pages."""

from sparkpub.review.checks.check import Check

CHECKS = (
    Check(
        "unbound-number",
        "prose",
        ("error",),
        "Does every figure in the text come from data or from facts.yaml?",
    ),
    Check(
        "claim",
        "prose",
        ("error",),
        "Do the data still say what the text was written for?",
    ),
    Check(
        "dead-evidence", "prose", ("error",), "Does every link to evidence lead to it?"
    ),
)
