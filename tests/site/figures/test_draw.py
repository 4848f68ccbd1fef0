"""Charts at build time: drawings that need no script, no trust in what rows say, the same bytes every time."""

import os
import re
import struct
import zlib
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sparkpub.record.errors import SiteError
from sparkpub.site import workers
from sparkpub.site.cache import Cache
from sparkpub.site.content import ROOT
from sparkpub.site.figures import draw as drawing
from sparkpub.site.figures import shapes
from sparkpub.site.figures.converter import converter, png
from sparkpub.site.figures.draw import Chart, Drawings, Drawn, draw
from sparkpub.site.figures.output import image, standalone
from sparkpub.site.figures.shapes import Row, Spec
from sparkpub.site.figures.theme import FONT

ROWS: list[Row] = [
    {
        "kind": "run",
        "group": ("native", "Docker")[i % 2],
        "x": float(i),
        "value": 10 + i * 0.37,
        "href": f"runs/r{i}/",
    }
    for i in range(12)
]
POINTS = partial(shapes.points, across="GiB", up="tok/s", groups=("native", "Docker"))


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others take seconds to start, twice as many as all drawings here."""
    monkeypatch.setattr(workers, "_CORES", 1)


def of_row(**changes: object) -> str:
    """One point, drawn wide; it has a name beside it."""
    grid = partial(shapes.grid, across="s")
    row = {"name": "m", "column": "a", "text": "1", "href": "runs/r/"}
    return draw("strip", Chart(grid, [{**row, **changes}])).svg_wide


def parsed(svg: str) -> ElementTree.Element:
    """A drawing as a page's parser would see it: the page declares the namespace of links."""
    return ElementTree.fromstring(
        svg.replace("<svg ", '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ', 1)
    )


def links(svg: str) -> list[str]:
    return re.findall(r'href="([^"]*)"', svg)


def draw_many(charts: dict[str, Chart], cache: Path) -> list[Drawn]:
    """As a build does it: all wanted, then all there."""
    wanted = Drawings(Cache(cache))
    for key, chart in charts.items():
        wanted.want(key, chart)
    found = wanted.finished()
    return [found[key] for key in charts]


def test_every_point_is_a_link_into_the_site_that_the_keyboard_skips() -> None:
    drawn = draw("k", Chart(POINTS, ROWS))
    assert sorted(links(drawn.svg_wide)) == sorted(
        f"{ROOT}{row['href']}" for row in ROWS
    )
    assert drawn.svg_wide.count('tabindex="-1"') == len(ROWS)
    assert "r3" not in drawn.live  # which holds no rows


@pytest.mark.parametrize("address", ["//elsewhere.invalid/", 'x" onload="alert(1)'])
def test_a_row_cannot_lead_out_of_the_site(address: str) -> None:
    svg = of_row(href=address)
    assert links(svg) == []
    assert not any("onload" in element.attrib for element in parsed(svg).iter())


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        # The converter would end the whole process.
        ("a\x00b", "a\N{REPLACEMENT CHARACTER}b"),
    ],
)
def test_text_of_a_row_stays_text(text: str, drawn: str) -> None:
    svg = of_row(text=text)
    assert "<script" not in svg
    assert drawn in "".join(parsed(svg).itertext())


def test_ids_of_two_charts_differ() -> None:
    first, second = (draw(key, Chart(POINTS, ROWS)) for key in "ab")
    ids = [
        set(re.findall(r'id="([^"]+)"', svg))
        for svg in (first.svg_wide, first.svg_narrow, second.svg_wide)
    ]
    assert len(set.union(*ids)) == sum(map(len, ids))
    assert set(re.findall(r"url\(#([^)]+)\)", first.svg_wide)) <= ids[0]


def test_images_have_the_colours_of_both_modes_and_files_real_ones() -> None:
    drawn = draw("k", Chart(POINTS, ROWS)).svg_wide
    style, shown = image(drawn).split("</style>")
    light, dark = style.split("@media (prefers-color-scheme:dark)")
    assert "--sp-c1:#005fb8" in light  # as in colours.css
    assert "--sp-c1:#69b3ff" in dark
    assert set(re.findall(r"--sp-\w+", shown)) == set(re.findall(r"--sp-\w+", dark))
    alone = standalone(drawn)
    assert "var(" not in alone
    for svg in (shown, alone):
        assert "href" not in svg


def test_a_picture_is_the_one_that_the_converter_gives_in_less_room() -> None:
    alone = standalone(draw("k", Chart(POINTS, ROWS)).svg_wide)
    given, made = bytes(converter().svg_to_png(alone)), png(alone)

    def chunks(picture: bytes) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        at = picture.index(b"\r\n\x1a\n") + 4
        while at < len(picture):
            size, kind = struct.unpack(">I4s", picture[at : at + 8])
            data = picture[at + 8 : at + 8 + size]
            (checked,) = struct.unpack(">I", picture[at + 8 + size : at + 12 + size])
            assert checked == zlib.crc32(kind + data)
            found[kind] = found.get(kind, b"") + data
            at += 12 + size
        return found

    was, now = chunks(given), chunks(made)
    for picture in (was, now):
        picture[b"IDAT"] = zlib.decompress(picture[b"IDAT"])
    assert list(now.items()) == list(was.items())
    assert len(made) < 0.6 * len(given)


def wrong(_rows: object, *, narrow: bool) -> Spec:
    return {"mark": "pint", "data": {"name": "rows"}, "height": narrow}


def test_what_cannot_be_drawn_is_one_line_that_names_the_chart() -> None:
    with pytest.raises(SiteError, match="chart 'strip' does not compile"):
        draw("strip", Chart(partial(wrong), ()))
    for address in ("javascript:alert(1)", "https://elsewhere.invalid/"):
        with pytest.raises(SiteError, match="chart 'strip' does not compile"):
            of_row(href=address)


def test_the_cache_gives_the_same_and_heals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    charts = {"a": Chart(POINTS, ROWS), "b": Chart(POINTS, ROWS[:5])}
    first = draw_many(charts, tmp_path)
    damaged, _ = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    damaged.write_bytes(damaged.read_bytes()[:-1])
    made: list[str] = []

    def counting(key: str, chart: Chart) -> Drawn:
        made.append(key)
        return draw(key, chart)

    monkeypatch.setattr(drawing, "draw", counting)
    for _ in range(2):
        assert draw_many(charts, tmp_path) == first
        assert len(made) == 1


@pytest.mark.parametrize(
    ("key", "other"),
    [
        ("a", Chart(POINTS, [{**ROWS[0], "value": 99.5}, *ROWS[1:]])),
        ("a", Chart(partial(POINTS, log=True), ROWS)),
        ("b", Chart(POINTS, ROWS)),
    ],
    ids=["a value", "an option", "another key"],
)
def test_what_decides_a_drawing_is_in_its_name(
    tmp_path: Path, key: str, other: Chart
) -> None:
    draw_many({"a": Chart(POINTS, ROWS)}, tmp_path)
    draw_many({key: other}, tmp_path)
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == 2


def picture(text: str, family: str) -> bytes:
    size = 'xmlns="http://www.w3.org/2000/svg" width="60" height="30"'
    svg = f'<svg {size}><text y="20" font-family="{family}">{text}</text></svg>'
    return bytes(converter().svg_to_png(svg))


def test_no_font_of_the_machine_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FONTCONFIG_FILE", "as it was")
    converter.cache_clear()
    converter()
    assert os.environ["FONTCONFIG_FILE"] == "as it was"
    # Most Linux machines have DejaVu; the converter does not know it.
    assert picture("Width", "DejaVu Sans") == picture("", "DejaVu Sans")
    liberation = picture("Width", "Liberation Sans")
    assert picture("Width", FONT) == liberation != picture("", "Liberation Sans")
