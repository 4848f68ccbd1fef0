"""The shapes that mappings name."""

from collections.abc import Mapping

from sparkpub.tools.shapes import llama_bench, llama_benchy, printed, trtllm_bench
from sparkpub.tools.shapes.base import ReportShape

SHAPES: Mapping[str | None, ReportShape] = {
    None: ReportShape(),
    "llama-bench": llama_bench.SHAPE,
    "llama-benchy": llama_benchy.SHAPE,
    "printed": printed.SHAPE,
    "trtllm-bench": trtllm_bench.SHAPE,
}
