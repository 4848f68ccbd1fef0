"""Folders of strangers, committed here or as they lie beside the project: what comes in, what is left out by name, and
whether the site of them would build. The mappings are those that `--preview` proposes, corrected where they misread.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from sparkpub.collect.imports import import_results
from sparkpub.collect.imports.given import Given
from sparkpub.collect.imports.starter import builds
from sparkpub.record.record import Record
from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from tests.collect.imports.importing import records_in

_BESIDE = (parent / "shared/strangers" for parent in Path(__file__).parents)
STRANGERS = next(filter(Path.is_dir, _BESIDE), Path("shared/strangers"))
BUNDLE = Path(__file__).parents[2] / "data/strangers"
WHOLE = ("jvr0x-dgx-spark-bench", "rhattala-dgx-spark-bench", "Light-Heart-Labs-MMBT")
"""Owners of whom everything that comes in is committed here."""
MAPPINGS = Path(__file__).parents[3] / "maps"


class Row(NamedTuple):
    """What a folder becomes. Counts were made by hand, of the rows and points of its files."""

    runs: int
    named: int
    """Rows and files that are left out by what they say of themselves."""
    failed: int
    environments: Mapping[str, int]


TABLE = {
    # 199 points in 35 files, 3 of them without a sample; the synthetic file has 14 more.
    "jvr0x-dgx-spark-bench": Row(196, 1, 3, {"vllm-nvfp4-mtp": 45, "vllm-nvfp4": 29}),
    # 4 tables of 7 caps.
    "Light-Heart-Labs-MMBT": Row(28, 0, 0, {"vllm-awq-600w": 4}),
    "rhattala-dgx-spark-bench": Row(43, 0, 0, {"vllm-2-machines": 43}),
    "luongnv89-dgx-spark-llm-lab": Row(18, 0, 0, {"ollama": 4}),
    "heitor-mocelin-dgx-spark-research": Row(144, 0, 2, {"vllm": 116}),
    # 15 rows are what lhl measured on a machine of his own.
    "hogeheer499-strix-halo-guide": Row(34, 15, 0, {"llama.cpp-vulkan-q4-k-m": 5}),
}


def imported(owner: str, data: Path, mapping: Path | None) -> tuple[int, list[Record]]:
    """How much was left out by what it says of itself, and the records."""
    folder = (BUNDLE if owner in WHOLE else STRANGERS) / owner
    if not folder.is_dir():
        pytest.skip(f"needs {folder}")
    given = Given("c", mapping=mapping, environment=None if mapping else "native")
    outcome = import_results(folder, data, given)
    assert outcome.refused == []
    why = [left.reason for left in outcome.skipped]
    named = sum(not reason.startswith("not a result") for reason in why)
    return named, records_in(data)


@pytest.mark.parametrize("owner", TABLE)
def test_a_strangers_folder_means_what_it_is(owner: str, tmp_path: Path) -> None:
    expected = TABLE[owner]
    named, records = imported(owner, tmp_path, MAPPINGS / f"{owner}.yaml")
    found = [record.environment for record in records]
    if owner == "hogeheer499-strix-halo-guide":
        # One column holds rates of prompts, too, up to 1,089; eight users get 173.16.
        rates = (record.value("output_throughput_tok_s") for record in records)
        assert max(rate for rate in rates if rate) == 173.16
    assert (len(records), named) == (expected.runs, expected.named)
    assert sum(record.status != "ok" for record in records) == expected.failed
    assert {name: found.count(name) for name in expected.environments} == dict(
        expected.environments
    )
    errors = [
        finding.message
        for finding in review(load(tmp_path)).findings
        if finding.severity == "error"
    ]
    assert errors == []


def test_tables_in_pages_of_others_are_no_results(tmp_path: Path) -> None:
    """One of them is of an RTX 4090, which was recorded as a Spark."""
    owner = "heitor-mocelin-dgx-spark-research"
    folder = STRANGERS / owner
    if not folder.is_dir():
        pytest.skip(f"needs {folder}")
    outcome = import_results(folder, tmp_path, Given("c"), preview=True)
    assert outcome.records == []
    # Kinds of his own files: sweeps of users in two forms, of contexts, and what he put together of them.
    assert len(outcome.unread) >= 4


def test_one_model_without_a_size_does_not_hide_the_pattern_of_file_names() -> None:
    """GLM-4.7-Flash beside gemma-4-31b: 269 logs of five toolboxes became repetitions, up to ten times apart."""
    names = [
        "gemma-4-31b__rocm.log",
        "gemma-4-31b__radv.log",
        "GLM-4.7-Flash__radv.log",
    ]
    assert builds(names) == "{model}__{variant}.log"
    assert builds(["speed__a.log", "speed__b.log"]) is None
