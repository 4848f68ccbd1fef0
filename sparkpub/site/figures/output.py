"""What a page or a reader gets of a compiled chart: HTML, or files that stand alone."""

import html
import json
import re
from collections.abc import Mapping, Sequence

from sparkpub.site.content import ROOT
from sparkpub.site.figures.colours import DARK, LIGHT, concrete, used
from sparkpub.site.figures.compile import Compiled

FONT = "Helvetica Neue, Arial, sans-serif"
"""Ends in a family that the converter ships, so that text is measured alike on every machine."""
GAP = 1.0
"""Pixels by which rounding parts bars that follow each other, less than any bar is wide."""
_BAR = re.compile(r'<path d="M([\d.]+),([\d.]+)h([\d.]+)v([\d.]+)h-?[\d.]+Z"/>')
_BARS = re.compile(
    r'(<g fill="[^"]+">)((?:<path d="M[\d.,]+h[\d.]+v[\d.]+h-?[\d.]+Z"/>){2,})'
)
"""Bars of one colour and without a line around them."""
_SIZE = re.compile(r'width="[\d.]+" height="[\d.]+"')


def markup(
    compiled: Compiled,
    *,
    specification: str = "",
    sources: Mapping[str, str] | None = None,
    images: Sequence[str] = (),
) -> str:
    """Both drawings as HTML, switched by the width of their container; addresses in it begin with `content.ROOT`.

    `specification` is the address from the root, without suffix, under which `<it>.vega.json` and
    `<it>.narrow.vega.json` are published, or that of one packed file with both; `sources` maps the name of a data set
    to the address of its rows (a JSON list of objects, or an object whose member after `#` in the address is that
    list). Without a specification the chart stays as drawn. With
    `images`, the addresses of the wide and the narrow file, a browser fetches the one it needs as a reader comes near.
    """
    wide, narrow = compiled.svg_wide, compiled.svg_narrow
    if images:
        wide, narrow = _image_tag(images[0], wide), _image_tag(images[1], narrow)
    live = _live(specification, sources or {})
    return f'<div class="sp-chart"{live}><div class="sp-wide">{wide}</div><div class="sp-narrow">{narrow}</div></div>'


def _live(specification: str, sources: Mapping[str, str]) -> str:
    """The attributes that tell the browser where specification and rows are."""
    if not specification:
        return ""
    address = html.escape(ROOT + specification)
    addresses = json.dumps(
        {name: ROOT + source for name, source in sources.items()}, ensure_ascii=False
    )
    return f' data-sp-chart="{address}" data-sp-data="{html.escape(addresses)}"'


def _image_tag(address: str, svg: str) -> str:
    return f'<img src="{ROOT}{address}" {_SIZE.findall(svg)[0]} alt="" loading="lazy">'


def image(svg: str) -> str:
    """A drawing of a page as a file for `<img>`: its colours follow the `color-scheme` of the page around it."""
    names = sorted({"--sp-bg", *used(svg)})
    light = ";".join(f"{name}:{LIGHT[name]}" for name in names)
    dark = ";".join(f"{name}:{DARK[name]}" for name in names)
    style = f"<style>:root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}</style>"
    ground = f'{style}<rect width="100%" height="100%" fill="var(--sp-bg)"/>'
    return _alone(_with_stretches(svg), ground)


def _with_stretches(svg: str) -> str:
    """A drawing in which bars of one colour that follow each other are one bar: a row of the chart over time has some
    fifty of them."""
    return _BARS.sub(_joined, svg)


def _joined(found: re.Match[str]) -> str:
    joined: list[tuple[float, float, float, float]] = []
    for bar in _BAR.findall(found[2]):
        x, y, width, height = map(float, bar)
        if joined:
            left, top, wide, high = joined[-1]
            if (top, high) == (y, height) and left < x < left + wide + GAP:
                joined[-1] = (left, y, max(wide, x + width - left), height)
                continue
        joined.append((x, y, width, height))
    path = ""
    for x, y, width, height in joined:
        path += f"M{x:g},{y:g}h{width:.4g}v{height:g}h-{width:.4g}Z"
    return f'{found[1]}<path d="{path}"/>'


def standalone(svg: str) -> str:
    """A drawing as a file of its own: real colours, white ground, no links."""
    return _alone(concrete(svg), '<rect width="100%" height="100%" fill="#fff"/>')


def _alone(svg: str, ground: str) -> str:
    start = f'<svg xmlns="http://www.w3.org/2000/svg" font-family="{FONT}" '
    without_links = re.sub(r"</?a\b[^>]*>", "", svg)
    return without_links.replace("<svg ", start, 1).replace(">", f">{ground}", 1)
