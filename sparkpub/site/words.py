"""Prose bound to data: the names an author may use in Markdown, and what they say today.

Pages are Jinja templates in a sandbox without loops over anything but what these functions give; an undefined
name, an unknown cell or a missing figure stops the build with file and line.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from sparkpub.claims import Verdict
from sparkpub.dataset import Dataset
from sparkpub.errors import ClaimError, SparkpubError
from sparkpub.facts import Fact


class Words:
    """What prose may say of one dataset. `figure` draws a named chart and returns Markdown or HTML."""

    def __init__(
        self,
        dataset: Dataset,
        statistics: Any,
        review: Any,
        verdicts: Sequence[Verdict],
        facts: Mapping[str, Fact],
        figure: Callable[..., str],
    ) -> None:
        self._dataset, self._statistics, self._review = dataset, statistics, review
        self._verdicts = {verdict.claim.id: verdict for verdict in verdicts}
        self._facts = facts
        self._environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
        self._environment.globals = {"figure": figure}

    def render(self, text: str, uri: str) -> str:
        """The Markdown of the page `uri` with every figure in place. Raises ClaimError with file and line."""
        try:
            return self._environment.from_string(text).render()
        except TemplateError as error:
            raise ClaimError(str(error), where=uri, remedy="see sparkpub values") from None
        except SparkpubError as error:
            raise ClaimError(error.what, where=error.where or uri, remedy=error.remedy) from None

    def values(self) -> list[dict[str, str]]:
        """Every name an author can use with its present value: rows with `name` and `value`."""
        return []
