"""What the page of a model shows: one model over all campaigns, machines, formats and engines."""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from sparkpub.record.metrics import METRICS
from sparkpub.record.record import Record, metric_of
from sparkpub.record.text import counted, listed, rounded, span
from sparkpub.review.grouping import grouped
from sparkpub.review.leaderboard import Board, RankedModel
from sparkpub.review.models import ModelName
from sparkpub.review.names import load_name, parts_of
from sparkpub.review.setup import Setup
from sparkpub.review.speeds import GENERATION, PROMPT, Speed
from sparkpub.site.figures import speeds as curves
from sparkpub.site.figures.figure import Figure
from sparkpub.site.pages import model_links
from sparkpub.site.pages.leaderboard_page import entry_text, unit_name
from sparkpub.site.publication import Publication

ENERGY = "energy_per_million_tokens_wh"
ACCURACY = ("accuracy", "exact_match")
"""How the metrics begin that say how right a model's answers are."""
HOURS_PER_YEAR = 8766
KWH_PRICE, MACHINE_PRICE, YEARS = 0.30, 4000, 3
"""What a reader's prices begin with: of a kilowatt hour, of the machine, and how long it is used."""
TTFT = ("ttft_p50_ms", "ttft_mean_ms")


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
        "size": model.name.billions,
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
    return {
        "name": model.name.name,
        "about": _about(model),
        "answers": _answers(publication.boards, model),
        "doubts": _doubts(publication, model),
        "chart": chart,
        "versions": versions_chart,
        "is_of_versions": any(
            line.is_of_versions
            for line in publication.progress
            if line.first.model == model.name
        ),
        "recipes": [
            _setup(publication, names[key], speeds)
            for key, speeds in model.setups.items()
        ],
        "costs": _costs(model, names),
        "prices": {"kwh": KWH_PRICE, "machine": MACHINE_PRICE, "years": YEARS},
        "accuracy": _accuracy(publication, model),
    }


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
    return _numbered(names)


def _numbered(names: Mapping[Setup, str]) -> dict[Setup, str]:
    """The names, with a number behind those that several set-ups have."""
    counts = Counter(names.values())
    met: Counter[str] = Counter()
    told = {}
    for setup, name in names.items():
        met[name] += 1
        told[setup] = name if counts[name] == 1 else f"{name} ({met[name]})"
    return told


def _about(model: ModelPage) -> str:
    """`30B-A3B; BF16 and NVFP4 on DGX Spark; 105 runs`."""
    told = entry(model)
    return f"{told['about']}; {counted(told['runs'], 'run')}"


# -- answers -----------------------------------------------------------------------------------------------


def _answers(boards: Iterable[Board], model: ModelPage) -> list[dict[str, str]]:
    """What the model reaches on each board: its best figure, and its place, which it shares with what is near."""
    found = []
    for board in boards:
        for row in board.rows:
            if row.model != model.name:
                continue
            best = row.best
            unit = {"ms": "s to the first token", "req/s": "requests/s"}.get(
                board.metric.unit, "tok/s"
            )
            found.append(
                {
                    "use": board.title,
                    "machine": board.machine,
                    "figure": entry_text(best, board.metric, unit),
                    "how": f"{best.speed.weights}, {best.speed.engine}; {load_name(board.load)}",
                    "place": _place(board, row),
                    "what": unit_name(board.metric),
                    "href": f"#{model_links.setup_anchor(best.speed)}",
                }
            )
    return found


def _place(board: Board, row: RankedModel) -> str:
    """`2 to 3 of 24`; empty where nothing else is ranked, all that is ranked is alike, or it has no place."""
    near = [board.rows.index(other) + 1 for other in board.near(row)]
    if len(near) == len(board.rows) or not row.best.is_placed:
        return ""
    return f"{span([str(near[0]), str(near[-1])])} of {len(board.rows)}"


def _doubts(publication: Publication, model: ModelPage) -> list[dict[str, str]]:
    """Campaigns whose figures of the model are not ranked, with the checks that doubt them."""
    doubted = [speed for speed in model.speeds if speed.doubts]
    found = []
    for campaign, speeds in grouped(doubted, lambda speed: speed.campaign).items():
        checks = dict.fromkeys(check for speed in speeds for check in speed.doubts)
        title = publication.dataset.campaign(campaign).info.title
        found.append(
            {
                "campaign": campaign,
                "title": title,
                "checks": listed(check.replace("-", " ") for check in checks),
            }
        )
    return found


# -- set-ups -----------------------------------------------------------------------------------------------


def _setup(
    publication: Publication, name: str, speeds: Sequence[Speed]
) -> dict[str, Any]:
    """How to do it again, and what it reached."""
    first = speeds[0]
    record = first.records[0]
    campaigns = []
    for campaign, mine in grouped(speeds, lambda speed: speed.campaign).items():
        model, environment, _ = mine[0].cell
        query = urlencode(
            {"campaign": campaign, "model": model, "environment": environment}
        )
        campaigns.append(
            {
                "title": publication.dataset.campaign(campaign).info.title,
                "href": f"campaigns/{campaign}/",
                "runs": counted(sum(len(speed.records) for speed in mine), "run"),
                "runs_href": f"runs/?{query}",
            }
        )
    return {
        "name": name,
        "anchor": model_links.setup_anchor(first),
        "machine": first.machine,
        "commands": commands(record),
        "settings": _settings(record),
        "made_with": _made_with(record, first),
        "campaigns": campaigns,
        "rows": [_row(speed) for speed in sorted(speeds, key=_by_load)],
    }


def _by_load(speed: Speed) -> tuple[Any, ...]:
    load = speed.load
    return (
        load.request_rate or 0,
        load.input_tokens or 0,
        load.depth,
        load.output_tokens or 0,
        load.at_once or 0,
    )


def _row(speed: Speed) -> dict[str, Any]:
    """What a set-up reached under one load."""
    total = speed.mean(GENERATION)
    first_token = speed.mean(*TTFT)
    prompt = speed.mean(PROMPT)
    return {
        "load": load_name(speed.load) or speed.cell[2],
        "total": rounded(total) if total else "",
        "user": rounded(speed.per_user) if speed.per_user else "",
        "ttft": rounded(first_token / 1000) if first_token else "",
        "prompt": rounded(prompt) if prompt else "",
        "warned": {
            "total": _warning(speed, GENERATION),
            "ttft": _warning(speed, next(filter(speed.mean, TTFT), "")),
            "prompt": _warning(speed, PROMPT),
        },
        "runs": str(len(speed.records)),
    }


def _warning(speed: Speed, metric: str) -> str:
    """The check that warns of a figure, as readers know it; empty for none."""
    return speed.questioned.get(metric, "").replace("-", " ")


def commands(record: Record) -> list[dict[str, str]]:
    """The commands of a run as a shell takes them: the server's where there is one, and the client's."""
    found = []
    environment = record.requested.environment
    server = environment.get("server")
    if isinstance(server, dict) and server.get("argv"):
        found.append({"what": "Server", "text": shlex.join(map(str, server["argv"]))})
    if record.argv:
        what = "Client" if found else "Command"
        found.append({"what": what, "text": shlex.join(record.argv)})
    return found


def _settings(record: Record) -> dict[str, str]:
    """The engine's settings in its own words, without what only this program wrote there."""
    own = ("server",)
    return {
        name: value
        for name, value in record.observed.settings.items()
        if name not in own
    }


def _made_with(record: Record, speed: Speed) -> dict[str, str]:
    """Model, image and versions, as far as the run says them."""
    container = record.container
    image = record.requested.environment.get("image")
    found = {
        "Model": record.requested.model_id,
        "Engine": speed.engine,
        "Image": image if isinstance(image, str) else None,
        "Digest": None,
        "Driver": record.machine.driver,
        "CUDA": record.machine.cuda_driver,
        "First run": record.started.value[:10],
    }
    if container is not None:
        found["Image"] = container.image
        found["Digest"] = listed(container.digests) or container.image_id
    return {name: text for name, text in found.items() if text}


# -- cost and accuracy -------------------------------------------------------------------------------------


def _costs(model: ModelPage, names: Mapping[Setup, str]) -> list[dict[str, Any]]:
    """Of each set-up the load with the most throughput, of those whose energy was measured where there are some: its
    rate, and the GPU's energy."""
    found = []
    for key, speeds in model.setups.items():
        closed = [
            speed
            for speed in speeds
            if GENERATION in speed.figures and not speed.doubts
        ]
        if not closed:
            continue
        measured = [speed for speed in closed if _kwh(speed, 1) is not None]
        best = max(
            measured or closed, key=lambda speed: float(speed.figures[GENERATION].mean)
        )
        rate = best.figures[GENERATION].mean
        hours = 1e6 / rate / 3600
        kwh = _kwh(best, hours)
        share = MACHINE_PRICE / (YEARS * HOURS_PER_YEAR) * hours
        found.append(
            {
                "name": names[key],
                "load": load_name(best.load),
                "rate": rounded(rate),
                "per_second": f"{rate:.6g}",
                "energy": "" if kwh is None else rounded(kwh),
                "kwh": "" if kwh is None else f"{kwh:.6g}",
                "electricity": "–" if kwh is None else money(KWH_PRICE * kwh),
                "share": money(share),
            }
        )
    return found


def _kwh(speed: Speed, hours: float) -> float | None:
    """Energy of the GPU for a million tokens, which take so many hours: as measured, else from its mean power."""
    measured = speed.mean(ENERGY)
    if measured is not None:
        return measured / 1000
    watt = speed.mean("gpu_power_mean_watt")
    if watt is None:
        return None
    return watt / 1000 * hours


def money(amount: float) -> str:
    """An amount of money: cents, and of less than one two digits, as `costs.js` writes it."""
    if amount < 0.995:
        return f"{amount:#.2g}"
    return f"{amount:.2f}"


def _accuracy(publication: Publication, model: ModelPage) -> list[dict[str, str]]:
    """How right the model's answers were, in campaigns that asked."""
    found = []
    for row in publication.results.cell_rows:
        if not row.metric.startswith(ACCURACY):
            continue
        records = publication.review.campaigns[row.campaign].counted[row.cell]
        record = records[0].record
        if publication.names.entity(record) != model.name:
            continue
        metric = METRICS.get(row.metric) or metric_of(
            row.metric, record.metrics[row.metric]
        )
        found.append(
            {
                "model": publication.names.model(row.campaign, row.model),
                "task": row.workload,
                "metric": metric.label,
                "value": metric.format(row.mean),
                "href": f"campaigns/{row.campaign}/",
            }
        )
    return found
