"""What servers say of themselves: the answers that their makers document, replayed.

Ollama: `docs/api.md` (`/api/version`, `/api/ps`, `/api/show`). LM Studio: its page on the REST API v0. TGI: the schema
`Info` of its OpenAPI document. TensorRT-LLM: `trtllm-serve` (`/version`, `/v1/models`). SGLang: its native interface.
"""

import json
from typing import Any

import pytest

from sparkpub.plan.workloads import server_pages
from sparkpub.plan.workloads.payload import pages
from tests.plan.workloads.serving import SENSE, Served, serving
from tests.plan.workloads.test_registry import damaged

OLLAMA = {
    "/v1/models": {
        "object": "list",
        "data": [
            {"id": "mistral:latest", "object": "model", "owned_by": "library"},
            {"id": "llama3.2:latest", "object": "model", "owned_by": "library"},
        ],
    },
    "/api/version": {"version": "0.5.1"},
    "/api/ps": {
        "models": [
            {
                "name": "llama3.2:latest",
                "model": "llama3.2:latest",
                "size": 5137025024,
                "digest": "2ae6f6dd7a3dd734790bbbf58b8909a606e0e7e97e94b7604e0aa7ae4490e6d8",
                "details": {"format": "gguf", "quantization_level": "Q4_0"},
                "size_vram": 5137025024,
                "context_length": 4096,
            }
        ]
    },
    "/api/show": {
        "modelfile": "FROM /home/somebody/.ollama/blobs/sha256-1",
        "license": "x" * 20_000,
        "details": {"format": "gguf", "quantization_level": "Q4_0"},
        "model_info": {
            "general.architecture": "llama",
            "general.parameter_count": 8030261248,
            "llama.context_length": 8192,
        },
        "capabilities": ["completion"],
    },
}
LM_STUDIO = {
    "/v1/models": {
        "data": [
            {"id": "qwen2-vl-7b-instruct", "owned_by": "organization_owner"},
            {"id": "meta-llama-3.1-8b-instruct", "owned_by": "organization_owner"},
        ]
    },
    "/version": {"error": "Unexpected endpoint or method. (GET /version)"},
    "/api/v0/models": {
        "object": "list",
        "data": [
            {
                "id": "qwen2-vl-7b-instruct",
                "type": "vlm",
                "quantization": "4bit",
                "state": "not-loaded",
                "max_context_length": 32768,
            },
            {
                "id": "meta-llama-3.1-8b-instruct",
                "type": "llm",
                "publisher": "lmstudio-community",
                "arch": "llama",
                "compatibility_type": "gguf",
                "quantization": "Q4_K_M",
                "state": "loaded",
                "max_context_length": 131072,
                "loaded_context_length": 4096,
            },
        ],
    },
}
TGI = {
    "/v1/models": {"data": [{"id": "bigscience/bloom-560m", "owned_by": "org"}]},
    "/info": {
        "model_id": "bigscience/bloom-560m",
        "model_dtype": "torch.float16",
        "max_total_tokens": 2048,
        "version": "2.0.2",
        "docker_label": "null",
    },
}
TENSORRT_LLM = {
    "/v1/models": {"data": [{"id": "TinyLlama", "owned_by": "tensorrt_llm"}]},
    "/version": {"version": "1.2.0"},
}
LM_STUDIO_0_4 = {
    "/v1/models": {"data": [{"id": "gemma-3-270m-it-qat", "object": "model"}]},
    "/api/v1/models": {
        "models": [
            {
                "type": "llm",
                "key": "gemma-3-270m-it-qat",
                "quantization": {"name": "Q4_0", "bits_per_weight": 4},
                "size_bytes": 241410208,
                "loaded_instances": [
                    {"id": "gemma-3-270m-it-qat", "config": {"context_length": 4096}}
                ],
                "max_context_length": 32768,
            },
            {
                "type": "embedding",
                "key": "text-embedding-nomic-embed-text-v1.5-embedding",
                "loaded_instances": [{"id": "text-embedding", "config": {}}],
            },
        ]
    },
}
SGLANG_WITHOUT_GET = {
    "/v1/models": {"data": [{"id": "m", "owned_by": "sglang", "max_model_len": 40960}]},
    "/model_info": {"model_path": "/models/m", "tokenizer_path": "/models/m"},
    "/server_info": {"version": "0.6.0", "tp_size": 1},
}
SGLANG = {
    "/v1/models": {"data": [{"id": "m", "owned_by": "sglang", "max_model_len": 40960}]},
    "/get_model_info": {"model_path": "/models/m", "tokenizer_path": "/models/m"},
    "/get_server_info": {"version": "0.5.3", "tp_size": 1},
}


def said_by(pages_of: dict[str, Any], model: str) -> dict[str, Any]:
    """What is known of a model once its server was asked."""
    with serving(Served(pages_of)) as server:
        said = pages.who(server.url)
    return server_pages.identity({"model": model, "said": said})


@pytest.mark.parametrize(
    ("pages_of", "model", "found"),
    [
        (OLLAMA, "llama3.2:latest", ("Ollama", "0.5.1", "Q4_0", "4096")),
        (
            LM_STUDIO,
            "meta-llama-3.1-8b-instruct",
            ("LM Studio", None, "Q4_K_M", "4096"),
        ),
        (TGI, "bigscience/bloom-560m", ("TGI", "2.0.2", "float16", "2048")),
        (TENSORRT_LLM, "TinyLlama", ("TensorRT-LLM", "1.2.0", None, None)),
        (LM_STUDIO_0_4, "gemma-3-270m-it-qat", ("LM Studio", None, "Q4_0", "4096")),
        (SGLANG, "m", ("SGLang", "0.5.3", None, "40960")),
        (SGLANG_WITHOUT_GET, "m", ("SGLang", "0.6.0", None, "40960")),
    ],
)
def test_each_server_is_known_by_its_own_pages(
    pages_of: dict[str, Any], model: str, found: tuple[str | None, ...]
) -> None:
    seen = said_by(pages_of, model)
    weights = seen.get("quantization") or seen.get("dtype")
    context = seen["settings"].get("max_model_len")
    assert (seen.get("engine"), seen.get("engine_version"), weights, context) == found


def test_options_of_the_server_are_kept_in_its_own_words() -> None:
    for pages_of in (SGLANG, SGLANG_WITHOUT_GET):
        seen = said_by(pages_of, "m")
        assert (seen["settings"]["tp_size"], seen["model_path"]) == ("1", "/models/m")
    metrics = (
        'vllm:cache_config_info{cache_dtype="fp8",enable_prefix_caching="True"} 1.0'
    )
    server = {"model": "m", "said": {}, "metrics_after": metrics}
    assert server_pages.identity(server)["settings"] == {
        "cache_dtype": "fp8",
        "enable_prefix_caching": "True",
    }


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


@pytest.mark.parametrize("pages_of", [OLLAMA, LM_STUDIO, LM_STUDIO_0_4, TGI, SGLANG])
def test_no_damage_to_a_page_makes_its_reader_raise(pages_of: dict[str, Any]) -> None:
    for said in damaged(pages_of):
        server_pages.identity({"model": "m", "said": said})
        if isinstance(said, dict):
            pages.loaded(said)
            pages.listed(said.get("/v1/models"))


def test_ollama_knows_the_parameters_and_its_licence_is_left_out() -> None:
    assert said_by(OLLAMA, "llama3.2:latest")["parameters"] == 8030261248
    with serving(Served(OLLAMA)) as server:
        said = pages.who(server.url)
    assert pages.loaded(said) == ["llama3.2:latest"]
    assert ("/api/show", {"model": "llama3.2:latest"}) in server.asked
    assert "somebody" not in json.dumps(said)
    assert len(json.dumps(said)) < 5000


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
            pytest.raises(pages.NoAnswerError, match=str(status)) as raised,
        ):
            pages.answer(server.url, "m")
        assert raised.value.lasts is lasts


def test_what_a_model_thinks_is_part_of_its_answer() -> None:
    message = {"content": None, "reasoning_content": "The user asks for Paris."}
    document = {"choices": [{"message": message}]}
    assert pages.said_in(document) == "The user asks for Paris."
    assert pages.said_in({"choices": []}) == ""
