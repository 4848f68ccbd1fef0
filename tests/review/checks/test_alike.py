"""What runs share that are pooled, and environments that are compared: else a difference is not the environment's."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sparkpub.record.record import (
    Container,
    Gate,
    Gpu,
    Machine,
    Observed,
    Reproducibility,
)
from sparkpub.record.store import Stored
from sparkpub.review.checks.alike import mixed_machines, unequal_environments
from sparkpub.review.checks.evidence import Warned
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.view import View
from sparkpub.review.dataset import CampaignData
from tests.review.checks.in_memory import a_run, a_view, answered, quiet, told
from tests.review.machines import a_fleet, drawn, moved

NATIVE, CONTAINER = [{place: values} for place, values in drawn(100, 5, 1).items()]
BOTH = {"a": drawn(100, 5, 1), "b": drawn(140, 5, 2)}


def found(campaign: CampaignData) -> list[Finding]:
    return list(mixed_machines(View(campaign)))


def elsewhere(
    cells: Any = NATIVE | CONTAINER, **iterations: Sequence[int]
) -> CampaignData:
    """A campaign of one machine, of which another one ran these iterations."""
    campaign = a_fleet({"a": cells}, machines="split")
    for environment, some in iterations.items():
        campaign = moved(campaign, "b", environment, some)
    return campaign


@pytest.mark.parametrize(
    ("campaign", "severity", "why"),
    [
        (a_fleet(BOTH), None, "each machine repeats all"),
        (elsewhere(native=range(5, 9), container=range(5, 9)), None, "whole rounds"),
        (elsewhere(container=range(1, 9)), "error", "on machine a only native ran"),
        (
            elsewhere(NATIVE, native=[7, 8]),
            "error",
            "nobody planned to repeat it on each machine",
        ),
    ],
)
def test_machines_measure_whole_blocks(
    campaign: CampaignData, severity: str | None, why: str
) -> None:
    told = [(item.severity, item.evidence["what"]) for item in found(campaign)]
    assert told == ([] if severity is None else [(severity, "machine")])
    assert all(f"({why})" in item.message for item in found(campaign))


def changed(run: Stored, **update: Any) -> Stored:
    return Stored(run.record.model_copy(update=update), run.path)


def packages(**versions: str) -> dict[str, Any]:
    known = Reproducibility(sparkpub_version="1", packages=versions)
    return {"reproducibility": known}


def image(digit: str) -> dict[str, Any]:
    known = Container(engine="docker", image="e:1", image_id=f"sha256:{digit * 64}")
    return {"container": known}


def on(machine: str, **fields: Any) -> dict[str, Any]:
    return {"machine": Machine(id=machine, **fields)}


def seen(**facts: Any) -> dict[str, Any]:
    return {"observed": Observed(**facts)}


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        # What each machine has of its own is asked of each by itself.
        (on("a", driver="1"), on("b", driver="2"), None),
        (
            on("a", gpus=(Gpu(name="GB10"),)),
            on("b", gpus=(Gpu(name="H200"),)),
            "error GPU",
        ),
        (packages(torch="1"), packages(torch="2"), "warning software"),
        # A package that is lacking is a note, and packages that nobody knows are nothing.
        (packages(torch="1", more="1"), packages(torch="1"), "info software"),
        (packages(torch="1"), packages(), None),
    ],
)
def test_machines_that_repeat_a_campaign_share_the_software(
    first: dict[str, Any], second: dict[str, Any], what: str | None
) -> None:
    fleet, own = a_fleet(BOTH), {"a": first, "b": second}
    runs = [changed(run, **own[run.record.machine.id or ""]) for run in fleet.runs]
    findings = found(CampaignData(fleet.info, fleet.folder, tuple(runs)))
    said = [f"{item.severity} {item.evidence['what']}" for item in findings]
    assert said == ([] if what is None else [what])


def test_what_follows_from_another_machine_is_not_told_beside_it() -> None:
    """One run of the container went to another machine, with another GPU: that is one cause."""
    torn = elsewhere(container=[3])
    runs = [
        changed(run, **on(name, gpus=(Gpu(name=f"GPU {name}"),)))
        for run in torn.runs
        if (name := run.record.machine.id)
    ]
    (finding,) = found(CampaignData(torn.info, torn.folder, tuple(runs)))
    assert finding.evidence["what"] == "machine"


def started_below(celsius: float) -> dict[str, Any]:
    name = "max_start_temp_celsius"
    return {"gates": (Gate(name=name, wanted=celsius, met=True, waited_seconds=0.0),)}


@pytest.mark.parametrize(
    ("native", "container", "severity"),
    [
        (on("m", driver="1"), on("m", driver="2"), "warning"),
        (on("m", driver="1"), on("n", driver="2"), None),
        (on("m", driver="1"), on("m"), None),
        (on("m", power_mode="a"), on("m"), "warning"),
        (seen(dtype="a"), seen(dtype="b"), "error"),
        (seen(engine="e"), seen(engine="e", quantization="q"), "error"),
        (seen(), seen(engine="e", quantization="q"), None),
        (seen(settings={"s": "1"}), seen(settings={"s": "2"}), "warning"),
        (started_below(45), started_below(95), "warning"),
        ({"asked_of": {"memory": "4g"}}, {}, "warning"),
        ({"argv": ("t", "--x", "/a")}, {"argv": ("t", "--x", "/b")}, None),
    ],
)
def test_environments_differ_in_nothing_else(
    native: dict[str, Any], container: dict[str, Any], severity: str | None
) -> None:
    other = a_run(environment="container", minute=2, **container)
    findings = list(unequal_environments(a_view(a_run(**native), other)))
    assert [item.severity for item in findings] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("version", "environments", "is_found"),
    [
        ("1.0", ["container"], True),
        ("1.0", ["native", "container"], False),
        # A log that is the client's alone tells nothing of the engine.
        (None, ["container"], False),
    ],
)
def test_an_engine_that_warns_in_one_environment_only_is_not_the_same(
    version: str | None, environments: list[str], is_found: bool
) -> None:
    runs = [a_run(), a_run(environment="container", minute=2)]
    view = a_view(*runs)
    for run in runs:
        said = [Warned("autotuning failed", measured=False)]
        view.evidence.answers[run.run_id] = answered(  # type: ignore[attr-defined]
            observed=Observed(engine_version=version),
            warnings=tuple(said * (run.record.environment in environments)),
        )
    lines = told(unequal_environments, view)
    assert len(lines) == is_found
    text = "autotuning failed absent (native) and given (container)"
    assert all(text in line for line in lines)


def sides(
    check: Callable[..., Any],
    column: str,
    native: list[float],
    container: list[float],
) -> list[str]:
    """What is found of environments whose samples differ in a column."""
    runs = [
        a_run(
            environment=side,
            iteration=place + 1,
            minute=2 * place + (side == "container"),
        )
        for side, values in (("native", native), ("container", container))
        for place in range(len(values))
    ]
    view = a_view(*runs)
    for run, value in zip(runs, native + container, strict=True):
        view.evidence.samples[run.run_id] = quiet(**{column: value})  # type: ignore[attr-defined]
    return told(check, view)


@pytest.mark.parametrize(
    ("column", "level", "passes", "fails", "what"),
    [
        ("cpu_percent", 20.0, 24.0, 26.0, "processor load"),
        ("swap_used_gib", 1.0, 0.4, 0.6, "swap in use"),
        ("gpu_clock_sm_mhz", 1000.0, 19.0, 21.0, "SM clock under load"),
    ],
)
def test_environments_ran_under_like_conditions(
    column: str, level: float, passes: float, fails: float, what: str
) -> None:
    def found(values: list[float], by: float) -> list[str]:
        other = [value + by for value in values]
        return sides(unequal_environments, column, values, other)

    base = [level, level + 0.01, level - 0.01]
    assert found(base, passes) == []
    (line,) = found(base, fails)
    assert what in line
    # Two runs a side say nothing of a mean, and neither do means within four standard errors.
    assert found(base[:2], fails) == []
    assert found([level - fails, level, level + fails], fails) == []


def test_runs_of_a_cell_start_alike() -> None:
    for warmer, is_found in ((20.0, False), (20.1, True)):
        runs = [
            a_run({"gpu_temp_start_celsius": 30.0 + by}, iteration=number)
            for number, by in enumerate((0.0, warmer), 1)
        ]
        lines = told(mixed_machines, a_view(*runs))
        assert ["start temperature" in line for line in lines] == [True] * is_found
