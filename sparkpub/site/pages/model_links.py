"""Where models and their recipes stand: the addresses that other pages name."""

import re

from sparkpub.review.names import ModelName
from sparkpub.review.speeds import Speed

_OTHER = re.compile(r"[^a-z0-9]+")


def page(model: ModelName) -> str:
    """The page of a model, from the root of the site."""
    return f"models/{model.slug}/"


def source(model: ModelName) -> str:
    """The source of that page."""
    return f"models/{model.slug}.md"


def recipe(speed: Speed) -> str:
    """The recipe of a figure on its model's page."""
    return f"{page(speed.model)}#{recipe_anchor(speed)}"


def recipe_anchor(speed: Speed) -> str:
    """What the recipe is called within the page."""
    recipe = speed.recipe
    return anchor(f"{recipe.weights} {recipe.environment} {recipe.digest}")


def anchor(text: str) -> str:
    """Text as an id within a page: `dgx-spark`."""
    return _OTHER.sub("-", text.lower()).strip("-")
