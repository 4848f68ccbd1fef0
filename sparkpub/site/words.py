"""Prose bound to data: the names an author may use in Markdown, and what they say today.

A page calls the functions below and nothing else. An undefined name, an unknown cell or a figure that is not there
stops the build with file and line.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from sparkpub.record import package
from sparkpub.record.catalogue import CatalogueFile
from sparkpub.record.documents import suggestion
from sparkpub.record.errors import ClaimError
from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.record import Record
from sparkpub.record.text import NOT_AVAILABLE, SPACE, counted, p_text
from sparkpub.review.checks import Finding, Review
from sparkpub.review.claims.chosen import Chosen
from sparkpub.review.claims.facts import Fact
from sparkpub.review.claims.ledger import Verdict
from sparkpub.review.claims.quantities import Quantity, Question, ask
from sparkpub.review.names import Names
from sparkpub.review.results import Results
from sparkpub.review.vocabulary import STATISTICS
from sparkpub.site import expressions
from sparkpub.site.pages import hardware, reference
from sparkpub.site.pages.reference import plain
from sparkpub.site.prose import BOUND, JUDGED, UNITS
from sparkpub.site.scopes import NotMeasuredYetError, Scopes, matches
from sparkpub.site.sources import FRONT

LEDGER, FACTS = "claims/index.md", "claims/facts.md"
"""The pages on which every claim and every fact has an anchor of its own."""
_BEFORE_UNIT = re.compile(
    rf"(?<=\d) (?=(?:{'|'.join(map(re.escape, UNITS))})(?![\w/]))"
)
CAMPAIGN = re.compile(r"^campaign:\s*([a-z0-9][a-z0-9.-]*)\s*$", re.MULTILINE)
_NAMES = (
    "value",
    "table",
    "interval",
    "extent",
    "compare",
    "predict",
    "claim",
    "verdict",
    "says",
    "evidence",
    "fact",
    "name",
    "model",
    "machine",
    "ceiling",
    "finding",
    "findings",
    "coverage",
    "verdicts",
    "ledger",
    "facts",
    "hardware",
    "catalogued",
    "licences",
    "package",
)
"""The methods of `Words` that prose may call, besides `figure` and `reference`."""
_SHOWN = (
    "mean",
    "sd",
    "sd_population",
    "p50",
    "min",
    "max",
    "cv_percent",
    "n",
    "trend_p",
)


_NOT_LISTED = ("gap", "pooled_difference")
"""Statistics of comparisons that only claims ask for."""
_AXES = ("model", "environment", "workload")
"""By which a table has rows and columns."""
_SIDES = frozenset({"candidate", "baseline"})
"""What a comparison names besides the runs."""
_GIVE_VERDICTS = frozenset(
    {"claim", "verdict", "evidence", "verdicts", "findings", "ledger"}
)


INTERVAL = "interval "
"""Before a statistic whose 95 % interval a column of a table shows."""
_OF_COMPARISONS = frozenset({"verdict", "p_adjusted", "why", "machines", "replication"})
"""What `compare` says besides statistics."""


@dataclass(frozen=True)
class TableColumn:
    """A column of a table in prose; `part` is the key of an environment, or of what `axis` names."""

    statistic: str
    metric: str
    part: str = ""
    axis: str = "environment"

    @property
    def is_interval(self) -> bool:
        """Whether it shows the interval of its statistic."""
        return self.statistic.startswith(INTERVAL)


NOT_YET = "not measured yet"
"""What stands in place of a figure of a campaign whose runs are still to be measured, or all failed."""


def _perhaps_later(say: Callable[..., str]) -> Callable[..., str]:
    """An expression that says `NOT_YET` where its runs are still to be measured."""

    @wraps(say)
    def said(*given: Any, **scope: Any) -> str:
        try:
            return say(*given, **scope)
        except NotMeasuredYetError:
            return NOT_YET

    return said


def proof(text: str, uri: str) -> str:
    """A page with a mark in place of each result, to be read for what was typed.

    Raises ClaimError with file and line.
    """
    text = text.replace(BOUND, " ").replace(JUDGED, " ")
    words = {name: _marks(name) for name in (*_NAMES, "figure", "reference")}
    return expressions.render(words, text, uri, 0)


def _marks(name: str) -> Callable[..., str]:
    def mark(*given: object, **_: object) -> str:
        if name in _GIVE_VERDICTS:
            return JUDGED
        if name == "compare" and given[:1] in (("verdict",), ("replication",)):
            return JUDGED
        return BOUND

    return mark


def _with_fixed_spaces(say: Callable[..., str]) -> Callable[..., str]:
    """An expression that says the same with a space before a unit at which no line breaks."""

    @wraps(say)
    def said(*given: Any, **scope: Any) -> str:
        return _BEFORE_UNIT.sub(SPACE, say(*given, **scope))

    return said


def _arguments(scope: Mapping[str, str]) -> str:
    """A scope as an author writes it: `model="deepseek", campaign="phase1"`."""
    return ", ".join(f'{axis}="{name}"' for axis, name in scope.items())


def _value(known: tuple[float, Quantity]) -> float:
    return known[0]


class Words:
    """What prose may say of one dataset. `figure` draws a named chart and returns Markdown or HTML."""

    def __init__(
        self,
        results: Results,
        review: Review,
        verdicts: Sequence[Verdict],
        facts: Mapping[str, Fact],
        figure: Callable[..., str],
    ) -> None:
        self._results = results
        self._dataset = results.reviewed.dataset
        self._review = review
        self._verdicts = {verdict.claim.id: verdict for verdict in verdicts}
        self._facts = facts
        self._readers = Names(results.reviewed.dataset)
        self._scopes = Scopes(results)
        self._figure = figure
        self._rendered: dict[tuple[str, str], str] = {}
        self._uri = ""
        self._links = True
        self._words = {
            name: _with_fixed_spaces(getattr(self, name))
            for name in (*_NAMES, "figure", "reference")
        }

    def render(self, text: str, uri: str) -> str:
        """The Markdown of the page `uri` with every figure in place. Raises ClaimError with file and line."""
        if (text, uri) not in self._rendered:
            self._rendered[text, uri] = self._render(text, uri)
        return self._rendered[text, uri]

    def _render(self, text: str, uri: str) -> str:
        found = FRONT.match(text)
        front = found[0] if found else ""
        body = text[len(front) :]
        campaign = CAMPAIGN.search(front)
        self._uri = uri
        self._scopes.default = campaign[1] if campaign else ""
        # A title is no place for a link.
        self._links = False
        head = expressions.render(self._words, front, uri, 0)
        self._links = True
        lines = front.count("\n")
        return head + expressions.render(self._words, body, uri, lines)

    @_perhaps_later
    def value(
        self,
        statistic: str,
        metric: str = "",
        *,
        decimals: int | None = None,
        **scope: Any,
    ) -> str:
        """A statistic over the runs of a scope: `value("mean", "peak_memory_gib", model="deepseek",
        environment="native")`. `include="all"` counts every record; `against` names a second metric."""
        return self._scopes.quantity(statistic, metric, **scope).text(decimals)

    @_perhaps_later
    def table(
        self,
        shown: str | Sequence[Sequence[str]],
        metric: str | Sequence[str] = "",
        *,
        rows: str | Sequence[str] = "model",
        columns: str = "",
        of: Sequence[str | Sequence[str]] = (),
        decimals: int | None = None,
        **scope: Any,
    ) -> str:
        """A statistic as a table with a row per model, or what `rows` names: `table("mean", "peak_memory_gib",
        columns="environment")`; with a list of metrics, a column each. Several statistics are a list of columns, of
        one environment where it is named: `table([["mean", "peak_memory_gib", "native"], ["difference",
        "peak_memory_gib"]])`. `of` chooses the rows by their keys."""
        chosen = self._scopes.select(**scope)
        self._scopes.refuse_early(chosen)
        asked = self._columns(shown, metric, columns, chosen)
        axes = [rows] if isinstance(rows, str) else list(rows)
        keys = [[key] if isinstance(key, str) else list(key) for key in of]
        if not keys:
            found = [
                [self._key(record, axis) for axis in axes] for record in chosen.records
            ]
            keys = [list(key) for key in dict.fromkeys(map(tuple, found))]
        body = []
        for key in keys:
            cell = {**scope, **dict(zip(axes, key, strict=True))}
            named = [
                self._named(axis, name, scope)
                for axis, name in zip(axes, key, strict=True)
            ]
            body.append(
                [*named, *(self._cell(column, cell, decimals) for column in asked)]
            )
        heads = [axis.capitalize() for axis in axes]
        return reference.table([*heads, *self._heads(asked, scope)], body)

    def _columns(
        self,
        shown: str | Sequence[Sequence[str]],
        metric: str | Sequence[str],
        axis: str,
        chosen: Chosen,
    ) -> list[TableColumn]:
        """The columns that a table is asked for: as a list of them, or as a statistic with metrics or an axis."""
        if not isinstance(shown, str):
            asked = [TableColumn(*column) for column in shown]
        elif not axis:
            metrics = [metric] if isinstance(metric, str) else metric
            asked = [TableColumn(shown, name) for name in metrics]
        elif isinstance(metric, str):
            keys = dict.fromkeys(self._key(record, axis) for record in chosen.records)
            asked = [TableColumn(shown, metric, key, axis) for key in keys]
        else:
            raise ClaimError(
                "a table has columns of one metric, or a column per metric",
                remedy="leave columns out, or name one metric",
            )
        for column in asked:
            if column.metric not in chosen.metrics:
                raise ClaimError(
                    f"no run of this scope has the metric {column.metric!r}",
                    remedy=suggestion(column.metric, sorted(chosen.metrics)),
                )
        return asked

    def _heads(
        self, asked: Sequence[TableColumn], scope: Mapping[str, Any]
    ) -> Iterator[str]:
        """What tells each column from the others: its metric, its statistic, the part of the runs."""
        metrics = {column.metric for column in asked}
        for column in asked:
            said = []
            if len(metrics) > 1 or not (column.part or column.statistic != "mean"):
                known = METRICS.get(column.metric)
                said.append(known.label if known else column.metric)
            if column.statistic != "mean":
                told = column.statistic.removeprefix(INTERVAL).removesuffix("_percent")
                said.append(
                    "interval" if column.is_interval else told.replace("_", " ")
                )
            if column.part:
                said.append(self._named(column.axis, column.part, scope))
            yield ", ".join(said)

    def _cell(
        self, column: TableColumn, cell: Mapping[str, Any], decimals: int | None
    ) -> str:
        """One value of a table, of runs or of a comparison."""
        statistic, metric = column.statistic.removeprefix(INTERVAL), column.metric
        known = STATISTICS.get(statistic)
        if statistic in _OF_COMPARISONS or (known and known.kind == "comparison"):
            if column.is_interval:
                sides = self._scopes.sides(cell)
                return self.interval(statistic, metric, decimals=decimals, **sides)
            return self.compare(statistic, metric, decimals=decimals, **cell)
        runs = dict(cell)
        if column.part:
            runs[column.axis] = column.part
        group = self._scopes.select(**runs)
        if metric not in group.metrics:
            return NOT_AVAILABLE
        quantity = self._scopes.quantity(statistic, metric, **runs)
        return (
            quantity.interval(decimals)
            if column.is_interval
            else quantity.text(decimals)
        )

    def _key(self, record: Record, axis: str) -> str:
        if axis not in _AXES:
            raise ClaimError(
                f"a table has no rows or columns by {axis!r}",
                remedy=f"write one of {', '.join(_AXES)}",
            )
        return str(getattr(record, axis))

    def _named(self, axis: str, key: str, scope: Mapping[str, Any]) -> str:
        """What readers call a key."""
        return self.name(campaign=scope.get("campaign", ""), **{axis: key})

    @_perhaps_later
    def interval(
        self, statistic: str, metric: str, *, decimals: int | None = None, **scope: Any
    ) -> str:
        """The 95 % interval of a statistic of `value` or, with `candidate` and `baseline`, of `compare`."""
        return self._scopes.quantity(statistic, metric, **scope).interval(decimals)

    @_perhaps_later
    def extent(
        self,
        statistic: str,
        metric: str,
        *,
        over: str,
        decimals: int | None = None,
        **scope: Any,
    ) -> str:
        """The smallest and largest value over an axis: `extent("mean", …, over="model", environment="native")`."""
        runs_of = {axis: name for axis, name in scope.items() if axis not in _SIDES}
        chosen = self._scopes.select(**runs_of)
        self._scopes.refuse_early(chosen)
        names = dict.fromkeys(getattr(record, over) for record in chosen.records)
        known: list[tuple[float, Quantity]] = []
        for name in names:
            found = self._scopes.quantity(statistic, metric, **scope, **{over: name})
            if found.value is not None:
                known.append((found.value, found))
        if not known:
            raise ClaimError(
                f"no run has {metric}", remedy="choose another metric or scope"
            )
        low, quantity = min(known, key=_value)
        high, _ = max(known, key=_value)
        return quantity.between(low, high, decimals)

    @_perhaps_later
    def compare(
        self, statistic: str, metric: str, *, decimals: int | None = None, **scope: Any
    ) -> str:
        """An environment against the campaign's baseline: `compare("difference", "peak_memory_gib",
        model="deepseek")`. `verdict`, `p_adjusted` and `why` are those of `sparkpub stats`; of a campaign on several
        machines `machines` is their number, and `replication` whether they show one thing."""
        sides = self._scopes.sides(scope)
        if statistic == "replication":
            return str(self._scopes.replication(metric, **sides).replication)
        if statistic in _OF_COMPARISONS:
            found = getattr(self._scopes.comparison(metric, **sides), statistic)
            if statistic == "p_adjusted":
                return p_text(found)
            if statistic == "machines":
                return str(counted(found, "machine"))
            return str(found)
        return self._scopes.quantity(statistic, metric, **sides).text(decimals)

    @_perhaps_later
    def predict(
        self,
        metric: str,
        against: str,
        *,
        at: str,
        decimals: int | None = None,
        **scope: Any,
    ) -> str:
        """What the line of `metric` on `against` gives for the fact `at`: arithmetic on data, not a measurement."""
        slope = self._scopes.quantity("slope", metric, against=against, **scope)
        intercept = self._scopes.quantity("intercept", metric, against=against, **scope)
        if slope.value is None or intercept.value is None:
            raise ClaimError(
                f"no line of {metric} on {against}",
                remedy="both metrics need values in three runs",
            )
        predicted = intercept.value + slope.value * self._fact(at).value
        return intercept.say(predicted, decimals)

    def claim(self, name: str) -> str:
        """The sentence of a claim with the verdict behind it; of what is undecided the bound comes before."""
        told = [reference.bound(self._verdict(name)), self._word(name)]
        said = self.says(name).rstrip(".")
        return f"{said} ({'; '.join(filter(None, told))})."

    def verdict(self, name: str) -> str:
        """The verdict on a claim in a word, linked to its place in the ledger; said so where it changed. What is
        undecided has its bound behind it."""
        bound = reference.bound(self._verdict(name))
        if bound and self._links:
            return f"{self._word(name)} ({bound})"
        return self._word(name)

    def _word(self, name: str) -> str:
        verdict = self._verdict(name)
        word = verdict.verdict
        text: str = word
        if verdict.changed:
            text = f"{word}, written for {verdict.claim.recorded}"
        return self._link(text, f"{LEDGER}#{name}", f".sp-verdict .sp-{word}")

    def says(self, name: str) -> str:
        """The sentence of a claim, as its test makes it."""
        return plain(self._verdict(name).says)

    def evidence(self, name: str) -> str:
        """The figures behind a verdict, in one sentence."""
        verdict = self._verdict(name)
        return plain(self._readers.in_words(verdict.claim.campaign, verdict.text))

    def fact(self, name: str) -> str:
        """A figure that is not from runs, linked to its source."""
        return self._link(self._fact(name).text, f"{FACTS}#{name}", ".sp-fact")

    def finding(self, check: str = "", **scope: Any) -> str:
        """How many findings there are of a check (or, without one, of all): `finding("drift", severity="warning")`."""
        return str(len(self._findings(check, **scope)))

    def findings(self, check: str = "", **scope: Any) -> str:
        """Every finding of a check (or of all) as a list, in plain words."""
        found = dict.fromkeys(
            f"- **{item.severity}**: {plain(self._readers.in_words(item.campaign, item.message))}"
            for item in self._findings(check, **scope)
        )
        return "\n".join(found) or "- none"

    def verdicts(self, word: str = "", *, campaign: str = "") -> str:
        """How many claims have a verdict; all claims without a word."""
        return str(len(self._chosen(word, campaign)))

    def name(self, *, campaign: str = "", **keys: str) -> str:
        """What readers call a model, an environment or a workload of a campaign: `name(model="qwen72b")`; of several,
        one after the other."""
        of = self._readers.campaign(
            self._scopes.campaign(campaign=campaign).name
        ).by_axis
        said = []
        for axis, key in keys.items():
            if key not in of.get(axis, ()):
                near = suggestion(key, sorted(of.get(axis, ())))
                remedy = near if axis in of else f"write one of {', '.join(of)}"
                raise ClaimError(f"no {axis} {key!r} to name", remedy=remedy)
            said.append(of[axis][key])
        return plain(", ".join(said))

    def model(self, name: str, fact: str, **scope: Any) -> str:
        """A fact of the catalogue about a model, by its key in the campaign: `model("qwen72b", "weight_bytes")`."""
        return reference.catalogue_value(
            "models", self._scopes.model_id(name, scope), fact
        )

    def machine(self, name: str, fact: str) -> str:
        """A fact of the catalogue about a kind of machine: `machine("dgx-spark", "bandwidth_bytes_s")`."""
        return reference.catalogue_value("machines", name, fact)

    def ceiling(
        self, name: str, *, batch: int, machine: str = "dgx-spark", **scope: Any
    ) -> str:
        """The output throughput that the machine's memory bandwidth allows a model at a batch size."""
        return reference.ceiling(self._scopes.model_id(name, scope), machine, batch)

    def coverage(self, **scope: Any) -> str:
        """Runs per cell as a table."""
        return reference.coverage(self._scopes.reviewed(**scope), self._readers)

    def ledger(self, word: str = "", *, campaign: str = "") -> str:
        """Claims with verdict, evidence and source: those with a verdict, or all."""
        links = {
            name: f"[{plain(data.info.title)}]({self._address(f'campaigns/{name}.md')})"
            for name, data in self._dataset.campaigns.items()
        }
        chosen = self._chosen(word, campaign)
        return reference.ledger(chosen, self._readers, links)

    def _chosen(self, word: str, campaign: str) -> list[Verdict]:
        """Verdicts with a word and of a campaign, where these are given."""
        found = []
        for verdict in self._verdicts.values():
            of_campaign = campaign in ("", verdict.claim.campaign)
            if of_campaign and word in ("", verdict.verdict):
                found.append(verdict)
        return found

    def facts(self) -> str:
        """Every fact with its source."""
        return reference.facts(list(self._facts.values()))

    def hardware(self) -> str:
        """Each machine that has runs, as their records describe it."""
        return hardware.machines(tuple(self._dataset.campaigns.values()), self._address)

    def catalogued(self, kind: CatalogueFile) -> str:
        """What the catalogue knows of the "models" or the "machines" that have runs."""
        if kind not in ("models", "machines"):
            raise ClaimError(
                f"no part {kind!r} of the catalogue", remedy="write models or machines"
            )
        records = [stored.record for stored in self._dataset.runs]
        return hardware.catalogued(kind, records)

    def package(self, extras: str = "") -> str:
        """What pip, pipx and uv take to install this sparkpub, with its extras; `package("repository")` is the address
        of its git repository alone."""
        address = package.public_source()
        if extras == "repository":
            return address.removeprefix("git+")
        name = f"sparkpub[{extras}]" if extras else "sparkpub"
        return f"{name} @ {address}"

    def licences(self) -> str:
        """Where the data of each campaign come from, and their licence."""
        return hardware.licences(self._dataset.campaigns.values(), self._address)

    def values(self) -> list[tuple[str, str]]:
        """Every name an author can use with its present value."""
        self._scopes.default = ""
        self._links = False
        rows = [*self._cell_values(), *self._comparison_values()]
        for name, fact in self._facts.items():
            rows.append((f'fact("{name}")', fact.text))
        for name, verdict in self._verdicts.items():
            rows.append((f'verdict("{name}")', verdict.verdict))
        return rows

    def _cell_values(self) -> Iterator[tuple[str, str]]:
        for campaign in self._dataset.campaigns.values():
            cells = dict.fromkeys(record.cell for record in campaign.records)
            for model, environment, workload in cells:
                axes = {
                    "model": model,
                    "environment": environment,
                    "workload": workload,
                    "campaign": campaign.name,
                }
                yield from self._values_of(axes)

    def _values_of(self, axes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """The statistics of one cell that an author is shown."""
        group = self._scopes.select(include="counted", **axes)
        for metric in group.metrics:
            for statistic in _SHOWN:
                answer = ask(statistic, Question(group, metric))
                if answer.value is not None:
                    name = f'value("{statistic}", "{metric}", {_arguments(axes)})'
                    yield name, answer.text()

    def _comparison_values(self) -> Iterator[tuple[str, str]]:
        names = []
        for name, found in STATISTICS.items():
            if found.kind == "comparison" and name not in _NOT_LISTED:
                names.append(name)
        names += ["p_adjusted", "verdict"]
        for row in self._results.comparison_rows:
            scope = {
                "model": row.model,
                "workload": row.workload,
                "campaign": row.campaign,
                "candidate": row.candidate,
                "baseline": row.baseline,
            }
            for statistic in names:
                call = f'compare("{statistic}", "{row.metric}", {_arguments(scope)})'
                yield call, self.compare(statistic, row.metric, decimals=None, **scope)

    def figure(self, *name: str, **scope: str) -> str:
        """A chart by name, or a line in its place while no run of its campaign is good."""
        data = self._dataset.campaigns.get(scope.get("campaign", ""))
        if data is not None and data.awaits():
            return f"*{NOT_YET}*"
        return self._figure(*name, **scope)

    def reference(self, name: str) -> str:
        """A part of the method that is made from the registries: `reference("metrics")`."""
        if name != "metrics":
            return reference.of(name)
        own: dict[str, Metric] = {}
        for campaign in self._dataset.campaigns.values():
            own |= campaign.metrics
        return reference.metrics(
            metric for name, metric in own.items() if name not in METRICS
        )

    def _findings(
        self, check: str, *, campaign: str = "", cell: str = "", severity: str = ""
    ) -> list[Finding]:
        given = {
            "check": check,
            "severity": severity,
            "campaign": campaign or self._scopes.default,
        }
        wanted = {name: value for name, value in given.items() if value}
        found = []
        for item in self._review.findings:
            of_cell = not cell or not item.cells or cell in item.cells
            if of_cell and matches(item, wanted):
                found.append(item)
        return found

    def _verdict(self, name: str) -> Verdict:
        if name not in self._verdicts:
            raise ClaimError(f"no claim {name!r}", remedy="add it to claims.yaml")
        return self._verdicts[name]

    def _fact(self, name: str) -> Fact:
        if name not in self._facts:
            raise ClaimError(
                f"no fact {name!r}", remedy="add it to facts.yaml with its source"
            )
        return self._facts[name]

    def _link(self, text: str, target: str, classes: str) -> str:
        if not self._links:
            return text
        return f"[{text}]({self._address(target)}){{ {classes} }}"

    def _address(self, target: str) -> str:
        """The way from the page at hand to another page."""
        return posixpath.relpath(target, posixpath.dirname(self._uri) or ".")
