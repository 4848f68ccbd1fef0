"""The sentence of a claim, made from its test: where, what, on which side of which bound, in which unit, for whom.

sentence(claim, names, groups)
    Output throughput is the same in Docker as natively, within 1 %, for 7B (8 users), with vLLM on the H200 of mine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.text import counted, listed, number, with_unit
from sparkpub.review.claims.chosen import Chosen
from sparkpub.review.claims.claim import Claim, Expect
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


def sentence(claim: Claim, names: Names, groups: Sequence[Chosen]) -> str:
    """What a claim says: of a hypothesis its author's sentence, else one made of the test. `groups` are the runs that
    it is about, of each campaign."""
    if claim.expect is None:
        return claim.says or ""
    return _Telling(claim, names, groups).sentence(claim.expect)


@dataclass(frozen=True)
class _Telling:
    claim: Claim
    names: Names
    groups: Sequence[Chosen]

    def sentence(self, expect: Expect) -> str:
        said = f"{self._tested(expect)}{self._scope(expect)}, {self._setting()}"
        if self.claim.include == "all":
            said += " (all recorded runs)"
        return f"{said[:1].upper()}{said[1:]}."

    # -- what is tested ------------------------------------------------------------------------------------------

    def _tested(self, expect: Expect) -> str:
        metric, name = self._metric(self.claim.metric), self.claim.shown
        candidate, baseline = map(in_environment, self._sides())
        low, high = expect.bounds or (0.0, 0.0)
        digits = self.claim.decimals
        match expect.form:
            case "equivalent_within_percent":
                margin = f"{expect.equivalent_within_percent:g} %"
                said = f"is the same {candidate} as {baseline}, within {margin},"
            case "direction":
                said = f"is {expect.direction} {candidate} than {baseline}"
            case "ratio":
                said = f"is {low:g} to {high:g} times as high {candidate} as {baseline}"
            case "difference" | "difference_percent":
                unit = "%" if expect.difference_percent else metric.unit
                if expect.difference and unit == "%":
                    unit = "points"
                said = f"is {_amount(low, high, unit)} {candidate} than {baseline}"
            case "holds":
                name, sign, written = expect.condition
                bound = self._figure(
                    float(written), len(written.partition(".")[2]), name
                )
                return f"{self._subject(name)} is {_RELATIONS[sign]}{bound}"
            case "published":
                return f"{self._subject(name)} is {self._published(expect.published or {})}"
            case "spans":
                signed = statistic_called(name).signed
                ends = f"{number(low, digits, signed=signed)} to {self._figure(high, digits, name)}"
                return f"{self._subject(name)} goes, as published, from {ends}"
            case extreme:
                unit = self._unit(getattr(expect, extreme))
                return f"{self._subject(name)} is {extreme} for {unit}"
        return f"{metric.within_sentence} {said}"

    def _metric(self, name: str | None) -> Metric:
        known = dict(METRICS)
        for group in self.groups:
            known |= group.reviewed.campaign.metrics
        return known.get(name or "") or Metric(
            name or "", "", "neither", name or "", ""
        )

    def _sides(self) -> list[str]:
        """What readers call candidate and baseline."""
        return self._called("environment", self.claim.sides or ("", ""))

    def _subject(self, name: str) -> str:
        """A statistic, `the mean of output throughput`, `the ratio of Docker to native in KV cache`."""
        candidate, baseline = map(runs_of, self._sides())
        said = statistic_called(name).phrase.format(
            metric=self._metric(self.claim.metric).within_sentence,
            against=self._metric(self.claim.against).within_sentence,
            candidate=candidate,
            baseline=baseline,
        )
        return f"the {said}"

    def _figure(self, value: float, decimals: int, name: str) -> str:
        """A figure of a statistic in its unit."""
        statistic = statistic_called(name)
        unit = statistic.unit
        if unit == "metric":
            unit = self._metric(self.claim.metric).unit
        words = number(value, decimals, signed=statistic.signed)
        return with_unit(words, "" if unit == "p" else unit)

    def _published(self, figures: Mapping[str, float]) -> str:
        """`44.31 GiB for 7B and 43.19 GiB for 120B, as published`."""
        digits = self.claim.decimals
        if len(figures) > MOST_NAMES:
            units = f"{len(figures)} {self.claim.scope.rpartition(' ')[2]}s"
            return f"as published for {units}, to {counted(digits, 'decimal')}"
        each = [
            f"{self._figure(value, digits, self.claim.shown)} for {self._unit(unit)}"
            for unit, value in figures.items()
        ]
        return f"{listed(each)}, as published"

    # -- which runs ----------------------------------------------------------------------------------------------

    def _setting(self) -> str:
        """`in Docker with vLLM on the H200 of mine`; of a claim about the world, `with vLLM on any H200`."""
        records = [record for group in self.groups for record in group.records]
        setups = [setup_of(record) for record in records]
        parts = []
        if self.claim.environments:
            places = self._called("environment", self.claim.environments)
            parts.append(listed(map(in_environment, places)))
        engines = {setup.engine for setup in setups if setup.engine}
        if len(engines) == 1:
            parts.append(f"with {engines.pop()}")
        kinds = {setup.machine_in_short for setup in setups if setup.machine}
        kind = kinds.pop() if len(kinds) == 1 else "machine"
        several = len({record.machine.id for record in records})
        if self.claim.about == "world":
            parts.append(f"on any {kind}")
        else:
            machines = counted(several, kind) if several > 1 else kind
            parts.append(f"on the {machines} of {self.claim.campaign}")
        return " ".join(parts)

    def _scope(self, expect: Expect) -> str:
        """Of what, and under which load: ` for 7B and 32B (8 users)`."""
        said = self._units(expect.form)
        if self.claim.workloads:
            said += f" ({listed(self._called('workload', self.claim.workloads))})"
        return said

    def _units(self, form: str) -> str:
        """` for 7B`, ` for every model`, `, for at least one cell`."""
        kind, _, unit = self.claim.scope.partition(" ")
        cells = [cell for group in self.groups for cell in group.cells]
        loads = {workload for _, _, workload in cells}
        has_loads = unit == "model" and len(loads) > 1
        noun = f"{unit} and load" if has_loads else unit
        if kind == "any":
            return f", for at least one {noun}"
        models = self.claim.models or tuple(dict.fromkeys(cell[0] for cell in cells))
        are_named = unit == "model" or bool(self.claim.models)
        if form == "published":
            return ""
        if 0 < len(models) <= MOST_NAMES and are_named:
            said = listed(self._called("model", models))
            said += " at every load" if has_loads else ""
        elif unit:
            said = f"every {noun}"
        else:
            return ""
        return f" {_OVER_UNITS.get(form, 'for')} {said}"

    def _called(self, axis: str, keys: Sequence[str]) -> list[str]:
        """What readers call keys of the campaign."""
        known: Mapping[str, str] = {}
        if self.groups:
            known = self.names.campaign(self.claim.campaign).by_axis[axis]
        return [known.get(key, key) for key in keys]

    def _unit(self, label: str) -> str:
        if not self.groups:
            return label
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


_OVER_UNITS = {"spans": "over", "highest": "among", "lowest": "among"}
"""Forms that set units side by side, with the word before these."""
