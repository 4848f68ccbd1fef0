"""What every site has without writing it: the guide, the method reference, the machines, the page of claims, the list
of facts, licences.

A page of the same address among a site's own takes the place of one here.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
FACTS = FOLDER / "facts.yaml"


def pages() -> dict[str, Path]:
    """Address in the docs tree to the Markdown of each page, and to each drawing."""
    return {
        path.relative_to(FOLDER).as_posix(): path
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in (".md", ".svg")
    }
