"""What people wrote with its expressions said: once, for who proofreads it and for the site."""

from collections.abc import Mapping
from pathlib import Path

from sparkpub.review.claims import facts
from sparkpub.site import manual
from sparkpub.site.content import placeholder, placeholders
from sparkpub.site.figures.library import Library
from sparkpub.site.publication import Publication
from sparkpub.site.sources import FACTS_FILE
from sparkpub.site.words import Words


class Spoken:
    """The words of a publication. Figures are looked up as a page names them, and drawn where the page is shown."""

    def __init__(
        self, publication: Publication, known: Mapping[str, facts.Fact]
    ) -> None:
        self.words = Words(
            publication.results,
            publication.review,
            publication.verdicts,
            known,
            self.figure,
        )
        self._library = Library(publication)
        self._pictures: dict[str, tuple[str, str | None, Mapping[str, str]]] = {}

    def shown(self, text: str, uri: str, library: Library) -> str:
        """The Markdown of the page `uri` as the site has it, its figures from a library that draws. Raises ClaimError
        with file and line."""
        said = self.words.render(text, uri)
        for block in placeholders(said):
            if block in self._pictures:
                name, campaign, part = self._pictures[block]
                library.picture(name, campaign, **part)
        return said

    def figure(self, name: str, campaign: str | None = None, **part: str) -> str:
        """The placeholder of a figure that there is. Raises SiteError naming those there are for any other."""
        block = self._library.block(name, campaign, **part)
        self._pictures[block] = (name, campaign, part)
        return placeholder(block)


def spoken(publication: Publication) -> Spoken:
    """The words of a publication with the facts as they are now; those of the last one again, since a preview reads
    every page again where one changed."""
    known = known_facts(publication.options.sources)
    if not _last or _last[0][0] is not publication or _last[0][1] != known:
        _last[:] = [(publication, known, Spoken(publication, known))]
    return _last[0][2]


_last: list[tuple[Publication, Mapping[str, facts.Fact], Spoken]] = []


def known_facts(sources: Path) -> dict[str, facts.Fact]:
    """The facts of a site by id, and behind them those of the manual that it does not state itself."""
    own = facts.read(sources / FACTS_FILE)
    return own | {
        name: fact for name, fact in facts.read(manual.FACTS).items() if name not in own
    }
