"""A dataset and what people wrote, in; a docs tree out. Pure and deterministic: no clock, no engine, no network.

    build(dataset, options)  ->  {address in the docs tree: Content}

Two adapters hand the tree to a site generator: the MkDocs plugin as virtual files, `sparkpub render` on disk.
"""

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from sparkpub.record.errors import SiteError
from sparkpub.review.checks import Review, review
from sparkpub.review.claims import facts, ledger
from sparkpub.review.dataset import Dataset
from sparkpub.review.summary import statistics
from sparkpub.site import proofreading
from sparkpub.site.browser import runtime
from sparkpub.site.content import Content, SiteOptions, block_key, placeholders
from sparkpub.site.figures.compile import Compiled, Drawings, image
from sparkpub.site.figures.drawn import specification
from sparkpub.site.figures.library import Library
from sparkpub.site.figures.rows import Rows, rows
from sparkpub.site.pages import blog, downloads
from sparkpub.site.pages.runs import RunPages
from sparkpub.site.pages.templating import Templates
from sparkpub.site.pages.tree import Pages
from sparkpub.site.publication import Publication
from sparkpub.site.words import Words

__all__ = ["Content", "SiteOptions", "build"]

CLAIMS, FACTS = "claims.yaml", "facts.yaml"
INLINE = 2
"""Figures drawn within a page; those further down are images, which cost nothing until a reader comes near."""
BLOG_INDEX = "blog/index.md"
"""Left as it is: the blog engine insists on a file of its own."""


def build(dataset: Dataset, options: SiteOptions) -> Mapping[str, Content]:
    """The docs tree by address. Raises SiteError or ClaimError in one line each for what cannot be published."""
    browser = runtime.begun(options.cache)
    with Drawings(options.cache / "charts") as drawings:
        tree = _tree(publish(dataset, options), drawings)
        for address, data in browser.result().files.items():
            _add(tree, address, Content(data=data))
    return tree


def _tree(publication: Publication, drawings: Drawings) -> dict[str, Content]:
    options, tables = publication.options, rows(publication)
    shared = shared_data(tables)
    library = Library(publication, tables, {name: address for name, (address, _) in shared.items()}, drawings)
    templates = Templates(options.templates, options.cache)
    tree: dict[str, Content] = {address: Content(data=data) for address, data in shared.values()}
    written = _written(publication, library, templates)
    pages = Pages(publication, library, templates, frozenset(written))
    for uri, page in (*pages.all(), *_runs(publication, library, templates, tree)):
        if uri not in written:
            _add(tree, uri, page)
    for uri, content in (*written.items(), *downloads.contents(publication, library, templates).items()):
        _add(tree, uri, content)
    for uri, content in blog.previews(publication, pages, written, templates).items():
        _add(tree, uri, content)
    return _with_figures(tree, library, templates, drawings.finished(), options.cache)


def refuse(dataset: Dataset, options: SiteOptions) -> None:
    """Raise SiteError with every reason for which this must not be published: errors that nobody has answered,
    typed figures, links to evidence that is not there, claims whose verdict changed."""
    found = proofread(dataset, options).unacknowledged_errors
    lines = [f"{finding.check}: {finding.where}: {finding.message}" for finding in found]
    if lines:
        raise SiteError(lines[0], others=lines[1:], remedy="correct it, or acknowledge it in campaign.json")


def proofread(dataset: Dataset, options: SiteOptions) -> Review:
    """The review of the data and of the pages that people wrote."""
    found = review(dataset)
    return proofreading.with_prose(found, options.sources, lambda: words(publish(dataset, options)).values())


def publish(dataset: Dataset, options: SiteOptions) -> Publication:
    """The dataset with its review, its statistics and the verdicts on its claims."""
    found = review(dataset)
    figures = statistics(dataset, found.frames)
    verdicts = ledger.judge(ledger.read(options.sources / CLAIMS), found)
    return Publication(dataset, options, figures, found, verdicts)


def words(publication: Publication, figure: Any = None) -> Words:
    """The names that prose may use; `figure` draws one, and without it figures are named and not drawn."""
    return Words(
        publication.dataset,
        publication.statistics,
        publication.review,
        publication.verdicts,
        facts.read(publication.options.sources / FACTS),
        figure or (lambda name, *_, **__: f"[figure {name}]"),
    )


def names(publication: Publication, containing: str = "") -> Iterator[str]:
    """Every name that prose can use as a line `{{ name }} = value`, those with all words of `containing`."""
    library = Library(publication, rows(publication), {})
    figures = (
        (f'figure("{name}", campaign="{campaign.name}")', library.figure(name, campaign.name).title)
        for campaign in publication.campaigns
        for name in library.makers(campaign)
    )
    for name, value in (*words(publication).values(), *figures):
        line = f"{{{{ {name} }}}} = {value}"
        if all(word in line for word in containing.split()):
            yield line


def shared_data(tables: Rows) -> Mapping[str, tuple[str, bytes]]:
    """Name of a table to its address, which changes with its content, and its JSON."""
    found = {}
    for name, table in tables.items():
        text = to_json(table)
        found[name] = (f"data/{name}.{hashlib.sha256(text).hexdigest()[:8]}.json", text)
    return found


def _written(publication: Publication, library: Library, templates: Templates) -> dict[str, Content]:
    """What people wrote: Markdown with its figures bound to the data, everything else as it is."""
    sources = publication.options.sources
    spoken = words(publication, library.picture)
    found: dict[str, Content] = {}
    for path in sorted(path for path in sources.rglob("*") if path.is_file()):
        uri = path.relative_to(sources).as_posix()
        if any(part.startswith(".") for part in path.parts) or uri in (CLAIMS, FACTS):
            continue
        if path.suffix != ".md" or uri == BLOG_INDEX:
            found[uri] = Content(copy_of=path)
        else:
            text = spoken.render(path.read_text(encoding="utf-8"), uri)
            found[uri] = Content(text=text, source=path)
    return blog.with_series(found, publication.options, library, templates)


def _runs(
    publication: Publication, library: Library, templates: Templates, tree: dict[str, Content]
) -> Sequence[tuple[str, Content]]:
    """The page of every run, beyond the limit one that the browser completes, and the evidence of all."""
    made = RunPages(publication, templates)
    found: list[tuple[str, Content]] = []
    for campaign in publication.campaigns:
        for index, stored in enumerate(campaign.runs):
            for item in publication.evidence[stored.record.run_id]:
                if item.address:
                    _add(tree, item.address, Content(copy_of=item.path))
            drawn = len(found) < publication.options.max_run_pages
            figure = made.figure(stored, drawn=drawn)
            place = ""
            if figure is not None:
                place = library.add(figure)
                for name, address in figure.sources.items():
                    _add(tree, address, Content(data=to_json(figure.data[name])))
            found.append((f"runs/{stored.record.run_id}.md", made.page(campaign, index, place, drawn=drawn)))
    return found


def _add(tree: dict[str, Content], uri: str, content: Content) -> None:
    if uri in tree:
        raise SiteError(f"two pages or files share the address {uri}", remedy="rename one of them")
    tree[uri] = content


def _with_figures(
    tree: Mapping[str, Content],
    library: Library,
    templates: Templates,
    compiled: Mapping[str, Compiled],
    cache: Path,
) -> dict[str, Content]:
    """The tree with every figure that its pages ask for, drawn, and with the figures' own files."""
    figures = {figure.block: figure for figure in library.wanted.values()}
    whole: dict[str, Content] = {}

    @functools.cache
    def drawn(key: str, *, inline: bool) -> str:
        figure, chart = figures[key], compiled[figures[key].job.key]
        images = {} if inline else {figure.address("wide.svg"): chart.svg_wide,
                                    figure.address("narrow.svg"): chart.svg_narrow}  # fmt: skip
        whole.update({address: Content(data=image(svg).encode()) for address, svg in images.items()})
        return templates.text("figure.html.j2", figure=figure, compiled=chart, specification=specification(chart),
                              picture=figure.key in library.pictures, images=images)  # fmt: skip

    for uri, content in tree.items():
        text = content.text or ""
        within = [key for html in content.blocks.values() for key in placeholders(html) if key in figures]
        asked = [key for key in placeholders(text) if key in figures]
        blocks = {key: drawn(key, inline=True) for key in (*within, *asked[:INLINE])}
        for key in asked[INLINE:]:
            blocks[block_key(key)] = drawn(key, inline=False)
            text = text.replace(key, block_key(key))
        whole[uri] = replace(content, text=text, blocks={**content.blocks, **blocks}) if blocks else content
    for figure in figures.values():
        whole |= figure.files(compiled[figure.job.key], cache, picture=figure.key in library.pictures)
    return whole
