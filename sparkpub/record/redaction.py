"""What must not reach the disk: secrets, home folders and host names, replaced by stable placeholders."""

import copy
import json
import os
import pwd
import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sparkpub.record.metrics import METRICS
from sparkpub.record.secrets import is_secret_name, without_secrets
from sparkpub.record.tokens import SECRET

LEAST = 8
"""Characters of a secret's value, below which it is not looked for in other text: it may be a word."""
IDENTITY = (
    *("schema_version", "run_id", "campaign", "model", "environment", "workload"),
    *("iteration", "repeat_of", "specification", "status", "plan", "started", "ended"),
    *("evidence",),
)
"""Fields of a record that are made here, of names that a matrix may have."""
_SERIAL = re.compile(
    r"\b(?:MIG-)?(?:GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
    re.IGNORECASE,
)
_ANY_HOME = (
    r"/(?:home|Users)/[A-Za-z0-9._-]+|[A-Za-z]:\\{1,2}Users\\{1,2}[A-Za-z0-9._-]+"
)
_PATTERNS = frozenset(("regex", "measured_from", "json"))
"""Options that are matched against what a tool says: with a placeholder they would match something else."""
_REFERENCE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
"""A variable in place of a secret."""
_MEASURE = re.compile(r"[A-Za-z]*[\d.,]+[A-Za-z]*|[\d,-]+")
"""What sizes, states, models and processors are called: `60g`, `P0`, `h200`, `0-9`."""
ALLOWED = re.compile(
    r"CUDA_.*|NVIDIA_.*|NCCL_.*|TORCH.*|PYTORCH_.*|TRTLLM_.*|TLLM_.*|TRT_.*|VLLM_.*|GGML_.*|LLAMA_.*|HF_HUB_OFFLINE|"
    r"SGLANG_.*|SGL_.*|FLASHINFER_.*|TRITON_.*|CUBLAS_.*|CUDNN_.*|OLLAMA_.*|"
    r"TRANSFORMERS_OFFLINE|OMP_.*|MKL_.*|OPENBLAS_.*|LD_LIBRARY_PATH|LD_PRELOAD|PATH|PYTHON(?:PATH|HASHSEED|UNBUFFERED)|"
    r"LANG|LC_ALL|MALLOC_.*|TOKENIZERS_PARALLELISM"
)
"""Environment variables that a record may show, unless their name tells of a secret."""


class Redactor:
    """Replaces what must stay private. Values of secret-looking variables are replaced wherever they appear.

    `words` are names that matrix and records need: a machine, a user or a password of such a name changes none of them.
    """

    def __init__(self, words: Iterable[str] = ()) -> None:
        homes = sorted(map(re.escape, _homes()), key=len, reverse=True)
        self._homes = re.compile(rf"(?:{'|'.join([*homes, _ANY_HOME])})(?![\w.-])")
        self._words = frozenset((*METRICS, *words))
        self._exact: list[tuple[str, str]] = []
        self._learn(os.environ)
        self._set_hosts()

    def also(
        self,
        variables: Mapping[str, str],
        places: Mapping[str, str] | None = None,
    ) -> "Redactor":
        """One that also replaces secrets among these variables, and these paths by their words."""
        other = copy.copy(self)
        other._exact = list((dict(self._exact) | dict(places or {})).items())
        other._learn(variables)
        return other

    @property
    def replaced(self) -> dict[str, str]:
        """Each text that is replaced as a whole, and what stands for it: to be kept where only its owner reads."""
        return dict(self._exact)

    def _learn(self, variables: Mapping[str, str]) -> None:
        """Look for these variables' secrets, as they are and as JSON and addresses write them."""
        known = dict(self._exact)
        for name, value in variables.items():
            if is_secret_name(name) and len(value) >= LEAST:
                for form in (value, json.dumps(value)[1:-1], quote(value, safe="")):
                    known.setdefault(form, SECRET)
        for word in self._words:
            known.pop(word, None)
        self._exact = sorted(known.items(), key=lambda item: -len(item[0]))

    def _set_hosts(self) -> None:
        # A host may be called `spark` or `model`: only the whole name counts, not a part of `spark-single-gpu-dev`, and
        # a plain word only where a host stands.
        names = sorted(_hosts(), key=len, reverse=True)
        self._host_names = names
        own = [name for name in names if self._is_distinctive(name)]
        known = "|".join(map(re.escape, names)) or "(?!)"
        sure = "|".join(map(re.escape, own)) or "(?!)"
        self._hosts = re.compile(
            rf"(?<![\w.-])(?:{sure})(?![\w-]|\.\w)"
            rf"|(?:(?<=://)|(?<=@))(?:{known})(?![\w-])"
            rf"|(?<![\w.-])(?P<before>(?:on|hostname|nodename|HOSTNAME)[ =:]+[\"']?)(?:{known})(?![\w-]|\.\w)"
        )

    def _is_distinctive(self, name: str) -> bool:
        """Whether a host's name is none that other things have."""
        plain = name.isalpha() or _MEASURE.fullmatch(name) is not None
        return not plain and name not in self._words

    def text(self, text: str) -> str:
        """The text with placeholders."""
        for found, word in self._exact:
            text = text.replace(found, word)
        text = self._homes.sub("<home>", without_secrets(text))
        if any(name in text for name in self._host_names):
            text = self._hosts.sub(_host, text)
        if "PU-" in text or "IG-" in text:
            text = _SERIAL.sub("<gpu>", text)
        return text

    def content(self, content: bytes) -> bytes:
        """The same for bytes, which keep whatever is no text. What has two or four bytes to a character is kept in one
        where something in it is private."""
        text = content.decode("utf-8", "surrogateescape")
        clean = self.text(text)
        if clean == text and "\0" in text:
            narrow = content.replace(b"\0", b"").decode("utf-8", "surrogateescape")
            text, clean = narrow, self.text(narrow)
        if clean == text:
            return content
        return clean.encode("utf-8", "surrogateescape")

    def argv(self, argv: Sequence[str]) -> tuple[str, ...]:
        """A command line: what follows a flag such as `--token` goes too."""
        # One text, so that each word is seen beside the others.
        clean = self.text("\r".join(argv)).split("\r")
        if len(clean) != len(argv):
            clean = [self.text(word) for word in argv]
        for place, (flag, word) in enumerate(pairwise(argv), 1):
            if flag.startswith("-") and "=" not in flag and is_secret_name(flag):
                clean[place] = word if _REFERENCE.fullmatch(word) else SECRET
        return tuple(clean)

    def variables(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Those that a record may show."""
        return {
            name: self.text(variables[name])
            for name in sorted(variables)
            if ALLOWED.fullmatch(name) and not is_secret_name(name)
        }

    def other_names(self, variables: Mapping[str, str]) -> tuple[str, ...]:
        """The names of those whose values a record may not show; names that tell of a secret stay away too."""
        return tuple(
            self.text(name)
            for name in sorted(variables)
            if not ALLOWED.fullmatch(name) and not is_secret_name(name)
        )

    def record(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """A record's fields as they may be published: every text redacted, its names and files as they are."""
        changed = {
            name: self.options(value, name)
            for name, value in document.items()
            if name not in IDENTITY
        }
        facts = document.get("reproducibility")
        if facts is not None:  # packages are called google-auth
            packages = {
                name: self.text(text) for name, text in facts["packages"].items()
            }
            changed["reproducibility"]["packages"] = packages
        return {**document, **changed}

    def options(self, options: Any, name: str = "") -> Any:
        """Options, or any part of a record: texts redacted, values of secret-looking names gone.

        Keys stay, and so do patterns and texts that are a word of the schema as a whole.
        """
        if isinstance(options, Mapping):
            shown = {
                key: self.options(value, str(key)) for key, value in options.items()
            }
            named = options.get("name", options.get("key"))
            if isinstance(named, str) and is_secret_name(named) and shown.get("value"):
                shown["value"] = SECRET  # an entry of a table of variables
            return shown
        if isinstance(options, list | tuple):
            if all(isinstance(item, str) for item in options) and not is_secret_name(
                name
            ):
                return list(self.argv(options))
            return [self.options(item, name) for item in options]
        if not isinstance(options, str) or options in self._words or name in _PATTERNS:
            return options
        if is_secret_name(name) and options:
            return options if _REFERENCE.fullmatch(options) else SECRET
        return self.text(options)


def _host(found: re.Match[str]) -> str:
    return f"{found['before'] or ''}<host>"


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
