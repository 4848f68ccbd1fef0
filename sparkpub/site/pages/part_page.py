"""What the page of a model or of an environment shows: its part of every campaign that has it."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sparkpub.record.record import Record
from sparkpub.review.dataset import CampaignData
from sparkpub.site import sentences
from sparkpub.site.figures.library import Library
from sparkpub.site.figures.selection import flags
from sparkpub.site.pages import campaign_page
from sparkpub.site.publication import Publication, scope, slug

Kind = Literal["model", "environment"]
FIGURES = 2
"""Leading metrics drawn on the page; its table has them all."""
OBSERVED = (
    "engine",
    "engine_version",
    "model_type",
    "parameters",
    "weight_bytes",
    "kv_bytes_per_token",
    "dtype",
    "quantization",
    "device",
)
"""What a run shows of itself."""


def campaigns_by_name(
    publication: Publication, kind: Kind
) -> Mapping[str, list[CampaignData]]:
    """Every model or environment, with the campaigns that have it."""
    axis = 0 if kind == "model" else 1
    found: dict[str, list[CampaignData]] = {}
    for campaign in publication.campaigns:
        for name in campaign.axes[axis]:
            found.setdefault(name, []).append(campaign)
    return found


def entry(kind: Kind, name: str, campaigns: Sequence[CampaignData]) -> dict[str, Any]:
    """A model or an environment in the list of all."""
    records = [record for campaign in campaigns for record in campaign.records]
    return {
        "name": name,
        "href": f"{kind}s/{name}/",
        "note": note(kind, name, campaigns[0]),
        "campaigns": campaigns,
        "runs": sum(getattr(record, kind) == name for record in records),
    }


def note(kind: Kind, name: str, campaign: CampaignData) -> str:
    """In a word, what it is: the id of a model, type and image of an environment."""
    matrix = campaign.matrix
    if kind == "model":
        if matrix is not None and name in matrix.models:
            return matrix.models[name].id
        return next(
            (
                record.requested.model_id
                for record in campaign.records
                if record.model == name
            ),
            "",
        )
    environment = matrix.environments.get(name) if matrix else None
    options = {} if environment is None else environment.declared
    parts = (options.get("type"), options.get("image") or options.get("rootfs"))
    return " ".join(str(part) for part in parts if part)


def context(
    publication: Publication,
    library: Library,
    campaign: CampaignData,
    kind: Kind,
    name: str,
) -> dict[str, Any]:
    """What the template needs of one campaign."""
    part = {kind: name}
    headlines = [
        metric
        for metric in publication.headlines(campaign)
        if any(
            getattr(cell, kind) == name
            for cell in publication.cells_of(campaign, metric)
        )
    ]
    names = [slug(metric.name) for metric in headlines]
    figures = names[:FIGURES]
    says = []
    if kind == "model":
        figures += [f"{name}-order" for name in names[:1]] + ["memory-ledger"] * bool(
            names
        )
        for metric in headlines:
            rows = [
                row
                for row in publication.comparisons_of(campaign, metric)
                if row.model == name
            ]
            says.append(sentences.differences(metric, rows))
    says = [sentence for sentence in says if sentence]
    summary = campaign_page.summary(publication, campaign, headlines)
    records = [record for record in campaign.records if getattr(record, kind) == name]
    return {
        "campaign": campaign,
        "sentences": says or campaign_page.answers(publication, campaign),
        "flags": flags(publication, scope(campaign, **part)),
        "figures": library.place_known(campaign, figures, **part),
        "summary": [row for row in summary if row[kind] == name],
        "headlines": headlines,
        "runs": library.figure("coverage", campaign.name, **part),
        "declared": _declared(campaign, kind, name),
        "observed": _observed(records),
    }


def _declared(campaign: CampaignData, kind: Kind, name: str) -> Mapping[str, Any]:
    """What the matrix says of it."""
    if campaign.matrix is None:
        return {}
    if kind == "environment":
        environment = campaign.matrix.environments.get(name)
        return {} if environment is None else environment.declared
    model = campaign.matrix.models.get(name)
    return (
        {}
        if model is None
        else model.model_dump(mode="json", exclude_defaults=True, exclude={"config"})
    )


def _observed(records: Sequence[Record]) -> Mapping[str, list[str]]:
    """Field to the distinct values that the runs showed, those fields that any run showed."""
    found: dict[str, list[str]] = {}
    for field in OBSERVED:
        values = dict.fromkeys(getattr(record.observed, field) for record in records)
        texts = [
            f"{value:,}" if isinstance(value, int) else str(value)
            for value in values
            if value is not None
        ]
        if texts:
            found[field] = texts
    return found
