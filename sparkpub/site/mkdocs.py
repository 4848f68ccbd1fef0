"""MkDocs adapter: the docs tree as virtual files, for `mkdocs serve` and `mkdocs build --strict`."""

import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment
from mkdocs.commands.build import build as build_docs
from mkdocs.config import config_options as option
from mkdocs.config.base import Config, load_config
from mkdocs.config.config_options import ExtraScriptValue
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import MkDocsException, PluginError
from mkdocs.livereload import LiveReloadServer
from mkdocs.plugins import BasePlugin, event_priority
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from sparkpub.record.errors import SiteError, SparkpubError
from sparkpub.record.store import DEFAULT_DATA, write_atomic
from sparkpub.review.cache import user_folder
from sparkpub.review.dataset import Dataset, Loader
from sparkpub.review.memory import Keeper
from sparkpub.site.browser import security
from sparkpub.site.build import build, refuse
from sparkpub.site.content import POSTS, Content, SiteOptions, block_key, fill
from sparkpub.site.disk import page_assets
from sparkpub.site.history import last_commits

log = logging.getLogger("mkdocs.plugins.sparkpub")
_IN_NAV = re.compile(r"^(index\.md|[a-z-]+/index\.md)$")


class SparkpubConfig(Config):  # type: ignore[no-untyped-call] # MkDocs leaves a hook untyped
    """The plugin's options in mkdocs.yml; paths are relative to its folder."""

    folders = option.Type(str, default=str(DEFAULT_DATA))
    """Data folders, with `:` between them. The first must be there; the others are shown where they are."""
    cache = option.Type(str, default=str(user_folder()))
    """Folder for drawings, so that they are made once."""
    templates = option.Optional(option.Dir(exists=True))
    max_run_pages = option.Type(int, default=1000)


class TreeFile(File):
    """A file of the docs tree. A preview that keeps what it built (`mkdocs serve --dirty`) keeps one that is the same
    as in the tree before."""

    unchanged = False

    def is_modified(self) -> bool:
        """Whether the page has to be built again."""
        if self.unchanged:
            return not Path(self.abs_dest_path).is_file()
        return super().is_modified()


class SparkpubPlugin(BasePlugin[SparkpubConfig]):  # type: ignore[no-untyped-call]
    """Adds the docs tree, puts figures into finished pages, and watches what the tree is made from."""

    def __init__(self) -> None:
        self._serving = False
        self._loader = Loader(Keeper.of_user())
        self._whole: Dataset | None = None
        self._tree: Mapping[str, Content] = {}
        self._blocks: dict[str, str] = {}
        self._scripts: list[security.Script] = []

    def on_startup(
        self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool
    ) -> None:
        """Keep this object, and so what it built last, over the rebuilds of a preview."""
        self._serving = command == "serve"

    @event_priority(50)
    def on_files(self, files: Files, *, config: MkDocsConfig) -> Files:
        """Add the docs tree. Bound pages of people take the place of their sources; damaged data stop a build."""
        before = self._tree
        try:
            self._tree = self._build(config)
        except SparkpubError as error:
            lines = error.lines()
            if not self._serving or not self._tree:
                raise PluginError("\n".join(lines)) from None
            for line in lines:
                log.error("%s; the last good pages stay", line)  # noqa: TRY400 - one line, no traceback
        self._blocks = {
            key: html
            for content in self._tree.values()
            for key, html in content.blocks.items()
        }
        style, module = page_assets(self._tree)
        script = ExtraScriptValue(module)
        script.type = "module"
        config.extra_css.append(style)
        config.extra_javascript.append(script)
        # Every page names both, so with new ones every page is new.
        self._put(files, config, before if style in before and module in before else {})
        return files

    def _put(
        self, files: Files, config: MkDocsConfig, before: Mapping[str, Content]
    ) -> None:
        """Add the tree to the engine's files, and take from a preview what is no longer in it."""
        for uri, content in self._tree.items():
            known = files.get_file_from_path(uri)
            if known is not None and content.copy_of is not None:
                continue
            if known is not None:
                files.remove(known)
            file = self._file(config, uri, content)
            file.unchanged = before.get(uri) == content and not uri.startswith(POSTS)
            files.append(file)
        for uri in before.keys() - self._tree.keys():
            if not uri.startswith(POSTS):
                Path(self._file(config, uri, before[uri]).abs_dest_path).unlink(
                    missing_ok=True
                )

    def _build(self, config: MkDocsConfig) -> Mapping[str, Content]:
        folder = self._folder(config)
        data = self._data(config)
        dataset = self._load(data)
        repo_url = (config.repo_url or "").rstrip("/") or None
        options = SiteOptions(
            sources=Path(config.docs_dir),
            cache=folder / self.config.cache,
            name=config.site_name,
            url=config.site_url or "",
            repo_url=repo_url,
            commits=last_commits(folder, data) if repo_url else {},
            repository=folder,
            templates=Path(self.config.templates) if self.config.templates else None,
            max_run_pages=self.config.max_run_pages,
        )
        try:
            refuse(dataset, options)
        except SparkpubError as error:
            if not self._serving:
                raise
            for line in error.lines():
                log.info("a build would stop: %s", line)
        return build(dataset, options)

    def _load(self, data: list[Path]) -> Dataset:
        """The data; in a preview without what is damaged or half written, or as they last were whole."""
        if not self._serving:
            return self._loader.load(*data)
        dataset = self._loader.load(
            *data, skip=lambda line: log.info("left out: %s", line)
        )
        if dataset.skipped and self._whole is not None:
            log.info("the last whole data stay until that is mended")
            return self._whole
        self._whole = None if dataset.skipped else dataset
        return dataset

    def _file(self, config: MkDocsConfig, uri: str, content: Content) -> TreeFile:
        inclusion = InclusionLevel.UNDEFINED
        if uri.endswith(".md") and not _IN_NAV.match(uri) and not uri.startswith(POSTS):
            inclusion = InclusionLevel.NOT_IN_NAV
        place = content.copy_of
        if uri.startswith(POSTS) and place is None:
            place = self._post(config, uri, content)
        if place is not None:
            file = TreeFile.generated(
                config, uri, abs_src_path=str(place), inclusion=inclusion
            )
        else:
            body = content.text or "" if content.data is None else content.data
            file = TreeFile.generated(config, uri, content=body, inclusion=inclusion)
        assert isinstance(file, TreeFile)
        if content.source is not None and config.repo_url and config.edit_uri:
            file.edit_uri = self._source_uri(config, content.source)
        return file

    def _post(self, config: MkDocsConfig, uri: str, content: Content) -> Path:
        """A post as a file: the blog opens its posts itself, so they need a place, outside every watched folder."""
        folder = self._folder(config)
        place = (
            folder
            / self.config.cache
            / "posts"
            / block_key(str(folder))
            / Path(uri).name
        )
        text = (content.text or "").encode()
        if not place.is_file() or place.read_bytes() != text:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(place, text, durable=False)
        return place

    def _source_uri(self, config: MkDocsConfig, source: Path) -> str | None:
        try:
            return f"../{source.resolve().relative_to(self._folder(config)).as_posix()}"
        except ValueError:
            return None

    def on_env(
        self, env: Environment, *, config: MkDocsConfig, files: Files
    ) -> Environment:
        """Learn which inline scripts the theme brings: no other runs."""
        env.auto_reload = False  # every build has an environment of its own
        self._scripts = security.theme_scripts(env)
        return env

    def on_post_page(self, output: str, *, page: Page, config: MkDocsConfig) -> str:
        """Put figures and tables in, name preview picture and feed, and declare the page's policy."""
        root = "../" * page.url.count("/")
        output = fill(output, self._blocks, root)
        output = output.replace(
            "</head>", self._head(page, config, root) + "</head>", 1
        )
        # Material would ask the repository's host for its stars; no page asks another host for anything.
        output = output.replace(' data-md-component="source"', "")
        return security.finish(output, self._scripts)

    def on_post_template(
        self, output_content: str, *, template_name: str, config: MkDocsConfig
    ) -> str:
        """The page for addresses that do not exist is a page as well."""
        if template_name != "404.html":
            return output_content
        return security.finish(output_content, self._scripts)

    def _head(self, page: Page, config: MkDocsConfig, root: str) -> str:
        content = self._tree.get(page.file.src_uri)
        # Two words, since the theme takes a bare "alternate" for a translation and fetches a site map beside it.
        tags = [
            f'<link rel="alternate feed" type="application/atom+xml" title="Posts" href="{root}feed.xml">'
        ]
        if content is not None and content.image and config.site_url:
            address = config.site_url.rstrip("/") + "/" + content.image
            tags.append(f'<meta property="og:image" content="{address}">')
            tags.append('<meta name="twitter:card" content="summary_large_image">')
        return "".join(tags)

    def on_serve(
        self, server: LiveReloadServer, *, config: MkDocsConfig, builder: Any
    ) -> LiveReloadServer:
        """Rebuild when data or templates change; pages are watched anyway."""
        for folder in self._data(config):
            server.watch(str(folder))
        if self.config.templates:
            server.watch(self.config.templates)
        return server

    def _data(self, config: MkDocsConfig) -> list[Path]:
        first, *others = [
            self._folder(config) / name
            for name in self.config.folders.split(os.pathsep)
        ]
        return [first, *(folder for folder in others if folder.is_dir())]

    def _folder(self, config: MkDocsConfig) -> Path:
        return Path(config.config_file_path).resolve().parent


class _Problems(logging.Handler):
    """Keeps what MkDocs warns of, one line each."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the lines of one message."""
        self.lines += [
            line for line in record.getMessage().splitlines() if line.strip()
        ]


def build_site(config_file: Path, site_dir: Path | None) -> str:
    """Build strictly with MkDocs and say where the site lies. Raises SiteError with the reasons where it stops."""
    problems = _Problems()
    engine = logging.getLogger("mkdocs")
    engine.addHandler(problems)
    try:
        config = load_config(
            str(config_file),
            strict=True,
            **({"site_dir": str(site_dir)} if site_dir else {}),
        )
        config.plugins.on_startup(command="build", dirty=False)
        build_docs(config)
        config.plugins.on_shutdown()
    except (MkDocsException, SystemExit) as error:
        first, *others = problems.lines or [str(error)]
        raise SiteError(first, others=others) from None
    finally:
        engine.removeHandler(problems)
    return f"built: {config.site_dir}"
