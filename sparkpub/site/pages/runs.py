"""What a reader sees of one run: a page that needs no scripting, and a file with the samples of its chart.

There are thousands of them. So MkDocs renders one shell, and each run is put into it as the site is written.
"""

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import NamedTuple

from pydantic_core import to_json

from sparkpub.record.metrics import Metric
from sparkpub.record.record import MetricValue, Record, metric_of
from sparkpub.record.store import Stored
from sparkpub.review.checks import Review
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.models import ModelName
from sparkpub.review.names import Names
from sparkpub.review.results import Results
from sparkpub.site import kept, workers
from sparkpub.site.cache import Cache, key
from sparkpub.site.content import (
    SHELL,
    File,
    Packed,
    Page,
    SiteOptions,
    data_of,
    fill,
    packed,
    placeholder,
    way_to_root,
)
from sparkpub.site.figures import telemetry
from sparkpub.site.figures.draw import Drawings
from sparkpub.site.figures.figure import FOLDER, Figure
from sparkpub.site.figures.telemetry import Trace
from sparkpub.site.pages import placing, templating
from sparkpub.site.pages.templating import markdown_text
from sparkpub.site.publication import (
    Publication,
    cell_label,
    one_of_each_check,
    run_file,
    run_page,
)

LOG_CHARACTERS = 3_400
TITLE = "sp-run-title"
"""Of the shell, in whose place each run has its own: no other text of a page is like it."""
_BODY = "run"
"""The key of the HTML of a run."""
_PLACE = re.compile(r"<div data-sp-run>.*?</div>", re.DOTALL)
_DRAWING = re.compile(r"(<svg\b[^>]*>).*</svg>", re.DOTALL)


class Standing(NamedTuple):
    """A metric of a run; `against_mean` is its deviation from the mean of the cell in per cent, None on a scale without
    a true zero, and where the run is not in the mean."""

    metric: Metric
    given: MetricValue
    against_mean: float | None = None


def begun(review: Review, options: SiteOptions, cache: Cache) -> Callable[[], Packed]:
    """What gives the pages of one's own runs, and the files of their charts, by address: of each campaign as kept, else
    made meanwhile by other processes."""
    names = Names(review.dataset)
    commits: dict[str, dict[str, str]] = {}
    for path, commit in options.commits.items():
        commits.setdefault(PurePath(path).parent.name, {})[path] = commit
    archives: list[bytes] = []
    made: list[tuple[str, Callable[[], bytes]]] = []
    for campaign in review.dataset.campaigns.values():
        if campaign.owner is not None:
            continue
        only = review.only(campaign.name)
        own = replace(options, commits=commits.get(campaign.folder.name, {}))
        of = kept.basis(only, names, only.campaigns)
        name = of and key("runs", of, own.repo_url, own.commits)
        known = kept.files(name, cache) if name else None
        if known is None:
            given = only, own, cache, names.models
            made.append((name, workers.begin(archive, *given)))
        else:
            archives.extend(known.archives)

    def finished() -> Packed:
        for name, result in reversed(made):
            pages = result()
            if name:
                cache.put(name, pages)
            archives.append(pages)
        return Packed(archives)

    return finished


def archive(
    review: Review,
    options: SiteOptions,
    cache: Cache,
    models: Mapping[str, ModelName],
) -> bytes:
    """The pages and files of a campaign's runs, packed. Of other campaigns only the names of `models` are known."""
    return packed(files(review, options, cache, models))


def files(
    review: Review,
    options: SiteOptions,
    cache: Cache,
    models: Mapping[str, ModelName],
) -> dict[str, File]:
    """The same as they are."""
    publication = Publication(Results(review), review, options)
    names = Names(review.dataset, models)
    drawings, figures = Drawings(cache), dict[str, Figure]()
    found: dict[str, File] = {}
    for stored in (run for each in publication.own_campaigns for run in each.runs):
        trace = telemetry.trace(stored)
        if trace is not None:
            drawings.want(trace.key, trace.chart)
            figures[stored.run_id] = telemetry.figure(stored, trace)
            found[run_file(stored)] = samples(stored, trace)
    # The browser draws the samples: of the axes only the size is there.
    axes = {}
    for drawn_as, drawn in drawings.finished().items():
        found[f"{FOLDER}/{drawn_as}.json"] = drawn.live.encode()
        wide, narrow = (
            _DRAWING.sub(r"\1</svg>", svg) for svg in (drawn.svg_wide, drawn.svg_narrow)
        )
        axes[drawn_as] = replace(drawn, svg_wide=wide, svg_narrow=narrow)
    charts = {
        run: placing.as_html(figure, axes[figure.drawn_as])
        for run, figure in figures.items()
    }
    for campaign in publication.own_campaigns:
        for index, stored in enumerate(campaign.runs):
            chart = charts.get(stored.run_id, "")
            found[run_page(stored)] = page(publication, names, campaign, index, chart)
    return found


def page(
    publication: Publication,
    names: Names,
    campaign: CampaignData,
    index: int,
    chart: str,
) -> Page:
    """The page of the campaign's run number `index`, with the HTML of its chart."""
    stored = campaign.runs[index]
    record, review = stored.record, publication.review
    files = publication.evidence[record.run_id]
    logs = [item for item in files if item.role == "log"]
    there = [log for log in logs if log.address]
    # The end of what a sweep of many runs printed says nothing of this one.
    own = [log.path for log in there if log.name.startswith(stored.path.stem)]
    leading = {metric.name for metric in publication.headlines(campaign)}
    by_rank = grouped(record.metrics, lambda name: name in leading)
    of_cell = review.by_cell.get((campaign.name, "/".join(record.cell)), ())
    shared = [one for one in of_cell if not one.runs and one.severity != "info"]
    text = templating.text(
        "run.html.j2",
        run=record,
        campaign=campaign,
        index=index,
        names=names,
        leading=[standing(publication, record, name) for name in by_rank.get(True, ())],
        others=[standing(publication, record, name) for name in by_rank.get(False, ())],
        files=files,
        findings=[
            *review.by_run.get(record.run_id, ()),
            *one_of_each_check(shared),
        ],
        reason=review.excluded.get(record.run_id),
        figure=chart,
        log=there[0] if there else None,
        lines=_last_lines(own[0]) if own else (),
    )
    label = cell_label(names, campaign, record.cell)
    title = f"{label}, iteration {record.iteration}"
    heading = f"# {markdown_text(title)} {{ #run }}"
    return Page(
        {"title": title, "hide": ["navigation"], "search": {"exclude": True}},
        f"{heading}\n\n<div data-sp-run>{placeholder(_BODY)}</div>\n",
        {_BODY: text},
    )


def standing(publication: Publication, record: Record, name: str) -> Standing:
    """A metric of a run beside the others of its cell."""
    given = record.metrics[name]
    metric, value = metric_of(name, given), given.value
    found = publication.results.cell_rows.where(
        campaign=record.campaign, cell=record.cell, metric=name
    )
    cell = next(iter(found), None)
    if value is None or cell is None or record.run_id not in cell.runs:
        return Standing(metric, given)
    if not cell.mean or metric.unit == "°C":
        return Standing(metric, given)
    return Standing(metric, given, 100 * (value - cell.mean) / cell.mean)


def _last_lines(log: Path) -> list[tuple[int, str]]:
    """The last lines of a log with their numbers, as many as fit. A real engine prints its whole configuration in a
    line or two: those are left to the file."""
    text = log.read_text(encoding="utf-8", errors="replace")
    lines, shown = text.splitlines(), text[-LOG_CHARACTERS:].splitlines()
    if len(text) > LOG_CHARACTERS:
        del shown[0]
    return list(enumerate(shown, len(lines) - len(shown) + 1))


def samples(stored: Stored, found: Trace) -> bytes:
    """A run's file: what its chart shows. A line of a signal is one row, with all its `x` and `value`."""
    rows: list[dict[str, object]] = [
        {
            "panel": panel,
            "x": [round(time, 2) for time, _ in points],
            "value": [round(value, 2) for _, value in points],
        }
        for panel, points in found.lines.items()
    ]
    for phase in stored.record.phases:
        start, end = round(phase.start_seconds, 2), round(phase.end_seconds, 2)
        shade = {"kind": "phase", "name": phase.name, "x": start, "end": end}
        rows += [{**shade, "panel": panel} for panel in found.lines]
    return to_json({"rows": rows})


def shell(site: Path) -> str:
    """The shell as the engine made it. Its own page is then one like others."""
    place = site / SHELL.removesuffix(".md") / "index.html"
    # A third of the theme's bars is white space, on each of thousands of pages.
    made = re.sub(r"\n\s+", "\n", place.read_text(encoding="utf-8"))
    place.write_text(made.replace(TITLE, "One run"), encoding="utf-8")
    return made


def write(site: Path, shell: str, files: Packed) -> None:
    """Write the pages of runs, put into the shell, and the files beside them; other processes take part."""
    begun = [workers.begin(_write, site, shell, part) for part in files.archives]
    for result in reversed(begun):
        result()


def _write(site: Path, shell: str, archive: bytes) -> None:
    for uri, file in Packed([archive]).items():
        place, data = placed(shell, uri, file)
        (site / place).parent.mkdir(parents=True, exist_ok=True)
        (site / place).write_bytes(data)


def placed(shell: str, uri: str, file: File) -> tuple[str, bytes]:
    """Where a page or file of a run is on the site, and what is there."""
    if isinstance(file, Page):
        text = in_shell(shell, uri, file)
        return f"{uri.removesuffix('.md')}/index.html", text.encode()
    return uri, data_of(file)


def in_shell(shell: str, uri: str, page: Page) -> str:
    """The HTML of the page of a run, which is as far from the root as the shell."""
    body = fill(page.html[_BODY], page.html, way_to_root(SHELL))
    whole = shell.replace(SHELL.replace(".md", "/"), uri.replace(".md", "/"))
    whole = whole.replace(TITLE, html.escape(page.meta["title"]))
    return _PLACE.sub(lambda _: f"<div data-sp-run>{body}</div>", whole, count=1)
