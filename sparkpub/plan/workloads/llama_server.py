"""How much of its prompts `llama-server` of llama.cpp had cached, by what it prints of each task (build 11434,
`tools/server/server-context.cpp`)."""

import re
from collections.abc import Sequence

from sparkpub.record.record import MetricValue
from sparkpub.tools import reading

_TASK = re.compile(r"\| task (\d+) \| ")
_TOKENS = re.compile(r"(prompt eval|eval) time = .*?/ +(\d+) tokens")
_RELEASED = re.compile(r"stop processing: n_tokens = (\d+), truncated = 0")


def cache_hits(printed: Sequence[str]) -> dict[str, MetricValue]:
    """The share of the prompts' tokens that were in a slot already. A task that ends holds its prompt and its answer
    less the last token, and evaluated the part of its prompt that was not there."""
    prompts = evaluated = 0
    tasks: dict[str, dict[str, int]] = {}
    for line in printed:
        task = _TASK.search(line)
        if task is None:
            continue
        counts = tasks.setdefault(task[1], {})
        tokens = _TOKENS.search(line)
        if tokens is not None:
            counts[tokens[1]] = int(tokens[2])
        released = _RELEASED.search(line)
        if released is not None and counts.keys() == {"prompt eval", "eval"}:
            prompts += int(released[1]) - counts["eval"] + 1
            evaluated += counts["prompt eval"]
    if prompts <= 0 or evaluated > prompts:
        return {}
    share = 100 * (prompts - evaluated) / prompts
    return reading.metrics({"prefix_cache_hit_percent": share}, "log")
