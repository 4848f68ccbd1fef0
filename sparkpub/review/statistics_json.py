"""The statistics as the JSON document of `sparkpub stats --json`.

The rows of 10,000 runs are 130 MB of text. A campaign's part of each section is kept as text in the campaign's memory
and put together with the others: what did not change is not parsed, computed or spelled again.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparkpub.review.dataset import Dataset
from sparkpub.review.frame import Frame
from sparkpub.review.summary import (
    TABLES,
    Include,
    Statistics,
    chosen_frames,
    heading,
    row_document,
    statistics,
    statistics_of,
)

_KEPT = "statistics as JSON"
_CRITERIA = ("variation", "power", "repeatability", "completeness")
"""Each kind of criterion is a section of its own: the document has one kind of all campaigns before the next."""
_SECTIONS = (*TABLES[:-1], *_CRITERIA)
_LIST = "rows"
_BEFORE, _AFTER = f'{{\n "{_LIST}": [', "\n ]\n}"
"""What stands around the rows in a document that holds nothing else."""

Texts = Mapping[str, str]
"""Section to its rows as text, without the brackets of the list; empty where there are none."""


def document(
    dataset: Dataset,
    frames: Mapping[str, Frame],
    *,
    include: Include = "counted",
    campaign: str | None = None,
    against: str | None = None,
) -> Iterator[str]:
    """The document in pieces; what is asked for and raised: see `summary.statistics`."""
    if against is not None:
        found = statistics(
            dataset, frames, include=include, campaign=campaign, against=against
        )
        return of_statistics(found)
    chosen = chosen_frames(dataset, frames, campaign, None)
    excluded: dict[str, str] = {}
    if include != "all":
        for frame in chosen:
            excluded |= frame.excluded
    texts = [texts_of_campaign(frame, include) for frame in chosen]
    return _joined(heading(include, excluded), texts)


def of_statistics(found: Statistics) -> Iterator[str]:
    """The document of statistics that are at hand, in pieces."""
    return _joined(heading(found.include, found.excluded), [_texts(found)])


def texts_of_campaign(frame: Frame, include: Include = "counted") -> Texts:
    """The sections of one campaign, from its memory where they are known."""
    memory = frame.campaign.memory
    what = (_KEPT, include, *sorted(frame.out.items()))
    known = {name: memory.data((*what, name)) for name in _SECTIONS}
    texts = {name: data.decode() for name, data in known.items() if data is not None}
    if len(texts) == len(_SECTIONS):
        return texts
    texts = _texts(statistics_of(frame, include))
    for name, text in texts.items():
        memory.keep_data((*what, name), text.encode())
    return texts


def _texts(found: Statistics) -> dict[str, str]:
    """The sections of statistics as text."""
    tables = {name: getattr(found, name) for name in TABLES[:-1]}
    criteria = dict(zip(_CRITERIA, found.criteria_by_kind, strict=True))
    return {name: _text(rows) for name, rows in (tables | criteria).items()}


def _text(rows: Sequence[Any]) -> str:
    if not rows:
        return ""
    text = _spelled({_LIST: [row_document(row) for row in rows]})
    return text.removeprefix(_BEFORE).removesuffix(_AFTER)


def _spelled(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)


def _joined(head: Mapping[str, Any], texts: Sequence[Texts]) -> Iterator[str]:
    """The document: what is said first, then each table with the rows of all campaigns."""
    yield _spelled(head).removesuffix("\n}")
    for table in TABLES:
        sections = _CRITERIA if table == TABLES[-1] else (table,)
        yield f',\n "{table}": ['
        started = False
        for section in sections:
            for text in filter(None, (found[section] for found in texts)):
                if started:
                    yield ","
                yield text
                started = True
        yield "\n ]" if started else "]"
    yield "\n}\n"
