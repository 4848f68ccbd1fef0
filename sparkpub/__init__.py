"""sparkpub: measure LLM inference on a DGX Spark, review the runs, publish what survives."""

__version__ = "0.1.0"
