"""Drawn figures put into the pages that ask for them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from pydantic_core import to_json

from sparkpub.site.cache import Cache
from sparkpub.site.content import Content, placeholders
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
MOST_INLINE = 300_000
"""Characters of both drawings of a figure within a page, some 9 KiB as they travel: half of what a page may weigh."""


class Placing:
    """Puts figures into pages: writes the HTML of each once."""

    def __init__(
        self, library: Library, templates: Templates, drawn: Mapping[str, Drawn]
    ) -> None:
        self._images: dict[str, Content] = {}
        """The files that pages came to name."""
        self._library = library
        self._figures = {figure.block: figure for figure in library.wanted.values()}
        self._templates = templates
        self._drawn = drawn
        self._placed = cache(self._place)

    def tree(self, tree: Mapping[str, Content], kept: Cache) -> dict[str, Content]:
        """The tree with every figure that its pages ask for, drawn, and with the figures' own files: the specifications
        of the live chart with its rows, these for a spreadsheet, and drawings."""
        whole = {uri: self.page(content) for uri, content in tree.items()}
        whole |= self._images
        files: dict[str, bytes] = {}
        for key in self._library.later:
            files[f"{FOLDER}/{key}.json"] = self._drawn[key].live.encode()
        for figure in self._library.wanted.values():
            drawn = self._drawn[figure.key]
            live = drawn.live.encode()
            if not figure.rows_at:
                live = b'{"rows":%b,' % to_json(figure.chart.rows) + live[1:]
                files[figure.address("csv")] = figure.csv()
            files[figure.address("json")] = live
            if figure.key in self._library.pictures:
                png = as_png(standalone(drawn.svg_wide), kept, scale=2.0)
                files[figure.address("png")] = png
        return whole | {uri: Content(data=data) for uri, data in files.items()}

    def alone(self, figure: Figure) -> str:
        """A figure that no other page has, and that the browser draws: nothing is kept of it, and of its drawings only
        their sizes are there."""
        return _DRAWING.sub(r"\1</svg>", self._html(figure, []))

    def page(self, content: Content) -> Content:
        """The content with its figures: those within other HTML and the first ones drawn, unless they are heavy, and
        the others named as images. What limits them stands behind the first."""
        asked = self._asked(content.text or "")
        within = [key for html in content.blocks.values() for key in self._asked(html)]
        inline = {*within, *asked[:INLINE]}
        blocks = {key: self._placed(key, key in inline) for key in (*within, *asked)}
        if asked and not any(CAVEATS in html for html in content.blocks.values()):
            # Figures of one campaign share its findings.
            shared = {id(one): one for key in asked for one in self._figures[key].flags}
            told = problems(self._library.publication.names, shared.values())
            blocks[asked[0]] += self._templates.text("caveats.html.j2", problems=told)
        return replace(content, blocks={**content.blocks, **blocks})

    def _asked(self, text: str) -> list[str]:
        return [key for key in placeholders(text) if key in self._figures]

    def _place(self, key: str, inline: bool) -> str:
        figure = self._figures[key]
        drawn = self._drawn[figure.key]
        svgs = {"wide": drawn.svg_wide, "narrow": drawn.svg_narrow}
        # A point for each of thousands of runs is too much for a page.
        inline = inline and sum(map(len, svgs.values())) <= MOST_INLINE
        images = []
        for width, svg in svgs.items():
            if width == "wide" or not inline:
                address = figure.address(f"{width}.svg")
                self._images[address] = Content(data=image(svg).encode())
                images.append(address)
        return self._html(figure, [] if inline else images)

    def _html(self, figure: Figure, images: Sequence[str]) -> str:
        key = figure.drawn_as or figure.key
        return self._templates.text(
            "figure.html.j2",
            figure=figure,
            drawn=self._drawn[key],
            live=f"{FOLDER}/{key}.json",
            picture=figure.key in self._library.pictures,
            images=images,
        )
