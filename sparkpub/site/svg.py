"""A drawing as Vega writes it -> a small one for the inside of a page.

Out go whatever readers of the screen would stumble over (the figure's sentence and table speak for the drawing),
digits that nobody sees, and everything that stands for nothing. What many marks share is said once.
"""

import re
from xml.etree import ElementTree

from sparkpub.site.content import ROOT

_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_CONVERTER_BASE = "https://vega.github.io/vega-datasets/"
"""What the converter puts before an address without a scheme."""
_LOCAL = re.compile(r"[A-Za-z0-9][\w./%-]*(?:\?[\w.=&%-]*)?(?:#[\w.-]*)?")
_DROPPED = {"class", "role", "pointer-events", "version", "font-family", "target", "cursor"}
_DEFAULTS = {"opacity": "1", "stroke-miterlimit": "10", "transform": "translate(0,0)", "stroke-width": "1"}
_INHERITED = ("fill", "stroke", "fill-opacity", "stroke-opacity", "stroke-dasharray", "font-size", "text-anchor")
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
_CIRCLE = re.compile(r"M([\d.]+),0A\1,\1,0,1,1,-\1,0A\1,\1,0,1,1,\1,0Z?")
_TRANSLATE = re.compile(r"translate\((-?[\d.]+),(-?[\d.]+)\)")
_NOTHING = {"", "M0,0h0v0h0Z"}


def tidy(svg: str, prefix: str, *, links: bool = True) -> str:
    """The drawing with ids that begin with `prefix`, and with links (from `content.ROOT`) or without any.

    Raises ElementTree.ParseError for text that is not XML.
    """
    root = ElementTree.fromstring(svg)  # noqa: S314 - written by the converter in this process
    ids = {element.attrib["id"] for element in root.iter() if "id" in element.attrib}
    # Vega numbers its ids through the life of a process; here they count from the start of the drawing.
    names = {
        name: f"{prefix}{place}" for place, name in enumerate(sorted(ids, key=lambda name: svg.index(f'"{name}"')))
    }
    for element in root.iter():
        _shorten(element, names)
    _prune(root, links)
    _share(root)
    root.attrib = {"aria-hidden": "true", "focusable": "false", **root.attrib}
    ElementTree.register_namespace("", _SVG[1:-1])
    ElementTree.register_namespace("xlink", _LINK[1:29])
    text = ElementTree.tostring(root, encoding="unicode")
    return re.sub(r' xmlns(?::xlink)?="[^"]*"', "", text, count=2).replace(" />", "/>")


def _shorten(element: ElementTree.Element, names: dict[str, str]) -> None:
    kept = {}
    for name, value in element.attrib.items():
        if name in _DROPPED or name.startswith("aria-") or _DEFAULTS.get(name) == value:
            continue
        new = _DECIMALS.sub(lambda found: _short(found[0]), value) if name in _GEOMETRY else value
        new = re.sub(r"url\(#([^)]+)\)", lambda found: f"url(#{names.get(found[1], '')})", new)
        kept[name] = names[value] if name == "id" else new
    element.attrib = kept
    circle = _CIRCLE.fullmatch(kept.get("d", ""))
    place = _TRANSLATE.fullmatch(kept.get("transform", "translate(0,0)"))
    if element.tag == f"{_SVG}path" and circle and place:
        element.tag = f"{_SVG}circle"
        del kept["d"]
        kept.pop("transform", None)
        kept |= {"cx": place[1], "cy": place[2], "r": circle[1]}


def _short(number: str) -> str:
    text = f"{float(number):.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _prune(parent: ElementTree.Element, links: bool) -> None:
    """Take out what draws nothing, groups that say nothing, and links that lead out of the site."""
    children: list[ElementTree.Element] = []
    for child in parent:
        _prune(child, links)
        if child.attrib.get("display") == "none" or (child.tag == f"{_SVG}path" and child.get("d", "") in _NOTHING):
            continue
        if child.tag == f"{_SVG}a":
            address = child.attrib.get(_LINK, "").removeprefix(_CONVERTER_BASE)
            child.attrib = {}
            if links and _LOCAL.fullmatch(address):
                # In the old namespace: the theme writes to `href` of everything that has one, which SVG forbids.
                child.attrib = {_LINK: ROOT + address, "tabindex": "-1"}
        if child.tag in (f"{_SVG}g", f"{_SVG}a") and (not child.attrib or not len(child)):
            children += list(child)
        else:
            children.append(child)
    parent[:] = children


def _share(parent: ElementTree.Element) -> None:
    """Say once, at a group, what all its marks say; links are looked through."""
    for child in parent:
        _share(child)
    marks = [mark for child in parent for mark in (child if child.tag == f"{_SVG}a" else [child])]
    if parent.tag != f"{_SVG}g" or len(marks) < 2:
        return
    for name in _INHERITED:
        values = {mark.attrib.get(name) for mark in marks}
        if len(values) == 1 and None not in values:
            parent.attrib[name] = values.pop() or ""
            for mark in marks:
                del mark.attrib[name]
