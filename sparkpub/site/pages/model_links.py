"""Where models and their set-ups stand: the addresses that other pages name."""

import re

from sparkpub.review.models import ModelName
from sparkpub.review.speeds import Speed

_OTHER = re.compile(r"[^a-z0-9]+")


def page(model: ModelName) -> str:
    """The page of a model, from the root of the site."""
    return f"models/{model.slug}/"


def source(model: ModelName) -> str:
    """The source of that page."""
    return f"models/{model.slug}.md"


def setup(speed: Speed) -> str:
    """The set-up of a figure on its model's page."""
    return f"{page(speed.model)}#{setup_anchor(speed)}"


def setup_anchor(speed: Speed) -> str:
    """What the set-up is called within the page."""
    setup = speed.setup
    return anchor(f"{setup.weights} {setup.environment} {setup.digest}")


def anchor(text: str) -> str:
    """Text as an id within a page: `dgx-spark`."""
    return _OTHER.sub("-", text.lower()).strip("-")
