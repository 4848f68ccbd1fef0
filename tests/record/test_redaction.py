"""Redaction that misses nothing and spares what is public."""

import pytest

from sparkpub.record.redaction import Redactor


@pytest.fixture
def redactor(monkeypatch: pytest.MonkeyPatch) -> Redactor:
    monkeypatch.setenv("HOME", "/srv/people/khan")
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
    monkeypatch.setattr("socket.gethostname", lambda: "spark")
    return Redactor()


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("https://me:pass@example.org/x", "https://<secret>@example.org/x"),
        ("key is 0123456789abcdef here", "key is <secret> here"),
        ("/srv/people/khan/models and /home/anna.b/x", "<home>/models and <home>/x"),
        ("/srv/people/khanate", "/srv/people/khanate"),
        (
            "on spark: release:spark-single-gpu-dev, spark.local",
            "on <host>: release:spark-single-gpu-dev, spark.local",
        ),
        ("GPU-12345678-1234-1234-1234-123456789abc", "<gpu>"),
        (
            "Total Output Throughput (tokens/sec): 119.7900",
            "Total Output Throughput (tokens/sec): 119.7900",
        ),
    ],
)
def test_redaction(redactor: Redactor, text: str, clean: str) -> None:
    assert redactor.text(text) == clean
    assert redactor.text(clean) == clean


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        # Words of eight characters beside a telling name are secrets; beside `token`, which texts are full of, of 16.
        ("api_key=abcdefg1", "api_key=<secret>"),
        ("api_key=abcdef1", "api_key=abcdef1"),
        ("token=abcdefghijklmno1", "token=<secret>"),
        ("token=abcdefghijklmn1", "token=abcdefghijklmn1"),
        ("the password is abcdef12", "the password is <secret>"),
        ("the token is abcdefghijklmn1", "the token is abcdefghijklmn1"),
        # A name within a secret is part of it, and the scheme of a header stays.
        ('api_key="x password=abcdefgh1x"', 'api_key="<secret>"'),
        (
            "Authorization: Negotiate YIIabcdef012345",
            "Authorization: Negotiate <secret>",
        ),
    ],
)
def test_how_long_a_word_is_a_secret_and_where_it_ends(text: str, clean: str) -> None:
    assert Redactor().text(text) == clean


@pytest.mark.parametrize(
    ("host", "text", "clean"),
    [
        ("x", "x: ready on x", "x: ready on x"),
        # A plain word, or one that looks like a quantity, is a host only where a host stands.
        ("8gb", "8gb free on 8gb", "8gb free on <host>"),
    ],
)
def test_a_hosts_name_is_replaced_where_it_is_one(
    monkeypatch: pytest.MonkeyPatch, host: str, text: str, clean: str
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: host)
    assert Redactor().text(text) == clean


def test_what_follows_a_secret_flag_goes_too(redactor: Redactor) -> None:
    said = "x --hf-token {} --max_num_tokens 4096 --api-key={}"
    given = said.format("abc", "abcdefgh1x").split()
    assert " ".join(redactor.argv(given)) == said.format("<secret>", "<secret>")


def test_variables_are_kept_by_allow_list(redactor: Redactor) -> None:
    found = redactor.variables(
        {
            "CUDA_HOME": "/usr/local/cuda",
            "HF_TOKEN": "x",
            "NVIDIA_API_KEY": "x",
            "EDITOR": "vi",
            "PATH": "/home/a/bin",
        }
    )
    assert found == {"CUDA_HOME": "/usr/local/cuda", "PATH": "<home>/bin"}


def test_options_of_the_matrix_lose_their_secrets_and_nothing_else(
    redactor: Redactor,
) -> None:
    options = {
        "env": {"HF_TOKEN": "x", "A": "b"},
        "max_num_tokens": 8,
        "binds": ["/home/a/m:/m"],
        "gpus": None,
    }
    assert redactor.options(options) == {
        "env": {"HF_TOKEN": "<secret>", "A": "b"},
        "max_num_tokens": 8,
        "binds": ["<home>/m:/m"],
        "gpus": None,
    }
