"""The checks of pages, by name. `sparkpub.site.proofreading` reads the pages."""

from sparkpub.review.checks.check import Check

CHECKS = (
    Check("unreadable-page", "prose", ("error",), "Can every page be read?"),
    Check(
        "unbound-number",
        "prose",
        ("error",),
        "Does every number in the text come from the data or from facts.yaml, with the direction that it has?",
    ),
    Check(
        "claim",
        "prose",
        ("error",),
        "Is every verdict the one that the text was written for?",
    ),
    Check(
        "dead-evidence",
        "prose",
        ("error", "info"),
        "Does every link to evidence work, and is the source of every fact quoted?",
    ),
)
