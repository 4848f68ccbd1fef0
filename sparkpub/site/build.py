"""A dataset and what people wrote, in; a docs tree out. Pure and deterministic: no clock, no engine, no network.

    build(dataset, options)  ->  Site: {address in the docs tree: File}, and the pages of runs

Two adapters hand it to a site generator: the MkDocs plugin as virtual files, `sparkpub render` on disk.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType

from sparkpub.record.errors import ClaimError, SiteError
from sparkpub.review.checks import Review, review
from sparkpub.review.claims import facts
from sparkpub.review.claims.ledger import Verdict
from sparkpub.review.dataset import CampaignData, Dataset, load
from sparkpub.review.results import Results
from sparkpub.site import kept, manual, proofreading
from sparkpub.site.browser import runtime
from sparkpub.site.cache import WORK, Cache, key
from sparkpub.site.content import (
    SHELL,
    File,
    Page,
    Site,
    SiteOptions,
    placeholders,
)
from sparkpub.site.figures.draw import Drawings
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import (
    blog,
    campaigns,
    downloads,
    feed,
    model_page,
    placing,
    preview_pictures,
    programs,
    runs,
    templating,
    tree,
)
from sparkpub.site.publication import Publication
from sparkpub.site.sources import CLAIMS_FILE, FACTS_FILE, files, read, refuse_outside
from sparkpub.site.words import NamedFigure, Words

__all__ = ["Site", "SiteOptions", "build"]

BLOG_INDEX = "blog/index.md"
"""Left as it is: the blog engine insists on a file of its own."""


def build(
    dataset: Dataset, options: SiteOptions, meanwhile: Callable[[], object] = tuple
) -> Site:
    """The docs tree. Raises SiteError or ClaimError in one line each for what cannot be published.

    `meanwhile` is done while other processes draw; what it raises stops the build.
    """
    cache, drawings = Cache(options.cache / WORK), Drawings(Cache(options.cache / WORK))
    found_out = review_of(dataset, options.cache)
    of_browser = runtime.begun(cache)
    known = kept.decided_by(found_out, options)
    of_runs = runs.begun(found_out, options, cache)
    publication = publish(dataset, options)
    # What people wrote comes first, since pages of theirs take the place of generated ones.
    written, posts, figures = _written(publication)
    pictured = sorted(figures)
    generated = kept.files_once(
        known and key("generated", known, posts, pictured),
        cache,
        partial(_generated, publication, posts, pictured, drawings, cache),
    )
    own = [
        _with_figures(publication, uri, file, figures, drawings, cache)
        for uri, file in written.items()
        if isinstance(file, Page)
    ]
    meanwhile()
    browser = of_browser()
    found: dict[str, File] = {
        **generated(),
        **_evidence(publication),
        **browser.files,
    }
    for uri in found.keys() & written.keys():
        if not uri.endswith(".md"):
            what = f"two files share the address {uri}"
            raise SiteError(what, remedy="rename yours")
    found |= written
    for page in own:
        found |= page()
    cache.prune()
    return Site(found, of_runs(), browser[1:])


def _generated(
    publication: Publication,
    posts: Sequence[blog.Post],
    pictured: Sequence[str],
    drawings: Drawings,
    cache: Cache,
) -> Callable[[], dict[str, File]]:
    """What gives the pages and files that follow from the data, and from what the `posts` say of themselves, but those
    of runs. Those figures have pictures that are `pictured`."""
    # First, since most charts are theirs, and others draw meanwhile.
    begun = [*campaigns.begun(publication, pictured, drawings, cache)]
    library = Library(publication, drawings)
    table = programs.run_table(publication)
    pages = dict(tree.pages(publication, library, table, posts))
    begun += model_page.begun(publication, drawings, cache)
    found: dict[str, File] = {
        table.address: table.content,
        feed.ADDRESS: feed.feed(publication, posts),
        **pages,
        SHELL: templating.page("view", publication),
        **downloads.contents(publication),
    }
    cards = preview_pictures.pictures(publication, posts, cache)

    def finish() -> dict[str, File]:
        drawn = drawings.finished()
        whole = placing.Placing(library, drawn).placed(found, cache)
        for made in begun:
            whole |= made()
        return whole | cards()

    return finish


def loaded(
    folders: Sequence[Path],
    options: SiteOptions,
    skip: Callable[[str], None] | None = None,
    known: Mapping[Path, CampaignData] = MappingProxyType({}),
) -> Dataset:
    """The data folders of a site: of owners that it has met, only what is kept is read until somebody asks for more,
    and of folders whose campaign is `known` nothing."""
    kept_of = partial(kept.kept_of, Cache(options.cache / WORK))
    return load(*folders, skip=skip, kept_of=kept_of, known=known)


def refuse(dataset: Dataset, options: SiteOptions) -> None:
    """Raise SiteError with every reason for which this must not be published: errors that nobody has answered,
    typed figures, links to evidence that is not there, claims whose verdict changed."""
    found = [
        finding
        for finding in proofread(dataset, options).unacknowledged("error")
        if not dataset.is_gathered(finding.campaign)  # they are shown, and not ranked
    ]
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
    found = review_of(dataset, options.cache)
    return proofreading.with_prose(
        found, options.sources, lambda: words_of(publish(dataset, options))
    )


def publish(dataset: Dataset, options: SiteOptions) -> Publication:
    """The dataset with its review, its statistics and the verdicts on its claims.

    The last one again where it would be the same: it is proofread before it is built, and what was made for that stays.
    """
    found = review_of(dataset, options.cache)
    judged = proofreading.judged(options.sources, found).values()
    for problem in judged:
        if isinstance(problem, ClaimError):
            raise problem
    verdicts = [one for one in judged if isinstance(one, Verdict)]
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

    def figure(name: str, campaign: str, **part: str) -> str:
        return library.named(name, campaign, **part)

    return Words(publication, figure)


@lru_cache(maxsize=1)
def review_of(dataset: Dataset, folder: Path) -> Review:
    """What the checks find in a dataset, kept of the last one: it is asked whether the site may be published before it
    is built, and a preview builds again where only a page changed. What they find in a campaign stays in the cache."""
    return review(dataset, kept.judging(dataset, Cache(folder / WORK)))


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


def _written(
    publication: Publication,
) -> tuple[dict[str, File], Sequence[blog.Post], Mapping[str, NamedFigure]]:
    """What people wrote, and the manual: Markdown bound to the data, everything else as it is; the posts in it; and by
    key the figures that are shown."""
    sources = publication.options.sources
    words = words_of(publication)
    others: dict[str, File] = {}
    pages: dict[str, Page] = {}
    shipped = manual.pages()
    own = {uri: path for path, uri in files(sources)}
    for uri, path in {**own, **shipped, **own}.items():
        if uri in (CLAIMS_FILE, FACTS_FILE):
            continue
        if uri in own:
            refuse_outside(path, uri, sources)
        if path.suffix != ".md" or uri == BLOG_INDEX:
            others[uri] = path
        else:
            pages[uri] = words.page(read(path, uri))
    shown = placeholders("".join(page.text for page in pages.values()))
    named = {placeholders(mark)[0]: asked for mark, asked in words.figures.items()}
    posts = blog.posts(pages)
    pages |= blog.with_series(pages, posts, publication)
    return others | pages, posts, {key: named[key] for key in shown if key in named}


def _with_figures(
    publication: Publication,
    uri: str,
    page: Page,
    figures: Mapping[str, NamedFigure],
    drawings: Drawings,
    cache: Cache,
) -> Callable[[], Mapping[str, File]]:
    """What gives a page that people wrote, and the files of its figures."""
    mine = [figures[key] for key in placeholders(page.text) if key in figures]
    if not mine:
        return lambda: {uri: page}
    spoken_of = [
        name
        for _, part in mine
        for name in publication.joined(publication.dataset.campaign(part["campaign"]))
    ]
    of = kept.basis(publication.review, publication.names, spoken_of)
    about = kept.beside(publication.options), uri, page, mine

    def make(library: Library) -> Page:
        for name, part in mine:
            library.picture(*name, **part)
        return page

    name = of and key("written", of, about)
    made = placing.once(name, uri, make, publication, drawings, cache)

    def whole() -> dict[str, File]:
        files = dict(made())
        placed = files[uri]
        assert isinstance(placed, Page)
        # What is kept has no dates.
        return files | {uri: replace(placed, meta=page.meta)}

    return whole


def _evidence(publication: Publication) -> dict[str, File]:
    """The evidence of every run, as far as the site has it."""
    # Runs that came from one file share it.
    return {
        item.address: item.path
        for files in publication.evidence.values()
        for item in files
        if item.address
    }
