"""`python -m sparkpub.site.zensical mkdocs.yml FOLDER`: the site as Markdown and data, configured for Zensical.

Zensical reads the configuration of MkDocs and runs none of its plugins, so what our plugin does comes before it.
"""

import os
import sys
from pathlib import Path
from typing import Any

import yaml
from mkdocs.utils.yaml import yaml_load

from sparkpub.record.errors import SparkpubError
from sparkpub.record.settings import DEFAULT_DATA
from sparkpub.review.dataset import load
from sparkpub.site import disk, manual
from sparkpub.site.build import build, refuse
from sparkpub.site.content import SiteOptions
from sparkpub.site.history import last_commits

PLUGIN = "sparkpub"
DOCS = "docs"
CONFIG = "mkdocs.yml"


def render(config_file: Path, out: Path) -> None:
    """Write pages and files below `out`/docs and the configuration beside them; the site goes to its usual folder.

    Raises SparkpubError where the site must not be published.
    """
    with config_file.open(encoding="utf-8") as file:
        settings: dict[str, Any] = yaml_load(file)
    project = config_file.resolve().parent
    plugin, others = _without_ours(settings["plugins"])
    names = str(plugin.get("folders", DEFAULT_DATA)).split(os.pathsep)
    folders = [project / name for name in names]
    repo_url = settings.get("repo_url")
    options = SiteOptions(
        sources=project / settings["docs_dir"],
        name=settings["site_name"],
        url=settings.get("site_url") or "",
        repo_url=repo_url,
        commits=last_commits(project, folders) if repo_url else {},
        repository=project,
    )
    dataset = load(*folders)
    refuse(dataset, options)
    tree = build(dataset, options)
    disk.write(tree, out / DOCS)
    style, module = disk.page_assets(tree)
    if "nav" in settings:
        settings["nav"] = manual.navigation(settings["nav"], tree)
    settings |= {
        "docs_dir": DOCS,
        "site_dir": os.path.relpath(project / settings.get("site_dir", "site"), out),
        "plugins": others,
        "extra_css": [style],
        "extra_javascript": [{"path": module, "type": "module"}],
    }
    text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
    (out / CONFIG).write_text(text, encoding="utf-8")


def _without_ours(plugins: list[Any]) -> tuple[dict[str, Any], list[Any]]:
    """The settings of our plugin, and the other plugins as they were listed."""
    ours: dict[str, Any] = {}
    others = []
    for plugin in plugins:
        if plugin == PLUGIN:
            continue
        if isinstance(plugin, dict) and PLUGIN in plugin:
            ours = plugin[PLUGIN] or {}
        else:
            others.append(plugin)
    return ours, others


if __name__ == "__main__":
    try:
        render(Path(sys.argv[1]), Path(sys.argv[2]))
    except SparkpubError as error:
        sys.exit("\n".join(error.lines()))
