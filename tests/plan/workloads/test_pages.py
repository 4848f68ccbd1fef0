"""Servers that answer in bad faith: every answer is read within bounds, and ends in one short line, at once.

Each server here is a real one on the loopback, and writes its bytes itself: Python's HTTP server would not say them.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from sparkpub.collect import quick
from sparkpub.plan.workloads.payload import pages
from sparkpub.record.errors import UsageError
from tests.plan.workloads.serving import Served, serving

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Write = Callable[[bytes], None]
Script = Callable[[Write], None]
MODEL = {"id": "m", "owned_by": "vllm"}
AT_ONCE = 5.0
"""Seconds that an attack with a time limit of `SHORT` may take on a busy machine."""
SHORT = 0.5


@contextmanager
def answering(script: Script) -> Iterator[str]:
    """The address of a server that reads the beginning of each request and then writes what it likes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    asked, _ = listener.accept()
                    threading.Thread(target=answer, args=[asked], daemon=True).start()

        def answer(asked: socket.socket) -> None:
            with asked, suppress(OSError):
                asked.recv(1 << 16)
                script(asked.sendall)

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def whole(document: str) -> bytes:
    """An answer with this text."""
    body = document.encode()
    return OK + b"Content-Length: %d\r\n\r\n" % len(body) + body


def endless(write: Write) -> None:
    write(OK + b"\r\n")
    while True:
        write(b"x" * (1 << 16))


def dripped(beginning: bytes, drop: bytes) -> Script:
    """Something that never ends and never pauses for long."""

    def script(write: Write) -> None:
        write(beginning)
        while True:
            write(drop)
            time.sleep(0.02)

    return script


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (endless, "larger than 4 MiB"),
        (lambda write: write(OK + b"Content-Length: 99\r\n\r\n{}"), "cut short"),
        (lambda write: write(whole("[" * 100_000)), "answered with no JSON"),
        (dripped(OK + b"\r\n", b" "), "no whole answer within 0.5 s"),
        (lambda write: write(b"\x1b[31m" * 9999 + b"\r\n"), "[31m [31m"),
        (
            lambda write: write(
                b"HTTP/1.1 302 Found\r\nLocation: http://else.example/\x1b[1m%s\r\n\r\n"
                % (b"a" * 9999)
            ),
            "answered with a redirect to http://else.example/",
        ),
    ],
)
def test_every_answer_ends_in_one_short_line_at_once(
    script: Script, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "LIMIT", SHORT)
    with answering(script) as url:
        begun = time.monotonic()
        page = pages.ask(url, pages.MODELS, limit=SHORT)
        took = time.monotonic() - begun
        line = pages.refusal(url, page)
    assert words in line
    assert len(line) < 400
    assert line.isprintable()
    assert took < AT_ONCE


def test_a_redirect_takes_the_key_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Authorization` went along to whatever host the answer named, and what that said was published."""
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-mine")
    with serving(Served({"/v1/models": {"data": [MODEL]}})) as elsewhere:
        to = f"HTTP/1.1 307 Away\r\nLocation: {elsewhere.url}/v1/models\r\n\r\n"
        with (
            answering(lambda write: write(to.encode())) as url,
            pytest.raises(UsageError) as raised,
        ):
            quick.look(url)
        with answering(lambda write: write(to.encode())) as url:
            assert set(pages.who(url).values()) == {None}
            assert pages.chat(url, "m", "?", 1).document is None
    assert raised.value.what == (
        f"{raised.value.what.partition('/v1')[0]}/v1/models answered with a redirect to {elsewhere.url}/v1/models; "
        "give the address of the server itself"
    )
    assert elsewhere.asked == []


def test_all_pages_of_a_server_share_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve pages that drip would take twelve times as long as one."""
    monkeypatch.setattr(pages, "ALL_PAGES_LIMIT", SHORT)
    with answering(dripped(OK + b"\r\n", b" ")) as url:
        begun = time.monotonic()
        said = pages.who(url)
    assert time.monotonic() - begun < AT_ONCE
    assert set(said.values()) == {None}
