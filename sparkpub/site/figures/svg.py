"""A drawing as Vega writes it -> a small one for the inside of a page.

Out go whatever readers of the screen would stumble over (the figure's sentence and table speak for the drawing),
and digits that nobody sees (a third of what travels).
"""

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from sparkpub.site.content import ROOT

_SVG = "{http://www.w3.org/2000/svg}"
_ANCHOR = f"{_SVG}a"
_LINK = "{http://www.w3.org/1999/xlink}href"
_CONVERTER_BASE = "https://vega.github.io/vega-datasets/"
"""What the converter puts before an address without a scheme."""
_LOCAL = re.compile(r"[A-Za-z0-9][\w./%-]*(?:\?[\w.=&%-]*)?(?:#[\w.-]*)?")
_DROPPED = {
    "class",
    "role",
    "pointer-events",
    "version",
    "font-family",
    "target",
    "cursor",
}
_DEFAULTS = {
    "opacity": "1",
    "stroke-miterlimit": "10",
    "transform": "translate(0,0)",
    "stroke-width": "1",
}
_GEOMETRY = {
    "d",
    "transform",
    "points",
    "x",
    "y",
    "x1",
    "y1",
    "x2",
    "y2",
    "cx",
    "cy",
    "r",
    "width",
    "height",
    "viewBox",
}
_DECIMALS = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def tidy(svg: str, prefix: str, *, links: bool = True) -> str:
    """The drawing with ids that begin with `prefix`, and with links (from `content.ROOT`) or without any.

    Raises ElementTree.ParseError for text that is not XML.
    """
    root = ElementTree.fromstring(svg)  # noqa: S314 - written by the converter in this process
    names = _ids(root, prefix)
    for element in root.iter():
        if element.tag == _ANCHOR:
            element.attrib = _link(element.attrib, links)
            # What leads nowhere is no link.
            element.tag = element.tag if element.attrib else f"{_SVG}g"
        else:
            element.attrib = _shortened(element.attrib, names)
    root.attrib = {"aria-hidden": "true", "focusable": "false", **root.attrib}
    ElementTree.register_namespace("", _SVG[1:-1])
    ElementTree.register_namespace("xlink", _LINK[1:29])
    text = ElementTree.tostring(root, encoding="unicode")
    return re.sub(r' xmlns(?::xlink)?="[^"]*"', "", text, count=2).replace(" />", "/>")


def _ids(root: ElementTree.Element, prefix: str) -> dict[str, str]:
    """New names for the ids of a drawing: Vega numbers its ids through the life of a process, here they count from
    the start of the drawing."""
    found = dict.fromkeys(element.get("id") for element in root.iter())
    return {name: f"{prefix}{place}" for place, name in enumerate(filter(None, found))}


def _shortened(
    attributes: Mapping[str, str], names: Mapping[str, str]
) -> dict[str, str]:
    """The attributes that say something, with new ids and without digits that nobody sees."""
    kept = {}
    for name, value in attributes.items():
        if name in _DROPPED or name.startswith("aria-") or _DEFAULTS.get(name) == value:
            continue
        if name in _GEOMETRY:
            kept[name] = _DECIMALS.sub(_short, value)
        else:
            kept[name] = _REFERENCE.sub(lambda of: f"url(#{names[of[1]]})", value)
    if "id" in kept:
        kept["id"] = names[kept["id"]]
    return kept


def _short(number: re.Match[str]) -> str:
    """Whole pixels, and tenths in what is small, where they show."""
    value = float(number[0])
    text = f"{value:.{0 if abs(value) >= 20 else 1}f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _link(attributes: Mapping[str, str], links: bool) -> dict[str, str]:
    """The attributes of a link within the site; none for any other, and without `links`."""
    address = attributes.get(_LINK, "").removeprefix(_CONVERTER_BASE)
    if not links or not _LOCAL.fullmatch(address):
        return {}
    # In the old namespace: the theme writes to every plain `href`, which the links of a drawing do not allow.
    return {_LINK: ROOT + address, "role": "link", "tabindex": "-1"}
