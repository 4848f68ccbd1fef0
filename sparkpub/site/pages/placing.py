"""Drawn figures put into the pages that ask for them."""

from collections.abc import Mapping
from dataclasses import replace

from sparkpub.review.cache import Cache
from sparkpub.site.content import Content, block_key, placeholder, placeholders
from sparkpub.site.drawing.compile import Compiled
from sparkpub.site.drawing.output import image
from sparkpub.site.figures.figure import Figure, specification
from sparkpub.site.figures.library import Library
from sparkpub.site.pages.templating import Templates

INLINE = 2
"""Figures drawn within a page; those further down are images, which cost nothing until a reader comes near."""


class Placing:
    """Puts figures into pages: writes the HTML of each once."""

    def __init__(
        self,
        library: Library,
        templates: Templates,
        compiled: Mapping[str, Compiled],
    ) -> None:
        self._images: dict[str, Content] = {}
        """The files that pages came to name."""
        self._library = library
        self._figures = {figure.block: figure for figure in library.wanted.values()}
        self._pictures = library.pictures
        self._templates = templates
        self._compiled = compiled
        self._inline: dict[str, str] = {}
        self._named: dict[str, str] = {}

    def tree(self, tree: Mapping[str, Content], cache: Cache) -> dict[str, Content]:
        """The tree with every figure that its pages ask for, drawn, and with the figures' own files."""
        whole = {uri: self.page(content) for uri, content in tree.items()}
        whole |= self._images
        for figure in self._library.wanted.values():
            picture = figure.key in self._pictures
            compiled = self._compiled[figure.job.key]
            whole |= figure.files(compiled, cache, picture=picture)
        return whole

    def placeholder(self, key: str) -> str:
        """What stands for a figure in a page; empty where nobody asked for the figure."""
        figure = self._library.wanted.get(key)
        return "" if figure is None else placeholder(figure.block)

    def page(self, content: Content) -> Content:
        """The content with its figures: those within tables and the first ones drawn, the others named as images."""
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
        blocks = {key: self._drawn(key) for key in (*within, *asked[:INLINE])}
        for key in asked[INLINE:]:
            # Under a key of its own: another page may have the same figure drawn.
            blocks[block_key(key)] = self._as_image(key)
            text = text.replace(key, block_key(key))
        return replace(content, text=text, blocks={**content.blocks, **blocks})

    def _drawn(self, key: str) -> str:
        if key not in self._inline:
            self._inline[key] = self._html(self._figures[key], {})
        return self._inline[key]

    def _as_image(self, key: str) -> str:
        if key not in self._named:
            figure = self._figures[key]
            chart = self._compiled[figure.job.key]
            drawings = {
                figure.address("wide.svg"): chart.svg_wide,
                figure.address("narrow.svg"): chart.svg_narrow,
            }
            for address, svg in drawings.items():
                self._images[address] = Content(data=image(svg).encode())
            self._named[key] = self._html(figure, drawings)
        return self._named[key]

    def _html(self, figure: Figure, images: Mapping[str, str]) -> str:
        chart = self._compiled[figure.job.key]
        return self._templates.text(
            "figure.html.j2",
            figure=figure,
            compiled=chart,
            specification=specification(chart),
            picture=figure.key in self._pictures,
            images=list(images),
        )
