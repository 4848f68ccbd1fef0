"""A drawing as Vega writes it -> a small one for the inside of a page.

Out go whatever readers of the screen would stumble over (the figure's sentence and table speak for the drawing),
digits that nobody sees, and everything that stands for nothing. What many marks share is said once.
"""

import functools
import itertools
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
_INHERITED = (
    "fill",
    "stroke",
    "fill-opacity",
    "stroke-opacity",
    "stroke-dasharray",
    "stroke-width",
    "font-size",
    "font-weight",
    "text-anchor",
)
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
_RELATIVE = re.compile(r"M(-?[\d.]+),(-?[\d.]+)((?:[hv]-?[\d.]+)+Z)")
_POLYLINE = re.compile(r"M-?[\d.]+,-?[\d.]+(?:L-?[\d.]+,-?[\d.]+){2,}")
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
    _prune(root)
    _share(root)
    _unwrap(root, links)
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
        if "url(#" in new:
            new = re.sub(r"url\(#([^)]+)\)", lambda found: f"url(#{names.get(found[1], '')})", new)
        kept[name] = names[value] if name == "id" else new
    if _POLYLINE.fullmatch(kept.get("d", "")):
        kept["d"] = _polyline(kept["d"])
    element.attrib = kept
    _place(element)


def _polyline(path: str) -> str:
    """A line or steps through points, without the points on the way along a level or an upright stretch."""
    read = (tuple(map(float, text.split(","))) for text in path[1:].split("L"))
    every = [point for point, _ in itertools.groupby(read)]
    points = every[:1]
    for before, (x, y), after in zip(every, every[1:], [*every[2:], None], strict=False):
        level = after and (before[0] == x == after[0] or before[1] == y == after[1])
        if not level or (after and sorted((before, (x, y), after))[1] != (x, y)):
            points.append((x, y))
    words = [
        f"V{y:g}" if x == left else f"H{x:g}" if y == low else f"L{x:g},{y:g}"
        for (left, low), (x, y) in itertools.pairwise(points)
    ]
    return "M{:g},{:g}".format(*points[0]) + "".join(words)


def _place(element: ElementTree.Element) -> None:
    """Turn a translation into coordinates where the element has some: circles, squares, words."""
    moved = _TRANSLATE.fullmatch(element.attrib.get("transform", "translate(0,0)"))
    if moved is None:
        return
    path = element.attrib.get("d", "")
    circle, square = _CIRCLE.fullmatch(path), _RELATIVE.fullmatch(path)
    if element.tag == f"{_SVG}path" and circle:
        element.tag = f"{_SVG}circle"
        del element.attrib["d"]
        new = {"cx": moved[1], "cy": moved[2], "r": circle[1]}
    elif element.tag == f"{_SVG}path" and square:
        x, y = (_short(str(float(square[i]) + float(moved[i]))) for i in (1, 2))
        new = {"d": f"M{x},{y}{square[3]}"}
    elif element.tag == f"{_SVG}text":
        new = {"x": moved[1], "y": moved[2]}
    else:
        return
    element.attrib.pop("transform", None)
    element.attrib |= new


@functools.lru_cache(maxsize=100_000)
def _short(number: str) -> str:
    """Whole pixels, and tenths in what is small, where they show."""
    value = float(number)
    text = f"{value:.{0 if abs(value) >= 20 else 1}f}".removesuffix(".0")
    return "0" if text in ("-0", "0") else text


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
    return element.tag in (f"{_SVG}g", f"{_SVG}a") and not len(element)


def _unwrap(parent: ElementTree.Element, links: bool) -> None:
    """Take out groups that say nothing, and links that lead out of the site."""
    children: list[ElementTree.Element] = []
    for child in parent:
        _unwrap(child, links)
        if child.tag == f"{_SVG}a":
            address = child.attrib.get(_LINK, "").removeprefix(_CONVERTER_BASE)
            # In the old namespace: the theme writes to `href` of everything that has one, which SVG forbids.
            local = links and _LOCAL.fullmatch(address)
            # Not a plain `href`: the theme rewrites those, which the links of a drawing do not allow.
            child.attrib = {_LINK: ROOT + address, "role": "link", "tabindex": "-1"} if local else {}
        children += list(child) if child.tag in (f"{_SVG}g", f"{_SVG}a") and not child.attrib else [child]
    parent[:] = children


def _share(parent: ElementTree.Element) -> None:
    """Say once, at a group, what neighbouring marks say alike; links are looked through."""
    for child in parent:
        _share(child)
    if parent.tag != f"{_SVG}g":
        return
    if all(child.tag == f"{_SVG}a" for child in parent):
        # Points of interleaved runs alternate; which of two that overlap lies above says nothing.
        parent[:] = sorted(parent, key=_says)
    groups: list[ElementTree.Element] = []
    for said, members in itertools.groupby(parent, key=_says):
        marks = list(members)
        if len(marks) < 2 or not said:
            groups += marks
            continue
        group = ElementTree.Element(f"{_SVG}g", dict(said))
        group[:] = marks
        for mark in marks:
            for name, _ in said:
                del _mark(mark).attrib[name]
        _join(group)
        groups.append(group)
    if len(groups) == 1 and len(groups[0]) > 0 and groups[0].attrib.keys() <= {*_INHERITED} - parent.attrib.keys():
        parent.attrib |= groups[0].attrib
        groups = list(groups[0])
    parent[:] = groups


def _mark(element: ElementTree.Element) -> ElementTree.Element:
    return element[0] if element.tag == f"{_SVG}a" and len(element) == 1 else element


def _says(element: ElementTree.Element) -> tuple[tuple[str, str], ...]:
    mark = _mark(element)
    return tuple((name, mark.attrib[name]) for name in _INHERITED if name in mark.attrib)


def _join(group: ElementTree.Element) -> None:
    """Grid lines and ticks of an axis as one path."""
    strokes = []
    for line in group:
        moved = _TRANSLATE.fullmatch(line.attrib.get("transform", "translate(0,0)"))
        if line.tag != f"{_SVG}line" or moved is None or not line.attrib.keys() <= {"transform", "x2", "y2"}:
            return
        strokes.append(f"M{moved[1]},{moved[2]}l{line.get('x2', '0')},{line.get('y2', '0')}")
    group[:] = [ElementTree.Element(f"{_SVG}path", {"d": "".join(strokes)})]
