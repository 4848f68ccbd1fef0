"""Other people's results that sparkpub reads. Adding a format = a module here, a line below, a fixture in tests."""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from sparkpub.collect.importers import (
    aiperf,
    benchmark_spark,
    guidellm,
    llama_bench,
    llama_benchy,
    sglang,
    table,
    trtllm_bench,
    vllm_bench,
)
from sparkpub.collect.importers.base import Draft, Given, Importer
from sparkpub.collect.importers.writing import Outcome, write
from sparkpub.record.errors import ImportFormatError, UsageError
from sparkpub.record.record import Key

IMPORTERS: dict[str, Importer] = {
    "aiperf": aiperf.read,
    "benchmark-spark": benchmark_spark.read,
    "guidellm": guidellm.read,
    "llama-bench": llama_bench.read,
    "llama-benchy": llama_benchy.read,
    "sglang": sglang.read,
    "table": table.read,
    "trtllm-bench": trtllm_bench.read,
    "vllm-bench": vllm_bench.read,
}


def import_results(
    kind: str,
    path: Path,
    data: Path,
    given: Given,
    *,
    originals: bool = True,
    preview: bool = False,
) -> Outcome:
    """Read everything of one format under `path` into a campaign; with `preview` nothing is written.

    Raises ImportFormatError where there is nothing.
    """
    try:
        TypeAdapter(Key).validate_python(given.campaign)
    except ValidationError:
        raise UsageError(
            f"{given.campaign!r} is no name of a campaign",
            where="--campaign",
            remedy="use a-z, 0-9, dot and hyphen",
        ) from None
    if given.mapping is not None and kind != "table":
        raise UsageError(
            f"{kind} has a format of its own and needs no mapping",
            where="--mapping",
            remedy="leave it out, or import the file as a table",
        )
    if given.matrix is not None and given.matrix.campaign != given.campaign:
        raise UsageError(
            f"the matrix declares campaign {given.matrix.campaign!r}",
            where="--campaign",
            remedy="give the same name",
        )
    found = list(IMPORTERS[kind](path, given))
    if not any(isinstance(item, Draft) or item.refused for item in found):
        raise ImportFormatError(
            f"nothing of {kind} in it",
            where=str(path),
            remedy="give what the tool wrote",
        )
    return write(found, data, given, originals=originals, preview=preview)
