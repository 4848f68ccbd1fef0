"""A stranger's path, from the wheel in an empty environment to a site in a browser."""

import re
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import PREFIX, served
from tests.site.test_starter import ROOT, run, wheel

TYPED = "A typed figure: 12 tok/s."


@pytest.mark.slow
def test_a_strangers_path_from_the_wheel(tmp_path: Path, chromium: Any) -> None:
    """The commands of the new README; a planted error, which the build refuses; and the site below a sub-path."""
    place = tmp_path / "venv"
    venv.create(place, with_pip=True)
    python = str(place / "bin/python")
    lock = tmp_path / "constraints.txt"
    text = (ROOT / "requirements/demo.txt").read_text()
    lock.write_text("\n".join(re.findall(r"^[\w.-]+==[^\\\n]+", text, re.MULTILINE)))
    package = f"{wheel(tmp_path)}[site,demo]"
    options = ["--quiet", "--constraint", str(lock), package]
    installed = run(python, "-m", "pip", "install", *options, cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    program = str(place / "bin/sparkpub")
    clean = {
        "PYTHONPATH": "",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "SPARKPUB_STATE": str(tmp_path / "state"),
    }

    def passes(*argv: str, cwd: Path) -> None:
        done = run(*argv, cwd=cwd, **clean)
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"

    passes(program, "init", "mine", "--title", "Mine", cwd=tmp_path)
    mine = tmp_path / "mine"
    passes(program, "collect", "matrix/demo.yaml", cwd=mine)
    passes(program, "collect", "matrix/command.yaml", cwd=mine)

    post = mine / "site_src/blog/posts/first.md"
    whole = post.read_text()
    post.write_text(f"{whole}\n{TYPED}\n")
    refused = run(program, "build", cwd=mine, **clean)
    assert refused.returncode == 1
    notice, line = refused.stderr.splitlines()
    assert "site_url in mkdocs.yml" in notice
    assert line.startswith("error: ")
    number = len(whole.splitlines()) + 2
    assert f"first.md:{number}: '12 tok/s' is typed into the text" in line
    assert not (mine / "site").exists()
    post.write_text(whole)

    passes(program, "build", cwd=mine)
    passes(str(place / "bin/mkdocs"), "build", "--strict", cwd=mine)
    look_at(chromium, mine / "site")


def look_at(chromium: Any, site: Path) -> None:
    """Visit the site below a sub-path, by its own links: no error, nothing from elsewhere."""
    hosts = served(chromium, site)
    host = next(hosts)
    assert host.address.endswith(PREFIX)
    visit = host.open()
    page = visit.page
    page.get_by_role("link", name="Blog", exact=True).first.click()
    page.wait_for_url("**/blog/")
    page.get_by_role("link", name="From a matrix to a page").first.click()
    page.wait_for_url("**/blog/first/")
    assert "tok/s" in page.locator("article").inner_text()
    assert page.locator(".sp-supported").count() == 1
    assert visit.errors == visit.elsewhere == []

    problems = {}
    for path in sorted(site.rglob("index.html")):
        uri = path.parent.relative_to(site).as_posix()
        if uri.startswith("runs/") and not uri.endswith("iter01"):
            continue
        visit = host.open("" if uri == "." else f"{uri}/")
        visit.page.wait_for_load_state("networkidle")
        if visit.errors or visit.elsewhere:
            problems[uri] = [*visit.errors, *visit.elsewhere]
        visit.page.context.close()
    assert problems == {}
    next(hosts, None)
