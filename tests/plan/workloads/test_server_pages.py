"""What servers say of themselves: the answers that their makers document, replayed.

Ollama: `docs/api.md` (`/api/version`, `/api/ps`, `/api/show`). LM Studio: its REST API v1. TensorRT-LLM:
`trtllm-serve` (`/version`, `/v1/models`). SGLang: its native interface.
"""

import json
from pathlib import Path

import pytest

from sparkpub.plan.workloads import server_pages
from sparkpub.plan.workloads.payload import pages
from tests.plan.workloads.serving import SENSE, Served, serving
from tests.plan.workloads.test_registry import damaged

SERVERS = {
    row["server"]: row
    for row in json.loads((Path(__file__).parents[2] / "data/pages.json").read_text())
}
OLLAMA, LM_STUDIO = (SERVERS[name]["pages"] for name in ("Ollama", "LM Studio 0.4"))


@pytest.mark.parametrize("name", SERVERS)
def test_each_server_is_known_by_its_own_pages(name: str) -> None:
    row = SERVERS[name]
    with serving(Served(row["pages"])) as server:
        model = row["model"]
        found = pages.look(server.url, model, random_weights=True)
    assert server_pages.identity(found) == row["identity"]
    for document in damaged(row["pages"]):
        server_pages.identity({"model": model, "said": document})
        if isinstance(document, dict):
            pages.loaded(document)
            pages.listed(document.get("/v1/models"))


@pytest.mark.parametrize(("after", "found"), [(3, None), (11, 0.4)])
def test_preemptions_are_counted_while_the_client_ran(
    after: int, found: float | None
) -> None:
    """vLLM counted 3 preemptions before, and answered 20 requests meanwhile: 8 more are 0.4 of each."""

    def page(preempted: int, answered: int) -> str:
        return (
            f'vllm:num_preemptions_total{{model_name="m"}} {preempted}.0\n'
            f'vllm:request_success_total{{finished_reason="length"}} {answered}.0\n'
        )

    server = {"metrics_before": page(3, 5), "metrics_after": page(after, 25)}
    told = server_pages.counted(server).get("preemptions_per_request")
    assert (told and told.value) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        ("!" * 100, "hardly any letters"),
        ("the " * 60, "repeats itself"),
        ("ab" * 200, "repeats itself"),
        ("<html><head><title>502 Bad Gateway</title>", "an error page"),
        ('{"error": {"message": "no such model"}}', "an error page"),
    ],
)
def test_what_is_no_answer(text: str, words: str) -> None:
    assert words in (pages.nonsense(text) or "")


@pytest.mark.parametrize(
    "text",
    ["Paris", SENSE, "巴黎是法国的首都。", "1. Paris\n2. Paris is a city."],
)
def test_what_may_be_one(text: str) -> None:
    assert pages.nonsense(text) is None


def test_an_answer_and_why_there_is_none() -> None:
    with serving(Served({})) as server:
        found = pages.answer(server.url, "m")
    assert (found["text"].startswith("Paris"), found["problem"]) == (True, None)
    # The stand-in counts a word as a token.
    assert found["tokens"] == len(SENSE.split())
    assert found["seconds"] > 0
    with serving(Served({}, counts=False)) as server:
        assert pages.answer(server.url, "m")["tokens"] is None
    for status, lasts in ((404, True), (503, False)):
        with (
            serving(Served({}, status=status)) as server,
            pytest.raises(pages.StopError, match=str(status)) as raised,
        ):
            pages.answer(server.url, "m")
        assert raised.value.lasts is lasts
