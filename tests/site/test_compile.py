"""Charts at build time: drawings that need no script, no data twice, no trust in what rows say."""

import os
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sparkpub.record.errors import SiteError
from sparkpub.site.cache import Cache
from sparkpub.site.content import ROOT
from sparkpub.site.figures import compile as compiling
from sparkpub.site.figures import drawings, telemetry
from sparkpub.site.figures.compile import Chart, Job
from sparkpub.site.figures.converter import converter, png
from sparkpub.site.figures.coverage import GLYPHS
from sparkpub.site.figures.drawings import POOL_FROM, Drawings
from sparkpub.site.figures.output import FONT, image, standalone

ROWS = [
    {
        "run": f"r{i}",
        "environment": "native" if i % 2 else "container",
        "value": 10 + i * 0.37,
        "href": f"runs/r{i}/",
    }
    for i in range(12)
]
SPEC = {
    "data": {"name": "runs"},
    "width": 640,
    "mark": {"type": "point", "clip": True},
    "encoding": {
        "x": {"field": "value", "type": "quantitative"},
        "color": {
            "field": "environment",
            "type": "nominal",
            "scale": {"range": ["var(--sp-c1)", "var(--sp-c2)"]},
        },
        "href": {"field": "href", "type": "nominal"},
    },
    "config": {"background": None, "font": FONT, "aria": False},
}


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others take seconds to start, twice as many as all drawings here; the test of bytes has them."""
    monkeypatch.setattr(drawings, "_CORES", 1)


def specification(*changes: tuple[str, object]) -> dict[str, object]:
    return {**SPEC, **dict(changes)}


def chart(**changes: object) -> Chart:
    return Chart(specification, tuple(changes.items()))


def compiled(
    rows: list[dict[str, object]] = ROWS, **changes: object
) -> compiling.Compiled:  # type: ignore[type-arg]
    return compiling.compile_chart(Job("strip", chart(**changes), {"runs": rows}))


def parsed(svg: str) -> ElementTree.Element:
    """A drawing as a page's parser would see it: the page declares the namespace of links."""
    return ElementTree.fromstring(
        svg.replace("<svg ", '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ', 1)
    )


def links(svg: str) -> list[str]:
    return re.findall(r'href="([^"]*)"', svg)


def compile_many(jobs: list[Job], cache: Path) -> list[compiling.Compiled]:
    """As a build does it: all wanted, then all there."""
    with Drawings(Cache(cache)) as wanted:
        for job in jobs:
            wanted.want(job)
        found = wanted.finished()
    return [found[job.key] for job in jobs]


def width(svg: str) -> float:
    return float(parsed(svg).attrib["viewBox"].split()[2])


def test_drawings_have_two_widths_and_variables_for_colours() -> None:
    chart = compiled()
    assert width(chart.svg_wide) == compiling.WIDE
    assert width(chart.svg_narrow) == compiling.NARROW
    assert "var(--sp-c1)" in chart.svg_wide
    assert "var(--sp-c2)" in chart.svg_narrow


def test_every_point_is_a_link_into_the_site_that_the_keyboard_skips() -> None:
    svg = compiled().svg_wide
    assert sorted(links(svg)) == sorted(f"{ROOT}{row['href']}" for row in ROWS)
    assert svg.count('tabindex="-1"') == len(ROWS)


@pytest.mark.parametrize(
    "address", ["//elsewhere.invalid/", 'x" onload="alert(1)', "/etc", "..//x"]
)
def test_a_row_cannot_lead_out_of_the_site(address: str) -> None:
    svg = compiled([{**ROWS[0], "href": address}]).svg_wide
    assert links(svg) == []
    assert not any("onload" in element.attrib for element in parsed(svg).iter())


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "https://elsewhere.invalid/"]
)
def test_a_row_with_an_address_elsewhere_stops_the_build(address: str) -> None:
    with pytest.raises(SiteError, match="chart 'strip' does not compile"):
        compiled([{**ROWS[0], "href": address}])


def test_text_of_a_row_stays_text() -> None:
    name = "<script>alert(1)</script>"
    svg = compiled([{**ROWS[0], "environment": name}]).svg_wide
    assert "<script" not in svg
    assert name in "".join(parsed(svg).itertext())


@pytest.mark.parametrize("text", ["a\x00b", "a\x1bb", "a\ud800b", "a\ufffeb"])
def test_characters_that_cannot_be_drawn_are_replaced(text: str) -> None:
    """The converter would end the whole process."""
    svg = compiled([{**ROWS[0], "environment": text}]).svg_wide
    assert "a\N{REPLACEMENT CHARACTER}b" in "".join(parsed(svg).itertext())


def test_a_text_of_a_row_is_cut_to_what_can_be_drawn() -> None:
    svg = compiled([{**ROWS[0], "environment": "x" * 100_000}]).svg_wide
    assert len(svg) < 10_000


def test_nothing_that_a_reader_sees_is_lost() -> None:
    svg = compiled().svg_wide
    words = set(parsed(svg).itertext())
    assert {"value", "environment", "native", "container"} <= words
    assert len(re.findall(r"<path", svg)) >= len(ROWS) + 2  # points, grid, domain


def test_compiled_vega_holds_no_rows() -> None:
    assert "r3" not in compiled().vega_json
    assert '"name":"runs"' in compiled().vega_json


def test_ids_of_two_charts_differ() -> None:
    first, second = (
        compiling.compile_chart(Job(key, chart(), {"runs": ROWS})) for key in "ab"
    )
    ids = [
        re.findall(r'id="([^"]+)"', svg)
        for svg in (first.svg_wide, first.svg_narrow, second.svg_wide)
    ]
    assert all(ids)
    assert len({name for names in ids for name in names}) == sum(
        len(set(names)) for names in ids
    )
    assert set(re.findall(r"url\(#([^)]+)\)", first.svg_wide)) <= set(ids[0])


@pytest.mark.parametrize("largest", [1.0, 2000.0, 150_000.0])
def test_panels_fit_the_page_and_the_phone_whatever_their_axes_say(
    largest: float,
) -> None:
    signals = (("SM clock", "MHz"), ("GPU power", "W"))
    samples = [
        {"signal": label, "t": t, "value": largest * t / 9}
        for label, _ in signals
        for t in range(10)
    ]
    drawn = compiling.compile_chart(
        Job(
            "panels",
            Chart(telemetry.draw, (signals, ()), phone=(compiling.NARROW,)),
            {"samples": samples, "phases": []},
        )
    )
    assert width(drawn.svg_wide) == pytest.approx(compiling.WIDE, rel=0.03)
    assert width(drawn.svg_narrow) == pytest.approx(compiling.NARROW, rel=0.03)


def test_a_chart_of_its_own_for_the_phone() -> None:
    phone = (("height", 411),)
    drawn = compiling.compile_chart(
        Job("x", Chart(specification, phone=phone), {"runs": ROWS})
    )
    assert '"height":411' in drawn.vega_json_narrow
    assert '"height":411' not in drawn.vega_json


def test_images_have_the_colours_of_both_modes_and_no_links() -> None:
    style, drawing = image(compiled().svg_narrow).split("</style>")
    parsed(style + "</style>" + drawing)
    light, dark = style.split("@media (prefers-color-scheme:dark)")
    assert "--sp-c1:#005fb8" in light  # as in sparkpub.css
    assert "--sp-c1:#69b3ff" in dark
    assert set(re.findall(r"--sp-\w+", drawing)) == set(re.findall(r"--sp-\w+", dark))
    assert "href" not in drawing


def test_files_have_real_colours_and_no_links() -> None:
    svg = standalone(compiled().svg_wide)
    parsed(svg)
    assert "var(" not in svg
    assert "href" not in svg
    assert png(svg).startswith(b"\x89PNG\r\n")


def test_a_wrong_chart_is_one_line_that_names_it() -> None:
    with pytest.raises(SiteError, match="chart 'strip' does not compile"):
        compiled(mark="pint")


def test_cache_gives_the_same_and_heals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [Job("a", chart(), {"runs": ROWS}), Job("b", chart(), {"runs": ROWS[:5]})]
    first = compile_many(jobs, tmp_path)
    assert [drawn.key for drawn in first] == ["a", "b"]
    damaged, _ = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    damaged.write_bytes(damaged.read_bytes()[:-1])
    made: list[str] = []
    real = drawings.compile_chart

    def counting(job: Job) -> compiling.Compiled:
        made.append(job.key)
        return real(job)

    monkeypatch.setattr(drawings, "compile_chart", counting)
    assert compile_many(jobs, tmp_path) == first
    assert len(made) == 1
    assert compile_many(jobs, tmp_path) == first
    assert len(made) == 1


def test_drawings_beyond_those_held_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [Job(key, chart(), {"runs": ROWS}) for key in ("a", "b")]
    whole = compile_many(jobs, tmp_path)
    monkeypatch.setattr(drawings, "MOST_HELD", 1)
    with drawings.Drawings(Cache(tmp_path)) as making:
        for job in jobs:
            making.want(job)
        found = making.finished()
    assert list(found) == ["a", "b"]
    assert len(found) == 2
    assert [found["a"], found["b"]] == whole
    shutil.rmtree(tmp_path)
    assert found["a"] == whole[0]
    with pytest.raises(SiteError, match=r"chart 'b' was deleted from the cache.*again"):
        found["b"]


def test_drawings_that_the_cache_cannot_keep_are_all_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawings, "MOST_HELD", 0)
    (tmp_path / "file").write_text("no folder")
    jobs = [Job(key, chart(), {"runs": ROWS}) for key in ("a", "b")]
    with drawings.Drawings(Cache(tmp_path / "file" / "cache")) as making:
        for job in jobs:
            making.want(job)
        found = making.finished()
    assert [drawn.key for drawn in found.values()] == ["a", "b"]


BARS = '<g fill="red"><path d="M0,0h2v9h-2Z"/><path d="M2.5,0h2v9h-2Z"/>'
"""Half a pixel apart, by rounding."""


@pytest.mark.parametrize(
    ("bars", "path"),
    [
        (f"{BARS}</g>", "M0,0h4.5v9h-4.5Z"),
        (BARS + '<path d="M4.5,0h3v9h-3Z"/></g>', "M0,0h7.5v9h-7.5Z"),
        (BARS + '<path d="M5.5,0h2v9h-2Z"/></g>', "M0,0h4.5v9h-4.5ZM5.5,0h2v9h-2Z"),
        (BARS + '<path d="M4.5,9h2v9h-2Z"/></g>', "M0,0h4.5v9h-4.5ZM4.5,9h2v9h-2Z"),
        (BARS + '<path d="M4.5,0h2v8h-2Z"/></g>', "M0,0h4.5v9h-4.5ZM4.5,0h2v8h-2Z"),
        (BARS + '<path d="M3,0h1v9h-1Z"/></g>', "M0,0h4.5v9h-4.5Z"),
    ],
    ids=["two", "three", "a gap", "another row", "another height", "within"],
)
def test_bars_of_one_colour_that_follow_each_other_are_one(
    bars: str, path: str
) -> None:
    drawing = image(f'<svg width="9" height="9">{bars}</svg>')
    assert f'<g fill="red"><path d="{path}"/></g>' in drawing


def test_bars_with_a_line_around_them_stay_apart() -> None:
    bars = BARS.replace('fill="red"', 'fill="red" stroke="white"')
    assert bars in image(f'<svg width="9" height="9">{bars}</g></svg>')


def test_a_picture_is_compressed_better_and_shows_the_same() -> None:
    """The pixels are one zlib stream; each chunk ends with the CRC-32 of its name and content (PNG, 5.3)."""
    size = 'xmlns="http://www.w3.org/2000/svg" width="300" height="200"'
    svg = f'<svg {size}><circle cx="50" cy="50" r="40" fill="teal"/></svg>'
    before = bytes(converter().svg_to_png(svg))
    after = png(svg)
    assert len(after) < len(before)
    one, other = chunks(before), chunks(after)
    assert list(one) == list(other)
    for name, content in one.items():
        if name == b"IDAT":
            assert zlib.decompress(other[name]) == zlib.decompress(content)
        else:
            assert other[name] == content


def chunks(picture: bytes) -> dict[bytes, bytes]:
    """Name to content of the chunks of a PNG, those of one name put together."""
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    found: dict[bytes, bytes] = {}
    place = 8
    while place < len(picture):
        length = int.from_bytes(picture[place : place + 4], "big")
        name = picture[place + 4 : place + 8]
        content = picture[place + 8 : place + 8 + length]
        sum_ = picture[place + 8 + length : place + 12 + length]
        assert int.from_bytes(sum_, "big") == zlib.crc32(name + content)
        found[name] = found.get(name, b"") + content
        place += 12 + length
    return found


@pytest.mark.parametrize(
    "other",
    [
        Job("a", chart(), {"runs": [{**ROWS[0], "value": 99.5}, *ROWS[1:]]}),
        Job("a", chart(height=77), {"runs": ROWS}),
        Job("a", Chart(specification, phone=(("height", 77),)), {"runs": ROWS}),
        Job("b", chart(), {"runs": ROWS}),
    ],
    ids=["rows", "chart", "narrow chart", "key"],
)
def test_what_decides_a_drawing_is_in_its_name(tmp_path: Path, other: Job) -> None:
    (one,) = compile_many([Job("a", chart(), {"runs": ROWS})], tmp_path)
    (two,) = compile_many([other], tmp_path)
    assert one != two


PACKAGE = Path(compiling.__file__).parents[3]
PROGRAM = """
import hashlib, os, sys
from pathlib import Path
if sys.argv[4] == "alone":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from sparkpub.site.figures.compile import Job
sys.path.insert(0, sys.argv[2])
from test_compile import ROWS, chart, compile_many
if __name__ == "__main__":
    jobs = [Job(f"k{i}", chart(), {"runs": ROWS[: i + 1]}) for i in range(int(sys.argv[3]))]
    charts = compile_many(jobs, Path(sys.argv[1]))
    print(hashlib.sha256("".join(c.svg_wide + c.vega_json for c in charts[:3]).encode()).hexdigest())
"""


@pytest.mark.parametrize("count", [3, pytest.param(POOL_FROM, marks=pytest.mark.slow)])
def test_bytes_do_not_depend_on_hash_seed_or_processes(
    tmp_path: Path, count: int
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    here = str(Path(__file__).parent)
    digests = {
        subprocess.run(
            [
                sys.executable,
                str(program),
                str(tmp_path / seed),
                here,
                str(count if seed == "1" else 3),
                "together" if seed == "1" else "alone",
            ],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(PACKAGE)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


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
    assert (
        picture("Width", FONT)
        == picture("Width", "Liberation Sans")
        != picture("", "Liberation Sans")
    )


@pytest.mark.parametrize("glyph", GLYPHS.values())
def test_the_shipped_font_has_every_sign_of_the_coverage_chart(glyph: str) -> None:
    missing = "\N{SNOWMAN}"
    assert picture(glyph, FONT) != picture(missing, FONT)
