"""A dataset and what people wrote, in; a docs tree out. Pure and deterministic: no clock, no engine, no network.

    build(dataset, options)  ->  Site: {address in the docs tree: File}, and the pages of runs

Two adapters hand it to a site generator: the MkDocs plugin as virtual files, `sparkpub render` on disk.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path

from sparkpub.record.errors import ClaimError, SiteError
from sparkpub.review.checks import Review, review
from sparkpub.review.claims import facts
from sparkpub.review.claims.ledger import Verdict
from sparkpub.review.dataset import Dataset, load
from sparkpub.review.results import Results
from sparkpub.site import kept, manual, proofreading
from sparkpub.site.browser import runtime
from sparkpub.site.cache import WORK, Cache
from sparkpub.site.content import SHELL, File, Page, Site, SiteOptions
from sparkpub.site.figures import telemetry
from sparkpub.site.figures.draw import Drawings, Drawn
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import (
    blog,
    downloads,
    feed,
    gathered,
    placing,
    preview_pictures,
    programs,
    runs,
    templating,
    tree,
)
from sparkpub.site.publication import Publication, run_file, run_page
from sparkpub.site.sources import CLAIMS_FILE, FACTS_FILE, files, read, refuse_outside
from sparkpub.site.words import Words
from sparkpub.site.workers import Workers

__all__ = ["Site", "SiteOptions", "build"]

BLOG_INDEX = "blog/index.md"
"""Left as it is: the blog engine insists on a file of its own."""


def build(
    dataset: Dataset, options: SiteOptions, meanwhile: Callable[[], object] = tuple
) -> Site:
    """The docs tree. Raises SiteError or ClaimError in one line each for what cannot be published.

    `meanwhile` is done while other processes draw; what it raises stops the build.
    """
    cache = Cache(options.cache / WORK)
    publication = publish(dataset, options)
    with Drawings(cache) as drawings:
        # What people wrote comes first, since pages of theirs take the place of generated ones.
        library = Library(publication, drawings)
        written, posts = _written(publication, library)
        for_posts = sorted(library.pictures)
        begin = partial(_generated, publication, posts, for_posts, drawings, cache)
        generated = kept.generated_once(publication, (posts, for_posts), cache, begin)
        browser = runtime.files(cache)
        meanwhile()
        drawn = drawings.finished()
        made = generated(drawn)
        runs = {
            uri: page
            for campaign in publication.own_campaigns
            for uri in map(run_page, campaign.runs)
            if isinstance(page := made.pop(uri), Page)
        }
        found: dict[str, File] = {**made, **_evidence(publication), **browser.files}
        for uri in found.keys() & written.keys():
            if not uri.endswith(".md"):
                what = f"two files share the address {uri}"
                raise SiteError(what, remedy="rename yours")
        found |= placing.Placing(library, drawn).placed(written, cache)
    cache.prune()
    return Site(found, runs, browser[1:])


def _generated(
    publication: Publication,
    posts: Sequence[blog.Post],
    for_posts: Iterable[str],
    drawings: Drawings,
    cache: Cache,
) -> Callable[[Mapping[str, Drawn]], dict[str, File]]:
    """What follows from the data, and from what the `posts` say of themselves, once everything is drawn: pages, those
    of runs too, and files. The figures `for_posts` have pictures."""
    library = Library(publication, drawings)
    library.pictures.update(for_posts)
    others = gathered.of(publication, drawings, cache)
    table = programs.run_table(publication)
    pages = dict(tree.pages(publication, library, table, posts))
    traced, samples = _traced(publication, library)
    found: dict[str, File] = {
        table.address: table.content,
        feed.ADDRESS: feed.feed(publication, posts),
        **pages,
        SHELL: templating.page("view"),
        **downloads.contents(publication),
        **preview_pictures.pictures(publication, posts, cache),
        **samples,
    }
    of_runs = {
        run_page(stored): runs.page(publication, campaign, index, traced)
        for campaign in publication.own_campaigns
        for index, stored in enumerate(campaign.runs)
    }

    def finish(drawn: Mapping[str, Drawn]) -> dict[str, File]:
        placed = placing.Placing(library, drawn)
        whole = placed.placed(found, cache) | of_runs
        for uri, figure in traced.items():
            chart = {figure.key: placed.alone(figure)}
            whole[uri] = replace(of_runs[uri], html={**of_runs[uri].html, **chart})
        for files_of_owner in others(drawn):
            whole |= files_of_owner
        return whole

    return finish


def loaded(
    folders: Sequence[Path],
    options: SiteOptions,
    skip: Callable[[str], None] | None = None,
) -> Dataset:
    """The data folders of a site: of owners that it has met, only what is kept is read until somebody asks for more."""
    kept_of = partial(kept.kept_of, Cache(options.cache / WORK))
    return load(*folders, skip=skip, kept_of=kept_of)


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
    with Workers() as workers:
        return review(dataset, kept.judging(dataset, Cache(folder / WORK), workers))


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
    publication: Publication, library: Library
) -> tuple[dict[str, File], Sequence[blog.Post]]:
    """What people wrote, and the manual: Markdown with its figures bound to the data, everything else as it is; and the
    posts in it."""
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
    shown = "".join(page.text for page in pages.values())
    for mark, (name, part) in words.figures.items():
        if mark in shown:
            library.picture(*name, **part)
    posts = blog.posts(pages)
    series = dict(blog.with_series(pages, posts, publication))
    rest = {uri: page for uri, page in pages.items() if uri not in series}
    return others | rest | series, posts


def _traced(
    publication: Publication, library: Library
) -> tuple[dict[str, Figure], dict[str, bytes]]:
    """Address of a run's page to the figure of its telemetry, where there is some; and the files with their samples."""
    figures, samples = {}, {}
    for stored in chain(*(each.runs for each in publication.own_campaigns)):
        trace = telemetry.trace(stored)
        if trace is not None:
            library.add_later(trace.key, trace.chart)
            figures[run_page(stored)] = telemetry.figure(stored, trace)
            samples[run_file(stored)] = runs.samples(stored, trace)
    return figures, samples


def _evidence(publication: Publication) -> dict[str, File]:
    """The evidence of every run, as far as the site has it."""
    # Runs that came from one file share it.
    return {
        item.address: item.path
        for files in publication.evidence.values()
        for item in files
        if item.address
    }
