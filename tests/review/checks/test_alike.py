"""What runs share that are pooled, and environments that are compared: else a difference is not the environment's."""

from collections.abc import Sequence
from typing import Any

import pytest

from sparkpub.record.record import (
    Container,
    Gate,
    Gpu,
    Machine,
    Observed,
    Plan,
    Reproducibility,
)
from sparkpub.review.checks.view import View
from sparkpub.review.dataset import CampaignData
from tests.review.checks.in_memory import a_run, a_view, quiet, said, told
from tests.review.machines import a_fleet, drawn, moved

NATIVE, CONTAINER = [{place: values} for place, values in drawn(100, 5, 1).items()]
MIXED, UNEQUAL = "mixed-machines", "unequal-environments"
AVERAGED = "are averaged although they differ in "


def elsewhere(
    cells: Any = NATIVE | CONTAINER, **iterations: Sequence[int]
) -> CampaignData:
    """A campaign of one machine, of which another one ran these iterations."""
    campaign = a_fleet({"a": cells}, machines="split")
    for environment, some in iterations.items():
        campaign = moved(campaign, "b", environment, some)
    return campaign


@pytest.mark.parametrize(
    ("campaign", "machines"),
    [
        # Each machine repeats all, or ran whole rounds.
        (a_fleet({"a": drawn(100, 5, 1), "b": drawn(140, 5, 2)}), None),
        (elsewhere(native=range(5, 9), container=range(5, 9)), None),
        (elsewhere(container=range(1, 9)), "a (native) and b (container)"),
        # Nobody planned to repeat it on each machine.
        (elsewhere(NATIVE, native=[7, 8]), "a and b (native)"),
    ],
)
def test_machines_measure_whole_blocks(
    campaign: CampaignData, machines: str | None
) -> None:
    lines = [line.partition(AVERAGED) for line in told(MIXED, View(campaign))]
    assert [line[2] for line in lines] == [f"machine: {machines}."] * bool(machines)
    assert all(line[0].startswith("error: ") for line in lines)


def on(machine: str, **fields: Any) -> dict[str, Any]:
    return {"machine": Machine(id=machine, **fields)}


def with_gpu(machine: str, name: str = "GB10", **fields: Any) -> dict[str, Any]:
    return on(machine, gpus=(Gpu(name=name, **fields),))


def seen(**facts: Any) -> dict[str, Any]:
    return {"observed": Observed(**facts)}


def known(**fields: Any) -> dict[str, Any]:
    return {"reproducibility": Reproducibility(sparkpub_version="1", **fields)}


def packages(**versions: str) -> dict[str, Any]:
    return known(packages=versions)


def variables(**values: str) -> dict[str, Any]:
    return known(variables=values)


def image(digit: str) -> dict[str, Any]:
    made = Container(engine="docker", image="e:1", image_id=f"sha256:{digit * 64}")
    return {"container": made}


def started_below(celsius: float) -> dict[str, Any]:
    name = "max_start_temp_celsius"
    return {"gates": (Gate(name=name, wanted=celsius, met=True, waited_seconds=0.0),)}


FACTS: list[tuple[dict[str, Any], dict[str, Any], str | None, str | None]] = [
    # What each machine has of its own is asked of each by itself, and what is not known differs from nothing.
    (on("m", driver="1"), on("m", driver="2"), "warning system", "warning system"),
    (on("m", driver="1"), on("n", driver="2"), "error machine", None),
    (with_gpu("m"), with_gpu("m", "H200"), "error GPU", "error GPU"),
    (on("m", power_mode="a"), on("m"), "warning limits", "warning limits"),
    ({"asked_of": {"memory": "4g"}}, {}, "warning limits", "warning limits"),
    (
        seen(engine="e"),
        seen(engine="e", quantization="q"),
        "error weights",
        "error weights",
    ),
    (seen(), seen(engine="e", quantization="q"), None, None),
    (seen(kv_cache_dtype="a"), seen(kv_cache_dtype="b"), "error eng", "warning eng"),
    (image("1"), image("2"), "error container image", None),
    (started_below(45), started_below(95), "warning gate", "warning gate"),
    (
        {"argv": ("t", "--x", "1")},
        {"argv": ("t",)},
        None,
        "warning command line",
    ),
    ({"argv": ("t", "--x", "/a")}, {"argv": ("t", "--x", "/b")}, None, None),
    (packages(a="1"), packages(a="2"), "warning software", "warning software"),
    (
        variables(VLLM_X="1", TERM="x"),
        variables(TERM="y"),
        "warning variable",
        "warning variable",
    ),
]


@pytest.mark.parametrize(("one", "other", "pooled", "compared"), FACTS)
def test_runs_share_what_the_facts_say(
    one: dict[str, Any], other: dict[str, Any], pooled: str | None, compared: str | None
) -> None:
    """As two runs of a cell, and as environments that are compared."""
    for check, second, words in (
        (MIXED, {"iteration": 2}, pooled),
        (UNEQUAL, {"environment": "container", "minute": 2}, compared),
    ):
        view = a_view(a_run(**one), a_run(**other, **second))
        lines = [
            line.replace(": ", " ", 1)
            .replace("Runs of m/native/w " + AVERAGED, "")
            .replace(
                "More than the environment differs in m/native/w and m/container/w: ",
                "",
            )
            for line in told(check, view)
        ]
        assert len(lines) == (words is not None), lines
        assert all(line.startswith(words or "") for line in lines), lines


@pytest.mark.parametrize(
    ("native", "container", "is_found"),
    [
        ([1000.0, 1000.1, 999.9], 1019.0, False),
        ([1000.0, 1000.1, 999.9], 1021.0, True),
        # Two runs a side say nothing of a mean, and neither do means within four standard errors.
        ([1000.0, 1000.1], 1021.0, False),
        ([979.0, 1000.0, 1021.0], 1021.0, False),
    ],
)
def test_environments_ran_with_like_clocks(
    native: list[float], container: float, is_found: bool
) -> None:
    samples = {}
    for side, by in (("native", 0.0), ("container", container - 1000)):
        for iteration, mhz in enumerate(native, 1):
            run = a_run(environment=side, iteration=iteration)
            samples[run] = quiet(gpu_clock_sm_mhz=mhz + by)
    view = a_view(*samples)
    for run, seen in samples.items():
        view.evidence.samples[run.run_id] = seen  # type: ignore[attr-defined]
    said(UNEQUAL, view, "SM clock under load" if is_found else None)


@pytest.mark.parametrize("order", ["interleaved", "as-published"])
def test_imported_environments_are_builds_and_compared_as_such(order: Any) -> None:
    """They are named by what tells builds apart: engine, weights, KV cache format, settings."""
    plan = {"plan": Plan(position=0, order=order)}
    one = a_run(**plan, **seen(engine_version="1", dtype="a", settings={"s": "1"}))
    two = seen(engine_version="2", dtype="b", settings={"s": "2"})
    other = a_run(environment="container", minute=2, **plan, **two)
    found = [line.partition(": ")[0] for line in told(UNEQUAL, a_view(one, other))]
    assert found == ["warning", "error", "warning"] * (order == "interleaved")
