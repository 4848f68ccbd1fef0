"""The generated pages: which there are, and what each template is given."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.store import CAMPAIGN_FILE
from sparkpub.record.text import SPACE, listed, percent, spread
from sparkpub.review.checks import CHECKS
from sparkpub.review.checks.finding import SEVERITIES
from sparkpub.review.dataset import CampaignData
from sparkpub.review.summary import ComparisonRow
from sparkpub.site import sentences
from sparkpub.site.content import Content
from sparkpub.site.figures.library import Library
from sparkpub.site.figures.selection import flags
from sparkpub.site.pages import programs
from sparkpub.site.pages.templating import Templates
from sparkpub.site.publication import Publication, axes, batch_size, cell_keys, cell_label, scope, slug

METRIC_PAGE = ("", "-relative", "-bars", "-box", "-order", "-sweep")
"""The kinds of charts on the page of a metric that leads; others show every run, and the rest as a table."""
PART_FIGURES = 2
"""Leading metrics drawn on the page of a model or an environment; its table has them all."""


@dataclass(frozen=True)
class Pages:
    """Makes every page but those of single runs. Figures are asked from `library`, which notes what is shown."""

    publication: Publication
    library: Library
    templates: Templates
    written: frozenset[str]
    """Addresses that people wrote; a generated page of the same address gives way."""

    def all(self) -> Iterator[tuple[str, Content]]:
        """(address, page) of every page."""
        campaigns = self.publication.campaigns
        yield "index.md", self._page("index", lead=self._campaign(campaigns[0]) if campaigns else None,
                                     others=[self._card(campaign) for campaign in campaigns[1:]],
                                     image=f"cards/{campaigns[0].name}.png" if campaigns else None)  # fmt: skip
        yield "campaigns/index.md", self._page("campaigns", campaigns=[self._card(campaign) for campaign in campaigns])
        for campaign in campaigns:
            yield f"campaigns/{campaign.name}.md", self._page(
                "campaign", lead=self._campaign(campaign), image=f"cards/{campaign.name}.png",
                source=campaign.folder / CAMPAIGN_FILE)  # fmt: skip
        yield from self._axis("model", 0, _model_id)
        yield from self._axis("environment", 1, _environment_type)
        yield from self._metrics()
        yield "runs/index.md", self._page(
            "runs", explorer=programs.explorer(self.publication, self.library),
            campaigns=[{"campaign": campaign, "metrics": self.publication.headlines(campaign),
                        "runs": [self.run_row(run) for run in campaign.runs]} for campaign in campaigns])  # fmt: skip
        yield "compare/index.md", self._page("compare", compare=programs.compare(self.publication, self.library))
        yield "review/index.md", self._page("review", campaigns=[self._review(c) for c in campaigns], checks=CHECKS)
        yield "coverage/index.md", self._page("coverage", campaigns=[self._coverage(c) for c in campaigns])

    def _page(self, template: str, *, image: str | None = None, source: Any = None, **context: Any) -> Content:
        page = self.templates.page(template, publication=self.publication, options=self.publication.options,
                                   dataset=self.publication.dataset, written=self.written, **context)  # fmt: skip
        return Content(text=page.text, blocks=page.blocks, source=source, image=image)

    def _place(self, campaign: CampaignData, *names: str, **part: str) -> list[str]:
        """Placeholders of those named figures that the campaign has."""
        known = self.library.makers(campaign)
        return [self.library.place(name, campaign.name, **part) for name in names if name in known]

    def _campaign(self, campaign: CampaignData) -> dict[str, Any]:
        headlines = self.publication.headlines(campaign)
        models, environments, workloads = axes(campaign)
        strips = [slug(metric.name) for metric in headlines]
        relative = self._place(campaign, *[f"{name}-relative" for name in strips[:1]])
        sweeps = [f"{slug(metric.name)}-sweep" for metric in headlines]
        against = [f"{name}-against-{strips[0]}" for name in strips[1:] if "latency" in name or "ttft" in name][:1]
        figures = {
            "result": [*relative, *self._place(campaign, *strips[: 3 - len(relative)])],
            "comparison": self._place(campaign, "comparison"),
            "sweep": self._place(campaign, *sweeps),
            "against": self._place(campaign, *against),
            "order": self._place(campaign, *[f"{name}-order" for name in strips[:2]]),
            "memory": self._place(campaign, "memory-ledger", "kv-cache-against-peak-memory"),
            "time": self._place(campaign, "gpu-utilisation"),
        }
        return {"campaign": campaign, "card": self._card(campaign), "answers": self._answers(campaign),
                "boxes": [box for metric in headlines[:4] if (box := self.value_box(campaign, metric))],
                "problems": self._problems(campaign),
                "doubted": bool(self.publication.review.voiding(campaign.name)), "models": models,
                "environments": environments, "workloads": workloads, "headlines": headlines,
                "summary": self._summary(campaign, headlines), "figures": figures}  # fmt: skip

    def _card(self, campaign: CampaignData) -> dict[str, Any]:
        """What a campaign is, in a few figures and two sentences."""
        records = campaign.records
        out = [run for run in records if run.run_id in self.publication.review.excluded]
        findings = [finding for finding in self.publication.review.findings if finding.campaign == campaign.name]
        times = sorted(record.started.value for record in records)
        gpus = {gpu.name for record in records for gpu in record.machine.gpus}
        return {
            "campaign": campaign,
            "href": f"campaigns/{campaign.name}/",
            "runs": len(records),
            "counted": len(records) - len(out),
            "failed": sum(record.status != "ok" for record in records),
            "hardware": sorted(gpus) or sorted({record.machine.cpu or "unknown machine" for record in records}),
            "begun": times[0][:10] if times else None,
            "ended": times[-1][:10] if times else None,
            "errors": sum(finding.severity == "error" for finding in findings),
            "warnings": sum(finding.severity == "warning" for finding in findings),
            "answer": " ".join(self._answers(campaign)[:2]),
        }

    def _answers(self, campaign: CampaignData) -> list[str]:
        """One sentence per leading metric, comparisons first."""
        found = []
        for metric in self.publication.headlines(campaign)[:4]:
            key = (campaign.name, metric.name)
            cells = self.publication.cells.get(key, ())
            compared = self.publication.comparisons.get(key, ())
            text = sentences.differences(metric, compared) or (sentences.means(metric, cells) if cells else "")
            if text:
                found.append(text)
        return found

    def value_box(self, campaign: CampaignData, metric: Metric) -> dict[str, Any] | None:
        """One leading metric as a value box: the largest difference, or the best mean."""
        key = (campaign.name, metric.name)
        rows = self.publication.comparisons.get(key, ())
        cells = self.publication.cells.get(key, ())
        if rows:
            verdicts = Counter(row.verdict for row in rows)
            return {"metric": metric, "href": f"metrics/{slug(metric.name)}/", "value": _change(metric, rows),
                    "verdicts": verdicts, "verdict": listed(f"{n} {word}" for word, n in verdicts.items()),
                    "note": f"{rows[0].candidate} against {rows[0].baseline}"}  # fmt: skip
        if not cells:
            return None
        best = (min if metric.direction == "lower" else max)(cells, key=lambda cell: cell.mean)
        return {"metric": metric, "href": f"metrics/{slug(metric.name)}/", "value": metric.format(best.mean),
                "verdict": "", "verdicts": {},
                "note": f"best mean: {best.model}, {best.environment}, n = {best.n}"}  # fmt: skip

    def _problems(self, campaign: CampaignData) -> list[dict[str, Any]]:
        """Findings by check, the severest first: each with its first message and how often it trips."""
        groups: dict[str, list[Any]] = {}
        for finding in self.publication.review.findings:
            if finding.campaign == campaign.name and finding.severity != "info":
                groups.setdefault(finding.check, []).append(finding)
        kinds = ("meaning", "happened", "evidence", "prose")
        ordered = sorted(
            groups.items(), key=lambda item: (item[1][0].severity != "error", kinds.index(CHECKS[item[0]].kind))
        )
        return [{"check": name, "findings": found, "severity": found[0].severity, "href": anchor(campaign.name, name)}
                for name, found in ordered]  # fmt: skip

    def _summary(self, campaign: CampaignData, metrics: Sequence[Metric]) -> list[dict[str, Any]]:
        """A row per cell: mean with interval of each leading metric, and what flags it carries."""
        review = self.publication.review
        rows = []
        for cell in cell_keys(campaign):
            values = []
            for metric in metrics:
                found = next((c for c in self.publication.cells.get((campaign.name, metric.name), ())
                              if (c.model, c.environment, c.workload) == cell), None)  # fmt: skip
                rival = next((r for r in self.publication.comparisons.get((campaign.name, metric.name), ())
                              if (r.model, r.candidate, r.workload) == cell), None)  # fmt: skip
                values.append({"metric": metric, "cell": found, "comparison": rival})
            findings = review.by_cell.get((campaign.name, "/".join(cell)), ())
            rows.append({"label": cell_label(campaign, cell), "model": cell[0], "environment": cell[1],
                         "workload": cell[2], "values": values,
                         "runs": sum(record.cell == cell for record in campaign.records),
                         "flags": unique(finding for finding in findings if finding.severity != "info")})  # fmt: skip
        return rows

    def _axis(self, kind: str, axis: int, note: Callable[[str, CampaignData], str]) -> Iterator[tuple[str, Content]]:
        """The list of all models or environments, and the page of each; `note` says in a word what one is."""
        found: dict[str, list[CampaignData]] = {}
        for campaign in self.publication.campaigns:
            for name in axes(campaign)[axis]:
                found.setdefault(name, []).append(campaign)
        yield f"{kind}s/index.md", self._page("list", kind=kind, title=f"{kind.title()}s", names=[
            {"name": name, "href": f"{kind}s/{name}/", "note": note(name, campaigns[0]), "campaigns": campaigns,
             "runs": sum(record.cell[axis] == name for campaign in campaigns for record in campaign.records)}
            for name, campaigns in found.items()])  # fmt: skip
        for name, campaigns in found.items():
            parts = [self._part(campaign, **{kind: name}) for campaign in campaigns]
            yield f"{kind}s/{name}.md", self._page("part", kind=kind, name=name, parts=parts,
                                                   subtitle=note(name, campaigns[0]))  # fmt: skip

    def _part(self, campaign: CampaignData, **part: str) -> dict[str, Any]:
        """A model or an environment within one campaign."""
        headlines = [metric for metric in self.publication.headlines(campaign) if any(
            getattr(cell, axis) == name for cell in self.publication.cells.get((campaign.name, metric.name), ())
            for axis, name in part.items())]  # fmt: skip
        cut = scope(campaign, **part)
        runs = [run for run in campaign.runs if all(getattr(run.record, axis) == name for axis, name in part.items())]
        names = [slug(metric.name) for metric in headlines]
        more = [f"{names[0]}-order", "memory-ledger"] if "model" in part and names else []
        compared = [
            sentence
            for metric in headlines
            if "model" in part
            and (sentence := sentences.differences(metric, [
                row for row in self.publication.comparisons.get((campaign.name, metric.name), ())
                if row.model == part["model"]]))
        ]  # fmt: skip
        return {
            "campaign": campaign,
            "sentences": compared or self._answers(campaign),
            "flags": flags(self.publication, cut),
            "figures": self._place(campaign, *names[:PART_FIGURES], *more, **part),
            "summary": [row for row in self._summary(campaign, headlines)
                        if all(row[axis] == name for axis, name in part.items())],
            "headlines": headlines,
            "runs": self.library.figure("coverage", campaign.name, **part),
            "declared": self._declared(campaign, part),
            "observed": _observed([run.record for run in runs]),
        }  # fmt: skip

    def _declared(self, campaign: CampaignData, part: Mapping[str, str]) -> Mapping[str, Any]:
        if campaign.matrix is None:
            return {}
        if "environment" in part:
            options = campaign.matrix.environments.get(part["environment"])
            return {} if options is None else options.declared
        model = campaign.matrix.models.get(part["model"])
        return {} if model is None else model.model_dump(mode="json", exclude_defaults=True, exclude={"config"})

    def _metrics(self) -> Iterator[tuple[str, Content]]:
        found: dict[str, tuple[Metric, list[CampaignData]]] = {}
        for campaign in self.publication.campaigns:
            for metric in self.publication.metrics(campaign):
                found.setdefault(metric.name, (metric, []))[1].append(campaign)
        yield "metrics/index.md", self._page("metrics", metrics=[
            {"metric": metric, "href": f"metrics/{slug(name)}/", "campaigns": campaigns}
            for name, (metric, campaigns) in found.items()])  # fmt: skip
        for name, (metric, campaigns) in found.items():
            yield f"metrics/{slug(name)}.md", self._page("metric", metric=metric, parts=[
                {"campaign": campaign,
                 "sentence": sentences.differences(metric, self.publication.comparisons.get((campaign.name, name), ()))
                 or sentences.means(metric, self.publication.cells.get((campaign.name, name), ())),
                 "comparisons": self.publication.comparisons.get((campaign.name, name), ()),
                 "cells": self.publication.cells.get((campaign.name, name), ()),
                 "figures": self._place(campaign, *(slug(name) + kind for kind in (
                     METRIC_PAGE if metric in self.publication.headlines(campaign)
                     and (campaign.name, name) in self.publication.cells else METRIC_PAGE[:1])))}
                for campaign in campaigns])  # fmt: skip

    def run_row(self, stored: Any) -> dict[str, Any]:
        """A run as a row of a list."""
        run = stored.record
        review = self.publication.review
        return {"record": run, "href": f"runs/{run.run_id}/", "reason": review.excluded.get(run.run_id),
                "batch": batch_size(run), "flags": unique(review.by_run.get(run.run_id, ()))}  # fmt: skip

    def _review(self, campaign: CampaignData) -> dict[str, Any]:
        review = self.publication.review
        mine = [finding for finding in review.findings if finding.campaign == campaign.name]
        return {
            "campaign": campaign,
            "checks": [{"check": CHECKS[name], "anchor": anchor(campaign.name, name).partition("#")[2],
                        "findings": [(f, review.acknowledgement(f)) for f in mine if f.check == name]}
                       for name in dict.fromkeys(finding.check for finding in mine)],
            "excluded": {run: reason for run, reason in review.excluded.items()
                         if run in {record.run_id for record in campaign.records}},
            "counts": {severity: sum(f.severity == severity for f in mine) for severity in SEVERITIES},
        }  # fmt: skip

    def _coverage(self, campaign: CampaignData) -> dict[str, Any]:
        failed = [self.run_row(run) for run in campaign.runs if run.record.status != "ok"]
        return {"campaign": campaign, "figures": self._place(campaign, "coverage"), "failed": failed,
                "quarantined": campaign.quarantined}  # fmt: skip


def _change(metric: Metric, rows: Sequence[ComparisonRow]) -> str:
    """The least and the largest difference, in per cent where the scale has a true zero."""
    shares = sorted(row.difference_percent for row in rows if row.difference_percent is not None)
    if shares:
        texts = [percent(share).removesuffix(f"{SPACE}%") for share in (shares[0], shares[-1])]
        return spread(texts, "%")
    sizes = sorted(row.difference for row in rows)
    return spread([metric.signed(size, unit=False) for size in (sizes[0], sizes[-1])], metric.unit)


def anchor(campaign: str, check: str) -> str:
    """Where the review page speaks of a check."""
    return f"review/#{campaign}-{check}"


def unique(findings: Any) -> list[Any]:
    """The first finding of each check."""
    return list({finding.check: finding for finding in reversed(list(findings))}.values())[::-1]


def _model_id(model: str, campaign: CampaignData) -> str:
    if campaign.matrix is not None and model in campaign.matrix.models:
        return campaign.matrix.models[model].id
    return next((record.requested.model_id for record in campaign.records if record.model == model), "")


def _environment_type(name: str, campaign: CampaignData) -> str:
    declared = campaign.matrix.environments.get(name) if campaign.matrix else None
    options = declared.declared if declared else {}
    return " ".join(str(part) for part in (options.get("type"), options.get("image") or options.get("rootfs")) if part)


def _observed(records: Sequence[Any]) -> Mapping[str, list[str]]:
    """What the runs showed of themselves: field to the distinct values seen, with `nothing` where a run was silent."""
    fields = ("engine", "engine_version", "model_type", "parameters", "weight_bytes", "kv_bytes_per_token", "dtype",
              "quantization", "device")  # fmt: skip
    found = {
        name: [f"{value:,}" if isinstance(value, int) else str(value)
               for value in dict.fromkeys(getattr(r.observed, name) for r in records) if value is not None]
        for name in fields
    }  # fmt: skip
    return {name: values for name, values in found.items() if values}
