"""Empty cells in the header of a Markdown table, as plain cells.

Markdown makes every cell of the first row a header. An empty header names nothing, and a screen reader would read it
out with every cell below it.
"""

from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor

AFTER_INLINE = 15
"""Priority below that of Markdown's own inline processor (20), which gives cells their content."""


class EmptyHeaderCells(Extension):  # type: ignore[misc] # Markdown has no types
    """The extension for Markdown's list of extensions."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - Markdown's name for the hook
        """Register the processor."""
        md.treeprocessors.register(_Processor(md), "empty-header-cells", AFTER_INLINE)


class _Processor(Treeprocessor):  # type: ignore[misc]
    def run(self, root: Element) -> None:
        for cell in root.iter("th"):
            if len(cell) == 0 and not (cell.text or "").strip():
                cell.tag = "td"
