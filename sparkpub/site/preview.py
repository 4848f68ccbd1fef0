"""The docs tree of a preview: what is wrong with it is said and does not stop it."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from sparkpub.record.errors import SparkpubError
from sparkpub.review.dataset import CampaignData, Dataset, FilesState, state_of
from sparkpub.site.build import build, loaded, refuse
from sparkpub.site.content import Site, SiteOptions

SWITCH_SECONDS = 0.02
"""After which a thread gives way to another. MkDocs looks at thousands of files twice a second: at Python's own 5 ms
a build waits a quarter of a second for that."""
log = logging.getLogger("mkdocs.plugins.sparkpub")


class Preview:
    """Builds again and again, and keeps the data meanwhile."""

    def __init__(self) -> None:
        sys.setswitchinterval(SWITCH_SECONDS)
        self._loaded: tuple[FilesState, Dataset] | None = None
        self._whole: Dataset | None = None

    def site(
        self, folders: Sequence[Path], options: SiteOptions
    ) -> tuple[Site, Sequence[str]]:
        """The docs tree, and what would stop a build, a line each. Raises SparkpubError for what leaves nothing to
        show."""
        dataset = self._load(folders, options)
        problems: Sequence[str] = ()
        try:
            refuse(dataset, options)
        except SparkpubError as error:
            problems = error.lines()
        return build(dataset, options), problems

    def _load(self, folders: Sequence[Path], options: SiteOptions) -> Dataset:
        """The data without what is damaged or half written, or as they last were whole."""
        state, known = state_of(folders), dict[Path, CampaignData]()
        if self._loaded is not None:
            before, last = self._loaded
            if before == state:
                return last
            changed = {path.parent for path, _ in before.items() ^ state.items()}
            if not last.damage:
                by_folder = {each.folder: each for each in last.campaigns.values()}
                known = {each: by_folder[each] for each in by_folder.keys() - changed}
        dataset = loaded(
            folders, options, lambda line: log.info("left out: %s", line), known
        )
        if dataset.damage and self._whole is not None:
            log.info("the last whole data stay until that is fixed")
            return self._whole
        self._whole = None if dataset.damage else dataset
        self._loaded = (state, dataset)
        return dataset
