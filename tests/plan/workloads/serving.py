"""A server with an OpenAI-compatible interface in a thread, with whatever pages its kind has."""

import http.server
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

CHARACTERS_PER_TOKEN = 3.7
TEMPLATE_TOKENS = 11
PACE = 0.002
"""Seconds between two tokens: a tool that gets them all at once has no rate."""
SENSE = (
    "Paris is the capital of France. It lies on the Seine and is known for its museums, its food and a tower of iron "
    "that an engineer built for a fair."
)


def tokens_of(text: str) -> int:
    """How this server counts."""
    return max(1, round(len(text) / CHARACTERS_PER_TOKEN))


class Served:
    """What a server says: pages by path, and one text in answer to everything."""

    def __init__(
        self,
        pages: Mapping[str, Any],
        text: str = SENSE,
        *,
        counts: bool = True,
        status: int = 200,
    ) -> None:
        self.pages, self.text, self.counts, self.status = pages, text, counts, status
        self.asked: list[tuple[str, Any]] = []
        self.key: str | None = None
        """What a client has to send, where that is wanted."""
        self.keys_sent: list[str] = []
        self.url = ""

    def usage(self, messages: list[dict[str, str]], answer: int) -> dict[str, int]:
        prompt = sum(tokens_of(message["content"]) for message in messages)
        counts = (TEMPLATE_TOKENS + prompt, answer)
        return dict(zip(("prompt_tokens", "completion_tokens"), counts, strict=True))


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: Served

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self._answer(json.loads(self.rfile.read(length)))

    def _answer(self, body: Any) -> None:
        served = self.served
        served.asked.append((self.path, body))
        served.keys_sent += self.headers.get_all("Authorization", [])
        is_chat = self.path == "/v1/chat/completions"
        page = served.pages.get(self.path)
        if served.status != 200 and (is_chat or not served.pages):
            self._send(served.status, {"error": "not now"})
        elif is_chat:
            self._chat(body)
        elif served.key and self.headers["Authorization"] != f"Bearer {served.key}":
            self._send(401, {"error": "no key"})
        else:
            self._send(404 if page is None else 200, page or {"error": "none"})

    def _chat(self, body: dict[str, Any]) -> None:
        served = self.served
        words = served.text.split()
        tokens = body["max_tokens"]
        if body.get("ignore_eos") and words:
            words = (words * tokens)[:tokens]
        words = words[:tokens]
        usage = served.usage(body["messages"], len(words))
        if not body.get("stream"):
            message = {"role": "assistant", "content": " ".join(words)}
            document: dict[str, Any] = {"choices": [{"message": message}]}
            self._send(200, document | ({"usage": usage} if served.counts else {}))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for word in words:
            delta = {"choices": [{"index": 0, "delta": {"content": f"{word} "}}]}
            self._event(delta)
            time.sleep(PACE)
        if served.counts:
            self._event({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _event(self, document: Any) -> None:
        self.wfile.write(f"data: {json.dumps(document)}\n\n".encode())
        self.wfile.flush()

    def _send(self, status: int, document: Any) -> None:
        content = document.encode() if isinstance(document, str) else b""
        content = content or json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(served: Served) -> Iterator[Served]:
    """The server, listening on a free port; its address is in `url`."""
    handler = type("Handler", (_Handler,), {"served": served})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
