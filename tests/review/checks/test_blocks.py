"""Which runs of several machines may be pooled: whole blocks, of one software."""

from collections.abc import Callable, Mapping

import pytest

from sparkpub.record.record import (
    Container,
    Gpu,
    Machine,
    Observed,
    Reproducibility,
)
from sparkpub.record.store import Stored
from sparkpub.review.checks.equality import unequal_environments
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.machines import mixed_machines
from sparkpub.review.checks.view import View
from sparkpub.review.dataset import CampaignData
from tests.review.machines import a_fleet, drawn, moved
from tests.review.statistics.campaigns import Cells

ROUNDS = range(1, 9)
BOTH = {"a": drawn(100, 5, 1), "b": drawn(140, 5, 2)}


def found(campaign: CampaignData) -> list[Finding]:
    return list(mixed_machines(View(campaign)))


def one_machine() -> CampaignData:
    return a_fleet({"a": drawn(100, 5, 1)}, machines="split")


def part(cells: Cells, environment: str) -> Cells:
    return {place: values for place, values in cells.items() if place[1] == environment}


def test_a_campaign_repeated_on_each_machine_is_pooled_rightly() -> None:
    campaign = a_fleet(BOTH)
    assert found(campaign) == []
    assert list(unequal_environments(View(campaign))) == []


def test_whole_rounds_may_go_to_another_machine() -> None:
    """The first machine went away after four rounds, and another one ran the rest."""
    campaign = one_machine()
    for environment in ("native", "container"):
        campaign = moved(campaign, "b", environment, range(5, 9))
    assert found(campaign) == []


@pytest.mark.parametrize(
    ("campaign", "why"),
    [
        (
            moved(one_machine(), "b", "container", ROUNDS),
            "On machine a only native ran",
        ),
        (
            moved(one_machine(), "b", "container", [3]),
            "On machine b only container ran",
        ),
        (
            a_fleet({**BOTH, "c": part(drawn(100, 0, 3), "native")}),
            "On machine c only native ran",
        ),
    ],
    ids=[
        "one environment on each",
        "one run elsewhere",
        "half a machine",
    ],
)
def test_machines_that_measured_no_whole_blocks(
    campaign: CampaignData, why: str
) -> None:
    (finding,) = [
        item for item in found(campaign) if item.evidence["what"] == "machine"
    ]
    assert finding.severity == "error"
    assert why in finding.message
    assert "they differ in machine" in finding.message


def test_a_round_that_a_machine_left_half_done_is_a_warning() -> None:
    """The first machine went away in the third round, and in the fifth the other one did."""
    campaign = one_machine()
    for environment, iterations in (("container", [3, 4]), ("native", [4, 5])):
        campaign = moved(campaign, "b", environment, iterations)
    (finding,) = found(campaign)
    assert (finding.severity, finding.evidence["what"]) == ("warning", "machine")
    text = "The environments of round 3 and round 5 ran on different machines"
    assert text in finding.message


def test_a_run_that_failed_on_one_machine_tears_no_round() -> None:
    """Each machine ran the third round natively, and only one of them in the container."""
    campaign = a_fleet(BOTH)
    runs = [
        run
        for run in campaign.runs
        if (run.record.machine.id, run.record.environment, run.record.iteration)
        != ("b", "container", 3)
    ]
    less = CampaignData(campaign.info, campaign.folder, tuple(runs))
    assert found(less) == []


def test_a_repeat_on_another_machine_tears_no_round() -> None:
    """Whole rounds from the fifth on are of the second machine; it also repeated a run of the first one's."""
    campaign = one_machine()
    for environment in ("native", "container"):
        campaign = moved(campaign, "b", environment, range(5, 9))
    first, *_, last = campaign.runs
    update = {
        "machine": last.record.machine,
        "iteration": 1,
        "run_id": "again",
        "repeat_of": first.run_id,
        "environment": "native",
    }
    again = Stored(last.record.model_copy(update=update), last.path)
    native = [
        run
        for run in campaign.runs
        if (run.record.environment, run.record.iteration) != ("native", 1)
    ]
    more = CampaignData(campaign.info, campaign.folder, (*native, again))
    assert found(more) == []


def test_a_cell_alone_is_pooled_over_machines_only_where_it_was_to_be_repeated() -> (
    None
):
    alone = {name: part(cells, "native") for name, cells in BOTH.items()}
    assert found(a_fleet(alone)) == []
    assert found(a_fleet({"a": alone["a"]}, machines="split")) == []
    half = moved(a_fleet({"a": alone["a"]}, machines="split"), "b", "native", [7, 8])
    (finding,) = found(half)
    assert "Nobody planned to repeat it" in finding.message


def changed(campaign: CampaignData, change: Callable[[Stored], Stored]) -> CampaignData:
    return CampaignData(
        campaign.info, campaign.folder, tuple(change(run) for run in campaign.runs)
    )


def with_driver(run: Stored) -> Stored:
    """Every machine has a driver of its own."""
    machine = run.record.machine
    driver = {"a": "580.95", "b": "580.105"}[machine.id or ""]
    update = {"machine": machine.model_copy(update={"driver": driver})}
    return Stored(run.record.model_copy(update=update), run.path)


def with_engine(run: Stored) -> Stored:
    """Every machine has an engine of its own, which is another thing to measure."""
    version = {"a": "1.0", "b": "1.1"}[run.record.machine.id or ""]
    update = {"observed": Observed(engine="e", engine_version=version)}
    return Stored(run.record.model_copy(update=update), run.path)


def with_another_kind(run: Stored) -> Stored:
    """One of the machines has another GPU."""
    machine = run.record.machine
    name = {"a": "NVIDIA GB10", "b": "NVIDIA H200"}[machine.id or ""]
    known = Machine(id=machine.id, gpus=(Gpu(name=name),))
    return Stored(run.record.model_copy(update={"machine": known}), run.path)


def test_machines_may_have_drivers_of_their_own_but_not_engines() -> None:
    assert found(changed(a_fleet(BOTH), with_driver)) == []
    (finding,) = found(changed(a_fleet(BOTH), with_engine))
    assert (finding.severity, finding.evidence["what"]) == ("error", "engine version")


def test_what_a_machine_has_of_its_own_is_not_told_beside_the_machine() -> None:
    """One run of the container went to another machine, with another driver: that is one cause."""
    torn = changed(moved(one_machine(), "b", "container", [3]), with_driver)
    (told,) = found(torn)
    assert (told.severity, told.evidence["what"]) == ("error", "machine")


def with_image(run: Stored) -> Stored:
    """The image of one name is another one on the second machine."""
    digit = {"a": "1", "b": "2"}[run.record.machine.id or ""]
    image = Container(engine="docker", image="e:1", image_id=f"sha256:{digit * 64}")
    return Stored(run.record.model_copy(update={"container": image}), run.path)


def test_machines_with_different_images_under_one_name_are_not_pooled() -> None:
    (finding,) = found(changed(a_fleet(BOTH), with_image))
    assert (finding.severity, finding.evidence["what"]) == ("error", "container image")
    assert len(finding.evidence["values"]) == 2


def with_packages(**by_machine: Mapping[str, str]) -> Callable[[Stored], Stored]:
    """Runs with the packages of their machine."""

    def with_own(run: Stored) -> Stored:
        packages = dict(by_machine[run.record.machine.id or ""])
        known = Reproducibility(sparkpub_version="1", packages=packages)
        update = {"reproducibility": known}
        return Stored(run.record.model_copy(update=update), run.path)

    return with_own


def test_machines_with_other_versions_of_a_package_are_told() -> None:
    """The environments of each machine are alike, so nothing but their pooling is wrong."""
    fleet = changed(
        a_fleet(BOTH),
        with_packages(
            a={"torch": "2.9.1", "vllm": "0.11", "numpy": "2.0"},
            b={"torch": "2.10.0", "vllm": "0.12", "numpy": "2.0"},
        ),
    )
    (finding,) = found(fleet)
    assert (finding.severity, finding.evidence["what"]) == ("warning", "software")
    assert finding.message.endswith(
        "differ in software: torch 2.10.0 and 2.9.1, and 1 more differ. Quarantine those that are not as planned, and "
        "re-run them."
    )
    assert finding.evidence["values"] == [
        "torch 2.10.0 and 2.9.1",
        "vllm 0.11 and 0.12",
    ]
    assert finding.cells == ("m/native/w", "m/container/w")
    assert list(unequal_environments(View(fleet))) == []


def test_a_package_that_one_machine_lacks_is_a_note() -> None:
    own = with_packages(a={"torch": "2.9.1", "flash-attn": "2.8"}, b={"torch": "2.9.1"})
    (finding,) = found(changed(a_fleet(BOTH), own))
    assert (finding.severity, finding.evidence["what"]) == ("info", "software")
    assert finding.evidence["values"] == ["flash-attn 2.8 and absent"]


def test_packages_that_nobody_knows_differ_from_none() -> None:
    """The second machine could not be asked; and sparkpub's own version is a fact of its own."""
    unknown = with_packages(a={"torch": "2.9.1"}, b={})
    assert found(changed(a_fleet(BOTH), unknown)) == []
    own = with_packages(a={"sparkpub": "1.0"}, b={"sparkpub": "1.1"})
    assert found(changed(a_fleet(BOTH), own)) == []


def test_a_package_that_was_upgraded_on_one_machine_is_told() -> None:
    def upgraded(run: Stored) -> Stored:
        version = "2.9.1" if run.record.iteration < 5 else "2.10.0"
        return with_packages(a={"torch": version})(run)

    (finding,) = found(changed(one_machine(), upgraded))
    assert (finding.severity, finding.evidence["what"]) == ("warning", "software")


def test_machines_of_another_kind_are_not_pooled() -> None:
    (finding,) = found(changed(a_fleet(BOTH), with_another_kind))
    assert (finding.severity, finding.evidence["what"]) == ("error", "GPU")


def test_a_driver_that_changed_on_one_machine_is_told() -> None:
    def upgraded(run: Stored) -> Stored:
        machine = run.record.machine
        driver = "580.95" if run.record.iteration < 5 else "580.105"
        update = {"machine": machine.model_copy(update={"driver": driver})}
        return Stored(run.record.model_copy(update=update), run.path)

    (finding,) = found(changed(a_fleet(BOTH), upgraded))
    assert (finding.severity, finding.evidence["what"]) == ("warning", "driver")


def test_workloads_of_a_model_on_different_machines_are_told() -> None:
    """Both workloads are whole blocks, but a line through them joins two machines."""
    first = one_machine()
    second = []
    for run in first.runs:
        elsewhere = run.record.machine.model_copy(update={"id": "b"})
        update = {
            "workload": "v",
            "machine": elsewhere,
            "run_id": f"{run.record.run_id}-v",
        }
        second.append(Stored(run.record.model_copy(update=update), run.path))
    both = CampaignData(first.info, first.folder, (*first.runs, *second))
    (finding,) = found(both)
    assert finding.severity == "warning"
    assert "The workloads of m ran on different machines" in finding.message
    assert finding.evidence["values"] == ["a", "b"]
