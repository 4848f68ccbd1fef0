"""A dataset and what people wrote, in; a docs tree out. Pure and deterministic: no clock, no engine, no network.

    build(dataset, options)  ->  {address in the docs tree: Content}

Two adapters hand the tree to a site generator: the MkDocs plugin as virtual files, `sparkpub render` on disk.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

from pydantic_core import to_json

from sparkpub.record.errors import SiteError
from sparkpub.review.checks import Review, review
from sparkpub.review.claims import facts, ledger
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.results import Results
from sparkpub.site import manual, proofreading
from sparkpub.site.browser import runtime
from sparkpub.site.cache import WORK, Cache, key
from sparkpub.site.content import (
    SHELL,
    Content,
    LatePage,
    SiteOptions,
    packed,
    placeholder,
)
from sparkpub.site.figures import telemetry
from sparkpub.site.figures.draw import Drawings
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import (
    blog,
    downloads,
    feed,
    found_by,
    placing,
    preview_pictures,
    programs,
    runs,
    tree,
)
from sparkpub.site.pages.runs import RunPages
from sparkpub.site.pages.templating import Templates
from sparkpub.site.publication import Publication, run_address
from sparkpub.site.sources import (
    CLAIMS_FILE,
    FACTS_FILE,
    files,
    page_text,
    refuse_outside,
)
from sparkpub.site.words import Words

__all__ = ["Content", "SiteOptions", "build"]

BLOG_INDEX = "blog/index.md"
"""Left as it is: the blog engine insists on a file of its own."""
GLOSSARY = "method/metrics.md"
"""The page whose definitions the search finds one by one."""


def build(dataset: Dataset, options: SiteOptions) -> Mapping[str, Content]:
    """The docs tree by address. Raises SiteError or ClaimError in one line each for what cannot be published."""
    if not options.evidence_on_site and options.repo_url is None:
        raise SiteError(
            "evidence cannot be linked in a repository whose address is not known",
            remedy="set repo_url, or leave evidence on the site",
        )
    cache = Cache(options.cache / WORK)
    with Drawings(cache) as drawings:
        publication = publish(dataset, options)
        addresses, shared = publish_tables(publication)
        library = Library(publication, drawings)
        templates = Templates(options.templates)

        # What people wrote comes first, since pages of theirs take the place of generated ones.
        written, posts = _written(publication, library, templates)
        made = tree.pages(publication, library, templates, addresses, posts)
        of_runs = RunPages(publication, templates)
        generated = [*made, (SHELL, templates.page("view"))]
        for form in _forms(publication, of_runs, cache):
            library.add_later(form.key, form.chart)

        found: dict[str, Content] = {}
        _add(found, shared)
        _add(found, _evidence(publication))
        _add(found, [(uri, page) for uri, page in generated if uri not in written])
        _add(found, written)
        _add(found, downloads.contents(publication, templates))
        _add(found, preview_pictures.pictures(publication, posts, templates, cache))
        atom = feed.feed(publication, posts, templates)
        browser = {feed.ADDRESS: atom} | runtime.files(cache).files
        _add(found, {uri: Content(data=data) for uri, data in browser.items()})

        placed = placing.Placing(library, templates, drawings.finished())
        found = placed.tree(found, cache)
        _add(found, _run_pages(publication, of_runs, placed, cache))
    cache.prune()
    return found


def refuse(dataset: Dataset, options: SiteOptions) -> None:
    """Raise SiteError with every reason for which this must not be published: errors that nobody has answered,
    typed figures, links to evidence that is not there, claims whose verdict changed."""
    found = proofread(dataset, options).unacknowledged("error")
    lines = [
        f"{finding.check}: {finding.where}: {finding.message}" for finding in found
    ]
    if lines:
        remedy = "correct it, or acknowledge it in campaign.json"
        if found[0].check == proofreading.UNREADABLE:
            remedy = ""  # it says itself what to do
        raise SiteError(lines[0], others=lines[1:], remedy=remedy)


def proofread(dataset: Dataset, options: SiteOptions) -> Review:
    """The review of the data and of the pages that people wrote."""
    found = review_of(dataset)
    return proofreading.with_prose(
        found, options.sources, lambda: words_of(publish(dataset, options))
    )


def publish(dataset: Dataset, options: SiteOptions) -> Publication:
    """The dataset with its review, its statistics and the verdicts on its claims.

    The last one again where it would be the same: it is proofread before it is built, and what was made for that stays.
    """
    found = review_of(dataset)
    claims = ledger.read(options.sources / CLAIMS_FILE)
    verdicts = [proofreading.verdict(claim, found) for claim in claims]
    known = facts_of(options.sources)
    asked = Publication(results_of(found), found, options, verdicts, known)
    if not any(known.same_as(asked) for known in _last):
        _last[:] = [asked]
    return _last[0]


def facts_of(sources: Path) -> dict[str, facts.Fact]:
    """The facts of a site by id, and behind them those of the manual that it does not state itself."""
    own = facts.read(sources / FACTS_FILE)
    return {**own, **facts.read(manual.FACTS), **own}


_last: list[Publication] = []
"""The publication that was asked for last."""


@lru_cache(maxsize=1)
def words_of(publication: Publication) -> Words:
    """What prose may say of a publication: kept, since a preview reads every page again where one changed."""
    library = Library(publication)

    def figure(name: str, campaign: str | None = None, **part: str) -> str:
        return placeholder(library.block(name, campaign, **part))

    results, review, verdicts = (
        publication.results,
        publication.review,
        publication.verdicts,
    )
    return Words(results, review, verdicts, publication.facts, figure)


@lru_cache(maxsize=1)
def review_of(dataset: Dataset) -> Review:
    """What the checks find in a dataset, kept of the last one: it is asked whether the site may be published before it
    is built, and a preview builds again where only a page changed."""
    return review(dataset)


@lru_cache(maxsize=1)
def results_of(found: Review) -> Results:
    """What a dataset shows, kept in the same way."""
    return Results(found)


def names(publication: Publication, containing: str = "") -> Iterator[str]:
    """Every name that prose can use as a line `{{ name }} = value`: those with all words of `containing`, and figures
    with these in their titles."""
    wanted = containing.split()
    for name, value in words_of(publication).values(wanted):
        yield f"{{{{ {name} }}}} = {value}"
    library = Library(publication)
    for campaign in publication.campaigns:
        for figure, offer in library.makers(campaign.name).items():
            name = f'figure("{figure}", campaign="{campaign.name}")'
            line = f"{{{{ {name} }}}} = {offer.title}"
            if all(word in line for word in wanted):
                yield line


def publish_tables(
    publication: Publication,
) -> tuple[dict[str, str], dict[str, Content]]:
    """Name of a table of the whole site to its address, which changes with its content; and the files at these
    addresses: JSON, compressed."""
    addresses: dict[str, str] = {}
    files: dict[str, Content] = {}
    for name, pieces in programs.tables(publication).items():
        text = b"".join(pieces)
        digest = hashlib.sha256(text).hexdigest()[:8]
        addresses[name] = f"data/{name}.{digest}.packed"
        files[addresses[name]] = Content(data=packed(text))
    return addresses, files


def _written(
    publication: Publication, library: Library, templates: Templates
) -> tuple[dict[str, Content], Sequence[blog.Post]]:
    """What people wrote, and the manual: Markdown with its figures bound to the data, everything else as it is; and the
    posts in it."""
    sources = publication.options.sources
    words = words_of(publication)
    found: dict[str, Content] = {}
    shipped = manual.pages(
        has_claims=bool(publication.verdicts), has_runs=bool(publication.dataset.runs)
    )
    own = {uri: path for path, uri in files(sources)}
    for uri, path in {**own, **shipped, **own}.items():
        if uri in (CLAIMS_FILE, FACTS_FILE):
            continue
        if uri in own:
            refuse_outside(path, uri, sources)
        if path.suffix != ".md" or uri == BLOG_INDEX:
            found[uri] = Content(copy_of=path)
        else:
            text = words.render(page_text(path, uri), uri)
            found[uri] = Content(text=text, source=path if uri in own else None)
    shown = "".join(content.text or "" for content in found.values())
    for mark, (name, part) in words.figures.items():
        if mark in shown:
            library.picture(*name, **part)
    if GLOSSARY in found:
        answers = tuple(found_by.of_glossary())
        found[GLOSSARY] = replace(found[GLOSSARY], answers=answers)
    posts = blog.posts(found)
    return blog.with_series(found, posts, publication, templates), posts


def _forms(
    publication: Publication, pages: RunPages, cache: Cache
) -> Iterable[telemetry.SignalForm]:
    """The forms of the charts that the pages of runs show: as many as there are kinds of machines, and read from all
    telemetry there is, so that those of a campaign are kept."""
    found: dict[telemetry.SignalForm, None] = {}
    for campaign in publication.campaigns:
        name = key("forms", [pages.decided_by(stored) for stored in campaign.runs])
        known = cache.get(name)
        if known is None:
            traces = (telemetry.trace(run) for run in campaign.runs)
            forms = dict.fromkeys(trace.form for trace in traces if trace is not None)
            known = to_json(list(forms))
            cache.put(name, known)
        found |= dict.fromkeys(telemetry.FORMS.validate_json(known))
    return found


def _run_pages(
    publication: Publication, pages: RunPages, placed: placing.Placing, cache: Cache
) -> Iterator[tuple[str, Content]]:
    """(address, page) of every run."""
    for campaign in publication.campaigns:
        for index, stored in enumerate(campaign.runs):
            late = partial(_run_page, pages, placed, cache, campaign, index)
            yield f"{run_address(stored).rstrip('/')}.md", Content(late=late)


def _run_page(
    pages: RunPages,
    placed: placing.Placing,
    cache: Cache,
    campaign: CampaignData,
    index: int,
) -> LatePage:
    """The page of a run with what its chart shows, which is read once."""
    stored = campaign.runs[index]
    data = b""
    if stored.record.file("telemetry") is not None:
        name = pages.decided_by(stored)
        known = cache.get(name)
        if known is None:
            trace = telemetry.trace(stored)
            # Empty where its telemetry has nothing to draw.
            known = b""
            if trace is not None:
                chart = placed.alone(telemetry.figure(stored, trace))
                known = runs.file(stored, trace, chart)
            cache.put(name, known)
        data = known
    return pages.page(campaign, index, data)


def _evidence(publication: Publication) -> Iterator[tuple[str, Content]]:
    """The evidence of every run, as far as the site has it."""
    # Runs that came from one file share it.
    published = {
        item.address: Content(copy_of=item.path)
        for files in publication.evidence.values()
        for item in files
        if item.address
    }
    yield from published.items()


def _add(
    tree: dict[str, Content],
    found: Mapping[str, Content] | Iterable[tuple[str, Content]],
) -> None:
    """Add files to the tree. Raises SiteError where an address is taken."""
    files = found.items() if isinstance(found, Mapping) else found
    for uri, content in files:
        if uri in tree:
            raise SiteError(
                f"two pages or files share the address {uri}",
                remedy="rename one of them",
            )
        tree[uri] = content
