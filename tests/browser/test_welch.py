"""The browser's comparison against the one that publishes: `sparkpub.review.statistics.compare` is the reference."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from sparkpub.review.statistics.compare import adjust, compare
from sparkpub.site.browser.runtime import ASSETS

pytestmark = pytest.mark.node
PROGRAM = """
import {compare, judge} from './welch.mjs';
import {readFileSync} from 'node:fs';
const pairs = JSON.parse(readFileSync('pairs.json', 'utf8'));
console.log(JSON.stringify(judge(pairs.map(([a, b]) => compare(a, b, {margin: 1, unit: 'GiB'})))));
"""


def samples() -> list[tuple[list[float], list[float]]]:
    """Pairs of different sizes and distances, rounded as records are; one without spread and one of single runs."""
    random = np.random.default_rng(7)
    found = [
        ([round(v, 3) for v in random.normal(100, spread, n)], [round(v, 3) for v in random.normal(mean, spread, m)])
        for n, m, mean, spread in [
            (10, 10, 100.1, 0.2), (10, 10, 101.4, 0.5), (4, 12, 97, 3), (30, 5, 100, 9), (3, 3, 150, 1), (8, 8, 99.2, 1)
        ]
    ]  # fmt: skip
    return [*found, ([5.0] * 6, [5.0] * 6), ([7.5], [9.25])]


def test_browser_and_build_agree(tmp_path: Path) -> None:
    pairs = samples()
    shutil.copy(ASSETS / "welch.js", tmp_path / "welch.mjs")
    (tmp_path / "program.mjs").write_text(PROGRAM)
    (tmp_path / "pairs.json").write_text(json.dumps(pairs))
    answer = subprocess.run(["node", "program.mjs"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    family = adjust([compare(a, b, order="random", margin_percent=1, unit="GiB") for a, b in pairs])
    for ours, reference in zip(json.loads(answer), family, strict=True):
        assert ours["verdict"] == reference.verdict
        if reference.ci95_difference is None:
            assert (ours["p"], ours["equivalence"], ours["interval"]) == (None, None, None)
        else:
            assert ours["p"] == pytest.approx(reference.p_adjusted, rel=1e-6, abs=1e-12)
            assert ours["equivalence"] == pytest.approx(reference.equivalence_p_adjusted, rel=1e-6, abs=1e-12)
            assert ours["interval"] == pytest.approx(reference.ci95_difference, rel=1e-6, abs=1e-9)
