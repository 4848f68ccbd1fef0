"""What no check could judge. Each check says so itself, by `View.unjudged`: no check skips in silence."""

from sparkpub.review.checks.check import Check

CHECKS = (
    Check(
        "unjudged",
        "evidence",
        ("info",),
        "Which checks lack data?",
    ),
)
