"""MkDocs adapter: the docs tree as virtual files, for `mkdocs serve` and `mkdocs build --strict`."""

import gc
import html
import logging
import os
import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

from jinja2 import Environment
from mkdocs.commands.build import build as build_docs
from mkdocs.commands.serve import serve as serve_docs
from mkdocs.config import config_options as option
from mkdocs.config.base import Config, load_config
from mkdocs.config.config_options import ExtraScriptValue
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import MkDocsException, PluginError
from mkdocs.livereload import LiveReloadServer
from mkdocs.plugins import BasePlugin, event_priority
from mkdocs.structure.files import File as DocFile
from mkdocs.structure.files import Files, InclusionLevel
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from mkdocs.utils.templates import TemplateContext

from sparkpub.record import owner
from sparkpub.record.errors import SiteError, SparkpubError
from sparkpub.record.settings import DEFAULT_DATA, GATHERED
from sparkpub.record.store import replacing
from sparkpub.site import disk, manual, stamp, workers
from sparkpub.site.browser import security
from sparkpub.site.cache import user_folder
from sparkpub.site.content import (
    SITE_CARD,
    File,
    Site,
    SiteOptions,
    escaped,
    fill,
)
from sparkpub.site.content import Page as SourcePage
from sparkpub.site.crawl import dead_links
from sparkpub.site.header_cells import EmptyHeaderCells
from sparkpub.site.history import last_commits

if TYPE_CHECKING:
    from sparkpub.site.preview import Preview

log = logging.getLogger("mkdocs.plugins.sparkpub")
notices = logging.getLogger("sparkpub")
SHIPPED_TEMPLATES = Path(__file__).parent / "pages" / "templates"
THEME = Path(__file__).parent / "theme"
"""Our templates on top of Material's."""
DEAD_LINK = "dead link: "
"""The beginning of a warning of a link in the finished site that leads nowhere."""
_IN_NAV = re.compile(r"^([a-z-]+/)?index\.md$")
_LEFT_OUT = (InclusionLevel.EXCLUDED, InclusionLevel.DRAFT)
"""Of files that are not in the finished site."""


class SparkpubConfig(Config):  # type: ignore[no-untyped-call] # MkDocs leaves a hook untyped
    """The plugin's options in mkdocs.yml; paths are relative to its folder."""

    folders = option.Type(str, default=str(DEFAULT_DATA))
    """Data folders, with `:` between them. The first must be there; the others are shown where they are."""
    cache = option.Type(str, default=str(user_folder()))
    """Folder for drawings, so that they are made once."""
    home = option.Type(str, default=SiteOptions.home)
    """The machine that comes first on every page: its kind in the catalogue (`dgx-spark`), or its name."""


class _Later(DocFile):
    """A file that is not written when MkDocs asks for it: of thousands that takes longer than all else that it does."""

    def copy_file(self, dirty: bool = False) -> None:
        """Nothing: see `SparkpubPlugin.on_nav`, and of a preview `on_serve`."""


def _file(config: MkDocsConfig, uri: str, file: File, kind: type[DocFile]) -> DocFile:
    """A file of the tree that is not there as one."""
    inclusion = InclusionLevel.UNDEFINED
    if uri.endswith(".md") and not _IN_NAV.match(uri):
        inclusion = InclusionLevel.NOT_IN_NAV
    if isinstance(file, Path):
        return kind.generated(config, uri, abs_src_path=str(file), inclusion=inclusion)
    # A page says what it has in `on_page_markdown`.
    content = b"" if isinstance(file, SourcePage) else file
    return kind.generated(config, uri, content=content, inclusion=inclusion)


def unasked(files: Files, config: MkDocsConfig) -> list[DocFile]:
    """Files of the theme that no page asks for: maps of its scripts, and other languages where the search is in
    English."""
    search = config.plugins.get("material/search")
    found = ["assets/*.map"]
    if search is None or search.config["lang"] == ["en"]:
        found.append("assets/javascripts/lunr/*")
    return [
        file
        for file in files
        if any(fnmatch(file.src_uri, pattern) for pattern in found)
    ]


class SparkpubPlugin(BasePlugin[SparkpubConfig]):  # type: ignore[no-untyped-call]
    """Adds the docs tree, puts figures into finished pages, and watches what the tree is made from."""

    def __init__(self) -> None:
        self._preview: Preview | None = None
        self._site: Site | None = None
        self._pages: dict[str, SourcePage] = {}
        self._blocks: dict[str, str] = {}
        """The HTML of all pages: a list of posts shows some of it too."""
        self._problems: Sequence[str] = ()
        self._search = self._shell = ""
        self._env: Environment | None = None
        self._copied: Callable[[], object] = tuple
        """Waits until evidence is copied."""
        self._one_by_one = Lock()
        """Browsers ask for one file several times at once."""

    def on_startup(
        self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool
    ) -> None:
        """Keep this object, and so what it built last, over the rebuilds of a preview."""
        self._preview = None
        if command == "serve":
            # It loads pandas: see `_build`.
            from sparkpub.site.preview import Preview  # noqa: PLC0415

            self._preview = Preview()

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        """Put our templates before the theme's and behind the project's own, and look at the site's address."""
        behind_project = 1 if config.theme.custom_dir else 0
        config.theme.dirs.insert(behind_project, str(THEME))
        config.markdown_extensions.append(EmptyHeaderCells())
        if not config.site_url:
            # Not a warning of MkDocs, which would end a strict build: the site is whole but for these links.
            notices.warning(
                "site_url in mkdocs.yml (or SPARKPUB_SITE_URL) is not set: pages have no canonical link, no preview "
                "picture, and no address in citations and the feed"
            )
        return config

    def on_pre_build(self, *, config: MkDocsConfig) -> None:
        """A site that is being written is not yet known by what it is made of."""
        stamp.remove(Path(config.site_dir))

    @event_priority(50)
    def on_files(self, files: Files, *, config: MkDocsConfig) -> Files:
        """Add the docs tree. Bound pages of people take the place of their sources; damaged data stop a build."""
        try:
            self._site, self._problems = self._build(config)
        except SparkpubError as error:
            lines = error.lines()
            if self._preview is None or self._site is None:
                raise PluginError("\n".join(lines)) from None
            self._problems = [f"{line}; the last good pages stay" for line in lines]
        for line in self._problems:
            log.error(line)
        style, module, self._search = self._site.assets
        script = ExtraScriptValue(module)
        script.type = "module"
        config.extra_css.append(style)
        config.extra_javascript.append(script)
        for one in unasked(files, config):
            files.remove(one)
        self._pages = {}
        folder, pages = self._folder(config), Path(config.docs_dir).resolve()
        for uri, file in self._site.files.items():
            if isinstance(file, SourcePage):
                self._pages[uri] = file
            known = files.get_file_from_path(uri)
            if known is None:
                later = self._preview is not None or isinstance(file, Path)
                kind = _Later if later else DocFile
                files.append(_file(config, uri, file, kind))
            elif uri.endswith(".md") and pages.is_relative_to(folder):
                known.edit_uri = f"../{(pages.relative_to(folder) / uri).as_posix()}"
        self._blocks = {
            key: html
            for page in self._pages.values()
            for key, html in page.html.items()
        }
        return files

    def _build(self, config: MkDocsConfig) -> tuple[Site, Sequence[str]]:
        """The docs tree, and what in a preview would stop a build."""
        folders, options = self.data(config), self.options(config)
        if self._preview is None:
            # What another process judges by is loaded there while this one loads it.
            workers.begin(workers.load, "sparkpub.site.kept")
        # These load pandas, which a build does not need where nothing changed.
        from sparkpub.site.build import build, loaded, refuse  # noqa: PLC0415

        workers.spare_memory()
        try:
            if self._preview is not None:
                return self._preview.site(folders, options)
            dataset = loaded(folders, options)
            gc.freeze()
            refused = partial(refuse, dataset, options)
            try:
                return build(dataset, options, meanwhile=refused), ()
            except SparkpubError:
                refused()  # which says all that is wrong at once
                raise
        except BaseException:
            workers.stop()
            raise

    def on_nav(
        self, nav: Navigation, *, config: MkDocsConfig, files: Files
    ) -> Navigation:
        """Copy evidence in another process while this one renders."""
        if self._preview is None:
            places = [
                (str(file.abs_src_path), file.abs_dest_path)
                for file in files
                if isinstance(file, _Later) and file.inclusion not in _LEFT_OUT
            ]
            self._copied = workers.begin(disk.copy, places)
        return nav

    def options(self, config: MkDocsConfig) -> SiteOptions:
        """What the docs tree is built with."""
        folder = self._folder(config)
        repo_url = (config.repo_url or "").rstrip("/") or None
        return SiteOptions(
            sources=Path(config.docs_dir),
            cache=folder / self.config.cache,
            name=config.site_name,
            url=config.site_url or "",
            home=self.config.home,
            repo_url=repo_url,
            commits=last_commits(folder, self.data(config)) if repo_url else {},
            repository=folder,
        )

    def on_page_markdown(self, markdown: str, *, page: Page, **_: Any) -> str:
        """The page as we have it: bound to the data."""
        source = self._pages.get(page.file.src_uri)
        if source is None:
            return markdown
        for name, said in escaped(source.meta).items():
            # A list may have been added to: the blog hides the navigation of its posts.
            if name not in page.meta or isinstance(said, str):
                page.meta[name] = said
        return source.text

    def on_env(
        self, env: Environment, *, config: MkDocsConfig, files: Files
    ) -> Environment:
        """Give the templates what they ask for, now that all pages are known."""
        self._refuse_twins(files)
        if self._preview is not None:
            # The templates of the last build are compiled, which takes a fifth of the engine's time. What they use is
            # of this build: other plugins wrap its filters.
            if self._env is not None:
                self._env.filters.update(env.filters)
                self._env.globals.update(env.globals)
                env = self._env
            self._env = env
        env.auto_reload = self._preview is not None
        env.trim_blocks = env.lstrip_blocks = True
        policy = security.page_policy(env)
        # What our templates in `theme/` ask for. The server of a preview adds a script of its own to every page, which
        # no policy allows. Addresses are from the site's root.
        env.globals["sparkpub"] = {
            "policy": policy if self._preview is None else None,
            "card": SITE_CARD,
            "search": self._search,
            "problems": self._problems,
        }
        return env

    def _source(self, page: Page) -> SourcePage:
        """What a page is made of; nothing for one of the theme."""
        return self._pages.get(page.file.src_uri, SourcePage({}, ""))

    def _refuse_twins(self, files: Files) -> None:
        """Stop a build where two files would be published at one address, and one of them lost."""
        sources: dict[str, str] = {}
        for file in files:
            if file.inclusion in _LEFT_OUT:
                continue
            other = sources.setdefault(file.dest_uri, file.src_uri)
            if other != file.src_uri:
                line = (
                    f"{other} and {file.src_uri} are both published at {file.dest_uri}; "
                    "give one of them another name or slug"
                )
                if self._preview is None:
                    raise PluginError(line)
                log.error(line)

    @event_priority(-50)  # after the search, which has read the page by then
    def on_page_context(
        self,
        context: TemplateContext,
        *,
        page: Page,
        config: MkDocsConfig,
        nav: Navigation,
    ) -> TemplateContext:
        """Give the search the words by which a page is found, and the parts of it that are found by themselves.

        Words go where the search keeps tags: one by one, and out of sight."""
        source = self._source(page)
        if not (source.found_by or source.answers):
            return context
        # The theme's search has the theme's name before its own.
        for plugin in config.plugins.values():
            entries = getattr(getattr(plugin, "search_index", None), "entries", [])
            own = [entry for entry in entries if entry["location"] == page.url]
            for entry in own[-1:]:
                tags = html.escape(source.found_by).split()
                entry["tags"] = [*entry.get("tags", ()), *dict.fromkeys(tags)]
                entry["text"] = entry["text"] or source.meta.get("description", "")
                for part in source.answers:
                    found = {
                        "location": f"{page.url}#{part.anchor}",
                        "title": html.escape(part.title),
                        "text": html.escape(part.text),
                    }
                    entries.append(entry | found)
        return context

    def on_post_page(self, output: str, *, page: Page, config: MkDocsConfig) -> str:
        """Put figures and tables in: those of the page, and in a list of posts those of the posts."""
        blocks = ChainMap({**self._source(page).html}, self._blocks)
        return fill(output, blocks, "../" * page.url.count("/"))

    def on_post_build(self, *, config: MkDocsConfig) -> None:
        """Put the runs into the shell. Warn of links that lead nowhere: a strict build stops there."""
        site = Path(config.site_dir)
        # This loads pandas: see `_build`.
        from sparkpub.site.pages import runs  # noqa: PLC0415

        assert self._site is not None
        self._shell = runs.shell(site)
        self._copied()
        if self._preview is None:
            runs.write(site, self._shell, self._site.runs)
            for line in dead_links(site, config.site_url or ""):
                log.warning("%s%s", DEAD_LINK, line)
        workers.stop()

    def on_serve(
        self, server: LiveReloadServer, *, config: MkDocsConfig, builder: Any
    ) -> LiveReloadServer:
        """Rebuild when data or templates change; pages are watched anyway. What is not there when a browser asks for it
        is written then."""
        folders = [*self.data(config), SHIPPED_TEMPLATES, THEME, manual.FOLDER]
        for folder in folders:
            server.watch(str(folder))
        found = server.serve_request

        def answer(environ: dict[str, Any], start_response: Any) -> Any:
            said: list[tuple[Any, ...]] = []
            page = found(environ, lambda *status: said.append(status))
            path = environ["PATH_INFO"].removeprefix(server.mount_path)
            if said[0][0].startswith("404") and self._placed(Path(server.root), path):
                return found(environ, start_response)
            start_response(*said[0])
            return page

        server.set_app(answer)
        return server

    def _placed(self, root: Path, path: str) -> bool:
        """Write what a preview has at an address; whether there is something."""
        from sparkpub.site.pages import runs  # noqa: PLC0415 - see `_build`

        site = self._site or Site({})
        source = f"{path.rstrip('/')}.md"
        uri = source if source in site.runs else path
        file = site.runs.get(uri) or site.files.get(uri)
        if file is None or (uri == path and isinstance(file, SourcePage)):
            return False
        place, data = runs.placed(self._shell, uri, file)
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        with self._one_by_one, replacing(root / place) as written:
            written.write(data)
        return True

    def data(self, config: MkDocsConfig) -> list[Path]:
        """The folders of the campaigns, one's own and those that were gathered."""
        names = self.config.folders.split(os.pathsep)
        first, *others = [self._folder(config) / name for name in names]
        others += owner.gathered(self._folder(config) / GATHERED)
        return [first, *(folder for folder in others if folder.is_dir())]

    def _folder(self, config: MkDocsConfig) -> Path:
        return Path(config.config_file_path).resolve().parent


def _ours(config: MkDocsConfig) -> SparkpubPlugin:
    """The plugin in a configuration. Raises SiteError where it is not there."""
    for plugin in config.plugins.values():
        if isinstance(plugin, SparkpubPlugin):
            return plugin
    where = str(config.config_file_path)
    raise SiteError("no plugin sparkpub", where=where, remedy="add it to plugins:")


@contextmanager
def _in_our_words() -> Iterator[None]:
    """Whatever stops MkDocs meanwhile is a SiteError, with what it warned of."""
    problems: list[str] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            problems.extend(filter(str.strip, record.getMessage().splitlines()))

    handler = Keeping(logging.WARNING)
    engine = logging.getLogger("mkdocs")
    engine.addHandler(handler)
    try:
        yield
    except (MkDocsException, SystemExit) as error:
        # Where MkDocs warns of anything, dead links of the finished site follow from that, or wait.
        own = [line for line in problems if not line.startswith(DEAD_LINK)]
        first, *others = own or problems or [str(error)]
        remedy = "" if "; " in first else "correct it"
        raise SiteError(first, others=others, remedy=remedy) from None
    finally:
        engine.removeHandler(handler)


def serve_site(config_file: Path, address: str) -> None:
    """Serve the site at `HOST:PORT` until Ctrl-C, and build it again as files change. Raises SiteError where it cannot
    begin."""
    with _in_our_words():
        serve_docs(config_file=str(config_file), dev_addr=address)


def build_site(
    config_file: Path,
    site_dir: Path | None,
    data: Sequence[Path] = (),
    sources: Path | None = None,
) -> tuple[Path, bool]:
    """Build strictly with MkDocs, unless the site is there and nothing that decides it has changed. Returns the site's
    folder and whether it was built. Raises SiteError with the reasons where it stops.

    `data` and `sources` take the place of the folders that the configuration names.
    """
    given = {"site_dir": site_dir, "docs_dir": sources}
    paths = {name: str(path.resolve()) for name, path in given.items() if path}
    with _in_our_words():
        config = load_config(str(config_file), strict=True, **paths)
        ours = _ours(config)
        if data:
            folders = os.pathsep.join(str(folder.resolve()) for folder in data)
            ours.config.folders = folders
        site = Path(config.site_dir)
        decided = stamp.of(config, ours.data(config), ours.options(config))
        if stamp.known(site) == decided:
            return site, False
        config.plugins.on_startup(command="build", dirty=False)
        build_docs(config)
        config.plugins.on_shutdown()
    stamp.write(site, decided)
    return site, True
