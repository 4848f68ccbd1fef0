"""What must not reach the disk: tokens, keys, home folders and host names, replaced by stable placeholders."""

import copy
import os
import pwd
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE|(?:^|_)KEY(?:$|_)|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY",
    re.IGNORECASE,
)
_SECRETS = {
    "hf_": r"hf_[A-Za-z0-9]{16,}",
    "nvapi-": r"nvapi-[A-Za-z0-9_-]{16,}",
    "gh": r"gh[pousr]_[A-Za-z0-9]{20,}",
    "github_pat_": r"github_pat_[A-Za-z0-9_]{20,}",
    "glpat-": r"glpat-[A-Za-z0-9_-]{16,}",
    "sk-": r"sk-[A-Za-z0-9_-]{20,}",
    "xox": r"xox[abprs]-[A-Za-z0-9-]{10,}",
    "AKIA": r"AKIA[A-Z0-9]{16}",
    "ASIA": r"ASIA[A-Z0-9]{16}",
    "eyJ": r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    "PRIVATE KEY": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
}
"""A piece of text that every secret of a known form has, to the form. Looking for the piece is what is cheap."""
_CREDENTIALS = re.compile(r"(?P<before>://)[^/\s:@'\"]+:[^/\s@'\"]+(?=@)")
_BEARER = re.compile(
    r"(?P<before>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE
)
_TELLING = r"(?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key|credential)"
_NAMED = re.compile(
    rf"(?P<before>{_TELLING}s?[\"']?\s*[=:]\s*[\"']?)"
    r"(?=[^\s\"',;]*[^\s\"',;\d.])[^\s\"',;<>]{8,}",
    re.IGNORECASE,
)
_FLAG = re.compile(rf"--?[A-Za-z0-9_-]*{_TELLING}", re.IGNORECASE)
_PUBLIC = re.compile(
    r"tokens|token(?:iz|[_-]?id)|(?:eos|bos|pad|unk|sep|cls|mask|next|image)[_-]?token",
    re.IGNORECASE,
)
"""Tokens of a language model, which are no secrets."""
_SERIAL = re.compile(r"\bGPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
ALLOWED = re.compile(
    r"CUDA_.*|NVIDIA_.*|NCCL_.*|TORCH.*|PYTORCH_.*|TRTLLM_.*|TLLM_.*|TRT_.*|VLLM_.*|GGML_.*|LLAMA_.*|HF_HUB_OFFLINE|"
    r"TRANSFORMERS_OFFLINE|OMP_.*|MKL_.*|OPENBLAS_.*|LD_LIBRARY_PATH|LD_PRELOAD|PATH|PYTHON(?:PATH|HASHSEED|UNBUFFERED)|"
    r"LANG|LC_ALL|MALLOC_.*|TOKENIZERS_PARALLELISM"
)
"""Environment variables that a record may show, unless their name tells of a secret."""


class Redactor:
    """Replaces what must stay private. Values of secret-looking variables are replaced wherever they appear."""

    def __init__(self) -> None:
        homes = "|".join(
            re.escape(home) for home in sorted(_homes(), key=len, reverse=True)
        )
        self._homes = re.compile(
            rf"(?:{homes or r'/(?!)'}|/(?:home|Users)/[A-Za-z0-9._-]+)(?![\w.-])"
        )
        hosts = "|".join(
            re.escape(name) for name in sorted(_hosts(), key=len, reverse=True)
        )
        # A host may be called `spark`: only the whole name counts, not a part of `spark-single-gpu-dev`.
        self._hosts = re.compile(rf"(?<![\w.-])(?:{hosts or '(?!)'})(?![\w-]|\.\w)")
        self._exact: list[tuple[str, str]] = []
        self._add(os.environ, {})

    def also(
        self, variables: Mapping[str, str], places: Mapping[str, str] | None = None
    ) -> "Redactor":
        """One that also replaces secrets among these variables, and these paths by their words."""
        other = copy.copy(self)
        other._add(variables, places or {})
        return other

    def _add(self, variables: Mapping[str, str], places: Mapping[str, str]) -> None:
        values = [
            value
            for name, value in variables.items()
            if _secret_name(name) and len(value) >= 8
        ]
        known = dict(self._exact) | dict.fromkeys(values, "<secret>") | dict(places)
        self._exact = sorted(known.items(), key=lambda item: -len(item[0]))

    def text(self, text: str) -> str:
        """The text with placeholders."""
        for found, word in self._exact:
            text = text.replace(found, word)
        text = self._hosts.sub("<host>", self._homes.sub("<home>", text))
        for piece, form in _SECRETS.items():
            if piece in text:
                text = re.sub(r"(?<![A-Za-z0-9_])" + form, "<secret>", text)
        lower = text.lower()
        if "://" in text:
            text = _CREDENTIALS.sub(r"\g<before><secret>", text)
        if "bearer" in lower or "basic" in lower:
            text = _BEARER.sub(r"\g<before><secret>", text)
        if any(
            word in lower for word in ("token", "secret", "passw", "key", "credential")
        ):
            text = _NAMED.sub(_unless_public, text)
        return _SERIAL.sub("<gpu>", text)

    def content(self, content: bytes) -> bytes:
        """The same for bytes, which keep whatever is not UTF-8."""
        return self.text(content.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )

    def argv(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """A command line: what follows a flag such as `--token` goes too."""
        clean: list[str] = []
        for index, word in enumerate(argv):
            flag = argv[index - 1] if index else ""
            secret = _FLAG.fullmatch(flag) and not _PUBLIC.search(flag)
            clean.append("<secret>" if secret else self.text(word))
        return tuple(clean)

    def variables(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Those that a record may show."""
        shown = (
            name
            for name in sorted(variables)
            if ALLOWED.fullmatch(name) and not _secret_name(name)
        )
        return {name: self.text(variables[name]) for name in shown}

    def options(self, options: object) -> object:
        """Options of the matrix as a record shows them: text redacted, values of secret-looking variables gone."""
        if isinstance(options, Mapping):
            return {
                key: "<secret>"
                if isinstance(value, str) and _secret_name(str(key))
                else self.options(value)
                for key, value in options.items()
            }
        if isinstance(options, list | tuple):
            return [self.options(item) for item in options]
        return self.text(options) if isinstance(options, str) else options


def _secret_name(name: str) -> bool:
    return SECRET_NAME.search(name) is not None and _PUBLIC.search(name) is None


def _unless_public(found: re.Match[str]) -> str:
    """`tokenizer: …` and `max_tokens=…` are no secrets."""
    # The name's beginning is looked up here: a pattern that matched it would take quadratic time on a long line.
    name = found.string[max(0, found.start() - 20) : found.end("before")]
    return found[0] if _PUBLIC.search(name) else f"{found['before']}<secret>"


def _homes() -> set[str]:
    """Home folders of whoever runs the collector, directly or through sudo."""
    names = {os.environ.get("HOME", ""), str(Path("~").expanduser())}
    with suppress(KeyError, ValueError):
        names.add(pwd.getpwuid(int(os.environ.get("SUDO_UID", os.geteuid()))).pw_dir)
    return {
        name.rstrip("/") for name in names if name.startswith("/") and name.rstrip("/")
    }


def _hosts() -> set[str]:
    names = {socket.gethostname(), socket.gethostname().partition(".")[0]}
    return {
        name
        for name in names
        if len(name) > 1 and name not in ("localhost", "localdomain")
    }
