"""Drawn figures put into the pages that ask for them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from pydantic_core import to_json

from sparkpub.site.cache import Cache
from sparkpub.site.content import Content, block_key, placeholder, placeholders
from sparkpub.site.figures.draw import Drawn, as_png
from sparkpub.site.figures.figure import FOLDER, Figure
from sparkpub.site.figures.library import Library
from sparkpub.site.figures.output import image, standalone
from sparkpub.site.pages.findings import problems
from sparkpub.site.pages.templating import Templates

_DRAWING = re.compile(r"(<svg\b[^>]*>).*?</svg>", re.DOTALL)
CAVEATS = '<details class="sp-plain sp-caveats'
"""Where a page speaks of its caveats itself."""
INLINE = 1
"""Figures drawn within a page; those further down are images, which cost nothing until a reader comes near."""
MOST_INLINE = 200_000
"""Characters of both drawings of a figure within a page, some 9 KiB as they travel: half of what a page may weigh."""


class Placing:
    """Puts figures into pages: writes the HTML of each once."""

    def __init__(
        self,
        library: Library,
        templates: Templates,
        drawn: Mapping[str, Drawn],
    ) -> None:
        self._images: dict[str, Content] = {}
        """The files that pages came to name."""
        self._library = library
        self._figures = {figure.block: figure for figure in library.wanted.values()}
        self._pictures = library.pictures
        self._templates = templates
        self._drawn = drawn
        self._within: dict[str, str] = {}
        self._named: dict[str, str] = {}

    def tree(self, tree: Mapping[str, Content], cache: Cache) -> dict[str, Content]:
        """The tree with every figure that its pages ask for, drawn, and with the figures' own files."""
        whole = {uri: self.page(content) for uri, content in tree.items()}
        whole |= self._images
        for key in self._library.later:
            live = self._drawn[key].live.encode()
            whole[f"{FOLDER}/{key}.json"] = Content(data=live)
        for figure in self._library.wanted.values():
            whole |= self._files(figure, cache)
        return whole

    def _files(self, figure: Figure, cache: Cache) -> dict[str, Content]:
        """What is published of a figure beside its drawings: the specifications of the live chart with its rows."""
        drawn = self._drawn[figure.key]
        found = {figure.address("json"): drawn.live.encode()}
        if not figure.rows_at:
            rows = b'{"rows":%b,' % to_json(figure.chart.rows)
            found[figure.address("json")] = rows + drawn.live.encode()[1:]
            found[figure.address("csv")] = figure.csv()
        if figure.key in self._pictures:
            svg = standalone(drawn.svg_wide)
            found[figure.address("png")] = as_png(svg, cache, scale=2.0)
        return {address: Content(data=data) for address, data in found.items()}

    def alone(self, figure: Figure) -> str:
        """A figure that no other page has, and that the browser draws: nothing is kept of it, and of its drawings only
        their sizes are there."""
        return _DRAWING.sub(r"\1</svg>", self._html(figure, []))

    def page(self, content: Content) -> Content:
        """The content with its figures: those within other HTML and the first ones drawn, unless they are heavy, and
        the others named as images."""
        text = content.text or ""
        asked = [key for key in placeholders(text) if key in self._figures]
        within = [
            key
            for html in content.blocks.values()
            for key in placeholders(html)
            if key in self._figures
        ]
        if not asked and not within:
            return content
        first = [key for key in asked[:INLINE] if self._is_light(key)]
        blocks = {
            key: self._inline(key) if self._is_light(key) else self._as_image(key)
            for key in (*within, *first)
        }
        if asked and not any(CAVEATS in html for html in content.blocks.values()):
            # A block of its own: another page may have the same figure.
            caveats = self._caveats(asked)
            blocks[block_key(caveats)] = caveats
            top = placeholder(asked[0])
            text = text.replace(top, f"{top}\n\n{placeholder(block_key(caveats))}", 1)
        for key in asked:
            if key in first:
                continue
            # Under a key of its own: another page may have the same figure drawn.
            blocks[block_key(key)] = self._as_image(key)
            text = text.replace(key, block_key(key))
        return replace(content, text=text, blocks={**content.blocks, **blocks})

    def _caveats(self, keys: Sequence[str]) -> str:
        """What limits the figures of a page, as one mark with its text."""
        # Figures of one campaign share its findings.
        shared = {id(flag): flag for key in keys for flag in self._figures[key].flags}
        told = problems(self._library.publication.names, shared.values())
        return self._templates.text("caveats.html.j2", problems=told)

    def _is_light(self, key: str) -> bool:
        """Whether a page can hold both drawings of a figure: a point for each of thousands of runs is too much."""
        chart = self._drawn[self._figures[key].key]
        return len(chart.svg_wide) + len(chart.svg_narrow) <= MOST_INLINE

    def _inline(self, key: str) -> str:
        if key not in self._within:
            figure = self._figures[key]
            self._image(figure, "wide")
            self._within[key] = self._html(figure, [])
        return self._within[key]

    def _image(self, figure: Figure, width: Literal["wide", "narrow"]) -> str:
        """The address of a drawing as a file."""
        chart = self._drawn[figure.key]
        svg = chart.svg_wide if width == "wide" else chart.svg_narrow
        address = figure.address(f"{width}.svg")
        self._images[address] = Content(data=image(svg).encode())
        return address

    def _as_image(self, key: str) -> str:
        if key not in self._named:
            figure = self._figures[key]
            images = [self._image(figure, "wide"), self._image(figure, "narrow")]
            self._named[key] = self._html(figure, images)
        return self._named[key]

    def _html(self, figure: Figure, images: Sequence[str]) -> str:
        key = figure.drawn_as or figure.key
        return self._templates.text(
            "figure.html.j2",
            figure=figure,
            drawn=self._drawn[key],
            live=f"{FOLDER}/{key}.json",
            picture=figure.key in self._pictures,
            images=images,
        )
