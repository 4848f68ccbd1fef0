"""The page of one campaign without a repository: a small site, built and served for as long as it is looked at."""

import http.server
import json
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from sparkpub.record.store import COLLECTORS_FOLDERS
from sparkpub.site.mkdocs import build_site

_CONFIG = """site_name: {title}
site_url: {address}
docs_dir: pages
site_dir: site
theme:
  name: material
  font: false
  logo: assets/sparkpub/icon.svg
  favicon: assets/sparkpub/icon.svg
plugins:
  - search
  - sparkpub:
      folders: {data}
markdown_extensions: [abbr, admonition, attr_list, footnotes, md_in_html, tables, pymdownx.details,
  pymdownx.highlight, pymdownx.superfences, {{toc: {{permalink: true}}}}]
"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Files of a folder; who asks for them is nobody's business."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def page(campaign: Path, title: str) -> Iterator[tuple[str, threading.Event]]:
    """The address of the page of a campaign's folder, on this machine alone, and an event that ends the wait for it.

    The site is gone afterwards. Raises SiteError where the review stops the build.
    """
    with tempfile.TemporaryDirectory(prefix="sparkpub-") as name:
        folder = Path(name)
        handler = partial(_Quiet, directory=str(folder / "site"))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        address = f"http://127.0.0.1:{server.server_port}/"
        try:
            build(campaign, title, folder, address)
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            yield f"{address}campaigns/{campaign.name}/", threading.Event()
            server.shutdown()
        finally:
            server.server_close()


def build(campaign: Path, title: str, folder: Path, address: str) -> Path:
    """A site about a campaign's folder, in `folder`. Raises SiteError where the review stops the build."""
    (folder / "pages").mkdir()
    (folder / "data").mkdir()
    ignored = shutil.ignore_patterns(*COLLECTORS_FOLDERS)
    shutil.copytree(campaign, folder / "data" / campaign.name, ignore=ignored)
    config = folder / "mkdocs.yml"
    words = {"title": title, "address": address, "data": str(folder / "data")}
    quoted = {name: json.dumps(text) for name, text in words.items()}
    config.write_text(_CONFIG.format(**quoted), encoding="utf-8")
    site, _ = build_site(config, None)
    return site
