"""Where a repository keeps its data."""

from pathlib import Path

DEFAULT_DATA = Path("data/comprehensive")


GATHERED = Path("gathered")
"""The folder, beside the configuration of the site, that holds a data folder for each owner. Git ignores it."""
