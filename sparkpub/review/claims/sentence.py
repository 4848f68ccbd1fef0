"""The sentence of a claim, made from its test: where, what, on which side of which bound, in which unit, for whom.

sentence(claim, names, chosen)
    Output throughput is the same in Docker as natively, within 1 %, for 7B (8 users), with vLLM on the H200 of mine.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sparkpub.record.metrics import Metric, metric_called
from sparkpub.record.text import counted, listed, number, with_unit
from sparkpub.review.claims.chosen import Chosen, split
from sparkpub.review.claims.claim import Claim, Expect
from sparkpub.review.claims.quantities import Quantity
from sparkpub.review.names import Names, in_environment, runs_of
from sparkpub.review.setup import setup_of
from sparkpub.review.vocabulary import statistic_called

MOST_NAMES = 3
"""Models or figures that a sentence names; of more it says the number."""
_RELATIONS = {
    "<": "below ",
    "<=": "at most ",
    ">": "above ",
    ">=": "at least ",
    "=": "",
}
_OVER_UNITS = {"spans": "over", "highest": "among", "lowest": "among"}
"""Forms that set units side by side, with the word before these."""


def sentence(claim: Claim, names: Names, chosen: Chosen | None) -> str:
    """What a claim says: of a hypothesis its author's sentence, else one made of the test. `chosen` are the runs that
    it is about; None where its campaign is not among the data."""
    if claim.expect is None:
        return claim.says or ""
    told = _Telling(claim, claim.expect, names, chosen)
    said = f"{told.tested()}{told.scope()}, {told.setting()}."
    return f"{said[:1].upper()}{said[1:]}"


@dataclass(frozen=True)
class _Telling:
    claim: Claim
    expect: Expect
    names: Names
    chosen: Chosen | None

    # -- what is tested ------------------------------------------------------------------------------------------

    def tested(self) -> str:
        """`output throughput is the same in Docker as natively, within 1 %,`."""
        expect, form = self.expect, self.expect.form
        (low, high), metric = expect.bounds, self._metric(self.claim.metric)
        candidate, baseline = map(in_environment, self._sides)
        if form == "equivalent_within_percent":
            said = f"the same {candidate} as {baseline}, within {high:g} %,"
        elif form == "ratio":
            said = f"{low:g} to {high:g} times as high {candidate} as {baseline}"
        elif form in ("direction", "difference", "difference_percent"):
            unit = "%" if expect.difference_percent else metric.unit
            if expect.difference and unit == "%":
                unit = "points"
            amount = expect.direction or _amount(low, high, unit)
            said = f"{amount} {candidate} than {baseline}"
        else:
            return self._of_statistic(metric)
        return f"{metric.within_sentence} is {said}"

    def _of_statistic(self, metric: Metric) -> str:
        """`the mean of output throughput is below 5 tok/s`."""
        expect, digits = self.expect, self.claim.decimals
        statistic = statistic_called(expect.decisive or self.claim.shown)
        figure = Quantity(statistic, metric, None).say
        candidate, baseline = map(runs_of, self._sides)
        phrase = statistic.phrase.format(
            metric=metric.within_sentence,
            against=self._metric(self.claim.against).within_sentence,
            candidate=candidate,
            baseline=baseline,
        )
        published = expect.published or {}
        if expect.holds:
            _, sign, written = expect.condition
            bound = figure(float(written), len(written.partition(".")[2]))
            said = f"is {_RELATIONS[sign]}{bound.removeprefix('p = ')}"
        elif expect.spans:
            low, high = expect.spans
            low_end = number(low, digits, signed=statistic.signed)
            said = f"goes, as published, from {low_end} to {figure(high, digits)}"
        elif len(published) > MOST_NAMES:
            units = f"{len(published)} {self.claim.scope.rpartition(' ')[2]}s"
            said = f"is as published for {units}, to {counted(digits, 'decimal')}"
        elif published:
            each = (
                f"{figure(value, digits)} for {self._unit(unit)}"
                for unit, value in published.items()
            )
            said = f"is {listed(each)}, as published"
        else:
            unit = expect.highest or expect.lowest or ""
            said = f"is {expect.form} for {self._unit(unit)}"
        return f"the {phrase} {said}"

    def _metric(self, name: str | None) -> Metric:
        own = {} if self.chosen is None else self.chosen.campaign.metrics
        return own.get(name or "") or metric_called(name or "")

    @property
    def _sides(self) -> list[str]:
        """What readers call candidate and baseline."""
        return self._called("environment", self.claim.sides or ("", ""))

    # -- which runs ----------------------------------------------------------------------------------------------

    def setting(self) -> str:
        """`in Docker with vLLM on the H200 of mine`; of a claim about the world, `with vLLM on any H200`."""
        claim, records = self.claim, self.chosen.records if self.chosen else ()
        setups = [setup_of(record) for record in records]
        engines = {setup.engine for setup in setups if setup.engine}
        kinds = {setup.machine_in_short for setup in setups if setup.machine}
        kind = kinds.pop() if len(kinds) == 1 else "machine"
        several = len({record.machine.id for record in records})
        machines = counted(several, kind) if several > 1 else kind
        places = self._called("environment", claim.environments)
        parts = [
            listed(map(in_environment, places)),
            f"with {engines.pop()}" if len(engines) == 1 else "",
            f"on any {kind}"
            if claim.about == "world"
            else f"on the {machines} of {claim.campaign}",
            "(all recorded runs)" if claim.include == "all" else "",
        ]
        return " ".join(filter(None, parts))

    def scope(self) -> str:
        """Of what, and under which load: ` for 7B and 32B (8 users)`."""
        said = self._units()
        if self.claim.workloads:
            said += f" ({listed(self._called('workload', self.claim.workloads))})"
        return said

    def _units(self) -> str:
        """` for 7B`, ` for every model`, `, for at least one cell`."""
        kind, _, unit = self.claim.scope.partition(" ")
        form, chosen = self.expect.form, self.chosen
        loads = {record.workload for record in chosen.records} if chosen else ()
        has_loads = unit == "model" and len(loads) > 1
        noun = f"{unit} and load" if has_loads else unit
        if kind == "any":
            return f", for at least one {noun}"
        models: Sequence[str] = self.claim.models
        if unit == "model" and chosen and not models:
            models = [part.label for part in split(chosen, ["model"])]
        if form == "published" or not (unit or 0 < len(models) <= MOST_NAMES):
            return ""
        said = f"every {noun}"
        if 0 < len(models) <= MOST_NAMES:
            said = listed(self._called("model", models))
            said += " at every load" if has_loads else ""
        return f" {_OVER_UNITS.get(form, 'for')} {said}"

    def _called(self, axis: str, keys: Sequence[str]) -> list[str]:
        """What readers call keys of the campaign."""
        if not self.chosen:
            return [*keys]
        campaign = self.claim.campaign
        return [self.names.called(campaign, axis, key) for key in keys]

    def _unit(self, label: str) -> str:
        return self.names.in_words(self.claim.campaign, label)


def _amount(low: float, high: float, unit: str) -> str:
    """`20 to 30 GiB higher`, `between 1 % lower and 2 % higher`."""
    if low < 0 < high:
        return (
            f"between {-low:g} {unit} lower and {with_unit(f'{high:g}', unit)} higher"
        )
    ends = sorted(map(abs, (low, high)))
    side = "lower" if low < 0 else "higher"
    return f"{with_unit(f'{ends[0]:g} to {ends[1]:g}', unit)} {side}"
