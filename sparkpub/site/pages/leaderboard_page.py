"""What the leaderboard shows: the rows of `review.leaderboard` in words, with what they can be filtered by."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from sparkpub.record.metrics import Metric
from sparkpub.record.text import counted, listed
from sparkpub.review import leaderboard
from sparkpub.review.leaderboard import (
    Caveat,
    ColumnName,
    Group,
    Row,
    Section,
    Standings,
)
from sparkpub.review.statistics.describe import Description
from sparkpub.site.publication import Publication

ADDRESS = "leaderboard/"
NOT_STATED = "not stated"
_NUMBER = re.compile(r"\d+")
HEADINGS: Mapping[ColumnName, str] = {
    "generation": "Generation",
    "prompt": "Prompt",
    "ttft": "TTFT",
    "memory": "Memory",
    "efficiency": "Per joule",
}
"""What a column is called; its metric stands below."""
FIELDS: Mapping[str, str] = {
    "model": "Model",
    "weights": "Weights",
    "engine": "Engine",
    "machine": "Machine",
    "environment": "Environment",
    "tokens": "Tokens in → out",
    "flow": "Requests",
    "depth": "In context",
}
"""By which rows can be filtered: name in the address to the words of the form."""
_BATCHES = "Generated tokens divided by the time for prompt and generation together."
_CLIENT = "Generated tokens of all requests, divided by the time from the first request to the last answer."
TOOLS: Mapping[str, tuple[str, str]] = {
    "ctranslate2": ("CTranslate2 in batches", _BATCHES),
    "generate": ("Transformers in batches", _BATCHES),
    "llama-bench": (
        "llama-bench",
        "Prompt and generation are timed separately, so the generation rate excludes the prompt.",
    ),
    "llama-benchy": (
        "llama-benchy",
        "The generation rate begins at the first token, so it excludes the prompt.",
    ),
    "openai-endpoint": ("A client of a server", _CLIENT),
    "trtllm-bench throughput": ("trtllm-bench, throughput", _CLIENT),
    "vllm-bench serve": ("vLLM, server and client", _CLIENT),
}
"""Title of a tool, and what its rate counts."""


def standings(publication: Publication) -> Standings:
    """The leaderboard of everything that is published."""
    return leaderboard.standings(publication.results)


def context(found: Standings) -> dict[str, Any]:
    """What the template needs."""
    sections = [_section(section) for section in found.sections]
    rows = [row for section in sections for row in section["rows"]]
    reasons: dict[str, list[str]] = {}
    for (campaign, cell), reason in found.left_out.items():
        reasons.setdefault(reason, []).append(f"{campaign} {'/'.join(cell)}")
    return {
        "sections": sections,
        "rows": len(rows),
        "fields": _fields(rows),
        "sorts": _sorts(found.sections),
        "left_out": reasons,
    }


def _section(section: Section) -> dict[str, Any]:
    groups = [_group(section, group) for group in section.groups]
    title, note = TOOLS.get(section.tool, (section.tool, ""))
    return {
        "tool": section.tool,
        "title": title,
        "anchor": anchor(section),
        "note": note,
        "columns": [
            {
                "name": column.name,
                "heading": HEADINGS[column.name],
                "metric": column.metric,
            }
            for column in section.columns
        ],
        "groups": groups,
        "rows": [row for group in groups for row in group["rows"]],
    }


def anchor(section: Section) -> str:
    """Where on the page a tool stands."""
    return section.tool.replace(" ", "-")


def _group(section: Section, group: Group) -> dict[str, Any]:
    several = len({row.cell[2] for row in group.rows}) > 1
    load = {
        "tokens": group.load.lengths,
        "flow": group.load.flow,
        "depth": f"{group.load.depth:,}",
    }
    is_contest = len([row for row in group.rows if row.places]) > 1
    rows = []
    for row in group.rows:
        view = row_view(row, section, names_workload=several)
        view["fields"] = {**view["fields"], **load}
        if not is_contest:
            # Alone under its load a row is neither ahead nor behind.
            view["place"] = view["width"] = ""
        rows.append(view)
    return {
        "label": group.label,
        "load": load,
        "notes": [note for note in (group.apart, doubts(group.rows)) if note],
        "rows": rows,
    }


def doubts(rows: Iterable[Row]) -> str:
    """Why some of the rows have no place; empty where all have one."""
    doubted = [row for row in rows if row.doubts]
    if not doubted:
        return ""
    checks = listed(check for row in doubted for check in row.doubts)
    return f"{counted(len(doubted), 'row')} not ranked: errors change what the figures mean ({checks})."


def row_view(row: Row, section: Section, *, names_workload: bool) -> dict[str, Any]:
    """A row as the templates print it. `fields` are what it can be filtered by."""
    setup = row.setup
    model, environment, workload = row.cell
    fields = {
        "model": setup.model,
        "weights": setup.quantization or NOT_STATED,
        "engine": setup.engine or NOT_STATED,
        "machine": setup.machine or NOT_STATED,
        "environment": environment,
    }
    note = row.campaign
    if names_workload:
        note = f"{row.campaign}, {workload}"
    values = []
    for column in section.columns:
        values.append(
            _value(row.figures.get(column.metric.name), column.metric, column.name)
        )
    return {
        **fields,
        "place": place_text(row),
        "is_doubted": bool(row.doubts),
        "model_href": f"models/{model}/",
        "version": setup.engine_version,
        "note": note,
        "campaign": row.campaign,
        "values": values,
        "width": _width(row.share),
        "caveats": [_caveat(row, caveat) for caveat in row.caveats],
        "runs": counted(len(row.runs), "run"),
        "runs_href": _runs_href(row),
        "fields": fields,
    }


def place_text(row: Row) -> str:
    """`3`, `1–2` where intervals leave it open, `≈ 4` for a single run; empty without a place."""
    if row.places is None:
        return ""
    best, worst = row.places
    text = str(best)
    if worst > best:
        text = f"{best}–{worst}"
    if row.is_approximate:
        return f"≈ {text}"
    return text


def _value(
    figure: Description | None, metric: Metric, column: ColumnName
) -> dict[str, Any]:
    """A figure with half its interval; both empty where there is none."""
    if figure is None:
        return {"column": column, "text": "", "spread": ""}
    return {
        "column": column,
        "text": metric.format(figure.mean, unit=False),
        "spread": spread_text(figure, metric),
    }


def spread_text(figure: Description, metric: Metric) -> str:
    """`± 0.64`: half the 95 % interval; empty without one, and where it is finer than the digits shown."""
    if figure.ci95 is None:
        return ""
    low, high = figure.ci95
    half = metric.format((high - low) / 2, unit=False)
    if not half.strip("0."):
        return ""
    return f"± {half}"


def _width(share: float | None) -> str:
    """The length of a row's bar in per cent; empty without one."""
    if share is None:
        return ""
    return f"{100 * share:.3g}"


def _caveat(row: Row, caveat: Caveat) -> dict[str, str]:
    """A caveat with the place that says more; empty where that stands in the row."""
    href = f"review/#{row.campaign}"
    if caveat.kind == "excluded":
        href = f"review/#{row.campaign}-left-out"
    elif caveat.kind in ("imported", "random"):
        href = f"campaigns/{row.campaign}/"
    elif caveat.kind == "few":
        href = ""  # the link to the runs stands beside it
    text = caveat.text
    if caveat.kind == "error" and row.doubts:
        text = f"not ranked: {text}"
    return {
        "kind": caveat.kind,
        "text": text,
        "why": caveat.why,
        "href": href,
    }


def _runs_href(row: Row) -> str:
    """The page of the only run, else the list of runs, narrowed to the cell."""
    if len(row.runs) == 1:
        return f"runs/{row.runs[0]}/"
    model, environment, workload = row.cell
    query = urlencode(
        {
            "campaign": row.campaign,
            "model": model,
            "environment": environment,
            "workload": workload,
        }
    )
    return f"runs/?{query}#{row.campaign}"


def _fields(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The fields in which rows differ, each with its values: numbers by size, words in order of the alphabet."""
    rows = list(rows)
    fields = []
    for name, label in FIELDS.items():
        values = sorted({row["fields"][name] for row in rows}, key=_natural)
        if len(values) > 1:
            fields.append({"name": name, "label": label, "values": values})
    return fields


def _natural(text: str) -> tuple[bool, list[int], str]:
    """Texts that begin with a number by their numbers (`8 at once` before `16 at once`), then words."""
    begins_with_number = text[:1].isdigit()
    numbers = []
    if begins_with_number:
        numbers = [int(part) for part in _NUMBER.findall(text.replace(",", ""))]
    return not begins_with_number, numbers, text.lower()


def _sorts(sections: Sequence[Section]) -> list[dict[str, str]]:
    """What rows can be sorted by: each column that a section has, with the direction in which it is better."""
    found: dict[ColumnName, str] = {}
    for section in sections:
        for column in section.columns:
            found.setdefault(column.name, column.metric.direction)
    ordered = [name for name in HEADINGS if name in found]
    return [
        {"name": name, "label": HEADINGS[name], "direction": found[name]}
        for name in ordered
    ]
