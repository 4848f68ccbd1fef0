"""Pages as somebody handed them in: their text within bounds, and an end to the time that reading one may take."""

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from sparkpub.record import documents, outside
from sparkpub.record.errors import SiteError

LONGEST_SECONDS = 20.0
"""Reading a page takes a hundredth of it; Markdown made of nothing but `[` takes for ever."""
FRONT = re.compile(r"\A---\n(.*?)^---\n", re.DOTALL | re.MULTILINE)
"""The front matter of a page, and the text in it."""


def page_text(path: Path, uri: str) -> str:
    """A page's text with line feeds alone.

    Raises SiteError with the file, and the line where it matters, for what is no plain text, and for front matter that
    the site's engine could not read.
    """
    text = outside.text(path, SiteError, "give a Markdown page").replace("\r\n", "\n")
    unwanted = outside.CONTROL.search(text)
    if unwanted is not None:
        line = text.count("\n", 0, unwanted.start()) + 1
        raise SiteError(
            f"a control character, U+{ord(unwanted[0]):04X}",
            where=f"{uri}:{line}",
            remedy="remove it",
        )
    front = FRONT.match(text)
    if front is not None:
        # An expression in front matter may hold quotes as YAML does not know them.
        head = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "x", front[1])
        meta, lines = documents.parse("\n" + head, uri, SiteError)
        documents.refuse(lines.duplicates, SiteError)
        if not isinstance(meta, dict | None):
            raise SiteError(
                "front matter is no mapping", where=uri, remedy="write name: value"
            )
    return text


class _OutOfTimeError(BaseException):
    """No Exception: Markdown's extensions swallow those."""


@contextmanager
def bounded(uri: str, seconds: float = LONGEST_SECONDS) -> Iterator[None]:
    """Whatever is done with a page meanwhile ends: after `seconds`, or where it nests without end, with a SiteError.

    Time is bounded in the main thread only, where a build runs.
    """
    remedy = "write it as plain Markdown"
    try:
        with _alarm(seconds):
            yield
    except _OutOfTimeError:
        what = f"it takes longer than {seconds:g} s to read"
        raise SiteError(what, where=uri, remedy=remedy) from None
    except RecursionError:
        what = "its parts are nested too deep"
        raise SiteError(what, where=uri, remedy=remedy) from None


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    # Again each second: what catches everything may swallow the first.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _ring(_signal: int, _frame: FrameType | None) -> None:
    raise _OutOfTimeError
