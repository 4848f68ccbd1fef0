"""Durations as people write them: `5m`, `1.5h`, `200ms`, or a number of seconds."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
LONGEST = 365 * 24 * 60 * 60.0
"""Seconds: no wait is meant to be longer, and clocks of the operating system overflow far beyond it."""
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(value: Any) -> Any:
    """`5m`, `1.5h`, `200ms` or a number of seconds, as seconds."""
    if isinstance(value, str):
        found = _DURATION.fullmatch(value.strip())
        if found is None:
            raise ValueError(
                f"{value!r} is not a duration; write for instance 30s, 5m or 1h"
            )
        value = float(found[1]) * _SECONDS[found[2]]
    if isinstance(value, bool):
        raise ValueError("a duration is a number of seconds, or for instance 5m")  # noqa: TRY004 - pydantic collects ValueError
    if isinstance(value, int | float) and not value <= LONGEST:
        raise ValueError("a duration is at most 8760h, which is a year")
    return value


WRITTEN = BeforeValidator(
    seconds,
    json_schema_input_type=float | Annotated[str, Field(pattern=_DURATION.pattern)],
)
"""How a field takes a duration as people write it; its JSON Schema says both forms."""
Seconds = Annotated[float, WRITTEN, Field(ge=0, allow_inf_nan=False)]
"""Seconds, not negative."""
