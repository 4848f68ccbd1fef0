"""What the page of a model shows: one model over all campaigns, machines, formats and engines."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property, partial

from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.record import Record, metric_of
from sparkpub.record.text import listed
from sparkpub.review import recipe
from sparkpub.review.grouping import grouped
from sparkpub.review.leaderboard import Board, RankedModel
from sparkpub.review.models import ModelName
from sparkpub.review.names import parts_of, told_apart
from sparkpub.review.setup import Setup
from sparkpub.review.speeds import GENERATION, RATES, Speed
from sparkpub.review.tables.column import TableRow
from sparkpub.site import kept
from sparkpub.site.cache import Cache, key
from sparkpub.site.content import File, Page
from sparkpub.site.figures import speeds as curves
from sparkpub.site.figures.draw import Drawings
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.library import Library
from sparkpub.site.pages import found_by, model_links, placing, templating
from sparkpub.site.pages.measure_page import identity
from sparkpub.site.publication import Publication

MakeCurves = Callable[[ModelName, Sequence[Speed], Mapping[Setup, str]], Figure | None]
ACCURACY = ("accuracy", "exact_match", "pass_at")
"""How the metrics begin that say how right a model's answers are."""
MORE = ("draft_acceptance", "acceptance_length", "request_goodput", "model_load")
"""How the metrics begin that explain a recipe's figures beside its loads."""


@dataclass(frozen=True)
class MeasuredSetup:
    """One set-up of a model with what it reached."""

    site: Publication
    name: str
    speeds: Sequence[Speed]

    @property
    def record(self) -> Record:
        """The first of its runs."""
        return self.speeds[0].records[0]

    @property
    def campaigns(self) -> Mapping[str, Sequence[Speed]]:
        """Its speeds by campaign."""
        return grouped(self.speeds, lambda speed: speed.campaign)

    @property
    def by_load(self) -> list[Speed]:
        """Its speeds, those of the smallest load first."""
        return sorted(self.speeds, key=_size)

    @property
    def commands(self) -> dict[str, str]:
        """How to do it again, as a shell takes it: the server's command where there is one, and the client's."""
        record, found = self.record, {}
        server = record.requested.environment.get("server")
        if isinstance(server, dict) and server.get("argv"):
            found["Server"] = shlex.join(map(str, server["argv"]))
        elif rebuilt := recipe.command(record):
            found[f"Server, {recipe.REBUILT}"] = rebuilt
        if record.argv:
            found["Client" if found else "Command"] = shlex.join(record.argv)
        return found

    @cached_property
    def notes(self) -> list[str]:
        """What those who measured say of its cells."""
        found = (
            note.text
            for speed in self.speeds
            for note in self.site.dataset.campaigns[speed.campaign].info.footnotes
            if any(fnmatchcase("/".join(speed.cell), cell) for cell in note.cells)
        )
        return list(dict.fromkeys(found))

    @cached_property
    def more(self) -> dict[Metric, list[float]]:
        """What explains its figures: metric to what was measured, the smallest first."""
        rows = self.site.results.cell_rows
        cells = {(speed.campaign, speed.cell) for speed in self.speeds}
        # Cells of the same builds that have no rate explain it, too.
        builds = {(campaign, *cell[:2]) for campaign, cell in cells}
        for campaign, model, environment in builds:
            mine = rows.where(campaign=campaign, model=model, environment=environment)
            rated = {row.cell for row in mine if row.metric in RATES}
            cells |= {(campaign, row.cell) for row in mine if row.cell not in rated}
        found = {
            metric: [
                row.mean
                for campaign, cell in cells
                for row in rows.where(campaign=campaign, cell=cell, metric=name)
            ]
            for name, metric in METRICS.items()
            if name.startswith(MORE)
        }
        return {metric: sorted(means) for metric, means in found.items() if means}


def _size(speed: Speed) -> tuple[float, ...]:
    load = speed.load
    sizes = (load.request_rate, load.input_tokens, load.depth, load.output_tokens)
    return tuple(size or 0 for size in (*sizes, load.at_once))


@dataclass(frozen=True)
class ModelPage:
    """A model with everything that was measured of it."""

    site: Publication
    name: ModelName
    speeds: Sequence[Speed]

    @property
    def about(self) -> str:
        """`FP8 and NVFP4 on DGX Spark`."""
        stated = [speed.weights for speed in self.speeds if speed.setup.quantization]
        formats = stated or ["weights not stated"]
        return f"{listed(formats)} on {listed(speed.machine for speed in self.speeds)}"

    @property
    def runs(self) -> int:
        """How many runs count."""
        return sum(len(speed.records) for speed in self.speeds)

    @property
    def answers(self) -> list[tuple[Board, RankedModel]]:
        """Its row on each board."""
        return [
            (board, row)
            for board in self.site.boards
            for row in board.rows
            if row.model == self.name
        ]

    @property
    def doubts(self) -> dict[str, list[str]]:
        """Campaign to the checks that keep its figures off the boards."""
        doubted = [speed for speed in self.speeds if speed.doubts]
        by_campaign = grouped(doubted, lambda speed: speed.campaign)
        return {
            name: [check for speed in speeds for check in speed.doubts]
            for name, speeds in by_campaign.items()
        }

    @property
    def compared(self) -> str:
        """With what a comparison begins: what leads its first answer, else the smallest load."""
        leading = [row.best.speed for _, row in self.answers]
        known = [speed for speed in self.speeds if not speed.doubts]
        for speed in (*leading, *sorted(known, key=_size)):
            if GENERATION in speed.figures:
                return identity(speed)
        return ""

    @property
    def accuracy(self) -> list[tuple[TableRow, Metric]]:
        """How right its answers are."""
        return [found[1:] for found in accuracy(self.site) if found[0] == self.name]

    @property
    def recipes(self) -> list[MeasuredSetup]:
        """Its set-ups."""
        pairs = zip(self.setups.values(), self.named.values(), strict=True)
        return [MeasuredSetup(self.site, name, speeds) for speeds, name in pairs]

    @cached_property
    def setups(self) -> Mapping[Setup, Sequence[Speed]]:
        """Set-up to its speeds over all campaigns, in the order met."""
        return grouped(self.speeds, lambda speed: speed.setup)

    @cached_property
    def named(self) -> dict[Setup, str]:
        """Set-up to what parts it from the model's others: `NVFP4, vLLM 0.26.0, Docker`. Alike ones are numbered."""
        parts = []
        for speed, *_ in self.setups.values():
            place, *special = parts_of(
                self.site.names.called(speed.campaign, "environment", speed.cell[1])
            )
            about = [speed.weights, speed.engine, place, speed.machine]
            more = [word for word in special if word.upper() != speed.weights]
            parts.append(["", *filter(None, about), *more])
        told = told_apart(parts)
        # What is special about some is nothing to call the others by.
        if not all(told):
            weights = [setup.weights for setup in self.setups]
            pairs = zip(weights, told, strict=True)
            told = [", ".join(filter(None, pair)) for pair in pairs]
        names = dict(zip(self.setups, told, strict=True))
        for alike in grouped(names, names.__getitem__).values():
            if len(alike) > 1:
                for number, setup in enumerate(alike, 1):
                    names[setup] += f" ({number})"
        return names

    def curve(self, make: MakeCurves) -> Figure | None:
        """A figure of the machine that comes first, or of the next that has one."""
        sure = [speed for speed in self.speeds if not speed.doubts]
        machines = grouped(sure, lambda speed: speed.machine)
        order = [board.machine for board in self.site.boards]
        found = (
            make(self.name, machines.get(machine, ()), self.named)
            for machine in dict.fromkeys([*order, *machines])
        )
        return next(filter(None, found), None)

    @property
    def versions(self) -> Figure | None:
        """What was measured more than once over versions and days, the loads of the leaderboard first."""
        lines = [line for line in self.site.progress if line.first.model == self.name]
        shown = {board.load for board in self.site.boards}
        lines.sort(key=lambda line: line.first.load not in shown)
        return curves.versions_of_model(self.name, lines, self.site.names)


def models(publication: Publication) -> list[ModelPage]:
    """Every model whose speed was measured, in the order of their names."""
    found = grouped(publication.speeds, lambda speed: speed.model)
    ordered = sorted(found.items(), key=lambda item: item[0].key)
    return [ModelPage(publication, name, speeds) for name, speeds in ordered]


def begun(
    publication: Publication, drawings: Drawings, cache: Cache
) -> Iterator[Callable[[], Mapping[str, File]]]:
    """What gives the page of each model, and the files of its charts."""
    boards = [(board.machine, board.title) for board in publication.boards]
    keys = {
        campaign.name: {publication.names.entity(one).key for one in campaign.examples}
        for campaign in publication.campaigns
    }
    for model in models(publication):
        where = [name for name, known in keys.items() if model.name.key in known]
        of = kept.basis(publication.review, publication.names, where)
        uri = model_links.source(model.name)
        about = kept.beside(publication.options), boards, uri
        name, make = of and key("model", of, about), partial(_page, model)
        yield placing.once(name, uri, make, publication, drawings, cache)


def _page(model: ModelPage, library: Library) -> Page:
    figures = (
        model.curve(curves.users_of_model),
        model.versions,
        model.curve(curves.context_of_model),
    )
    charts = ["" if figure is None else library.add(figure) for figure in figures]
    made = templating.page("model", model.site, model=model, charts=charts)
    return replace(made, found_by=found_by.of_speeds(model.speeds))


def accuracy(publication: Publication) -> Iterator[tuple[ModelName, TableRow, Metric]]:
    """How right the answers of models were, in campaigns that asked."""
    for row in publication.results.cell_rows:
        if not row.metric.startswith(ACCURACY):
            continue
        record = publication.review.campaigns[row.campaign].counted[row.cell][0].record
        known = METRICS.get(row.metric)
        metric = known or metric_of(row.metric, record.metrics[row.metric])
        yield publication.names.entity(record), row, metric
