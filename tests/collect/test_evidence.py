"""Logs that are capped, redaction that misses nothing and spares what is public."""

from pathlib import Path

import pytest

from sparkpub.collect.journal import Log
from sparkpub.record.redaction import Redactor


def written(
    tmp_path: Path, chunks: list[bytes], cap: int = 10_000
) -> tuple[bytes, bool]:
    log = Log(tmp_path / "log", Redactor(), cap)
    for chunk in chunks:
        log.write(chunk)
    log.close()
    log.close()
    return (tmp_path / "log").read_bytes(), log.truncated


def test_a_log_is_kept_byte_for_byte(tmp_path: Path) -> None:
    content = b"one\r two \xff\xfe\nthree\x1b[31m without an end"
    assert written(tmp_path, [content[:5], content[5:9], content[9:]]) == (
        content,
        False,
    )


def test_a_log_over_the_cap_keeps_its_beginning_and_its_end_and_marks_the_cut(
    tmp_path: Path,
) -> None:
    lines = [b"line %05d\n" % number for number in range(5000)]
    content, truncated = written(tmp_path, lines)
    assert truncated
    assert len(content) <= 10_000
    assert content.startswith(lines[0])
    assert content.endswith(lines[-1])
    before, mark, after = content.partition(b"\n[sparkpub: ")
    assert mark
    cut = int(after.split()[0])
    kept = len(before) + len(after.partition(b"\n")[2])
    assert cut + kept == sum(map(len, lines))


HEAD, TAIL = 7_500, 2_300
"""Of a log of 10,000 bytes: three quarters from the beginning, and the rest but 200 for the mark from the end."""


def test_a_beginning_that_just_fits_is_kept(tmp_path: Path) -> None:
    lines = [
        b"h" * (HEAD - 1) + b"\n",
        *(b"%d" % number * 999 + b"\n" for number in range(3)),
    ]
    content, truncated = written(tmp_path, lines)
    assert truncated
    assert content.startswith(lines[0] + b"\n[sparkpub: 1000 bytes cut here")
    assert content.endswith(lines[2] + lines[3])


def test_one_byte_that_was_cut_is_a_cut(tmp_path: Path) -> None:
    content, truncated = written(
        tmp_path, [b"h" * (HEAD - 1) + b"\n", b"\n", b"t" * (TAIL - 1) + b"\n"]
    )
    assert truncated
    assert b"[sparkpub: 1 bytes cut here" in content


def test_a_line_without_end_is_written_all_the_same(tmp_path: Path) -> None:
    """All but its last 32 KiB: there a secret may have begun."""
    log = Log(tmp_path / "log", Redactor())
    log.write(b"x" * 70_000)
    assert (tmp_path / "log").read_bytes() == b"x" * (70_000 - 2**15)
    log.write(b"y")
    log.close()
    assert (tmp_path / "log").read_bytes() == b"x" * 70_000 + b"y"


def test_a_long_line_of_words_is_written_up_to_a_word(tmp_path: Path) -> None:
    """The secret lies where the line is cut that has no word: 32 KiB before its end."""
    secret = b"hf_" + b"a" * 30
    begin, end = b"x " * 20_000, b"y " * (2**14 - 8)
    log = Log(tmp_path / "log", Redactor())
    log.write(begin + secret + b" " + end + b"z")
    assert (tmp_path / "log").read_bytes() == begin + b"<secret> " + end
    log.close()
    assert (tmp_path / "log").read_bytes() == begin + b"<secret> " + end + b"z"


KEY = b"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nc2VjcmV0\n-----END PRIVATE KEY-----\n"


def test_a_private_key_holds_nothing_back_but_itself(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = Log(path, Redactor())
    log.write(b"before\n" + KEY + b"between\n" + KEY[:60])
    assert path.read_bytes() == b"before\n<secret>\nbetween\n"
    log.write(KEY[60:] + b"after\n")
    assert path.read_bytes() == b"before\n<secret>\nbetween\n<secret>\nafter\n"
    log.close()


def test_a_private_key_without_end_does_not_hold_the_log_back_for_ever(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path / "log", Redactor())
    log.write(b"-----BEGIN PRIVATE KEY-----\n" + b"no key at all\n" * 5_000)
    assert (tmp_path / "log").read_bytes().endswith(b"no key at all\n")
    log.close()


@pytest.mark.parametrize("before", [b"", b"x" * 300 + b"\n"])
def test_the_value_of_a_flag_may_come_with_the_next_line(
    tmp_path: Path, before: bytes
) -> None:
    """As an argument list is printed, one word a line."""
    path = tmp_path / "log"
    log = Log(path, Redactor())
    log.write(before + b"--api-key\n")
    assert path.read_bytes() == before
    log.write(b"abcdefgh1x\n")
    log.close()
    assert path.read_bytes() == before + b"--api-key\n<secret>\n"


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
        ("MIG-GPU-12345678-1234-1234-1234-123456789abc/1/0", "<gpu>/1/0"),
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
        ("the password is abcdef1", "the password is abcdef1"),
        ("the token is abcdefghijklmno1", "the token is <secret>"),
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


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_log_in_wide_characters_is_redacted_and_stays_so(coding: str) -> None:
    """With a mark at its begin, or without: the zeros of its letters tell."""
    content = "token hf_AbCdEfGhIjKlMnOpQrSt end".encode(coding)
    clean = Redactor().content(content)
    assert clean.decode(coding) == "token <secret> end"
    assert Redactor().content("no secret".encode(coding)) == "no secret".encode(coding)


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
    argv = (
        "x",
        "--hf-token",
        "abc",
        "--max_num_tokens",
        "4096",
        "--api-key=abcdefgh1x",
    )
    assert redactor.argv(argv) == (
        "x",
        "--hf-token",
        "<secret>",
        "--max_num_tokens",
        "4096",
        "--api-key=<secret>",
    )


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


def test_a_log_says_when_the_measurement_began_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A progress bar's first state has no line end: it counts when it is printed, not when the second overwrites it."""
    now = 100.0
    monkeypatch.setattr("sparkpub.collect.journal.time.monotonic", lambda: now)
    log = Log(
        tmp_path / "log", Redactor(), begins=r"\bProcessed prompts", ends=r"^test \d"
    )
    log.write(b"loading\nProcessed pro")
    assert log.began is None
    now = 101.0
    log.write(b"mpts:   0%|")
    assert log.began == 101.0
    now = 102.0
    log.write(b"\rProcessed prompts:  10%|\r")
    log.write(b"test 1 o")
    assert log.ended is None
    now = 103.0
    log.write(b"ver\n")
    assert log.ended == 103.0
    now = 104.0
    log.write(b"test 2 over\n")
    now = 105.0
    log.write(b"bye\n")
    log.close()
    assert (log.began, log.ended) == (101.0, 104.0)
