"""What the page of a model shows: one model over all campaigns, machines, formats and engines."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.record import Record, metric_of
from sparkpub.record.text import listed, span
from sparkpub.review.grouping import grouped
from sparkpub.review.leaderboard import Board, RankedModel
from sparkpub.review.models import ModelName
from sparkpub.review.names import parts_of
from sparkpub.review.setup import Setup
from sparkpub.review.speeds import GENERATION, Speed
from sparkpub.review.tables.column import TableRow
from sparkpub.site.figures import speeds as curves
from sparkpub.site.figures.figure import Figure
from sparkpub.site.pages import model_links
from sparkpub.site.pages.leaderboard_page import entry_text
from sparkpub.site.publication import Publication

ENERGY = "energy_per_million_tokens_wh"
ACCURACY = ("accuracy", "exact_match")
"""How the metrics begin that say how right a model's answers are."""
HOURS_PER_YEAR = 8766
KWH_PRICE, MACHINE_PRICE, YEARS = 0.30, 4000, 3
"""What a reader's prices begin with: of a kilowatt hour, of the machine, and how long it is used."""


@dataclass(frozen=True)
class ModelPage:
    """A model with everything that was measured of it."""

    name: ModelName
    speeds: Sequence[Speed]

    @property
    def uri(self) -> str:
        """The source of its page."""
        return model_links.source(self.name)

    @property
    def setups(self) -> Mapping[Setup, Sequence[Speed]]:
        """Set-up to its speeds over all campaigns, in the order met."""
        return grouped(self.speeds, lambda speed: speed.setup)


def models(publication: Publication) -> list[ModelPage]:
    """Every model whose speed was measured, in the order of their names."""
    found = grouped(publication.speeds, lambda speed: speed.model)
    ordered = sorted(found.items(), key=lambda item: item[0].key)
    return [ModelPage(name, speeds) for name, speeds in ordered]


def entry(model: ModelPage) -> dict[str, Any]:
    """The model in the list of all."""
    stated = [speed.weights for speed in model.speeds if speed.setup.quantization]
    formats = dict.fromkeys(stated or ["weights not stated"])
    machines = dict.fromkeys(speed.machine for speed in model.speeds)
    return {
        "name": model.name.name,
        "href": model_links.page(model.name),
        "about": f"{listed(formats)} on {listed(machines)}",
        "runs": sum(len(speed.records) for speed in model.speeds),
    }


def figure(publication: Publication, model: ModelPage) -> Figure | None:
    """Throughput of the machine against the speed of one user, on the machine that comes first."""
    names = setup_names(publication, model)
    order = [board.machine for board in publication.boards]
    sure = [speed for speed in model.speeds if not speed.doubts]
    machines = grouped(sure, lambda speed: speed.machine)
    for machine in dict.fromkeys([*order, *machines]):
        found = curves.users_of_model(model.name, machines.get(machine, ()), names)
        if found is not None:
            return found
    return None


def versions_figure(publication: Publication, model: ModelPage) -> Figure | None:
    """What was measured more than once over versions and days, the loads of the leaderboard first."""
    lines = [line for line in publication.progress if line.first.model == model.name]
    shown = {board.load for board in publication.boards}
    lines.sort(key=lambda line: line.first.load not in shown)
    return curves.versions_of_model(model.name, lines, publication.names)


def context(
    publication: Publication, model: ModelPage, chart: str, versions_chart: str
) -> dict[str, Any]:
    """What the template needs, with the placeholders of two charts; each may be empty."""
    names = setup_names(publication, model)
    doubted = [speed for speed in model.speeds if speed.doubts]
    mine = [line for line in publication.progress if line.first.model == model.name]
    return {
        **entry(model),
        "answers": [
            (board, row)
            for board in publication.boards
            for row in board.rows
            if row.model == model.name
        ],
        "reached": reached,
        "place": place,
        "doubts": {
            campaign: dict.fromkeys(check for speed in speeds for check in speed.doubts)
            for campaign, speeds in grouped(doubted, _campaign).items()
        },
        "campaigns": publication.dataset.campaigns,
        "names": publication.names,
        "chart": chart,
        "versions": versions_chart,
        "is_of_versions": any(line.is_of_versions for line in mine),
        "recipes": [
            _recipe(names[key], speeds) for key, speeds in model.setups.items()
        ],
        "costs": _costs(model, names),
        "prices": {"kwh": KWH_PRICE, "machine": MACHINE_PRICE, "years": YEARS},
        "cost": cost,
        "accuracy": list(_accuracy(publication, model)),
    }


def _campaign(speed: Speed) -> str:
    return speed.campaign


def setup_names(publication: Publication, model: ModelPage) -> dict[Setup, str]:
    """Set-up to what parts it from the model's others: `NVFP4, vLLM 0.26.0, Docker`."""
    parts: dict[Setup, list[str]] = {}
    for setup, (speed, *_) in model.setups.items():
        place, *special = parts_of(
            publication.names.environment(speed.campaign, speed.cell[1])
        )
        more = ", ".join(word for word in special if word.upper() != speed.weights)
        parts[setup] = [speed.weights, speed.engine, place, more, speed.machine]
    varied = [
        place for place in range(5) if len({told[place] for told in parts.values()}) > 1
    ]
    if not any(place in varied for place in (0, 1, 2, 4)):
        # What is special about some is nothing to call the others by.
        varied.insert(0, 0)
    names = {
        setup: ", ".join(filter(None, (told[place] for place in varied)))
        for setup, told in parts.items()
    }
    # Those that several set-ups have get a number.
    alike = grouped(names, names.__getitem__)
    return {
        setup: name
        if len(alike[name]) == 1
        else f"{name} ({alike[name].index(setup) + 1})"
        for setup, name in names.items()
    }


# -- answers -----------------------------------------------------------------------------------------------


_UNITS = {"ms": "s to the first token", "req/s": "requests/s"}
"""Unit of a board's metric to what its figures are called here."""


def reached(board: Board, row: RankedModel) -> str:
    """The best figure of a model on a board."""
    return entry_text(row.best, board.metric, _UNITS.get(board.metric.unit, "tok/s"))


def place(board: Board, row: RankedModel) -> str:
    """`2 to 3 of 24`, a place that the model shares with what is near; empty where nothing else is ranked, all that is
    ranked is alike, or it has no place."""
    near = [board.rows.index(other) + 1 for other in board.near(row)]
    if len(near) == len(board.rows) or not row.best.is_placed:
        return ""
    return f"{span([str(near[0]), str(near[-1])])} of {len(board.rows)}"


# -- set-ups -----------------------------------------------------------------------------------------------


def _recipe(name: str, speeds: Sequence[Speed]) -> dict[str, Any]:
    """How to do it again, and what it reached."""
    record = speeds[0].records[0]
    return {
        "name": name,
        "anchor": model_links.setup_anchor(speeds[0]),
        "first": speeds[0],
        "record": record,
        "commands": commands(record),
        "campaigns": grouped(speeds, _campaign),
        "speeds": sorted(speeds, key=_by_load),
    }


def _by_load(speed: Speed) -> tuple[float, ...]:
    load = speed.load
    sizes = (load.request_rate, load.input_tokens, load.depth, load.output_tokens)
    return tuple(size or 0 for size in (*sizes, load.at_once))


def commands(record: Record) -> dict[str, str]:
    """The commands of a run as a shell takes them: the server's where there is one, and the client's."""
    found = {}
    server = record.requested.environment.get("server")
    if isinstance(server, dict) and server.get("argv"):
        found["Server"] = shlex.join(map(str, server["argv"]))
    if record.argv:
        found["Client" if found else "Command"] = shlex.join(record.argv)
    return found


# -- cost and accuracy -------------------------------------------------------------------------------------


def _costs(
    model: ModelPage, names: Mapping[Setup, str]
) -> list[tuple[str, Speed, float, float | None]]:
    """Of each set-up its name, and the load with the most throughput, of those whose energy was measured where there
    are some; hours and the GPU's energy in kWh for a million tokens."""
    found = []
    for key, speeds in model.setups.items():
        closed = [
            speed
            for speed in speeds
            if GENERATION in speed.figures and not speed.doubts
        ]
        measured = [speed for speed in closed if _kwh(speed, 1) is not None]
        if closed:
            best = max(measured or closed, key=lambda one: one.figures[GENERATION].mean)
            hours = 1e6 / best.figures[GENERATION].mean / 3600
            found.append((names[key], best, hours, _kwh(best, hours)))
    return found


def cost(hours: float, kwh: float | None) -> tuple[str, str]:
    """What a million tokens cost at the prices above: electricity, where energy was measured, and the machine."""
    share = MACHINE_PRICE / (YEARS * HOURS_PER_YEAR) * hours
    return "–" if kwh is None else money(KWH_PRICE * kwh), money(share)


def _kwh(speed: Speed, hours: float) -> float | None:
    """Energy of the GPU for a million tokens, which take so many hours: as measured, else from its mean power."""
    measured, watt = speed.mean(ENERGY), speed.mean("gpu_power_mean_watt")
    if measured is not None:
        return measured / 1000
    return None if watt is None else watt / 1000 * hours


def money(amount: float) -> str:
    """An amount of money: cents, and of less than one two digits, as `costs.js` writes it."""
    if amount < 0.995:
        return f"{amount:#.2g}"
    return f"{amount:.2f}"


def _accuracy(
    publication: Publication, model: ModelPage
) -> Iterator[tuple[TableRow, Metric]]:
    """How right the model's answers were, in campaigns that asked."""
    for row in publication.results.cell_rows:
        if not row.metric.startswith(ACCURACY):
            continue
        record = publication.review.campaigns[row.campaign].counted[row.cell][0].record
        if publication.names.entity(record) == model.name:
            known = METRICS.get(row.metric)
            yield row, known or metric_of(row.metric, record.metrics[row.metric])
