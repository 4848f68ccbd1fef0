"""Prose bound to data: the names an author may use in Markdown, and what they say today.

A page calls the functions below and nothing else. An undefined name, an unknown cell or a figure that is not there
stops the build with file and line.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from pydantic_core import from_json, to_json

from sparkpub.record import package
from sparkpub.record.catalogue import CatalogueFile
from sparkpub.record.documents import suggestion
from sparkpub.record.errors import ClaimError
from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.text import NOT_AVAILABLE, SPACE
from sparkpub.review.checks import Finding
from sparkpub.review.claims.chosen import AXES, Chosen
from sparkpub.review.claims.facts import Fact
from sparkpub.review.claims.ledger import Verdict
from sparkpub.review.vocabulary import STATISTICS
from sparkpub.site import cache, expressions, kept
from sparkpub.site.content import Page
from sparkpub.site.pages import (
    campaign_page,
    claims,
    hardware,
    reference,
    templating,
)
from sparkpub.site.pages.templating import markdown_text
from sparkpub.site.prose import BOUND, JUDGED, UNIT
from sparkpub.site.publication import Publication
from sparkpub.site.scopes import (
    ALL,
    NotMeasuredYetError,
    Scopes,
    compares,
    refuse_unknown,
)
from sparkpub.site.sources import WrittenPage

LEDGER, FACTS = "claims/index.md", "claims/facts.md"
"""The pages on which every claim and every fact has an anchor of its own."""
NOT_YET = "not measured yet"
"""What stands in place of a figure of a campaign whose runs are still to be measured, or all failed."""
INTERVAL = "interval "
"""Before a statistic whose 95 % interval a column of a table shows."""
_BEFORE_UNIT = re.compile(rf"(?<=\d) (?=(?:{UNIT})(?![\w/]))")
_SHOWN = ("mean", "sd", "sd_population", "p50", "min", "max", "cv_percent", "n")
"""Statistics of a cell that `values` lists, besides its trend."""
_SIDES = ("candidate", "baseline")
"""What a comparison names besides the runs."""
_GIVE_VERDICTS = ("claim", "verdict", "evidence", "verdicts", "findings", "ledger")


NamedFigure = tuple[tuple[str, ...], dict[str, str]]
"""A figure as a page asks for it: its name, and its campaign and the part of it."""


class TableColumn(NamedTuple):
    """A column of a table in prose: a statistic of a metric, or `interval` and a statistic, in one environment where it
    is named."""

    statistic: str
    metric: str
    environment: str = ""


class Words:
    """What prose may say of one dataset: every public method but `page` and `values` is a word of a page. `figure`
    gives the Markdown of a named chart."""

    def __init__(self, publication: Publication, figure: Callable[..., str]) -> None:
        self.figures: dict[str, NamedFigure] = {}
        """What stands in pages for each figure that one of them named, to the name."""
        self._site = publication
        self._verdicts = {verdict.claim.id: verdict for verdict in publication.verdicts}
        self._scopes = Scopes(publication.results)
        self._figure = figure
        self._pages: dict[WrittenPage, Page] = {}
        self._beside = kept.beside(publication.options)
        self._cache = cache.Cache(publication.options.cache / cache.WORK)
        self._named: dict[str, NamedFigure] = {}
        """The figures of the text at hand."""
        self._uri = ""
        self._links = True
        self._words = {name: self._word_called(name) for name in WORDS}

    def page(self, source: WrittenPage) -> Page:
        """A page with every figure in place. Raises ClaimError with file and line."""
        if source not in self._pages:
            self._pages[source] = source.filled(
                lambda text, lines: self.said(
                    source, text, lines, links=text is source.text
                )
            )
        return self._pages[source]

    def said(
        self, source: WrittenPage, text: str, lines: int = 0, *, links: bool = False
    ) -> str:
        """A text of a page with every figure in place; so many lines of the file stand before it. A title is no place
        for links. It is kept as long as the campaigns are the same of which it speaks."""
        campaign = source.meta.get("campaign") or ""
        name = cache.key("said", self._beside, source.uri, campaign, text, links)
        said, named, of, asked = self._kept(name)
        if not of or of != self._basis(asked):
            self._uri, self._links, self._named = source.uri, links, {}
            self._scopes.default, self._scopes.asked = campaign, set()
            said = expressions.render(self._words, text, source.uri, lines)
            named, asked = self._named, sorted(self._scopes.asked)
            if "{{" in text:
                entry = said, named, self._basis(asked), asked
                self._cache.put(name, to_json(entry))
        for mark, (figure, scope) in named.items():
            self.figures[mark] = tuple(figure), scope
        return str(said)

    def _kept(self, name: str) -> tuple[Any, Any, str, list[str]]:
        """A text as it was, its figures, and what it followed from: a digest of those campaigns, and their names."""
        with suppress(ValueError, TypeError):
            said, named, of, asked = from_json(self._cache.get(name) or b"")
            return said, named, of, asked
        return "", {}, "", []

    def _basis(self, asked: Sequence[str]) -> str:
        """A digest of what decides what is said of these campaigns; empty where nothing says it."""
        if ALL in asked:
            asked = sorted(self._site.dataset.campaigns)
        return kept.basis(self._site.review, self._site.names, asked)

    def _word_called(self, name: str) -> Callable[..., str]:
        """A word that says so where its runs are still to be measured, and before whose units no line breaks."""
        say = getattr(self, name)

        def said(*given: Any, **scope: Any) -> str:
            try:
                return _BEFORE_UNIT.sub(SPACE, say(*given, **scope))
            except NotMeasuredYetError:
                return NOT_YET

        return said

    def values(self, wanted: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
        """Every name an author can use that has all words of `wanted`, with its present value."""
        self._scopes.default = ""
        self._links = False
        for call in self._calls():
            if all(word in call for word in wanted):
                name, given, scope = expressions.parsed(call)
                text = str(getattr(self, name)(*given, **scope))
                if text != NOT_AVAILABLE:
                    yield call, text

    def _calls(self) -> Iterator[str]:
        """What an author can write of each cell, each comparison, each fact and each claim."""
        names = [
            name for name, found in STATISTICS.items() if found.kind == "comparison"
        ]
        results, of_comparison = self._site.results, (*names, "verdict")
        sides = ("model", "workload", "campaign", *_SIDES)
        for word, rows, axes, statistics in (
            ("value", results.cell_rows, (*AXES, "campaign"), (*_SHOWN, "trend_p")),
            ("compare", results.comparison_rows, sides, of_comparison),
        ):
            for row in rows:
                scope = ", ".join(f'{axis}="{getattr(row, axis)}"' for axis in axes)
                for statistic in statistics:
                    yield f'{word}("{statistic}", "{row.metric}", {scope})'
        yield from (f'fact("{name}")' for name in self._site.facts)
        yield from (f'verdict("{name}")' for name in self._verdicts)

    # -- runs --------------------------------------------------------------------------------------------------

    def value(
        self,
        statistic: str,
        metric: str = "",
        *,
        decimals: int | None = None,
        **scope: Any,
    ) -> str:
        """A statistic over the runs of a scope: `value("mean", "peak_memory_gib", model="deepseek",
        environment="native")`. `include="all"` counts every record; `against` names a second metric. Of an environment
        against the campaign's baseline, `compare("difference", "peak_memory_gib", model="deepseek")`; `verdict` is that
        of `sparkpub stats`."""
        if statistic == "verdict":
            return str(self._scopes.comparison(metric, **scope).verdict)
        return self._scopes.quantity(statistic, metric, **scope).text(decimals)

    compare = value

    def interval(
        self, statistic: str, metric: str, *, decimals: int | None = None, **scope: Any
    ) -> str:
        """The 95 % interval of a statistic."""
        return self._scopes.quantity(statistic, metric, **scope).interval(decimals)

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
        runs = {axis: name for axis, name in scope.items() if axis not in _SIDES}
        chosen = self._scopes.measured(**runs)
        found = (
            self._scopes.quantity(statistic, metric, **scope, **{over: name})
            for name in dict.fromkeys(getattr(one, over) for one in chosen.records)
        )
        known = {one.value: one for one in found if one.value is not None}
        if not known:
            remedy = "choose another metric or scope"
            raise ClaimError(f"no run has {metric}", remedy=remedy)
        lowest, highest = min(known), max(known)
        return known[lowest].between(lowest, highest, decimals)

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
        slope, intercept = (
            self._scopes.quantity(name, metric, against=against, **scope)
            for name in ("slope", "intercept")
        )
        if slope.value is None or intercept.value is None:
            remedy = "both metrics need values in three runs"
            raise ClaimError(f"no line of {metric} on {against}", remedy=remedy)
        predicted = intercept.value + slope.value * self._fact(at).value
        return intercept.say(predicted, decimals)

    def table(
        self,
        shown: str | Sequence[Sequence[str]],
        metric: str | Sequence[str] = "",
        *,
        rows: str | Sequence[str] = "model",
        of: Sequence[str | Sequence[str]] = (),
        decimals: int | None = None,
        **scope: Any,
    ) -> str:
        """A statistic as a table with a row per model, or what `rows` names: `table("mean", "peak_memory_gib")`; with a
        list of metrics, a column each. Several statistics are a list of columns, of one environment where it is named:
        `table([["mean", "peak_memory_gib", "native"], ["difference", "peak_memory_gib"]])`. `of` chooses the rows by
        their keys."""
        if isinstance(shown, str):
            metrics = [metric] if isinstance(metric, str) else metric
            shown = [(shown, name) for name in metrics]
        asked = [TableColumn(*column) for column in shown]
        chosen = self._scopes.measured(**scope)
        refuse_unknown(chosen, *(column.metric for column in asked))
        axes = [rows] if isinstance(rows, str) else list(rows)
        keys = [(key,) if isinstance(key, str) else tuple(key) for key in of]
        called = partial(self.name, campaign=scope.get("campaign", ""))
        body = []
        for key in keys or _keys(chosen, axes):
            cell = dict(zip(axes, key, strict=True))
            names = [called(**{axis: part}) for axis, part in cell.items()]
            values = [self._cell(one, {**scope, **cell}, decimals) for one in asked]
            body.append([*names, *values])
        heads = [axis.capitalize() for axis in axes]
        several = len({column.metric for column in asked}) > 1
        for column in asked:
            word = column.statistic.split()[0].removesuffix("_percent")
            said = [] if word == "mean" else [word.replace("_", " ")]
            if column.environment:
                said.append(called(environment=column.environment))
            if several or not said:
                known = METRICS.get(column.metric)
                said.insert(0, known.label if known else column.metric)
            heads.append(", ".join(said))
        return reference.table(heads, body)

    def _cell(
        self, column: TableColumn, runs: dict[str, Any], decimals: int | None
    ) -> str:
        """One value of a table, of runs or of a comparison."""
        statistic = column.statistic.removeprefix(INTERVAL)
        if not compares(statistic):
            if column.environment:
                runs = runs | {"environment": column.environment}
            if column.metric not in self._scopes.select(**runs).metrics:
                return NOT_AVAILABLE
        say = self.value if statistic == column.statistic else self.interval
        return say(statistic, column.metric, decimals=decimals, **runs)

    def coverage(self, **scope: Any) -> str:
        """Runs per cell as a table."""
        reviewed = self._scopes.reviewed(**scope)
        return templating.text(
            "coverage.md.j2", reviewed=reviewed, names=self._site.names
        ).strip()

    def figure(self, *name: str, **scope: str) -> str:
        """A chart by name, or a line in its place while no run of its campaign is good."""
        campaign = self._scopes.campaign(**scope)
        if campaign.awaits():
            return f"*{NOT_YET}*"
        scope["campaign"] = campaign.name
        said = self._figure(*name, **scope)
        self._named[said] = name, scope
        return said

    # -- claims, facts and findings ----------------------------------------------------------------------------

    def claim(self, name: str) -> str:
        """The sentence of a claim with the verdict behind it; of what is undecided the bound comes before."""
        told = [claims.bound(self._verdict(name)), self._word(name)]
        said = self.says(name).rstrip(".")
        return f"{said} ({'; '.join(filter(None, told))})."

    def verdict(self, name: str) -> str:
        """The verdict on a claim in a word, linked to its place in the ledger; said so where it changed. What is
        undecided has its bound behind it."""
        bound = claims.bound(self._verdict(name))
        if bound and self._links:
            return f"{self._word(name)} ({bound})"
        return self._word(name)

    def _word(self, name: str) -> str:
        verdict = self._verdict(name)
        text: str = verdict.verdict
        if verdict.changed:
            text = f"{text}, written for {verdict.claim.recorded}"
        classes = f".sp-chip .sp-{verdict.verdict}"
        return self._link(text, f"{LEDGER}#{name}", classes)

    def says(self, name: str) -> str:
        """The sentence of a claim, as its test makes it."""
        return markdown_text(self._verdict(name).says)

    def evidence(self, name: str) -> str:
        """The figures behind a verdict, in one sentence."""
        verdict = self._verdict(name)
        said = self._site.names.in_words(verdict.claim.campaign, verdict.text)
        return markdown_text(said)

    def verdicts(self, word: str = "", *, campaign: str = "") -> str:
        """How many claims have a verdict; all claims without a word."""
        self._scopes.asked.add(ALL)
        chosen = (
            campaign in ("", verdict.claim.campaign) and word in ("", verdict.verdict)
            for verdict in self._verdicts.values()
        )
        return str(sum(chosen))

    def ledger(self) -> str:
        """Claims with verdict, evidence and source."""
        self._scopes.asked.add(ALL)
        return claims.ledger(self._site, self._address)

    def fact(self, name: str) -> str:
        """A figure that is not from runs, linked to its source."""
        return self._link(self._fact(name).text, f"{FACTS}#{name}", ".sp-fact")

    def facts(self) -> str:
        """Every fact with its source."""
        return claims.facts(self._site.facts)

    def finding(self, check: str = "", **scope: Any) -> str:
        """How many findings there are of a check (or, without one, of all): `finding("drift", severity="warning")`."""
        return str(len(self._findings(check, **scope)))

    def findings(self, check: str = "", **scope: Any) -> str:
        """Every finding of a check (or of all) as a list, in plain words."""
        names = self._site.names
        found = dict.fromkeys(
            f"- **{item.severity}**: {markdown_text(names.in_words(item.campaign, item.message))}"
            for item in self._findings(check, **scope)
        )
        return "\n".join(found) or "- none"

    def _findings(
        self, check: str, *, campaign: str = "", severity: str = ""
    ) -> Sequence[Finding]:
        of = campaign or self._scopes.default
        self._scopes.asked.add(of or ALL)
        wanted = {"check": check, "campaign": of, "severity": severity}
        given = {name: value for name, value in wanted.items() if value}
        return self._site.findings.where(**given)

    # -- names, models, machines, documentation ----------------------------------------------------------------

    def name(self, *, campaign: str = "", **keys: str) -> str:
        """What readers call a model, an environment or a workload of a campaign: `name(model="qwen72b")`; of several,
        one after the other."""
        of_campaign = self._scopes.campaign(campaign=campaign).name
        of = self._site.names.campaign(of_campaign).by_axis
        for axis, key in keys.items():
            if key not in of.get(axis, ()):
                near = suggestion(key, sorted(of.get(axis, ())))
                remedy = near if axis in of else f"write one of {', '.join(of)}"
                raise ClaimError(f"no {axis} {key!r} to name", remedy=remedy)
        return markdown_text(", ".join(of[axis][key] for axis, key in keys.items()))

    def model(self, name: str, fact: str, **scope: Any) -> str:
        """A fact of the catalogue about a model, by its key in the campaign: `model("qwen72b", "weight_bytes")`."""
        known = self._scopes.model_id(name, scope)
        return reference.catalogue_value("models", known, fact)

    def machine(self, name: str, fact: str) -> str:
        """A fact of the catalogue about a kind of machine: `machine("dgx-spark", "bandwidth_bytes_s")`."""
        return reference.catalogue_value("machines", name, fact)

    def ceiling(
        self, name: str, *, batch: int, machine: str = "dgx-spark", **scope: Any
    ) -> str:
        """The output throughput that the machine's memory bandwidth allows a model at a batch size."""
        return reference.ceiling(self._scopes.model_id(name, scope), machine, batch)

    def hardware(self) -> str:
        """Each machine that has runs, as their records describe it."""
        self._scopes.asked.add(ALL)
        ordered = campaign_page.in_order(self._site)
        return hardware.machines(ordered, self._address)

    def catalogued(self, kind: CatalogueFile) -> str:
        """What the catalogue knows of the "models" or the "machines" that have runs."""
        self._scopes.asked.add(ALL)
        named = {"models": "requested.model_id", "machines": "machine.kind"}
        if kind not in named:
            remedy = "write models or machines"
            raise ClaimError(f"no part {kind!r} of the catalogue", remedy=remedy)
        records = (stored.record for stored in self._site.dataset.runs)
        names = dict.fromkeys(map(attrgetter(named[kind]), records))
        return reference.catalogued(kind, names)

    def package(self, extras: str = "") -> str:
        """What pip, pipx and uv take to install this sparkpub, with its extras; `package("repository")` is the address
        of its git repository alone."""
        address = package.public_source()
        if extras == "repository":
            return address.removeprefix("git+")
        name = f"sparkpub[{extras}]" if extras else "sparkpub"
        return f"{name} @ {address}"

    def reference(self, name: str) -> str:
        """A part of the method that is made from the registries: `reference("metrics")`."""
        self._scopes.asked.add(ALL)
        own: dict[str, Metric] = {}
        for campaign in self._site.campaigns:
            own |= {one.name: one for one in self._site.metrics(campaign)}
        return reference.of(name, own)

    def _verdict(self, name: str) -> Verdict:
        if name not in self._verdicts:
            raise ClaimError(f"no claim {name!r}", remedy="add it to claims.yaml")
        verdict = self._verdicts[name]
        self._scopes.asked |= {verdict.claim.campaign, *verdict.claim.repeated_in}
        return verdict

    def _fact(self, name: str) -> Fact:
        if name not in self._site.facts:
            remedy = "add it to facts.yaml with its source"
            raise ClaimError(f"no fact {name!r}", remedy=remedy)
        return self._site.facts[name]

    def _link(self, text: str, target: str, classes: str) -> str:
        if not self._links:
            return text
        return f"[{text}]({self._address(target)}){{ {classes} }}"

    def _address(self, target: str) -> str:
        """The way from the page at hand to another page."""
        return posixpath.relpath(target, posixpath.dirname(self._uri) or ".")


WORDS = tuple(
    name
    for name in vars(Words)
    if name[0] != "_" and name not in ("page", "said", "values")
)
"""What prose may call."""


def proof(source: WrittenPage) -> Page:
    """A page with a mark in place of each result, to be read for what was typed. Raises ClaimError with file and
    line."""
    words = {name: _mark(name) for name in WORDS}
    return source.filled(
        lambda text, lines: expressions.render(words, text, source.uri, lines)
    )


def _mark(name: str) -> Callable[..., str]:
    def mark(*given: object, **_: object) -> str:
        judges = given[:1] == ("verdict",) or name in _GIVE_VERDICTS
        return JUDGED if judges else BOUND

    return mark


def _keys(chosen: Chosen, axes: Sequence[str]) -> Mapping[tuple[str, ...], None]:
    """The keys of the runs along these axes, each once."""
    for axis in axes:
        if axis not in AXES:
            remedy = f"write one of {', '.join(AXES)}"
            raise ClaimError(f"a table has no rows by {axis!r}", remedy=remedy)
    records = chosen.records
    return dict.fromkeys(tuple(getattr(one, axis) for axis in axes) for one in records)
