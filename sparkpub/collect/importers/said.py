"""What a row of a table, or a report, itself says of its run: names, and what served the model on what."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sparkpub.collect.importers.layout import Facts, engine_named, facts_in, weights_in
from sparkpub.record.record import Observed
from sparkpub.tools import cells, reading
from sparkpub.tools.language import RunPlaces, Same
from sparkpub.tools.where import at

_FACTS = ("name", "machine", "nodes", "image", "driver", "vbios")
"""What is said of the machine and what ran on it."""
_PARALLEL = re.compile(r"\bTP[ =]?(\d+)\b")
_VERSION = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True)
class SaidOfRun:
    """The places of a mapping, and the row or report to look at."""

    run: RunPlaces
    same: Same
    document: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        """What is said of a name, else what holds for every run."""
        found = cells.text(at(self.document, getattr(self.run, name)))
        same: str | None = getattr(self.same, name, None)
        return same if found is None else found

    def word(self, name: str) -> str | None:
        """The same of a report, in which a number is no name."""
        found = reading.word(at(self.document, getattr(self.run, name)))
        same: str | None = getattr(self.same, name, None)
        return same if found is None else found

    @property
    def model_id(self) -> str | None:
        """The model's name on Hugging Face, where a place or the name itself says it."""
        name = self.text("model") or ""
        return self.text("model_id") or (name if "/" in name else None)

    def facts(self, beside: Facts) -> Facts:
        """What lies beside the results, and what is said here of machine and server."""
        told = facts_in(self.document, self.run, self.same)
        said = {name: getattr(told, name) for name in _FACTS}
        settings = {**beside.settings, **told.settings}
        for name, known in (("engine", engine_named), ("weights", weights_in)):
            text = self.text(name)
            if text is not None and text != known(text):
                settings[name] = text  # with more than the name
            parallel = _PARALLEL.search(text or "")
            if parallel is not None:
                settings["tensor_parallel_size"] = parallel[1]
        known_here = {name: value for name, value in said.items() if value is not None}
        return replace(beside, settings=settings, **known_here)

    def observed(self) -> Observed:
        """What served the model: a text such as `vLLM 0.25 (TP=2)` says the version, too."""
        engine, version, weights = map(
            self.text, ("engine", "engine_version", "weights")
        )
        known = engine_named(engine)
        if version is None and known != engine:
            found = _VERSION.search(engine or "")
            version = None if found is None else found[0]
        return Observed(
            engine=known,
            engine_version=version,
            quantization=weights_in(weights) or weights,
            input_tokens_mean=self._mean("input_tokens_mean"),
            output_tokens_mean=self._mean("output_tokens_mean"),
        )

    def _mean(self, name: str) -> float | None:
        found = reading.number(at(self.document, getattr(self.run, name)))
        return None if found is None or found < 0 else found
