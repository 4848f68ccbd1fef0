"""What becomes of folders of every kind, by `data/imports/cases.yaml`: records, what was left out, and what is said."""

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkpub.collect.imports import import_results
from sparkpub.collect.imports.given import About, Given
from sparkpub.record.errors import SparkpubError
from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from sparkpub.tools.where import at
from tests.collect.imports.importing import RESULTS, imported

LISTED = yaml.safe_load((RESULTS / "cases.yaml").read_text())
CASES: dict[str, dict[str, Any]] = {case["case"]: case for case in LISTED}


def content(said: Any) -> bytes:
    """A text as it stands, or a fixture, changed."""
    if isinstance(said, str):
        return said.encode()
    text = (RESULTS / said["of"]).read_text()
    if "lines" in said:
        text = "\n".join(text.splitlines()[number] for number in said["lines"])
    if "with" in said:
        document = json.loads(text)
        for where, value in said["with"].items():
            *around, name = where.split(".")
            part = at(document, ".".join(around)) if around else document
            part[name] = value
        text = json.dumps(document)
    for old, new in said.get("words", {}).items():
        assert old in text
        text = text.replace(old, new)
    found = gzip.compress(text.encode()) if "gz" in said else text.encode()
    return found[: len(found) - said.get("cut", 0)]


@pytest.mark.parametrize("name", CASES)
def test_what_becomes_of_a_folder(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    for number, (file, said) in enumerate(case["files"].items()):
        path = tmp_path / "in" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(said))
        os.utime(path, (1_700_000_000 + number,) * 2)
    given = {
        "about": About.model_validate(case.get("about", {})),
        **case.get("given", {}),
    }
    source, data = tmp_path / "in", tmp_path / "data"
    mapping = case.get("mapping")
    if "proposes" in case:
        preview = import_results(source, data, Given("c"), preview=True)
        text = "\n".join(preview.lines())
        proposed = yaml.safe_load(text)
        expected = case["proposes"]
        assert {where: at(proposed, where) for where in expected} == expected
        mapping = text if mapping == "proposed" else None
        if mapping is None:
            return
    if mapping is not None:
        for old, new in case.get("words", {}).items():
            assert mapping.count(old) == 1
            mapping = mapping.replace(old, new)
        given["mapping"] = tmp_path / "map.yaml"
        given["mapping"].write_text(mapping)
    told: list[str] = []
    if "error" in case:
        with pytest.raises(SparkpubError) as error:
            imported(source, data, **given)
        (line, *_) = [
            each for each in error.value.lines() if re.search(case["error"], each)
        ]
        assert case.get("place", "") in line
        assert not data.exists()
        return
    outcome, records = imported(source, data, say=told.append, **given)
    lefts = {left.source: left.reason for left in (*outcome.skipped, *outcome.refused)}
    expected = case.get("left", {})
    assert lefts.keys() == expected.keys()
    assert {
        source: why for source, why in expected.items() if why not in lefts[source]
    } == {}
    assert case.get("said", "") in "\n".join(told)
    assert case.get("lines", "") in "\n".join(outcome.lines())
    assert ("RPC" in "".join(outcome.lines())) == ("RPC" in case.get("lines", ""))
    for record, values in zip(records, case.get("records", []), strict=True):
        document = record.model_dump(mode="json")
        document["notes"] = " ".join(event.text for event in record.events)
        if "report" in values:
            (kept,) = (item.path for item in record.evidence if item.role == "report")
            document["report"] = json.loads((data / "c" / kept).read_text())
        known = {name: record.value(name) for name in record.metrics}
        document["figures"] = {
            name: value for name, value in known.items() if value is not None
        }
        assert values.get("notes", "") in document["notes"]
        found = {where: at(document, where) for where in values if where != "notes"}
        for where, value in found.items():
            close = isinstance(value, float) or where == "figures"
            assert value == (
                pytest.approx(values[where]) if close else values[where]
            ), where
    findings = review(load(data)).findings if records else []
    assert [each.message for each in findings if each.check == "metric-mismatch"] == []
