"""A drawing as Vega writes it -> a small one for the inside of a page.

Out go whatever readers of the screen would stumble over (the figure's sentence and table speak for the drawing),
digits that nobody sees (a third of what travels), and everything that stands for nothing.
"""

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from sparkpub.site.content import ROOT

_SVG = "{http://www.w3.org/2000/svg}"
_GROUP, _ANCHOR = f"{_SVG}g", f"{_SVG}a"
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
_NOTHING = {"", "M0,0h0v0h0Z"}


def tidy(svg: str, prefix: str, *, links: bool = True) -> str:
    """The drawing with ids that begin with `prefix`, and with links (from `content.ROOT`) or without any.

    Raises ElementTree.ParseError for text that is not XML.
    """
    root = ElementTree.fromstring(svg)  # noqa: S314 - written by the converter in this process
    names = _ids(root, svg, prefix)
    for element in root.iter():
        element.attrib = _shortened(element.attrib, names)
    _prune(root)
    _unwrap(root, links)
    root.attrib = {"aria-hidden": "true", "focusable": "false", **root.attrib}
    ElementTree.register_namespace("", _SVG[1:-1])
    ElementTree.register_namespace("xlink", _LINK[1:29])
    text = ElementTree.tostring(root, encoding="unicode")
    return re.sub(r' xmlns(?::xlink)?="[^"]*"', "", text, count=2).replace(" />", "/>")


def _ids(root: ElementTree.Element, svg: str, prefix: str) -> dict[str, str]:
    """New names for the ids of a drawing: Vega numbers its ids through the life of a process, here they count from
    the start of the drawing."""
    found = {element.attrib["id"] for element in root.iter() if "id" in element.attrib}
    in_order = sorted(found, key=lambda name: svg.index(f'"{name}"'))
    return {name: f"{prefix}{place}" for place, name in enumerate(in_order)}


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


def _prune(parent: ElementTree.Element) -> None:
    """Take out what draws nothing."""
    for child in parent:
        _prune(child)
    parent[:] = [child for child in parent if not _draws_nothing(child)]


def _draws_nothing(element: ElementTree.Element) -> bool:
    if element.attrib.get("display") == "none" or element.attrib.get("opacity") == "0":
        return True
    if element.tag == f"{_SVG}path":
        return element.get("d", "") in _NOTHING
    return element.tag in (_GROUP, _ANCHOR) and not len(element)


def _unwrap(parent: ElementTree.Element, links: bool) -> None:
    """Take out groups that say nothing, and links that lead out of the site."""
    children: list[ElementTree.Element] = []
    for child in parent:
        _unwrap(child, links)
        if child.tag == _ANCHOR:
            child.attrib = _link(child.attrib, links)
        if child.tag in (_GROUP, _ANCHOR) and not child.attrib:
            children += list(child)
        else:
            children.append(child)
    parent[:] = children


def _link(attributes: Mapping[str, str], links: bool) -> dict[str, str]:
    """The attributes of a link within the site; none for any other, and without `links`."""
    address = attributes.get(_LINK, "").removeprefix(_CONVERTER_BASE)
    if not links or not _LOCAL.fullmatch(address):
        return {}
    # In the old namespace: the theme writes to every plain `href`, which the links of a drawing do not allow.
    return {_LINK: ROOT + address, "role": "link", "tabindex": "-1"}
