"""What the page of a model or of an environment shows: its part of every campaign that has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record
from sparkpub.review.dataset import CampaignData
from sparkpub.site import sentences, sweeps
from sparkpub.site.figures.library import Library
from sparkpub.site.figures.selection import flags
from sparkpub.site.pages import campaign_page, metric_page
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


@dataclass(frozen=True)
class Part:
    """A model with every campaign that has it, or an environment of one campaign.

    The same key of an environment may mean the host in one campaign and a chroot in another. A model's key names the
    same weights wherever it is used.
    """

    kind: Kind
    name: str
    campaigns: Sequence[CampaignData]

    @property
    def uri(self) -> str:
        """The source of its page."""
        if self.kind == "environment":
            return f"environments/{self.campaigns[0].name}/{self.name}.md"
        return f"models/{self.name}.md"

    @property
    def href(self) -> str:
        """Its page, from the root of the site."""
        return self.uri.removesuffix(".md") + "/"

    @property
    def runs(self) -> int:
        """Recorded runs."""
        count = 0
        for campaign in self.campaigns:
            for record in campaign.records:
                count += getattr(record, self.kind) == self.name
        return count

    @property
    def note(self) -> str:
        """In a word, what it is: the id of a model, type and image of an environment."""
        return note(self.kind, self.name, self.campaigns[0])


def models(publication: Publication) -> list[Part]:
    """Every model."""
    found: dict[str, list[CampaignData]] = {}
    for campaign in publication.campaigns:
        names, _, _ = campaign.axes
        for name in names:
            found.setdefault(name, []).append(campaign)
    return [Part("model", name, campaigns) for name, campaigns in found.items()]


def environments(publication: Publication) -> list[Part]:
    """Every environment, campaign by campaign."""
    found = []
    for campaign in publication.campaigns:
        _, names, _ = campaign.axes
        found += [Part("environment", name, [campaign]) for name in names]
    return found


def note(kind: Kind, name: str, campaign: CampaignData) -> str:
    """In a word, what a model or an environment of a campaign is."""
    return _model_id(name, campaign) if kind == "model" else _type(name, campaign)


def _model_id(name: str, campaign: CampaignData) -> str:
    if campaign.matrix is not None and name in campaign.matrix.models:
        return campaign.matrix.models[name].id
    for record in campaign.records:
        if record.model == name:
            return record.requested.model_id
    return ""


def _type(name: str, campaign: CampaignData) -> str:
    """Type and image or root of an environment; empty where no matrix says it."""
    declared = _declared(campaign, "environment", name)
    parts = (declared.get("type"), declared.get("image") or declared.get("rootfs"))
    return " ".join(str(part) for part in parts if part)


def context(
    publication: Publication,
    library: Library,
    campaign: CampaignData,
    kind: Kind,
    name: str,
    *,
    drawn: bool,
) -> dict[str, Any]:
    """What the template needs of one campaign; not `drawn`, its charts are left to the page of the campaign."""
    part = {kind: name}
    headlines = []
    for metric in publication.headlines(campaign):
        cells = publication.cells_of(campaign, metric)
        if any(getattr(cell, kind) == name for cell in cells):
            headlines.append(metric)
    slugs = [slug(metric.name) for metric in headlines]
    figures = slugs[:FIGURES]
    lines = [line for line in sweeps.lines(campaign) if getattr(line, kind) == name]
    if sweeps.has_a_shape(lines):
        figures = [name + kind for name in figures for kind in metric_page.SWEEPS]
    sentences_of_model = []
    if kind == "model" and slugs:
        figures += [f"{slugs[0]}-order", "memory-ledger"]
        sentences_of_model = _differences(publication, campaign, headlines, name)
    summary = campaign_page.summary(publication, campaign, headlines)
    records = [record for record in campaign.records if getattr(record, kind) == name]
    return {
        "campaign": campaign,
        "sentences": sentences_of_model or campaign_page.answers(publication, campaign),
        "flags": flags(publication, scope(campaign, **part)),
        "drawn": drawn,
        "figures": library.place_known(campaign, figures if drawn else (), **part),
        "summary": [row for row in summary if row[kind] == name],
        "headlines": headlines,
        "runs": library.figure("coverage", campaign.name, **part),
        "declared": _declared(campaign, kind, name),
        "observed": _observed(records),
    }


def _differences(
    publication: Publication,
    campaign: CampaignData,
    metrics: Sequence[Metric],
    model: str,
) -> list[str]:
    """How the environments differ for a model, a sentence per metric that was compared."""
    found = []
    for metric in metrics:
        rows = publication.comparisons_of(campaign, metric)
        sentence = sentences.differences(
            metric, [row for row in rows if row.model == model]
        )
        if sentence:
            found.append(sentence)
    return found


def _declared(campaign: CampaignData, kind: Kind, name: str) -> Mapping[str, Any]:
    """What the matrix says of it."""
    if campaign.matrix is None:
        return {}
    if kind == "environment":
        environment = campaign.matrix.environments.get(name)
        return {} if environment is None else environment.declared
    model = campaign.matrix.models.get(name)
    if model is None:
        return {}
    return model.model_dump(mode="json", exclude_defaults=True, exclude={"config"})


def _observed(records: Sequence[Record]) -> Mapping[str, list[str]]:
    """Field to the distinct values that the runs showed, those fields that any run showed."""
    found: dict[str, list[str]] = {}
    for field in OBSERVED:
        values = dict.fromkeys(getattr(record.observed, field) for record in records)
        texts = [_shown(value) for value in values if value is not None]
        if texts:
            found[field] = texts
    return found


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
