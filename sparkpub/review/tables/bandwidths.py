"""The table of bandwidths: what one user gets of the memory's bandwidth.

To generate a token for a single request an engine reads every weight that takes part in it, once. So tokens per second
times the bytes of these weights is the traffic that a throughput needs, and no memory gives more than its bandwidth.
The bytes are those of `physics.read_per_step`. Where the format leaves them open there is a row without a share.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from sparkpub.record.record import Record
from sparkpub.review.physics import (
    active_parameters,
    bandwidth,
    batch_of,
    read_per_step,
)
from sparkpub.review.reviewed import ReviewedCampaign
from sparkpub.review.setup import setup_of
from sparkpub.review.tables.column import (
    Columns,
    TableRow,
    columns,
    rows,
    shared,
    table,
)

OUTPUT = "output_throughput_tok_s"
COLUMNS: Columns = {
    **shared("campaign", "model", "environment", "workload"),
    **columns(
        "text",
        weights="Format of the weights",
    ),
    **columns(
        "number",
        bytes_per_token="Bytes of weights that a token reads",  # noqa: S106 - bytes
        expert_bytes_per_token="Of them those of routed experts",  # noqa: S106 - bytes
    ),
    **columns(
        "text",
        source="Who says how many; where nobody does, that they are not known for this format",
    ),
    **columns(
        "number",
        output_throughput_tok_s="Output throughput",
        milliseconds_per_token="Its inverse",  # noqa: S106 - a time
        bandwidth_bytes_s="Nominal bandwidth of the machine's memory",
        share_percent="Of it, what the throughput needs",
    ),
}
UNKNOWN = "not known for this format"


def bandwidths(
    cells: pd.DataFrame, campaigns: Mapping[str, ReviewedCampaign]
) -> pd.DataFrame:
    """A row per cell of one request at once on one machine that is known. Speculative decoding, which makes several
    tokens of one reading, is left out, and so are models of which nobody says how large they are."""
    wanted = cells[cells["metric"] == OUTPUT]
    found: list[dict[str, Any]] = []
    for row in rows(wanted):
        record = campaigns[row.campaign].counted[row.cell][0].record
        found += _of_cell(row, record)
    return table(COLUMNS, found)


def _of_cell(row: TableRow, record: Record) -> Iterator[dict[str, Any]]:
    memory, seen = bandwidth(record), record.observed
    is_one = batch_of(record) == 1 and (record.machine.count or 1) == 1
    if not is_one or memory is None or not row.mean or seen.speculative_decoding:
        return
    step = read_per_step(record, 1)
    if step is None:
        if active_parameters(record) is None:
            return
        known: dict[str, Any] = {"source": UNKNOWN}
    else:
        known = {
            "bytes_per_token": step.expected,
            "expert_bytes_per_token": step.experts,
            "source": step.source,
            "share_percent": 100 * row.mean * step.expected / memory,
        }
    measured = {
        "weights": setup_of(record).quantization,
        "output_throughput_tok_s": row.mean,
        "milliseconds_per_token": 1000 / row.mean,
        "bandwidth_bytes_s": memory,
    }
    yield row._asdict() | measured | known
