"""The page on which readers put their own result beside the published ones, and the figures that it needs.

The reader's file is read in the browser and sent nowhere: `yours.js` fetches the published figures and compares.
"""

from typing import Any

from pydantic_core import to_json

from sparkpub.record.text import SPACE
from sparkpub.review.names import load_name
from sparkpub.review.speeds import GENERATION, Speed
from sparkpub.site.pages import model_links
from sparkpub.site.publication import Publication

FIGURES = "data/speeds.json"
"""Every published speed, for the browser."""


def context(publication: Publication) -> dict[str, Any]:
    """What the template needs."""
    return {
        "figures": FIGURES,
        "models": len({speed.model for speed in publication.speeds}),
        "machines": sorted({speed.machine for speed in publication.speeds}),
        "space": SPACE,
    }


def published(publication: Publication) -> bytes:
    """The file of speeds: one list of objects, as `yours.js` reads it."""
    rows = [
        _row(speed)
        for speed in publication.speeds
        if GENERATION in speed.figures and not speed.doubts
    ]
    return to_json(rows)


def _row(speed: Speed) -> dict[str, Any]:
    load = speed.load
    first_token = speed.mean("ttft_p50_ms", "ttft_mean_ms")
    return {
        "key": speed.model.key,
        "model": speed.model.name,
        "id": speed.setup.model_id,
        "weights": speed.setup.quantization,
        "engine": speed.engine,
        "machine": speed.machine,
        "tool": load.tool,
        "load": load_name(load),
        "input": load.input_tokens,
        "output": load.output_tokens,
        "users": load.at_once,
        "depth": load.depth,
        "rate": load.request_rate,
        "total": round(speed.figures[GENERATION].mean, 3),
        "ttft": None if first_token is None else round(first_token, 1),
        "href": model_links.setup(speed),
    }
