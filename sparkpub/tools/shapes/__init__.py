"""The shapes that mappings name."""

from collections.abc import Mapping

from sparkpub.tools import forms
from sparkpub.tools.shapes import (
    benchmark_spark,
    llama_bench,
    llama_benchy,
    printed,
    trtllm_bench,
)
from sparkpub.tools.shapes.base import ReportShape, of_table

SHAPES: Mapping[str | None, ReportShape] = {
    None: ReportShape(),
    "benchmark-spark": benchmark_spark.SHAPE,
    "llama-bench": llama_bench.SHAPE,
    "llama-benchy": llama_benchy.SHAPE,
    "printed": printed.SHAPE,
    "table": ReportShape(of_table, forms.TABLES),
    "trtllm-bench": trtllm_bench.SHAPE,
}
