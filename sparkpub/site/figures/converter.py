"""vl-convert, which compiles Vega-Lite and draws Vega: set up once in a process."""

import functools
import os
import re
import struct
import zlib
from importlib import metadata
from pathlib import Path
from types import ModuleType

VEGA_LITE = "6.4"
VERSION = metadata.version("vl-convert-python")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FONTS = Path(__file__).parent / "fonts.conf"
_PNG = b"\x89PNG\r\n\x1a\n"
LEVEL = 6
"""Of the compression of pictures. The highest takes four times as long, and saves 3 %."""


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
    """A drawing as PNG."""
    return denser(bytes(converter().svg_to_png(printable(svg), scale=scale)))


def denser(picture: bytes) -> bytes:
    """The same PNG compressed anew: the converter saves time there, and files come four times as large.

    A PNG is a signature and chunks: length, name, content and CRC-32 (PNG specification, 5.3). Its pixels are one zlib
    stream in the `IDAT` chunks.
    """
    before, pixels, after = b"", b"", b""
    start = len(_PNG)
    while start < len(picture):
        length, name = struct.unpack_from(">I4s", picture, start)
        chunk = picture[start : start + length + 12]
        if name == b"IDAT":
            pixels += chunk[8:-4]
        elif pixels:
            after += chunk
        else:
            before += chunk
        start += len(chunk)
    packed = b"IDAT" + zlib.compress(zlib.decompress(pixels), level=LEVEL)
    ends = struct.pack(">I", len(packed) - 4), struct.pack(">I", zlib.crc32(packed))
    return _PNG + before + ends[0] + packed + ends[1] + after


def printable(text: str) -> str:
    """Text without the characters that XML has no way to write: they would end the converter, and the process."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
