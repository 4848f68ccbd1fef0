"""Regular expressions that other people wrote, in a matrix or in a record.

RE2 matches them in time that grows with the text alone and within bounded memory: Python's own engine can be kept busy
for years by `(a+)+$`. What RE2 lacks are look-around and back-references.
"""

from typing import Any, AnyStr

import re2

LONGEST = 1000
"""Characters of a pattern."""


def compiled(pattern: AnyStr) -> Any:
    """The pattern, to be searched like one of `re`. Raises ValueError saying why it cannot be used."""
    if len(pattern) > LONGEST:
        raise ValueError(f"a regular expression of {len(pattern):,} characters")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        if isinstance(reason, bytes):
            reason = reason.decode(errors="replace")
        raise ValueError(f"not a regular expression of RE2: {reason}") from None
