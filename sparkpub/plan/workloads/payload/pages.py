"""Ask a server with an OpenAI-compatible interface who it is, and for one answer.

It lies beside the drivers that run inside the environment, and the collector asks with it before anything starts. A key
for the server is taken from the variable `OPENAI_API_KEY`.

A server may be anybody's: every answer is read within bounds of size and time (`ask`), no redirect is followed, and
what a message shows of an answer is short and plain (`told`).
"""

import http.client
import json
import os
import re
import shutil
import sys
import time
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MODELS = "/v1/models"
PAGES = (
    MODELS,
    "/version",  # vLLM, TensorRT-LLM
    "/props",  # llama-server
    "/model_info",  # SGLang; the names with get_ are older
    "/server_info",
    "/get_model_info",
    "/get_server_info",
    "/api/version",  # Ollama
    "/api/ps",
    "/api/v1/models",  # LM Studio
)
SHOW = "/api/show"
"""Of Ollama: what it knows of a model, asked for by name."""
LIMIT = 10
"""Seconds that a page may take."""
ALL_PAGES_LIMIT = 30
"""Seconds that all pages together may take."""
ANSWER_LIMIT = 300
"""Seconds that an answer may take: a server may load its model first."""
MOST_BYTES = 4 << 20
"""The largest answer that is read: a text of some hundred thousand characters in tokens is smaller."""
LONGEST_NAME = 500
"""Characters of a model's name, and of any other word that a server says of itself."""
LONGEST_ANSWER = 4000
"""Characters of an answer that are kept: `ANSWER_TOKENS` are far fewer."""
SHOWN = 200
"""Characters of an answer that a message shows."""
LONGEST = 2000
"""Characters of a text that is kept: templates of chats and licences are longer, and say nothing of a run."""
QUESTION = "In two or three sentences: what is the capital of France, and what is it known for?"
ANSWER_TOKENS = 160
KEYLESS = (401, 403)
"""What a server answers that wants a key."""
LASTING = 78
"""Exit code of a driver where the next attempt would end the same way: EX_CONFIG of sysexits.h."""


class StopError(Exception):
    """Why nothing can be measured; `lasts` where the next attempt would end the same way, `keyless` where a key is
    wanted."""

    def __init__(self, why: str, *, lasts: bool = True, keyless: bool = False) -> None:
        self.lasts, self.keyless = lasts, keyless
        super().__init__(why)


class NoAnswerError(StopError):
    """A server is there, and gives no answer of its model."""


@dataclass(frozen=True)
class Fetched:
    """What an address answered: its text, or the status or the reason why there is none."""

    text: str | None
    status: int | None = None
    problem: str = "no JSON"
    """What is wrong with it, as in `it is no JSON`."""

    @cached_property
    def document(self) -> Any:
        """What the page says as JSON; None for anything else."""
        try:
            return None if self.text is None else json.loads(self.text)
        except (ValueError, RecursionError):
            return None


def told(text: str, most: int = SHOWN) -> str:
    """What a server says, for a message: one short line without what a terminal would obey."""
    plain = "".join(sign if sign.isprintable() else " " for sign in text[: 2 * most])
    line = " ".join(plain.split())
    return line if len(text) <= most else f"{line[:most]} ..."


def ask(
    url: str, path: str, body: Any = None, limit: float = LIMIT, *, keyed: bool = True
) -> Fetched:
    """The page at an address; with a `body` it is sent there as JSON. The key goes with it if it is `keyed`.

    It takes about `limit` seconds at most, and `MOST_BYTES`. The server is asked directly, and a redirect is an answer
    like any other: the key and the figures are of the address that was named.
    """
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    port = parts.port or (443 if secure else 80)
    connection = kind(parts.hostname or "", port, timeout=limit)
    headers = {"Content-Type": "application/json"}
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if key and keyed:
        headers["Authorization"] = f"Bearer {key}"
    method, data = ("GET", None) if body is None else ("POST", json.dumps(body))
    until = time.monotonic() + limit
    try:
        connection.request(method, parts.path + path, data, headers)
        return _page(connection.getresponse(), until)
    except TimeoutError:
        return Fetched(None, problem=f"no whole answer within {limit:g} s")
    except (OSError, http.client.HTTPException) as error:
        return Fetched(None, problem=told(str(error)) or type(error).__name__)
    except ValueError:  # its text may hold a header, and that the key
        return Fetched(None, problem="the request cannot be sent")
    finally:
        connection.close()


_PIECE = 1 << 16
"""Bytes read at once."""


def _page(answer: http.client.HTTPResponse, until: float) -> Fetched:
    """The page of an answer, which is read up to a bound. Raises TimeoutError."""
    status, content = answer.status, bytearray()
    while len(content) <= MOST_BYTES and (piece := answer.read1(_PIECE)):
        if time.monotonic() > until:
            raise TimeoutError
        content += piece
    text = content.decode(errors="replace")
    if 300 <= status < 400:
        place = told(answer.getheader("Location", ""))
        return Fetched(None, status, f"a redirect to {place}")
    if status >= 300:
        return Fetched(None, status, f"status {status}: {told(text)}".rstrip(": "))
    if len(content) > MOST_BYTES:
        return Fetched(None, status, f"larger than {MOST_BYTES >> 20} MiB")
    if answer.length:
        return Fetched(None, status, "cut short")
    return Fetched(text, status)


def counters(url: str) -> str | None:
    """The server's metrics in Prometheus' text format, without comments, buckets and times of creation: they are most
    of the page, and nothing is read from them."""
    text = ask(url, "/metrics").text
    if text is None:
        return None
    lines = [line for line in text.splitlines() if not _LEFT_OUT.search(line)]
    return "\n".join(lines) + "\n"


_LEFT_OUT = re.compile(r"^#|_(bucket|created)[{ ]")


def refusal(url: str, page: Fetched) -> str:
    """Why /v1/models of a server says nothing, and what to do about it."""
    where, status, why = f"{url}{MODELS}", page.status, page.problem
    if status is None:
        what = f"no server answers at {where} ({why})"
        return f"{what}; start it, or correct the address"
    if status in KEYLESS:
        return f"{where} wants a key (status {status}); set OPENAI_API_KEY"
    remedy = "give the address of the server itself"
    if status >= 500:
        remedy = "wait until it has loaded its model, or look at the server's log"
    return f"{where} answered with {why}; {remedy}"


def models(
    url: str, wanted: str | None, setting: str = "model:", *, keyed: bool = True
) -> list[str]:
    """The names of the models that a server lists. Raises StopError where it lists none, or not the one that is wanted;
    `setting` is where that was named."""
    page = ask(url, MODELS, keyed=keyed)
    if page.document is None:
        keyless, unsure = page.status in KEYLESS, (page.status or 500) >= 500
        raise StopError(refusal(url, page), lasts=not unsure, keyless=keyless)
    names = listed(page.document)
    if wanted is None and not names:
        raise StopError(f"{url}{MODELS} names no model; say which in {setting}")
    # Ollama takes a name without its tag for that with the tag `latest`.
    if wanted is None or not names or {wanted, f"{wanted}:latest"} & set(names):
        return names
    raise StopError(
        f"{url} does not serve {told(wanted)}; correct {setting}, it serves {some(names)}"
    )


def some(names: list[str]) -> str:
    """The first of the names, for a message."""
    shown = [told(name, 80) for name in names[:8]]
    return ", ".join([*shown, "..."] if len(names) > 8 else shown)


def find_program(name: str) -> str | None:
    """A program on PATH, or beside this interpreter."""
    beside = str(Path(sys.executable).parent)
    return shutil.which(name) or shutil.which(name, path=beside)


def who(url: str) -> dict[str, Any]:
    """Path to what the page there says as JSON; None where the server has no such page, or the time is over."""
    until = time.monotonic() + ALL_PAGES_LIMIT
    said = {}
    for path in PAGES:
        left = min(LIMIT, until - time.monotonic())
        document = ask(url, path, limit=left).document if left > 0 else None
        said[path] = without_templates(document)
    return said


def look(
    url: str,
    wanted: str | None,
    setting: str = "model:",
    *,
    random_weights: bool,
    is_chosen: bool = False,
) -> dict[str, Any]:
    """Who a server is: `{"url", "model", "said", "answer"}`, with the model's name on it, what its pages say, and one
    greedy answer. Of several models the first one counts, unless it has to be chosen; `setting` is where one is named.

    Raises StopError, and NoAnswerError where the model gives none, or none of a model, unless its weights are random.
    """
    names, said = models(url, wanted, setting), who(url)
    held = loaded(said) or names
    if is_chosen and wanted is None and len(held) > 1:
        what = f"{url} has {len(held)} models: {some(held)}; choose one with {setting}"
        raise StopError(what)
    model = wanted or held[0]
    if said["/api/version"] is not None:
        said[SHOW] = shown(url, model)
    found = answer(url, model)
    none = None if random_weights else senseless(model, found["text"])
    if none is not None:
        raise NoAnswerError(none)
    return {"url": url, "model": model, "said": said, "answer": found}


def within(document: Any, *path: str | int) -> Any:
    """What stands in a document; None where nothing does."""
    for step in path:
        try:
            document = document[step]
        except (LookupError, TypeError):
            return None
    return document


def entries(document: Any, name: str) -> list[dict[str, Any]]:
    """The objects of a list in a document; empty where there is none."""
    found = within(document, name)
    if not isinstance(found, list):
        return []
    return [entry for entry in found if isinstance(entry, dict)]


def shown(url: str, model: str) -> Any:
    """What Ollama says of a model, without its file and its licence."""
    document = ask(url, SHOW, {"model": model}).document
    kept = ("details", "model_info", "parameters", "capabilities")
    return without_templates({name: within(document, name) for name in kept})


def without_templates(document: Any) -> Any:
    """A document in which long texts are replaced by their length."""
    if isinstance(document, dict):
        return {name: without_templates(value) for name, value in document.items()}
    if isinstance(document, list):
        return [without_templates(value) for value in document]
    if isinstance(document, str) and len(document) > LONGEST:
        return f"[{len(document)} characters left out]"
    return document


def listed(models: Any) -> list[str]:
    """The names of the models that /v1/models lists."""
    return _names([entry.get("id") for entry in entries(models, "data")])


def _names(found: list[Any]) -> list[str]:
    """Those that can be names, each once."""
    names = [name for name in found if isinstance(name, str)]
    return list(dict.fromkeys(name for name in names if len(name) <= LONGEST_NAME))


def loaded(said: Any) -> list[str]:
    """The names of the models that a server holds in memory, of one that loads them when they are asked for (Ollama,
    LM Studio); empty where it says nothing of that."""
    names = [entry.get("model") for entry in entries(said.get("/api/ps"), "models")]
    for entry in entries(said.get("/api/v1/models"), "models"):
        if entry.get("type") != "embedding":
            instances = entries(entry, "loaded_instances")
            names += [instance.get("id") for instance in instances]
    return _names(names)


def chat(url: str, model: str, text: str, tokens: int) -> Fetched:
    """The server's answer to one message, the likeliest token each time."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": tokens,
        "temperature": 0,
    }
    return ask(url, "/v1/chat/completions", body, ANSWER_LIMIT)


def answer(url: str, model: str) -> dict[str, Any]:
    """One greedy answer: the question, the text, what is wrong with it, None for sense, and how long it took. Raises
    StopError for none."""
    begun = time.monotonic()
    page = chat(url, model, QUESTION, ANSWER_TOKENS)
    seconds = time.monotonic() - begun
    if page.document is None:
        status = page.status or 0
        why = f"its answer is {page.problem}" if status == 200 else page.problem
        what = f"{model} gave no answer: {why}"
        raise NoAnswerError(what, lasts=300 <= status < 500)
    # What a model thinks before it answers is part of it.
    message = within(page.document, "choices", 0, "message")
    names = ("reasoning_content", "reasoning", "content")
    parts = [within(message, name) for name in names]
    said = [part for part in parts if isinstance(part, str) and part.strip()]
    text = "\n".join(said)[:LONGEST_ANSWER]
    return {
        "question": QUESTION,
        "text": text,
        "problem": nonsense(text),
        "seconds": round(seconds, 3),
        "tokens": _count(page, "completion_tokens"),
    }


def senseless(model: str, text: str) -> str | None:
    """What is said of an answer that is none of a model; None for any other."""
    none = no_answer(text)
    if none is None:
        return None
    return f"{model} gave no answer: {none}; if its weights are random, declare them so"


def _count(page: Fetched, name: str) -> int | None:
    """Tokens of an answer as its server counts them; None where it does not."""
    tokens = within(page.document, "usage", name)
    return tokens if isinstance(tokens, int) and tokens > 0 else None


PAGE_BEGINS = ("<!doctype", "<html", '{"error', '{"detail"', '{"object":"error')
"""What proxies and servers answer in place of a model."""
LEAST_LETTERS = 0.5
"""Letters and digits in all characters of a text that are not blank, below which it is no text."""
LEAST_DISTINCT = 0.25
"""Distinct words in all words of a text of twelve or more, below which it repeats itself: prose of a hundred words has
0.6."""
LEAST_COMPRESSED = 0.2
"""Size of a text of a hundred bytes or more after compression, relatively, below which it repeats itself: prose of 400
characters has 0.6."""


def no_answer(text: str) -> str | None:
    """What shows that a text is no answer of a model, so that there is nothing to measure: nothing, or a page."""
    solid = "".join(text.split())
    if not solid:
        return "it is empty"
    if solid.lower().startswith(PAGE_BEGINS):
        return f"it is an error page: {text[:40]!r}"
    return None


def nonsense(text: str) -> str | None:
    """What shows that an answer is no sense: none at all, no words, or repetition. None for what may be sense. Such a
    model is measured; the review tells of it, and ranks it nowhere."""
    none = no_answer(text)
    if none is not None:
        return none
    solid, words, whole = "".join(text.split()), text.lower().split(), text.encode()
    if sum(letter.isalnum() for letter in solid) < LEAST_LETTERS * len(solid):
        return f"it has hardly any letters: {text[:40]!r}"
    few_words = len(words) >= 12 and len(set(words)) < LEAST_DISTINCT * len(words)
    packed = len(zlib.compress(whole, 9))
    if few_words or (len(whole) >= 100 and packed < LEAST_COMPRESSED * len(whole)):
        return f"it repeats itself: {text[:40]!r}"
    return None


def counted(url: str, model: str, text: str) -> int:
    """Tokens of a message as the server counts them, its template included. Raises StopError where it does not."""
    page = chat(url, model, text, 1)
    tokens = _count(page, "prompt_tokens")
    if tokens is None:
        why = f" ({page.problem})" if page.text is None else ""
        raise StopError(
            f"the server does not say how many tokens a prompt has{why}; name a tokenizer"
        )
    return tokens
