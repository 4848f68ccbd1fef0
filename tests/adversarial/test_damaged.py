"""Damaged inputs of every kind are read, or refused in a line: no traceback, nothing that hangs.

`python -m benchmarks.outside` tries ten thousand and writes down what it found.
"""

from pathlib import Path

import pytest

from tests.adversarial import inputs

KINDS = inputs.kinds()
EVERY_TIME = 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_input_is_read(kind: str, tmp_path: Path) -> None:
    """Else damage to it would prove nothing."""
    for number, (name, content) in enumerate(sorted(KINDS[kind].corpus.items())):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert inputs.outcome(KINDS[kind], name, content, folder) is None


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_inputs_are_read_or_refused(kind: str, tmp_path: Path) -> None:
    for number, name, content in inputs.inputs(KINDS[kind], 0, EVERY_TIME):
        folder = tmp_path / str(number)
        folder.mkdir()
        problem = inputs.outcome(KINDS[kind], name, content, folder)
        assert problem is None, f"seed {number}, {name}: {problem!r}"
