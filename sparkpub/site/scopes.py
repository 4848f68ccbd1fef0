"""What an author's scope means: the campaign, runs or comparison that `model="small", environment="native"` names.

Raises ClaimError that says what there is, where a scope names nothing or too much.
"""

from typing import Any

from sparkpub.record.documents import suggestion
from sparkpub.record.errors import ClaimError
from sparkpub.review.claims.chosen import Chosen, choose
from sparkpub.review.claims.quantities import Quantity, Question, ask
from sparkpub.review.dataset import CampaignData
from sparkpub.review.results import Results
from sparkpub.review.reviewed import Include, ReviewedCampaign
from sparkpub.review.tables.column import TableRow
from sparkpub.review.vocabulary import STATISTICS

ALL = "*"
"""Of all campaigns together."""


class NotMeasuredYetError(ClaimError):
    """An expression asks for runs that the matrix declares and `collect` has not measured yet."""


def compares(statistic: str) -> bool:
    """Whether a statistic is of one environment against another."""
    known = STATISTICS.get(statistic)
    return statistic == "verdict" or (known is not None and known.compares)


class Scopes:
    """Finds what scopes name in one dataset. `default` is the campaign of a page, for scopes that name none; `asked`
    are the campaigns that were found so far, or `ALL`."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._dataset = results.reviewed.dataset
        self.default = ""
        self.asked: set[str] = set()

    def campaign(self, *, campaign: str = "", **_: Any) -> CampaignData:
        """The campaign that is named, that of the page, or the only one there is."""
        known = self._dataset.campaigns
        name = campaign or self.default
        if not name and len(known) == 1:
            name = next(iter(known))
            self.asked.add(ALL)
        if name not in known:
            what = f"no campaign {name!r}" if name else "which campaign is meant"
            remedy = (
                f"name one of {', '.join(known)}, or set campaign: in the front matter"
            )
            if not known:
                remedy = "collect or import one: there is none yet"
            raise ClaimError(what, remedy=remedy)
        self.asked.add(name)
        return known[name]

    def select(
        self,
        *,
        campaign: str = "",
        model: str = "",
        environment: str | tuple[str, ...] = "",
        workload: str = "",
        include: Include = "counted",
    ) -> Chosen:
        """The runs of a scope; with `include="all"` those that do not count as well."""
        axes = {"model": model, "environment": environment, "workload": workload}
        chosen = {
            axis: (names,) if isinstance(names, str) else names
            for axis, names in axes.items()
            if names
        }
        return choose(self.reviewed(campaign=campaign), include, **chosen)

    def measured(self, **scope: Any) -> Chosen:
        """The same. Raises NotMeasuredYetError where no run is there to answer, or none but failed ones."""
        chosen = self.select(**scope)
        campaign = chosen.campaign
        recorded = self.select(**scope | {"include": "all"}).records
        if campaign.awaits({record.cell for record in recorded}):
            raise NotMeasuredYetError(f"campaign {campaign.name}: {campaign.progress}")
        return chosen

    def reviewed(self, **scope: Any) -> ReviewedCampaign:
        """The campaign of a scope with what the review found."""
        return self._results.reviewed.campaigns[self.campaign(**scope).name]

    def quantity(
        self, statistic: str, metric: str, *, against: str = "", **scope: Any
    ) -> Quantity:
        """A statistic over the runs of a scope, or of a candidate against a baseline."""
        sides = None
        if compares(statistic):
            sides, scope = self._sides(**scope)
            group = self.select(environment=sides, **scope)
        else:
            group = self.measured(**scope) if metric else self.select(**scope)
        refuse_unknown(group, *filter(None, (metric, against)))
        margin = self.campaign(**scope).margin_percent
        return ask(statistic, Question(group, metric, against, sides, margin))

    def comparison(self, metric: str, **scope: Any) -> TableRow:
        """The comparison of a metric that has these axes. Raises ClaimError where there is none, or more than one."""
        (candidate, baseline), wanted = self._sides(**scope)
        wanted["campaign"] = self.campaign(**wanted).name
        found = self._results.comparison_rows.where(
            metric=metric, candidate=candidate, baseline=baseline, **wanted
        )
        if len(found) != 1:
            what = f"{len(found)} comparisons of {metric} match"
            raise ClaimError(what, remedy="name model and workload of one")
        return found[0]

    def _sides(
        self, *, candidate: str = "", baseline: str = "", **scope: Any
    ) -> tuple[tuple[str, str], dict[str, Any]]:
        """Candidate and baseline, as the campaign has them where they are not named, and the scope without them.
        Raises as `measured` does for either."""
        campaign = self.campaign(**scope)
        baseline = baseline or campaign.baseline
        if not candidate:
            others = [name for name in campaign.axes[1] if name != baseline]
            if len(others) != 1:
                raise ClaimError(
                    f"which environment is compared with {baseline}",
                    remedy=f"add candidate=, one of {', '.join(others) or 'none'}",
                )
            (candidate,) = others
        for side in (candidate, baseline):
            self.measured(environment=side, **scope)
        return (candidate, baseline), scope

    def model_id(self, name: str, scope: dict[str, Any]) -> str:
        """The id of a model by its key in the campaign."""
        runs = self.select(**scope, model=name, include="all")
        return runs.records[0].requested.model_id


def refuse_unknown(group: Chosen, *metrics: str) -> None:
    """Raise ClaimError for a metric that none of the runs has."""
    for name in metrics:
        if name not in group.metrics:
            raise ClaimError(
                f"no run of this scope has the metric {name!r}",
                remedy=suggestion(name, sorted(group.metrics)),
            )
