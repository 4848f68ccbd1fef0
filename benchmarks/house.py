"""`python -m benchmarks.house`: how much there is to read, room by room, beside projects that people like to read.

A token is what Python's own tokenizer calls one, without comments, docstrings and line ends; a code line is a line
that holds one. Lines alone say little, since they can be folded: tokens are what a reader pays for, and tokens per
line how dense the page is.
"""

import ast
import io
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import harness
from benchmarks.harness import ROOT, Row, row

ROOMS = ("record", "plan", "collect", "review", "site", "cli")
PEERS = ("mkdocs", "pyperf", "asv")
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
"""Tokens that hold no code."""


@dataclass(frozen=True)
class Size:
    """What there is to read in some modules."""

    modules: int
    tokens: int
    lines: int
    conditional_expressions: int
    comprehensions: int

    @property
    def density(self) -> float:
        """Tokens per code line."""
        return self.tokens / self.lines

    def per_thousand_lines(self, count: int) -> float:
        """A count per 1,000 code lines."""
        return 1000 * count / self.lines


def size(paths: Iterable[Path]) -> Size:
    """The modules taken together."""
    modules = tokens = lines = conditions = comprehensions = 0
    for path in paths:
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        code = list(_code_tokens(source, _docstring_lines(tree)))
        modules += 1
        tokens += len(code)
        lines += len(
            {
                number
                for token in code
                for number in range(token.start[0], token.end[0] + 1)
            }
        )
        kinds = Counter(type(node) for node in ast.walk(tree))
        conditions += kinds[ast.IfExp]
        comprehensions += sum(
            kinds[kind]
            for kind in (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
        )
    return Size(modules, tokens, lines, conditions, comprehensions)


def _code_tokens(source: str, docstrings: set[int]) -> Iterator[tokenize.TokenInfo]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        documents = token.type == tokenize.STRING and token.start[0] in docstrings
        if token.type not in LAYOUT and not documents:
            yield token


def _docstring_lines(tree: ast.Module) -> set[int]:
    """Lines of strings that stand alone: docstrings, and those below attributes."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def arrows(package: Path) -> Counter[tuple[str, str]]:
    """(importing room, imported room) to the number of modules that import so."""
    found: Counter[tuple[str, str]] = Counter()
    for room in ROOMS:
        for path in sorted((package / room).rglob("*.py")):
            for target in _rooms_imported(path, package.name) - {room}:
                found[room, target] += 1
    return found


def _rooms_imported(path: Path, package: str) -> set[str]:
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        parts = node.module.split(".")
        if parts[0] != package:
            continue
        rooms.update(parts[1:2] or (name.name for name in node.names))
    return rooms & set(ROOMS)


def peer_modules(name: str, folder: Path) -> list[Path]:
    """The modules of a package as the package index delivers it, without its tests."""
    argv = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(folder / name),
        name,
    ]
    subprocess.run(argv, check=True, capture_output=True)
    return [
        path
        for path in sorted((folder / name / name).rglob("*.py"))
        if not {"test", "tests"} & set(path.parts)
    ]


def measure() -> tuple[list[Row], list[str]]:
    """Rows for the report, and the arrows as notes."""
    package = ROOT / "sparkpub"
    ours = size(sorted(package.rglob("*.py")))
    with tempfile.TemporaryDirectory() as scratch:
        peers = {name: size(peer_modules(name, Path(scratch))) for name in PEERS}
    rows = [
        row("tokens in all", [ours.tokens], "tokens"),
        row("modules", [ours.modules], ""),
    ]
    for room in ROOMS:
        inside = size(sorted((package / room).rglob("*.py")))
        rows.append(
            row(
                f"`{room}`: {inside.modules} modules, {inside.density:.1f} tokens a line",
                [inside.tokens],
                "tokens",
            )
        )
    for name, peer in peers.items():
        against = f"{name}, {peer.tokens:,} tokens in {peer.modules} modules"
        rows.append(
            row(
                "tokens per code line",
                [ours.density],
                "",
                against=(against, [peer.density]),
            )
        )
    for name, peer in peers.items():
        rows += [
            row(
                "conditional expressions per 1,000 lines",
                [ours.per_thousand_lines(ours.conditional_expressions)],
                "",
                against=(name, [peer.per_thousand_lines(peer.conditional_expressions)]),
            ),
            row(
                "comprehensions per 1,000 lines",
                [ours.per_thousand_lines(ours.comprehensions)],
                "",
                against=(name, [peer.per_thousand_lines(peer.comprehensions)]),
            ),
        ]
    notes = [
        f"`{room}` imports `{target}` in {count} modules."
        for (room, target), count in sorted(arrows(package).items())
    ]
    return rows, notes


def main() -> None:
    """Measure and write the result."""
    harness.parser(__doc__).parse_args()
    rows, notes = measure()
    question = "How much is there to read, how dense is it, and which room needs which?"
    print(
        harness.save(
            "house", title="The house", question=question, rows=rows, notes=notes
        )
    )


if __name__ == "__main__":
    main()
