"""The tidy table of a data folder, recalled in one piece where no file of any campaign changed.

Put together from what is kept of each campaign, the table of a hundred thousand runs takes several seconds, of which
most go into what a table does not need: findings, campaigns, lists of runs. So the whole of it is kept as well, under
the digests of all campaigns together.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sparkpub.record.store import campaign_folders
from sparkpub.review import cache as caching
from sparkpub.review.memory import Keeper, Memory, state_of

if TYPE_CHECKING:
    import pyarrow as pa

    from sparkpub.review.dataset import Dataset

_WHAT = "tidy table"
_COMPRESSION = "lz4"
"""A thirteenth of the room, and less to read and to verify than without; three times as fast to read as with zstd."""


def tidy_table(data: Path) -> "pa.Table":
    """The rows of every campaign of a data folder, as `export.table` has them.

    Raises RecordError with all damage.
    """
    keeper = Keeper.of_user()
    known = _recalled(data, keeper)
    if known is not None:
        return known
    # Only who makes the table waits for these.
    from sparkpub.review import export  # noqa: PLC0415
    from sparkpub.review.checks import review  # noqa: PLC0415
    from sparkpub.review.workers import load_known  # noqa: PLC0415

    dataset = load_known(data, wanted="table")
    # In one piece, as it is recalled: what is written of it shall not depend on how it came about.
    made = _narrowed(export.table(review(dataset)).combine_chunks())
    _keep(made, dataset, keeper)
    return made


def _narrowed(table: "pa.Table") -> "pa.Table":
    """The table with the places in each list of distinct texts as small as the list allows: half of the memory."""
    import pyarrow as pa  # noqa: PLC0415

    for number, field in enumerate(table.schema):
        if not pa.types.is_dictionary(field.type):
            continue
        chunks = []
        for chunk in table.column(number).chunks:
            places = chunk.indices.cast(_places(len(chunk.dictionary)))
            chunks.append(pa.DictionaryArray.from_arrays(places, chunk.dictionary))
        if chunks:
            table = table.set_column(number, field.name, pa.chunked_array(chunks))
    return table


def _places(texts: int) -> "pa.DataType":
    """The smallest type that can count so many."""
    import pyarrow as pa  # noqa: PLC0415

    for kind in (pa.int8(), pa.int16()):
        if texts <= 1 << (kind.bit_width - 1):
            return kind
    return pa.int32()


def _recalled(data: Path, keeper: Keeper) -> "pa.Table | None":
    """The table that is kept of these files; None where there is none, or where a file is not known as it is now."""
    import pyarrow as pa  # noqa: PLC0415 - only tables shall wait for it

    files: list[str] = []
    for folder in campaign_folders(data):
        known = Memory(folder, state_of(folder), keeper).known_files()
        if known is None:
            return None
        files.append(known)
    kept = keeper.cache.get(_key(files, keeper))
    if kept is None:
        return None
    # Threads hinder each other where each asks for memory, and Arrow's own allocator takes half a second for 200 MB.
    options = pa.ipc.IpcReadOptions(use_threads=False)
    pool = pa.system_memory_pool()
    stream = pa.ipc.open_stream(kept, options=options, memory_pool=pool)
    return stream.read_all()


def _keep(made: "pa.Table", dataset: "Dataset", keeper: Keeper) -> None:
    """Keep the table, unless a file changed since it was read or may change unseen."""
    import pyarrow as pa  # noqa: PLC0415

    files: list[str] = []
    for campaign in dataset.campaigns.values():
        if campaign.memory.files is None or not campaign.memory.settled():
            return
        files.append(campaign.memory.files)
    stream = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=_COMPRESSION)
    with pa.ipc.new_stream(stream, made.schema, options=options) as writer:
        writer.write_table(made)
    keeper.cache.put(_key(files, keeper), stream.getvalue().to_pybytes())


def _key(files: Sequence[str], keeper: Keeper) -> str:
    """The table's name in the cache: the campaigns in the order of their rows, the program, and who wrote it."""
    import pyarrow as pa  # noqa: PLC0415

    return caching.key(_WHAT, keeper.program, pa.__version__, files)
