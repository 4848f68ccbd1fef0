"""What the page of a model shows: its part of every campaign that has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record
from sparkpub.review.dataset import CampaignData
from sparkpub.site import sentences, sweeps
from sparkpub.site.figures.library import Library
from sparkpub.site.figures.selection import flags
from sparkpub.site.pages import campaign_page, metric_page
from sparkpub.site.publication import Publication, scope, slug

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
    """A model with every campaign that has it: its key names the same weights wherever it is used."""

    name: str
    campaigns: Sequence[CampaignData]

    @property
    def uri(self) -> str:
        """The source of its page."""
        return f"models/{self.name}.md"

    @property
    def href(self) -> str:
        """Its page, from the root of the site."""
        return f"models/{self.name}/"

    @property
    def runs(self) -> int:
        """Recorded runs."""
        count = 0
        for campaign in self.campaigns:
            count += sum(record.model == self.name for record in campaign.records)
        return count

    @property
    def note(self) -> str:
        """The id of the model."""
        return _model_id(self.name, self.campaigns[0])


def models(publication: Publication) -> list[Part]:
    """Every model."""
    found: dict[str, list[CampaignData]] = {}
    for campaign in publication.campaigns:
        names, _, _ = campaign.axes
        for name in names:
            found.setdefault(name, []).append(campaign)
    return [Part(name, campaigns) for name, campaigns in found.items()]


def _model_id(name: str, campaign: CampaignData) -> str:
    if campaign.matrix is not None and name in campaign.matrix.models:
        return campaign.matrix.models[name].id
    for record in campaign.records:
        if record.model == name:
            return record.requested.model_id
    return ""


def context(
    publication: Publication,
    library: Library,
    campaign: CampaignData,
    name: str,
) -> dict[str, Any]:
    """What the template needs of one campaign."""
    headlines = []
    for metric in publication.headlines(campaign):
        cells = publication.cells_of(campaign, metric)
        if any(cell.model == name for cell in cells):
            headlines.append(metric)
    slugs = [slug(metric.name) for metric in headlines]
    figures = slugs[:FIGURES]
    lines = [line for line in publication.lines(campaign) if line.model == name]
    if sweeps.has_a_shape(lines):
        figures = [metric + axis for metric in figures for axis in metric_page.SWEEPS]
    sentences_of_model = []
    if slugs:
        sentences_of_model = _differences(publication, campaign, headlines, name)
    summary = campaign_page.summary(publication, campaign, headlines)
    records = [record for record in campaign.records if record.model == name]
    return {
        "campaign": campaign,
        "sentences": sentences_of_model or campaign_page.answers(publication, campaign),
        "flags": flags(publication, scope(campaign, model=name)),
        "figures": library.place_known(campaign, figures, model=name),
        "summary": [row for row in summary if row["model"] == name],
        "headlines": headlines,
        "runs": library.figure("coverage", campaign.name, model=name),
        "declared": _declared(campaign, name),
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
            publication.names, metric, [row for row in rows if row.model == model]
        )
        if sentence:
            found.append(sentence)
    return found


def _declared(campaign: CampaignData, name: str) -> Mapping[str, Any]:
    """What the matrix says of it."""
    if campaign.matrix is None:
        return {}
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
