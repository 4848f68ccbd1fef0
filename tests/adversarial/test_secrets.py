"""No secret reaches a file: every form of one, planted wherever people and programs put text.

The forms are in `secrets.py`; each is made up anew. `python -m benchmarks.outside` counts what is found.
"""

import json
import re
import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkpub.collect import journal
from sparkpub.collect.imports import import_results
from sparkpub.collect.imports.given import Given, read_about
from sparkpub.collect.log import Log
from sparkpub.record import outside
from sparkpub.record.errors import MatrixError
from sparkpub.record.redaction import Redactor
from sparkpub.record.secrets import is_secret_name, without_secrets
from tests.adversarial.secrets import FORMS, Planted
from tests.collect.collecting import RATE, a_command, a_matrix, run

ROOT = Path(__file__).parents[2]
IMPORTS = ROOT / "tests/data/imports"


def seen(planted: Planted, content: bytes) -> list[str]:
    """What of a planted text can be read in a file, in any coding."""
    readable = {
        content.decode(coding, errors="replace")
        for coding in ("utf-8", "utf-16-le", "utf-16-be", "utf-16", "utf-32")
    }
    return [
        secret for secret in planted.secrets if any(secret in text for text in readable)
    ]


def seen_below(folder: Path, planted: Mapping[str, Planted]) -> dict[str, list[str]]:
    """Form to the files below a folder in which something of it can be read."""
    found: dict[str, list[str]] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        for name, item in planted.items():
            if seen(item, content):
                found.setdefault(name, []).append(path.name)
    return found


def every_form(seed: int = 0) -> dict[str, Planted]:
    random = Random(seed)
    return {name: form(random) for name, form in FORMS.items()}


# -- places: each writes the text somewhere, and gives back what would be kept of it -------------------------


def _in_text(text: str, _: Path) -> bytes:
    return Redactor().text(f"before\n{text}\nafter").encode()


def _in_bytes_that_are_no_text(text: str, _: Path) -> bytes:
    return Redactor().content(b"\xff\xfe\xfd" + b"\n" + text.encode() + b"\n\x80")


def _wide(text: str, _: Path) -> bytes:
    return Redactor().content(f"a line before\n{text}\nand after\n".encode("utf-16"))


def _in_argv(text: str, _: Path) -> bytes:
    words = []
    if " -" in text and "\n" not in text:  # a command line, and no sentence
        with suppress(ValueError):
            words = shlex.split(text)
    clean = Redactor().argv(["sh", "-c", text, *words])
    return json.dumps(clean, ensure_ascii=False).encode()


def _in_options(text: str, _: Path) -> bytes:
    options = {"type": "command", "argv": ["a", text], "env": {"A": text}, "n": 1}
    return json.dumps(Redactor().options(options), ensure_ascii=False).encode()


def _in_log(text: str, folder: Path) -> bytes:
    return _logged(f"begin\n{text}\nend\n".encode(), folder, 7)


def _logged(content: bytes, folder: Path, piece: int) -> bytes:
    """As it is sealed, of a command that prints piece by piece."""
    (folder / "log").unlink(missing_ok=True)  # of another example
    log = Log(folder / "log")
    for start in range(0, len(content), piece):
        log.write(content[start : start + piece])
    log.close()
    (log_as_kept,), _, read = journal.seal(folder, folder, "run", {}, Redactor())
    assert read["log"] == outside.content(folder / log_as_kept.path)
    return read["log"]


def _in_long_line(text: str, folder: Path) -> bytes:
    """At the place where a line without end is cut."""
    line = " ".join(text.split("\n"))
    before = b"x" * 40_000 + b" " + b"y " * ((65_536 - 40_001 - len(line) // 2) // 2)
    return _logged(before + line.encode() + b" z" * 40_000, folder, 4096)


PLACES: dict[str, Callable[[str, Path], bytes]] = {
    "text": _in_text,
    "bytes": _in_bytes_that_are_no_text,
    "utf-16": _wide,
    "argv": _in_argv,
    "options": _in_options,
    "log": _in_log,
    "long-line": _in_long_line,
}
EXAMPLES = 300


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    form=st.sampled_from(sorted(FORMS)),
    place=st.sampled_from(sorted(PLACES)),
    seed=st.integers(0, 2**32),
)
def test_no_form_is_left_in_any_place(
    form: str, place: str, seed: int, tmp_path: Path
) -> None:
    planted = FORMS[form](Random(seed))
    if place == "long-line" and form.startswith(("key-", "lines-")):
        return  # its lines tell what it is
    kept = PLACES[place](planted.text, tmp_path)
    assert seen(planted, kept) == []


@pytest.mark.parametrize("form", FORMS)
def test_what_is_clean_stays_as_it_is(form: str) -> None:
    """A record is redacted when its run begins and when it ends, and a file that was imported once may be again."""
    clean = without_secrets(FORMS[form](Random(1)).text)
    assert without_secrets(clean) == clean


# -- from end to end -----------------------------------------------------------------------------------------


def test_a_campaign_keeps_no_secret(tmp_path: Path) -> None:
    """Every form in printed lines and in the report of a command that really runs."""
    planted = every_form(1)
    texts = {name: item.text for name, item in planted.items()}
    report = tmp_path / "texts.json"
    report.write_text(json.dumps(texts))
    prints = tmp_path / "texts.log"
    prints.write_text("\n".join(texts.values()))
    script = f'cat {prints}; echo rate 5; cp {report} "$0/report.json"'
    workloads = {
        "w": a_command(script)
        | {
            "argv": ["sh", "-c", script, "{workdir}"],
            "outputs": {"report": "report.json"},
        }
    }
    matrix = a_matrix(workloads=workloads, iterations=1)
    data = tmp_path / "data"
    outcome = run(matrix, data)
    assert (outcome.measured, outcome.left) == (1, 0)
    assert seen_below(data, planted) == {}


@pytest.mark.parametrize(
    "form", [form for form in FORMS if "\x1b" not in FORMS[form](Random(2)).text]
)
def test_every_form_is_refused_in_a_matrix(form: str) -> None:
    """YAML has no codes of a terminal, so forms in colours cannot stand there."""
    text = FORMS[form](Random(2)).text
    with pytest.raises(MatrixError, match=r"a secret stands in workloads\.w\.argv\.2"):
        a_matrix(workloads={"w": a_command(text)})


def _table_of_llama_bench(texts: list[str]) -> str:
    return "\n".join([*texts, (IMPORTS / "llama-bench/multi.md").read_text()])


def _report_of_vllm_bench(texts: list[str]) -> str:
    report = json.loads((IMPORTS / "vllm-bench/serve-c4.json").read_text())
    return json.dumps(report | {"endpoint": texts, "notes": texts})


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("r.md", _table_of_llama_bench),
        ("r.json", _report_of_vllm_bench),
    ],
)
def test_an_import_keeps_no_secret(
    name: str, made: Callable[[list[str]], str], tmp_path: Path
) -> None:
    texts = [item.text for item in every_form(3).values()]
    (tmp_path / name).write_text(made(texts))
    about = tmp_path / "about.yaml"
    about.write_text(json.dumps({"title": texts[0], "note": "; ".join(texts[:20])}))
    given = Given("c", about=read_about(about), environment="native", model="m")
    outcome = import_results(tmp_path / name, tmp_path / "data", given)
    assert outcome.imported
    assert seen_below(tmp_path / "data", every_form(3)) == {}


def test_no_half_of_a_secret_is_left_where_a_file_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its beginning or its end would be left, and neither looks like a secret."""
    secret = "hf_" + "Ab1Cd2Ef3G" * 4
    tear = b"a " * 4950 + b"b" * 80 + b" " + secret.encode() + b" "
    content = tear + b"c " * 20_000 + secret.encode() + b" d" * 4970
    (tmp_path / "report.json").write_bytes(content)
    output = journal._output(tmp_path, "report.json", Redactor(), 20_000)
    assert output is not None
    left, cut = output
    assert cut > 0
    for length in range(6, len(secret)):
        assert secret[:length].encode() not in left
        assert secret[-length:].encode() not in left


# -- names and words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "hfToken", "token", "--api-key", "apiKey", "API_KEYS", "DB_PASS"),
        *("MYSQL_PWD", "AZURE_PAT", "db.password", "passwd", "client_secret", "JWT"),
        *("AWS_SECRET_ACCESS_KEY", "WANDB_KEY", "authorization", "x-auth-token"),
        *("PGPASSWORD", "sshPassphrase", "registryCredentials", "COOKIE", "userPw"),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("max_num_tokens", "tokenizer", "eos_token", "token_ids", "PWD", "OLDPWD"),
        *("key", "keys", "tiktoken", "secretary", "GIT_AUTHOR_NAME", "authority"),
        *("time_per_output_token", "first_token", "keyboard", "path", "n_batch"),
        *("passes", "pattern", "bypass", "kv_cache_key", "num_tokens_per_s", ""),
    ],
)
def test_names_of_other_things(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "text",
    [
        "'compilation_config': {'pass_config': {'fuse_norm_quant': False, 'x': 1}}",
        "api_keys: []",
        "api_keys=None, cookies={}, auth=(), secrets: null",
        "'api_key': [], 'allowed_origins': ['*'], 'port': 8000",
        "tokens: ['the', 'a1']",
        "stop_token_ids: [128001, 128009]",
        "docker run -p 8080:80 nvcr.io/x",
        "docker run -p 8080:80 x; echo login",
        "prf_attention_kernel hf_transformersbackend fw_initialization rpa_",
        "sha256:dapi hf_hub_download tgp_v1_ pplx- sk-learn",
        "<token_count>12</token_count> <b>key</b>",
        '{"name": "tokenizer", "value": "Qwen2.5-7B-Instruct"}',
        "[('model', 'Qwen2.5-7B'), ('key', 'abc12345')]",
        "\x1b[32mINFO\x1b[0m max_num_tokens: 8192",
        "key:\n  first: abc12345\n",
        "INFO: loading keys:\nabc12345",
        "INFO: no token:\n- Qwen2.5-7B\n- Llama3-8B",
        "INFO: no auth:\n  see https://example.org/v1/abc12345 for more",
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert without_secrets(text) == text


def test_the_list_of_marks_is_that_of_the_locked_rules() -> None:
    """`scripts/tokens` has to be run where the package with the rules is a newer one."""
    marks = (ROOT / "sparkpub/record/tokens.tsv").read_text()
    locked = (ROOT / "requirements/dev.txt").read_text()
    listed = re.search(r"kingfisher-secret-scanner ([\d.]+)", marks)
    pinned = re.search(r"kingfisher-secret-scanner==([\d.]+)", locked)
    assert listed is not None
    assert pinned is not None
    assert listed[1] == pinned[1]


def test_colours_stay_where_no_secret_is() -> None:
    text = "\x1b[32mINFO\x1b[0m ready\n\x1b[31mapi_key\x1b[0m=Ab1Cd2Ef3G"
    clean = "\x1b[32mINFO\x1b[0m ready\napi_key=<secret>"
    assert without_secrets(text) == clean


SECRET_OF_ANY_SHAPE = "hf_" + "Ab1Cd2Ef3G" * 4


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        # Replaced, the pattern would no longer match.
        (
            {
                "metrics": {
                    "rate": RATE["rate"] | {"regex": f"{SECRET_OF_ANY_SHAPE} (.)"}
                }
            },
            "workloads.w.metrics.rate.regex",
        ),
        ({"variables": {"DB_PASSWORD": "abc"}}, "workloads.w.variables.DB_PASSWORD"),
        ({"argv": ["serve", "--api-key", "abc"]}, "workloads.w.argv.2"),
        ({"argv": ["serve", SECRET_OF_ANY_SHAPE]}, "workloads.w.argv.1"),
        ({"variables": {"DB_PASSWORD": "$MINE", "A": "b"}}, None),
        ({"argv": ["serve", "--api-key", "$MINE", "--max-tokens", "8"]}, None),
        ({"argv": ["sh", "-c", "serve --api-key $MINE --token ${OTHER}"]}, None),
    ],
)
def test_a_secret_in_a_matrix_is_refused_where_no_variable_stands_for_it(
    changed: dict[str, Any], place: str | None
) -> None:
    workloads = {"w": a_command("true") | changed}
    if place is None:
        assert a_matrix(workloads=workloads).workloads["w"].type == "command"
        return
    with pytest.raises(
        MatrixError, match=f"a secret stands in {re.escape(place)}, .*write [$]NAME"
    ):
        a_matrix(workloads=workloads)


def test_the_value_of_a_secret_variable_is_refused_in_a_matrix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It looks like any other word, and stands beside nothing that tells."""
    monkeypatch.setenv("DB_PASSWORD", "horse-staple")
    with pytest.raises(
        MatrixError, match=r"the value of DB_PASSWORD stands in .*w\.argv\.2, .*:\d"
    ):
        a_matrix("connect anna horse-staple")
    monkeypatch.setenv("DB_PASSWORD", "argv")
    monkeypatch.setenv("MY_TOKEN", "interleaved")  # a word of the schema
    assert a_matrix("connect argv", order="interleaved").order == "interleaved"


@pytest.mark.parametrize(
    "piece",
    ["token=", "password: ", "&token=", '"key": ', '{"token": ', "Bearer ", "a://"],
)
def test_the_time_grows_with_the_text_alone(piece: str) -> None:
    """A run's log of 64 MiB, or a report in one line, would be searched for days."""
    size, times = 1 << 15, 16
    texts = [f"a@b {piece * (count // len(piece))}" for count in (size, times * size)]
    took = [seconds_for(text) for text in texts]
    # A quadratic search takes 256 times as long, and one in which that is half of the small text 128 times.
    assert took[1] < 3 * times * max(took[0], 0.02)


def seconds_for(text: str) -> float:
    """Of the processor, to redact a text."""
    begun = time.process_time()
    without_secrets(text)
    return time.process_time() - begun
