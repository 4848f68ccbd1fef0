"""The sentence of a claim, made from its test: where, what, on which side of which bound, in which unit, for whom.

sentence(claim, names, groups)
    Output throughput is the same in Docker as natively, within 1 %, for 7B (8 users), with vLLM on the H200 of mine.
"""

from collections.abc import Callable, Mapping, Sequence
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
        said = f"{_TESTED[expect.form](self, expect)}{self._scope()}, {self._setting()}"
        if self.claim.include == "all":
            said += " (all recorded runs)"
        return f"{said[:1].upper()}{said[1:]}."

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
        elif several > 1:
            parts.append(f"on the {counted(several, kind)} of {self.claim.campaign}")
        else:
            parts.append(f"on the {kind} of {self.claim.campaign}")
        return " ".join(parts)

    def _scope(self) -> str:
        """Of what, and under which load: ` for 7B and 32B (8 users)`."""
        said = self._units()
        if self.claim.workloads:
            said += f" ({listed(self._called('workload', self.claim.workloads))})"
        return said

    def _units(self) -> str:
        """` for 7B`, ` for every model`, `, for at least one cell`."""
        kind, _, unit = self.claim.scope.partition(" ")
        form = self.claim.expect.form if self.claim.expect else ""
        cells = [cell for group in self.groups for cell in group.cells]
        loads = {workload for _, _, workload in cells}
        noun = f"{unit} and load" if unit == "model" and len(loads) > 1 else unit
        if kind == "any":
            return f", for at least one {noun}"
        models = self.claim.models or tuple(dict.fromkeys(cell[0] for cell in cells))
        are_named = unit == "model" or bool(self.claim.models)
        if form == "published":
            return ""
        if 0 < len(models) <= MOST_NAMES and are_named:
            load = " at every load" if noun != unit else ""
            said = f"{listed(self._called('model', models))}{load}"
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

    # -- what is tested ------------------------------------------------------------------------------------------

    @property
    def _metric(self) -> Metric:
        return self._known(self.claim.metric or "")

    def _known(self, name: str) -> Metric:
        own: Mapping[str, Metric] = {}
        for group in self.groups:
            own = group.reviewed.campaign.metrics
        found = own.get(name) or METRICS.get(name)
        return found or Metric(name, "", "neither", name, "")

    def _sides(self) -> tuple[str, str]:
        """What readers call candidate and baseline."""
        candidate, baseline = self._called("environment", self.claim.sides or ("", ""))
        return candidate, baseline

    def _places(self, joined: str) -> str:
        """`in Docker than natively`."""
        candidate, baseline = map(in_environment, self._sides())
        return f"{candidate} {joined} {baseline}"

    def _subject(self, name: str) -> str:
        """A statistic, `the mean of output throughput`, `the ratio of Docker to native in KV cache`."""
        candidate, baseline = map(runs_of, self._sides())
        said = statistic_called(name).phrase.format(
            metric=self._metric.within_sentence,
            against=self._known(self.claim.against or "").within_sentence,
            candidate=candidate,
            baseline=baseline,
        )
        return f"the {said}"

    def _figure(self, value: float, decimals: int, name: str) -> str:
        """A figure of a statistic in its unit."""
        statistic = statistic_called(name)
        unit = statistic.unit
        if unit == "metric":
            unit = self._metric.unit
        words = number(value, decimals, signed=statistic.signed)
        return with_unit(words, "" if unit == "p" else unit)

    def _same(self, expect: Expect) -> str:
        within = f"{expect.equivalent_within_percent:g} %"
        return f"{self._metric.within_sentence} is the same {self._places('as')}, within {within},"

    def _side(self, expect: Expect) -> str:
        return f"{self._metric.within_sentence} is {expect.direction} {self._places('than')}"

    def _between(self, expect: Expect) -> str:
        """`peak memory is 20 to 30 GiB higher in Docker than natively`."""
        low, high = expect.bounds or (0.0, 0.0)
        unit = "%" if expect.difference_percent else self._metric.unit
        if expect.difference and unit == "%":
            unit = "points"
        if low < 0 < high:
            amount = f"between {-low:g} {unit} lower and {with_unit(f'{high:g}', unit)} higher"
        else:
            ends = sorted(map(abs, (low, high)))
            side = "lower" if low < 0 else "higher"
            amount = f"{with_unit(f'{ends[0]:g} to {ends[1]:g}', unit)} {side}"
        return f"{self._metric.within_sentence} is {amount} {self._places('than')}"

    def _times(self, expect: Expect) -> str:
        low, high = expect.bounds or (0.0, 0.0)
        said = f"{low:g} to {high:g} times as high {self._places('as')}"
        return f"{self._metric.within_sentence} is {said}"

    def _held(self, expect: Expect) -> str:
        name, sign, written = expect.condition
        _, _, digits = written.partition(".")
        bound = self._figure(float(written), len(digits), name)
        return f"{self._subject(name)} is {_RELATIONS[sign]}{bound}"

    def _published(self, expect: Expect) -> str:
        """`the mean of KV cache is 44.31 GiB for 7B and 43.19 GiB for 120B, as published`."""
        figures, name = expect.published or {}, self.claim.shown
        digits = self.claim.decimals
        if len(figures) > MOST_NAMES:
            units = f"{len(figures)} {self.claim.scope.rpartition(' ')[2]}s"
            told = f"as published for {units}, to {counted(digits, 'decimal')}"
        else:
            each = [
                f"{self._figure(value, digits, name)} for {self._unit(unit)}"
                for unit, value in figures.items()
            ]
            told = f"{listed(each)}, as published"
        return f"{self._subject(name)} is {told}"

    def _unit(self, label: str) -> str:
        if not self.groups:
            return label
        return self.names.in_words(self.claim.campaign, label)

    def _spans(self, expect: Expect) -> str:
        low, high = expect.bounds or (0.0, 0.0)
        name, digits = self.claim.shown, self.claim.decimals
        least = number(low, digits, signed=statistic_called(name).signed)
        most = self._figure(high, digits, name)
        return f"{self._subject(name)} goes, as published, from {least} to {most}"

    def _extreme(self, expect: Expect) -> str:
        unit = self._unit(getattr(expect, expect.form))
        return f"{self._subject(self.claim.shown)} is {expect.form} for {unit}"


_OVER_UNITS = {"spans": "over", "highest": "among", "lowest": "among"}
"""Forms that set units side by side, with the word before these."""
_TESTED: Mapping[str, Callable[[_Telling, Expect], str]] = {
    "equivalent_within_percent": _Telling._same,
    "direction": _Telling._side,
    "difference": _Telling._between,
    "difference_percent": _Telling._between,
    "ratio": _Telling._times,
    "holds": _Telling._held,
    "published": _Telling._published,
    "spans": _Telling._spans,
    "highest": _Telling._extreme,
    "lowest": _Telling._extreme,
}
"""Form of an expectation to the words for it."""
