"""A repository of one's own: matrices that run, a post, claims, workflows. Its files are in `files/`."""

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from sparkpub.record import package
from sparkpub.record.errors import UsageError
from sparkpub.record.settings import DEFAULT_DATA

FILES = Path(__file__).parent / "files"
POST = "site_src/blog/posts/first.md"
_HIDDEN = {"gitignore": ".gitignore", "github": ".github", "vscode": ".vscode"}
"""Names in `files/`, where a leading dot would mean something, and what they become."""
_IMPORTED = "imported.md"
"""The post where results are imported in place of the demonstration."""
DEMO = "matrix/demo.yaml"
_DEMONSTRATION = (POST, "site_src/claims.yaml", DEMO)
_FIRST_COMMAND = f"sparkpub collect {DEMO}     # under a minute on any processor"
_CHECK_COMMAND = (
    "sparkpub check                        # what the checks find in the imported runs"
)


def refuse(folder: Path) -> None:
    """Raise UsageError where the folder is not empty."""
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(
            "the folder is not empty", where=str(folder), remedy="name a new one"
        )


def write(folder: Path, title: str, *, campaign: str | None = None) -> list[Path]:
    """Write the repository into `folder` and return its files. With `campaign` it is about runs imported under that
    name, which are there already. Raises UsageError as `refuse` does."""
    if campaign is None:
        refuse(folder)
    said = _said(title, campaign)
    written = []
    for name, content in _contents(imported=campaign is not None).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for mark, text in said.items():
            content = content.replace(mark, text)  # noqa: PLW2901 - filled in mark by mark
        path.write_text(content, encoding="utf-8")
        written.append(path)
    # Git keeps no empty folder, and a site looks for this one.
    kept = folder / DEFAULT_DATA / ".gitkeep"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.touch()
    return [*written, kept]


def _said(title: str, campaign: str | None) -> Mapping[str, str]:
    """What the marks in the files become."""
    first = _FIRST_COMMAND if campaign is None else _CHECK_COMMAND
    return {
        "@@TITLE@@": title,
        "@@TITLE_YAML@@": json.dumps(title, ensure_ascii=False),
        "@@AUTHORS_YAML@@": json.dumps(f"The authors of {title}", ensure_ascii=False),
        "@@DATE@@": date.today().isoformat(),  # noqa: DTZ011 - the author's own day
        "@@REQUIREMENT@@": package.requirement("site,demo"),
        "@@CAMPAIGN@@": campaign or "",
        "@@FIRST@@": first,
    }


def _contents(*, imported: bool) -> dict[str, str]:
    """Address in the new repository to content, marks included."""
    found: dict[str, str] = {}
    for path in sorted(path for path in FILES.rglob("*") if path.is_file()):
        first, *others = path.relative_to(FILES).parts
        name = "/".join((_HIDDEN.get(first, first), *others))
        found[name] = path.read_text(encoding="utf-8")
    post = found.pop(_IMPORTED)
    if imported:
        for name in _DEMONSTRATION:
            del found[name]
        found[POST] = post
    return found
