"""The tables of a site, campaign by campaign: the rows that charts draw and that browsers fetch.

A run has some seventy rows in all tables. Those of a large site lie compressed, but for the campaigns that were asked
for last: pages speak of one campaign after the other, or of the few newest in turn.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping

from pydantic_core import from_json, to_json

from sparkpub.site.content import packed, unpacked
from sparkpub.site.figures.rows import Row, Tables

MOST_OPEN = 16
"""Campaigns whose rows are not compressed."""


class SiteTables:
    """Tables by name, each a list for the whole site made of the shares of its campaigns, in the order given."""

    def __init__(self, names: Iterable[str] = (), *, compressed: bool = False) -> None:
        self.names = tuple(names)
        self._compressed = compressed
        self._campaigns: list[str] = []
        self._open: OrderedDict[str, Tables] = OrderedDict()
        self._packed: dict[str, Mapping[str, bytes]] = {}

    def put(self, campaign: str, share: Tables) -> None:
        """Add the rows of one more campaign."""
        self._campaigns.append(campaign)
        if self._compressed:
            self._packed[campaign] = {
                name: packed(to_json(share[name])) for name in self.names
            }
        else:
            self._open[campaign] = share

    def of(self, campaign: str) -> Tables:
        """The rows of a campaign."""
        if campaign not in self._open:
            texts = self._packed[campaign]
            self._open[campaign] = {
                name: from_json(unpacked(text)) for name, text in texts.items()
            }
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(campaign)
        return self._open[campaign]

    def rows(self, name: str) -> Iterator[Row]:
        """All rows of a table."""
        for campaign in self._campaigns:
            yield from self.of(campaign)[name]

    def text(self, name: str) -> Iterator[bytes]:
        """A table as JSON, in pieces."""
        yield b"["
        started = False
        for campaign in self._campaigns:
            rows = self._text_of(campaign, name)[1:-1]
            if started and rows:
                yield b","
            if rows:
                yield rows
                started = True
        yield b"]"

    def _text_of(self, campaign: str, name: str) -> bytes:
        if self._compressed:
            return unpacked(self._packed[campaign][name])
        return to_json(self._open[campaign][name])
