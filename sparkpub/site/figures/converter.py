"""vl-convert, which compiles Vega-Lite and draws Vega: set up once in a process."""

import functools
import os
import re
import zlib
from importlib import metadata
from pathlib import Path
from types import ModuleType

VEGA_LITE = "6.4"
VERSION = metadata.version("vl-convert-python")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_FONTS = Path(__file__).parent / "fonts.conf"


@functools.cache
def converter() -> ModuleType:
    """vl-convert, held to the fonts that it ships.

    So a drawing has the same measures on every machine; and text is measured eight times as fast as with a font of
    the system, whose file the converter opens anew for every few letters.
    """
    import vl_convert  # noqa: PLC0415 - large to load, and most builds draw nothing new

    before = os.environ.get("FONTCONFIG_FILE")
    os.environ["FONTCONFIG_FILE"] = str(_FONTS)
    try:  # fonts are looked for once, at the first text
        vl_convert.svg_to_png(
            '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><text>.</text></svg>'
        )
    finally:
        del os.environ["FONTCONFIG_FILE"]
        if before is not None:
            os.environ["FONTCONFIG_FILE"] = before
    return vl_convert


def png(svg: str, *, scale: float = 1.0) -> bytes:
    """A drawing as PNG: what the converter gives, compressed again, since it takes three times the room that it
    needs."""
    made = bytes(converter().svg_to_png(printable(svg), scale=scale))
    chunks, at = [], len(_SIGNATURE)
    while at < len(made):
        end = at + 12 + int.from_bytes(made[at : at + 4])
        chunks.append((made[at + 4 : at + 8], made[at + 8 : end - 4]))
        at = end
    pixels = zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT"))
    *others, last = (chunk for chunk in chunks if chunk[0] != b"IDAT")
    return _SIGNATURE + b"".join(
        len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4)
        for kind, data in (*others, (b"IDAT", zlib.compress(pixels)), last)
    )


def printable(text: str) -> str:
    """Text without the characters that XML has no way to write: they would end the converter, and the process."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
