"""What every site has without writing it: the guide, the method reference, the machines, the page of claims, the list
of facts, licences.

A page of the same address among a site's own takes the place of one here.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
FACTS = FOLDER / "facts.yaml"
CLAIMS_PAGE = "claims/index.md"
"""Not there where a site has no claims."""
HARDWARE_PAGE = "hardware.md"
"""Not there where a site has no runs."""


def pages(*, has_claims: bool, has_runs: bool) -> dict[str, Path]:
    """Address in the docs tree to the Markdown of each page that has something to show, and to each drawing."""
    found = {
        path.relative_to(FOLDER).as_posix(): path
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in (".md", ".svg")
    }
    if not has_claims:
        del found[CLAIMS_PAGE]
    if not has_runs:
        del found[HARDWARE_PAGE]
    return found


def navigation(entries: list[Any], there: Collection[str]) -> list[Any]:
    """The `nav` of mkdocs.yml without pages that a site may lack and that are not `there`. Any other wrong address
    stays, for the engine to warn of."""
    may_lack = pages(has_claims=True, has_runs=True).keys()
    return _without(entries, may_lack - set(there))


def _without(entries: list[Any], missing: Collection[str]) -> list[Any]:
    kept: list[Any] = []
    for entry in entries:
        title, page = None, entry
        if isinstance(entry, dict) and len(entry) == 1:
            ((title, page),) = entry.items()
        if isinstance(page, list):
            page = _without(page, missing)
        elif isinstance(page, str) and page in missing:
            continue
        if page == []:
            continue
        kept.append(page if title is None else {title: page})
    return kept
