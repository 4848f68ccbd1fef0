"""The shape of the package: arrows that point one way, what stays out of which half, and budgets."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sparkpub import __version__, cli

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "sparkpub"
MODULES = sorted(PACKAGE.rglob("*.py"))

STATISTICS = "review.statistics"
MAY_IMPORT: dict[str, set[str]] = {
    "record": set(),
    "tools": {"record"},
    "plan": {"record", "tools"},
    STATISTICS: {"record"},
    "collect": {"record", "tools", "plan", STATISTICS},
    "review": {"record", "tools", "plan", STATISTICS},
    "site": {"record", "tools", "plan", "review", STATISTICS},
}
"""Room -> the rooms it may import. `statistics` is pure arithmetic, a part of `review` that reads nothing: the
collector repeats an outlier by the rule with which the review finds it."""
MEASURING = {"record", "tools", "plan", STATISTICS, "collect"}
"""Left of the disk."""
PUBLISHING = {"review", "site"}
"""Right of the disk."""
EDGE = {"__init__", "__main__", "cli", "schemas"}
"""May import everything; `__init__` holds the version alone, and `schemas` describes what people write for any room."""

HEAVY = {"pandas", "altair", "mkdocs", "jinja2", "vl_convert", "pyarrow"}
"""What is not loaded on a machine that measures."""
SENSORS = ("docker", "pynvml")
READS_WITH = {
    "tools/forms.py": ("pyarrow", "where somebody imports Parquet"),
}
"""Left of the disk, what each may import all the same, within a function, and when."""
STARTS_PROCESSES = {
    "site/workers.py": "judges campaigns and draws charts in other processes",
}
"""Right of the disk, and why each may."""


def unit_of(path: Path) -> str:
    return unit_named(".".join(path.relative_to(PACKAGE).with_suffix("").parts))


def unit_named(module: str) -> str:
    """The unit of a module, given by its name within the package."""
    return (
        STATISTICS
        if f"{module}.".startswith(f"{STATISTICS}.")
        else module.split(".", maxsplit=1)[0]
    )


def imports_of(path: Path, *, for_types: bool = True) -> Iterator[str]:
    """Every imported module, those inside functions too; on request without those that only a type checker sees."""
    tree = ast.parse(path.read_text())
    if not for_types:
        tree.body = [
            node
            for node in tree.body
            if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node))
        ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (
                [f"sparkpub.{a.name}" for a in node.names]
                if node.module == "sparkpub"
                else [node.module]
            )


def allowed(path: Path) -> set[str]:
    """Packages of the site that a module of the measuring half may import when they are needed."""
    return set(READS_WITH.get(str(path.relative_to(PACKAGE)), ())[:1])


def units_imported(path: Path) -> set[str]:
    names = {
        name.removeprefix("sparkpub.")
        for name in imports_of(path)
        if name.startswith("sparkpub.")
    }
    return {unit_named(name) for name in names} - {"__version__"}


def test_arrows_point_one_way() -> None:
    bad = [
        f"{path.relative_to(ROOT)} imports {target}"
        for path in MODULES
        if (unit := unit_of(path)) not in EDGE
        for target in units_imported(path) - MAY_IMPORT.get(unit, set()) - {unit}
    ]
    assert not bad, "\n".join(bad)


def test_modules_have_no_cycle() -> None:
    names = {
        ".".join(("sparkpub", *path.relative_to(PACKAGE).with_suffix("").parts)): path
        for path in MODULES
    }
    graph = {
        name: {
            target for target in imports_of(path, for_types=False) if target in names
        }
        for name, path in names.items()
    }
    assert list(TopologicalSorter(graph).static_order())


def test_measuring_imports_nothing_of_the_site_and_the_site_no_sensor() -> None:
    bad = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in MODULES
        for name in imports_of(path)
        if (unit_of(path) in MEASURING and name.split(".")[0] in HEAVY - allowed(path))
        or (unit_of(path) in PUBLISHING and name.split(".")[0] in SENSORS)
    ]
    assert not bad, "\n".join(bad)


def test_only_named_modules_of_the_site_start_processes() -> None:
    found = {
        str(path.relative_to(PACKAGE))
        for path in MODULES
        if unit_of(path) in PUBLISHING
        and any(
            name.split(".")[0] in {"subprocess", "multiprocessing", "concurrent"}
            for name in imports_of(path)
        )
    }
    assert found <= set(STARTS_PROCESSES)


def test_what_measures_loads_on_a_machine_without_the_site(tmp_path: Path) -> None:
    """Not what the source says but what happens: import it all, in a process where the site's packages fail."""
    names = [
        ".".join(
            ("sparkpub", *path.relative_to(PACKAGE).with_suffix("").parts)
        ).removesuffix(".__init__")
        for path in MODULES
        if (unit_of(path) in MEASURING or unit_of(path) == "cli")
        and "payload" not in path.parts
    ]
    program = (
        "import importlib, json, sys\n"
        f"for name in {HEAVY!r}: sys.modules[name] = None\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not {"torch", "transformers", "playwright", *SENSORS} & set(
        json.loads(done.stdout)
    ), "import them when used"


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        # The help, and the names that a shell completes: they read neither records nor matrices.
        ("sparkpub.cli", {"pydantic", "numpy", "yaml", *HEAVY}),
        # It starts before every run, beside what is measured.
        ("sparkpub.collect.sampler", {"pydantic", "numpy", "yaml", *HEAVY}),
        # A build where nothing changed: tables and charts are for one that has something to compute.
        ("sparkpub.site.mkdocs", HEAVY - {"mkdocs", "jinja2"} | {"numpy"}),
        # `check`: scipy.stats takes longer to import than the review of sixty runs.
        ("sparkpub.review.checks", {"scipy.stats", "statsmodels"}),
    ],
)
def test_starts_light(module: str, heavy: set[str]) -> None:
    program = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.check_output(
        [sys.executable, "-c", program], cwd=ROOT, text=True
    )
    assert not heavy & set(loaded.split())


def types_of(path: Path) -> Iterator[str]:
    """The names of classes and of aliases of types that a module defines for others."""
    for statement in ast.parse(path.read_text()).body:
        match statement:
            case ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
                if re.match(r"[A-Z]\w*[a-z]", name):
                    yield name


def test_a_type_has_a_name_of_its_own() -> None:
    """Who reads `Cell` in one room must not have to ask which one is meant."""
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for name in types_of(path):
            homes.setdefault(name, []).append(str(path.relative_to(PACKAGE)))
    assert len(homes) > 100
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


FORBIDDEN = re.compile(
    "|".join(
        (
            r"py" r"pi\.org",
            r"python" r"hosted\.org",
            r"registry\.np" r"mjs\.org",
            r"download\.py" r"torch\.org",
            r"(?<![\w.<{-])/(?:work|root)/",
            r"\bTO" r"DO\b",
            r"\bFIX" r"ME\b",
            r"^(?:<{7}|>{7}) ",
        )
    ),
    re.MULTILINE,
)
"""Hosts of package registries, paths of one machine, work left undone, merges left unresolved."""


def test_nothing_points_at_one_machine_or_registry() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    bad = []
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if name.startswith(("data/", "tests/data/")) or not path.is_file():
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        bad += [
            f"{name}:{text.count(chr(10), 0, found.start()) + 1}: {found[0]}"
            for found in FORBIDDEN.finditer(text)
        ]
    assert not bad, "\n".join(bad)


def test_the_lock_covers_what_is_declared() -> None:
    """Every dependency of pyproject.toml stands in its lock with a version that satisfies it, and a hash."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    core, extras = (
        project["project"]["dependencies"],
        project["project"]["optional-dependencies"],
    )
    site = core + extras["site"]
    demo = site + extras["demo"]
    wanted = {"collect": core, "site": site, "demo": demo, "dev": demo + extras["dev"]}
    for kind, requirements in wanted.items():
        locked = _locked(ROOT / "requirements" / f"{kind}.txt")
        for requirement in map(
            Requirement, requirements + project["dependency-groups"]["build"]
        ):
            versions = locked.get(canonicalize_name(requirement.name), [])
            assert versions, (
                f"{requirement.name} is not in requirements/{kind}.txt; run scripts/lock"
            )
            assert all(map(requirement.specifier.contains, versions)), (
                f"{requirement} in requirements/{kind}.txt"
            )


def _locked(path: Path) -> dict[str, list[str]]:
    """Name to the versions locked (one per range of Python versions)."""
    found: dict[str, list[str]] = {}
    for entry in re.split(r"\n(?=\S)", path.read_text().strip()):
        name, version = re.split(r"==| |;", entry, maxsplit=2)[:2]
        assert "--hash=sha256:" in entry, f"{name} has no hash in {path.name}"
        found.setdefault(canonicalize_name(name), []).append(version.strip())
    return found


def test_the_version_is_the_same_everywhere() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert (
        re.search(
            r"^## (\S+?)[,\s]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
        )[1]
        == __version__
    )


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_of_the_front_pages_lead_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / name).read_text())
    assert [
        link
        for link in links
        if "://" not in link and not (ROOT / link.split("#")[0]).exists()
    ] == []


def test_every_command_and_script_the_readme_names_exists() -> None:
    text = (ROOT / "README.md").read_text()
    code = "\n".join(
        "".join(found)
        for found in re.findall(r"```sh\n(.*?)```|`([^`\n]+)`", text, re.DOTALL)
    )
    assert set(re.findall(r"scripts/([\w-]+)", code)) <= {
        path.name for path in (ROOT / "scripts").iterdir()
    }
    assert set(re.findall(r"^sparkpub (\w+)", code, re.MULTILINE)) <= set(
        cli.cli.commands
    )
