"""The table of bandwidths: what one user gets of the memory's bandwidth.

To generate a token for a single request an engine reads every weight that takes part in it, once. So tokens per second
times the bytes of these weights is the traffic that a throughput needs, and no memory gives more than its bandwidth.
How many weights take part is what the publisher says in the model's name (`35B-A3B`: three billion) or beside it. That
is a nominal number, and the traffic a nominal one: caches, activations and parts in another format are not in it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from sparkpub.record.record import Record
from sparkpub.review.reviewed import ReviewedCampaign
from sparkpub.review.setup import setup_of
from sparkpub.review.tables.column import Column, Columns, TableRow, rows, table_of
from sparkpub.review.traffic import bandwidth, stated

OUTPUT = "output_throughput_tok_s"
COLUMNS: Columns = {
    "campaign": Column("text", "The campaign"),
    "model": Column("text", "Key of the model"),
    "environment": Column("text", "Key of the environment"),
    "workload": Column("text", "Key of a workload of one request at once"),
    "weights": Column("text", "Format of the weights"),
    "active_parameters": Column("number", "Parameters that take part in a token, as the publisher says"),
    "bytes_per_token": Column("number", "Their bytes in that format"),
    "output_throughput_tok_s": Column("number", "Output throughput"),
    "milliseconds_per_token": Column("number", "Its inverse"),
    "bandwidth_bytes_s": Column("number", "Nominal bandwidth of the machine's memory"),
    "share_percent": Column("number", "Of it, what the throughput needs"),
}  # fmt: skip


def bandwidths(
    cells: pd.DataFrame, campaigns: Mapping[str, ReviewedCampaign]
) -> pd.DataFrame:
    """A row per cell of one request at once whose model, weights and machine are known. Speculative decoding, which
    makes several tokens of one reading, is left out."""
    wanted = cells[cells["metric"] == OUTPUT]
    found: list[dict[str, Any]] = []
    for row in rows(wanted):
        record = campaigns[row.campaign].counted[row.cell][0].record
        found += _of_cell(row, record)
    return table_of(COLUMNS, found)


def _of_cell(row: TableRow, record: Record) -> Iterator[dict[str, Any]]:
    size, memory = stated(record), bandwidth(record)
    if size is None or memory is None or not row.mean:
        return
    needed = row.mean * size.bytes_per_token
    yield {
        "campaign": row.campaign,
        "model": row.model,
        "environment": row.environment,
        "workload": row.workload,
        "weights": setup_of(record).quantization,
        "active_parameters": size.parameters,
        "bytes_per_token": size.bytes_per_token,
        "output_throughput_tok_s": row.mean,
        "milliseconds_per_token": 1000 / row.mean,
        "bandwidth_bytes_s": memory,
        "share_percent": 100 * needed / memory,
    }
