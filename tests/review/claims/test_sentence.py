"""The sentence of a claim is made from its test: a published sentence that says something else would be a false one."""

from typing import Any

import pytest

from tests.review.claims.campaigns import Cells, a_dataset, verdict_on

CELLS: Cells = {
    (model, environment): [100.0, 101.0, 99.0, 100.5]
    for model in ("k", "m")
    for environment in ("native", "container")
}
METRIC = {"metric": "peak_memory_gib"}
COMPARED = METRIC | {"compare": "container / native", "scope": "each model"}
PEAK = "peak memory (engine-profiled)"


@pytest.mark.parametrize(
    ("fields", "expect", "says"),
    [
        (COMPARED, {"direction": "higher"}, f"{PEAK} is higher HERE for k and m"),
        (
            COMPARED,
            {"difference": [-3, -2]},
            f"{PEAK} is 2 to 3 GiB lower HERE for k and m",
        ),
        (
            COMPARED,
            {"difference_percent": [-2, 3]},
            f"{PEAK} is between 2 % lower and 3 % higher HERE for k and m",
        ),
        (
            COMPARED | {"scope": "any model"},
            {"ratio": [0.4, 0.6]},
            f"{PEAK} is 0.4 to 0.6 times as high in Docker as natively, for at least one model",
        ),
        (
            COMPARED | {"models": ["k"]},
            {"equivalent_within_percent": 1},
            f"{PEAK} is the same in Docker as natively, within 1 %, for k",
        ),
        (
            METRIC,
            {"holds": "mean > 1000.5"},
            f"the mean of {PEAK} is above 1,000.5 GiB",
        ),
        ({}, {"holds": "runs = 60"}, "the number of runs is 60"),
        (
            COMPARED,
            {"published": {"k": 30.83, "m": -2}},
            f"the difference of Docker from native in {PEAK} is +30.83 GiB for k and −2.00 GiB for m, as published",
        ),
        (
            COMPARED | {"statistic": "ratio", "decimals": 1},
            {"spans": [1.6, 2.7]},
            f"the ratio of Docker to native in {PEAK} goes, as published, from 1.6 to 2.7 over k and m",
        ),
        (
            METRIC | {"scope": "each model"},
            {"lowest": "k"},
            f"the mean of {PEAK} is lowest for k among k and m",
        ),
    ],
)
def test_it_says_what_is_tested(
    fields: dict[str, Any], expect: dict[str, Any], says: str
) -> None:
    data = a_dataset(CELLS, "peak_memory_gib")
    says = says.replace("HERE", "in Docker than natively")
    found = verdict_on(data, **fields, expect=expect)
    assert found.says == f"{says[:1].upper()}{says[1:]}, on the machine of c."


def test_it_says_of_which_runs() -> None:
    """What holds of some runs is not said of others."""
    data = a_dataset(CELLS, "peak_memory_gib")
    fields: dict[str, Any] = METRIC | {"expect": {"holds": "mean < 1"}}
    mean = f"The mean of {PEAK} is below 1 GiB"
    world = verdict_on(data, about="world", **fields)
    assert world.says == f"{mean}, on any machine."
    some = verdict_on(data, environments=["native"], workloads=["w"], **fields)
    assert some.says == f"{mean} (w), natively on the machine of c."
    everything = verdict_on(data, include="all", **fields)
    assert everything.says == f"{mean}, on the machine of c (all recorded runs)."
