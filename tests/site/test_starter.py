"""A repository of one's own: what `init` writes is whole, builds strictly, and says nothing of the committed study."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from mkdocs.utils.yaml import yaml_load

from sparkpub.cli import main
from sparkpub.plan import matrix
from sparkpub.site import starter
from sparkpub.site.crawl import dead_links
from tests.review.test_changes import a_folder

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements/demo.txt"
OF_THE_STUDY = re.compile(
    r"phase1|h200|deepseek|gpt120b|qwen72b|dense7b|published study|analysis report",
    re.IGNORECASE,
)
"""Names of the committed campaigns and their models."""
_DRAWN_LINE = re.compile(r' d="[^"]*"')
"""The path of an SVG: in it, h200 is a line."""
TABLE = """\
model,environment,started,tok,temp,watt,fit
a,native,2026-01-01T10:00:00Z,10.5,4,,9
a,native,2026-01-01T10:10:00Z,10.6,4,,9
a,container,2026-01-01T10:05:00Z,10.1,5,,9
a,container,2026-01-01T10:15:00Z,10.2,,,9
"""
"""No run has its watts, as on a machine without the sensor: that metric has no page, and nothing may link to it. Nor
has any run the size of the cache, of which the tokens that fit into it are computed."""
MAPPING = """\
run: {model: model, environment: environment, started: started}
same: {workload: w}
metrics:
  output_throughput_tok_s: tok
  gpu_temp_end_celsius: temp
  gpu_power_mean_watt: watt
  kv_cache_tokens: fit
"""


def run(*argv: str, cwd: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", **variables}
    return subprocess.run(
        argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def called(monkeypatch: pytest.MonkeyPatch, *argv: str) -> int:
    monkeypatch.setattr(sys, "argv", ["sparkpub", *argv])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_every_file_is_written_and_no_mark_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    written = starter.write(folder, 'Spark: "one" #2')
    names = {path.relative_to(folder).as_posix() for path in written}
    workflows = {f".github/workflows/{name}.yml" for name in ("check", "publish")}
    assert workflows | {"README.md", ".gitignore", "sparkpub.txt"} <= names
    assert {path for path in folder.rglob("*") if path.is_file()} == set(written)
    assert not [path for path in written if "@@" in path.read_text()]
    settings = yaml_load((folder / "mkdocs.yml").read_text())
    assert settings["site_name"] == 'Spark: "one" #2'
    assert (folder / "requirements.txt").read_text() == LOCK.read_text()
    assert not (folder / "requirements.txt").is_symlink()


def test_a_repository_is_made_whose_pages_speak_of_runs_to_come(
    tmp_path: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is pushed first has no run. Its workflow builds the site all the same."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.org")
    folder = tmp_path / "mine"
    assert called(monkeypatch, "init", str(folder), "--title", "Mine") == 0
    *_, last = capsys.readouterr().out.splitlines()
    assert (
        last
        == f"next: cd {folder} && sparkpub collect matrix/demo.yaml && sparkpub serve"
    )
    assert run("git", "status", "--porcelain", cwd=folder).stdout == ""
    assert run("git", "log", "--format=%s", cwd=folder).stdout == "Start Mine\n"
    argv = [sys.executable, "-m", "sparkpub", "build"]
    built = run(*argv, cwd=folder, XDG_CACHE_HOME=str(cache))
    assert built.returncode == 0, built.stderr
    post = (folder / "site/blog/first/index.html").read_text()
    assert "not measured yet" in post
    page = (folder / "site/campaigns/demo/index.html").read_text()
    assert "0 of 20 planned runs are done" in page


def test_a_folder_that_is_not_empty_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kept").write_text("mine")
    assert called(monkeypatch, "init", str(tmp_path)) == 2
    assert capsys.readouterr().err == (
        f"error: the folder is not empty, {tmp_path}; name a new one\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_its_matrices_are_whole(tmp_path: Path) -> None:
    starter.write(tmp_path / "mine", "T")
    found = sorted((tmp_path / "mine/matrix").iterdir())
    kinds = set()
    for path in found:
        declared = matrix.read(path)
        assert declared.campaign in path.stem
        kinds |= {options.type for options in declared.workloads.values()}
    assert kinds == {
        "ctranslate2",
        "command",
        "vllm-bench",
        "llama-bench",
        "trtllm-bench",
    }


def test_its_settings_are_those_of_this_site(tmp_path: Path) -> None:
    starter.write(tmp_path / "mine", "T")
    ours: dict[str, Any] = yaml_load((ROOT / "mkdocs.yml").read_text())
    theirs: dict[str, Any] = yaml_load((tmp_path / "mine/mkdocs.yml").read_text())
    for settings in (ours, theirs):
        for name in ("site_name", "site_description", "nav"):
            del settings[name]
    assert theirs == ours


def test_a_site_of_imported_results_builds_and_says_nothing_of_the_study(
    tmp_path: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The strict build finds no dead link, without claims and with several campaigns."""
    (tmp_path / "runs.csv").write_text(TABLE)
    (tmp_path / "map.yaml").write_text(MAPPING)
    folder = tmp_path / ".hidden" / "mine"
    argv = ["init", str(folder), "--from", str(tmp_path / "runs.csv")]
    argv += ["--mapping", str(tmp_path / "map.yaml"), "--campaign", "own"]
    assert called(monkeypatch, *argv) == 0
    assert "4 imported" in capsys.readouterr().out
    data = folder / "data/comprehensive/own"
    assert len(list(data.glob("*_iter0?_*Z.json"))) == 4
    assert not (folder / "matrix/demo.yaml").exists()
    for number in range(2):
        a_folder(data.parent, {"native": [10.0 + number]}, f"other{number}")

    argv = [sys.executable, "-m", "sparkpub", "build"]
    built = run(*argv, cwd=folder, XDG_CACHE_HOME=str(cache))
    assert built.returncode == 0, built.stderr
    site = folder / "site"
    assert dead_links(site, "") == []
    assert (site / "claims/facts/index.html").is_file()
    assert (site / "method/statistics/index.html").is_file()
    post = (site / "blog/first/index.html").read_text()
    assert "4 runs" in re.sub(r"\s+|&nbsp;|\u202f|\xa0", " ", post)
    said = {
        f"{path.relative_to(site)}: {found[0]}"
        for path in site.rglob("*.html")
        for found in OF_THE_STUDY.finditer(_DRAWN_LINE.sub("", path.read_text()))
    }
    assert said == set()


def wheel(folder: Path) -> Path:
    """The package as it is published, built from this repository."""
    options = [
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(folder),
    ]
    built = run(sys.executable, "-m", "pip", "wheel", *options, str(ROOT), cwd=folder)
    assert built.returncode == 0, built.stderr
    (found,) = folder.glob("*.whl")
    return found


def test_the_wheel_has_every_file_of_the_package(tmp_path: Path) -> None:
    archive = zipfile.ZipFile(wheel(tmp_path))
    names = set(archive.namelist())
    lock = archive.read("sparkpub/site/starter/files/requirements.txt")
    assert lock == LOCK.read_bytes()
    package = ROOT / "sparkpub"
    missing = [
        path
        for path in package.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.relative_to(ROOT).as_posix() not in names
    ]
    assert missing == []
