"""Chart specifications to what a page can show: compiled Vega, and drawings in two widths."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import vl_convert

from sparkpub.charts import theme

VEGA_LITE = "6.4"
Rows = Sequence[Mapping[str, Any]]
Data = Mapping[str, Rows]


@dataclass(frozen=True)
class Compiled:
    """A chart ready for pages: `svg_*` need no script; `vega*` need the data that the chart names."""

    key: str
    vega: str
    vega_narrow: str
    svg_wide: str
    svg_narrow: str

    @property
    def svg_file(self) -> str:
        """The wide drawing as a file of its own."""
        return theme.concrete(self.svg_wide)

    def png(self, scale: float = 2.0) -> bytes:
        """The wide drawing as PNG."""
        return bytes(vl_convert.svg_to_png(self.svg_file, scale=scale))


@dataclass(frozen=True)
class Job:
    """One chart to compile. `narrow` replaces it on phones where a change of width is not enough."""

    key: str
    chart: Any
    data: Data
    narrow: Any = None


def compile_many(jobs: Sequence[Job], cache: Path) -> list[Compiled]:
    """The jobs' charts, in order."""
    cache.mkdir(parents=True, exist_ok=True)
    return [_compiled(job) for job in jobs]


def _compiled(job: Job) -> Compiled:
    vegas, drawings = [], []
    for chart, width in ((job.chart, theme.WIDE), (job.narrow or job.chart, theme.NARROW)):
        sized = {**chart, "config": theme.CONFIG}
        if "vconcat" not in sized:
            sized |= {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
        vega = vl_convert.vegalite_to_vega(sized, vl_version=VEGA_LITE)
        filled = [{**d, "values": job.data[d["name"]]} if d["name"] in job.data else d for d in vega.get("data", [])]
        svg = vl_convert.vega_to_svg({**vega, "data": filled})
        vegas.append(json.dumps(vega, separators=(",", ":")))
        drawings.append(re.sub(r"</?a\b[^>]*>", "", svg))
    return Compiled(job.key, *vegas, *drawings)


# ruff: noqa: ARG001
def drawing(compiled: Compiled, *, root: str, specification: str = "", sources: Mapping[str, str] | None = None) -> str:
    """Both drawings as HTML; `specification` is the address of the compiled chart without suffix."""
    return (
        f'<div class="sp-chart" data-sp-chart="{root}{specification}">'
        f'<div class="sp-wide">{compiled.svg_wide}</div><div class="sp-narrow">{compiled.svg_narrow}</div></div>'
    )
