"""What a page or a reader gets of a drawn chart: HTML, or files that stand alone."""

import html
import re
from collections.abc import Sequence

from sparkpub.site.content import ROOT
from sparkpub.site.figures.colours import DARK, LIGHT, concrete, used
from sparkpub.site.figures.draw import Drawn
from sparkpub.site.figures.theme import FONT

_SIZE = re.compile(r'width="[\d.]+" height="[\d.]+"')


def markup(
    drawn: Drawn,
    *,
    live: str = "",
    rows: str = "",
    images: Sequence[str] = (),
) -> str:
    """Both drawings as HTML, switched by the width of their container; addresses in it begin with `content.ROOT`.

    `live` is the address of the document with the specifications and the rows, `rows` that of the rows where they lie
    in another file: behind `#` the member of it. Without `live` the chart stays as drawn. With `images`, the addresses
    of the wide and the narrow file, a browser fetches the one it needs as a reader comes near.
    """
    wide, narrow = drawn.svg_wide, drawn.svg_narrow
    if images:
        wide, narrow = _image_tag(images[0], wide), _image_tag(images[1], narrow)
    said = ""
    for name, address in (("chart", live), ("rows", rows)):
        if address:
            said += f' data-sp-{name}="{html.escape(ROOT + address)}"'
    return f'<div class="sp-chart"{said}><div class="sp-wide">{wide}</div><div class="sp-narrow">{narrow}</div></div>'


def _image_tag(address: str, svg: str) -> str:
    return f'<img src="{ROOT}{address}" {_SIZE.findall(svg)[0]} alt="" loading="lazy">'


def image(svg: str) -> str:
    """A drawing of a page as a file for `<img>`: its colours follow the `color-scheme` of the page around it."""
    names = sorted({"--sp-bg", *used(svg)})
    light = ";".join(f"{name}:{LIGHT[name]}" for name in names)
    dark = ";".join(f"{name}:{DARK[name]}" for name in names)
    style = f"<style>:root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}</style>"
    return _alone(svg, f'{style}<rect width="100%" height="100%" fill="var(--sp-bg)"/>')


def standalone(svg: str) -> str:
    """A drawing as a file of its own: real colours, white ground, no links."""
    return _alone(concrete(svg), '<rect width="100%" height="100%" fill="#fff"/>')


def _alone(svg: str, ground: str) -> str:
    start = f'<svg xmlns="http://www.w3.org/2000/svg" font-family="{FONT}" '
    without_links = re.sub(r"</?a\b[^>]*>", "", svg)
    return without_links.replace("<svg ", start, 1).replace(">", f">{ground}", 1)
