"""How pages list what the checks found."""

from types import SimpleNamespace
from typing import Any

from sparkpub.site.pages import findings


def test_what_several_campaigns_lack_is_said_once() -> None:
    lacking = {"a": ["log", "clock"], "b": ["log"], "c": []}
    notes: dict[str, list[Any]] = {
        name: [SimpleNamespace(check="unjudged", evidence={"missing": facts})]
        for name, facts in lacking.items()
        if facts
    }
    campaigns = [SimpleNamespace(name=name) for name in lacking]
    publication: Any = SimpleNamespace(
        campaigns=campaigns,
        findings_of=lambda campaign: notes.get(campaign.name, []),
    )
    found = findings.unjudged(publication)
    assert {fact: [item.name for item in of] for fact, of in found.items()} == {
        "log": ["a", "b"],
        "clock": ["a"],
    }
