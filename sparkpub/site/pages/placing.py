"""Drawn figures put into the pages that ask for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from pydantic_core import to_json

from sparkpub.site import kept
from sparkpub.site.cache import Cache
from sparkpub.site.content import File, Page, placeholders
from sparkpub.site.figures.draw import Drawings, Drawn, pictures
from sparkpub.site.figures.figure import FOLDER, Figure
from sparkpub.site.figures.library import Library
from sparkpub.site.figures.output import image, standalone
from sparkpub.site.pages import templating
from sparkpub.site.pages.findings import problems
from sparkpub.site.publication import Publication

CAVEATS = '<ul class="sp-caveats"'
"""Where a page speaks of its caveats itself."""
INLINE = 1
"""Figures drawn within a page; those further down are images, which cost nothing until a reader comes near."""
MOST_INLINE = 300_000
"""Characters of both drawings of a figure within a page, some 9 KiB as they travel: half of what a page may weigh."""


def once(
    name: str,
    uri: str,
    make: Callable[[Library], Page],
    publication: Publication,
    drawings: Drawings,
    cache: Cache,
) -> Callable[[], Mapping[str, File]]:
    """What gives a page and the files of its charts: as they are kept under a name, else made now. `make` asks its
    library for the charts."""

    def begin() -> Callable[[], dict[str, File]]:
        library = Library(publication, drawings)
        page = make(library)

        def finish() -> dict[str, File]:
            drawn = drawings.finished()
            return Placing(library, drawn).placed({uri: page}, cache)

        return finish

    return kept.files_once(name, cache, begin)


class Placing:
    """Puts figures into pages: writes the HTML of each once."""

    def __init__(self, library: Library, drawn: Mapping[str, Drawn]) -> None:
        self._images: dict[str, File] = {}
        """The drawings that pages came to name as files."""
        self._library = library
        self._figures = library.wanted
        self._drawn = drawn
        self._placed = lru_cache(maxsize=None)(self._place)

    def placed(self, files: Mapping[str, File], kept_in: Cache) -> dict[str, File]:
        """The files with every figure that pages ask for in its place, and with the figures' own files: the
        specifications of the live chart with its rows, these for a spreadsheet, and drawings."""
        svgs = {
            figure.address("png"): standalone(self._drawn[key].svg_wide)
            for key, figure in self._figures.items()
            if key in self._library.pictures
        }
        finished = pictures(svgs, kept_in, scale=2.0)
        found = {
            uri: self._page(file) if isinstance(file, Page) else file
            for uri, file in files.items()
        }
        found |= self._images
        for figure in self._library.wanted.values():
            drawn = self._drawn[figure.key]
            live = drawn.live.encode()
            if not figure.rows_at:
                live = b'{"rows":%b,' % to_json(figure.chart.rows) + live[1:]
                found[figure.address("csv")] = figure.csv()
            found[figure.address("json")] = live
        return found | finished()

    def _page(self, page: Page) -> Page:
        """The page with its figures: those within other HTML and the first ones drawn, unless they are heavy, and the
        others named as images. What limits them stands behind the first."""
        figures = self._figures.keys()
        asked = [key for key in placeholders(page.text) if key in figures]
        html = "".join(page.html.values())
        within = [key for key in placeholders(html) if key in figures]
        inline = {*within, *asked[:INLINE]}
        blocks = {key: self._placed(key, key in inline) for key in (*within, *asked)}
        if asked and CAVEATS not in html:
            # Figures of one campaign share its findings.
            shared = {id(one): one for key in asked for one in self._figures[key].flags}
            blocks[asked[0]] += templating.text(
                "caveats.html.j2",
                problems=problems(shared.values()),
                publication=self._library.publication,
            )
        return replace(page, html={**page.html, **blocks})

    def _place(self, key: str, inline: bool) -> str:
        figure = self._figures[key]
        drawn = self._drawn[figure.key]
        svgs = {"wide": drawn.svg_wide, "narrow": drawn.svg_narrow}
        # A point for each of thousands of runs is too much for a page.
        inline = inline and sum(map(len, svgs.values())) <= MOST_INLINE
        files = {
            figure.address(f"{width}.svg"): image(svg).encode()
            for width, svg in svgs.items()
            if width == "wide" or not inline
        }
        self._images |= files
        return as_html(
            figure,
            drawn,
            picture=figure.key in self._library.pictures,
            images=() if inline else list(files),
        )


def as_html(
    figure: Figure, drawn: Drawn, *, picture: bool = False, images: Sequence[str] = ()
) -> str:
    """A figure with its drawing, its sentence and its table."""
    return templating.text(
        "figure.html.j2",
        figure=figure,
        drawn=drawn,
        live=f"{FOLDER}/{drawn.key}.json",
        picture=picture,
        images=images,
    )
