"""The pages that put speeds beside each other, and the figures that they need: a reader's own result beside the
published ones (`yours.js`), and two or three published ones (`compare.js`).

A reader's file is read in the browser and sent nowhere.
"""

from collections import Counter
from typing import Any

from pydantic_core import to_json

from sparkpub.review.names import environment_name, load_name
from sparkpub.review.speeds import GENERATION, Speed
from sparkpub.site.pages import model_links
from sparkpub.site.publication import Publication

FIGURES = "data/speeds.json"
"""Every published speed, for the browser."""


def published(publication: Publication) -> bytes:
    """The file of speeds: one list of objects, as the two programs read it, those of the home machine first."""
    home = publication.home
    ordered = sorted(publication.speeds, key=lambda speed: speed.machine != home)
    rows = [
        _row(speed)
        for speed in ordered
        if GENERATION in speed.figures and not speed.doubts
    ]
    alike = Counter((row["model"], row["recipe"], row["load"]) for row in rows)
    for row in rows:
        if alike[row["model"], row["recipe"], row["load"]] > 1:
            row["recipe"] += f" ({row['campaign']})"
    return to_json(rows)


def identity(speed: Speed) -> str:
    """What a speed is called in the address of a comparison."""
    return "/".join((speed.campaign, *speed.cell))


def _row(speed: Speed) -> dict[str, Any]:
    load, setup = speed.load, speed.setup
    place = environment_name(setup.environment_type)
    recipe = (speed.weights, speed.engine, place, speed.machine)
    values = {
        "total": speed.mean(GENERATION),
        "each": speed.per_user,
        "ttft": speed.mean("ttft_p50_ms", "ttft_mean_ms"),
        "prompt": speed.mean("prompt_throughput_tok_s"),
    }
    return {
        "id": identity(speed),
        "key": speed.model.key,
        "model": speed.model.name,
        "weights_id": setup.model_id,
        "recipe": ", ".join(filter(None, recipe)),
        "campaign": speed.campaign,
        "tool": load.tool,
        "load": f"{load_name(load)} ({load.tool})",
        "input": load.input_tokens,
        "output": load.output_tokens,
        "users": load.at_once,
        "depth": load.depth,
        "rate": load.request_rate,
        "runs": len(speed.records),
        "href": model_links.setup(speed),
        **{name: value and round(value, 3) for name, value in values.items()},
    }
