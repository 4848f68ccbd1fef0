"""Failures that the next attempt would repeat: a wrong address, a file that is not there, an option that no tool has.

They are tried once. The next collection tries again, since somebody may have corrected what was wrong.
"""

import re
from collections.abc import Sequence

from sparkpub.plan.workloads.payload.pages import LASTING
from sparkpub.record.record import Record

_EXIT_CODES = (LASTING, 126, 127)
"""Of our drivers, and of a shell for a program that it cannot start or find."""
_LAST_LINES = 3
"""Of a log: what a tool ended with stands there."""
_SAME_AGAIN = re.compile(
    r"No such file or directory|FileNotFoundError|ModuleNotFoundError"
    r"|unrecognized arguments?|unrecognised option|no such option|invalid choice|unknown argument"
    r"|\b(?:HTTP|status|code)\W{1,3}40[0134]\b|\b40[0134] (?:Client Error|Not Found|Unauthorized|Forbidden)"
    r"|Error: Not Found|the data set \S+ cannot be used",
    re.IGNORECASE,
)


def lasts(record: Record, said: Sequence[str]) -> bool:
    """Whether a run failed for a reason that the next attempt would meet again; `said` are the lines of its log that
    are not empty."""
    if record.status != "failed":
        return False
    if record.exit_code in _EXIT_CODES:
        return True
    return any(_SAME_AGAIN.search(line) for line in said[-_LAST_LINES:])
