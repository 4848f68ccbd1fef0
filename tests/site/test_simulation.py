"""The tables of size and power: what was simulated, before and now."""

import json

import pytest

from benchmarks import machines, verdicts
from sparkpub.site.pages import reference, simulation


def test_every_required_case_is_shown_once_and_the_others_apart() -> None:
    for required in (True, False):
        names = [
            scenario.name
            for scenario in verdicts.SCENARIOS
            if scenario.required == required
        ]
        found = simulation.table("false_equivalent", required=required)
        assert found.header == ["order", "runs", "n = 5", "n = 10", "n = 20"]
        assert [tuple(row[:2]) for row in found.rows] == [
            (order, name) for order in verdicts.ORDERS for name in names
        ]


@pytest.mark.parametrize("kind", list(simulation.HEADINGS))
def test_a_cell_is_the_share_before_and_now(kind: simulation.Simulated) -> None:
    (row,) = [
        row
        for row in simulation.results()["rows"]
        if (row["scenario"], row["order"], row["n"]) == ("drifting", "blocked", 10)
    ]
    (shown,) = [
        shown
        for shown in simulation.table(kind).rows
        if shown[:2] == ["blocked", "drifting"]
    ]
    assert (
        shown[3] == f"{100 * row['before'][kind]:.1f} → {100 * row['after'][kind]:.1f}"
    )


def test_wrong_verdicts_stay_within_five_per_cent_in_every_required_scenario() -> None:
    """5 % and three standard errors: 0.65 % with 10,000 campaigns."""
    found = simulation.results()
    limit = 0.05 + 3 * (0.05 * 0.95 / found["campaigns"]) ** 0.5
    for row in found["rows"]:
        if row["required"]:
            assert (
                max(row["after"]["false_equivalent"], row["after"]["false_difference"])
                <= limit
            ), row


def test_the_page_says_what_was_simulated() -> None:
    text = reference.of("simulation")
    assert text.startswith(
        "10,000 campaigns of each kind (2,000 before, at commit `b52d585`); "
    )
    assert "the standard error of a share of 5 % is 0.22 %" in text
    assert "two spreads of a run, 0.5 and 2 %" in text
    assert "changes by −2 % from the first run to the last." in text
    for name, count in (("size", 2), ("power", 2), ("size-beyond", 2)):
        assert reference.of(name).count("Percent of campaigns: ") == count


def test_the_summary_is_of_the_same_simulation() -> None:
    document = json.loads((verdicts.harness.RESULTS / "verdicts.json").read_text())
    assert document["rows"] == [
        vars(row) for row in verdicts.rows(simulation.results())
    ]


# -- over several machines ---------------------------------------------------------------------------------------


def test_every_number_of_machines_and_spread_is_shown_once() -> None:
    shown = [tuple(row[:3]) for row in simulation.over_machines().rows]
    assert shown == [
        (str(number), str(rounds), f"{between:g} %")
        for number in machines.MACHINES
        for rounds in machines.ROUNDS
        for between in machines.BETWEEN
    ]
    table = reference.of("size-machines")
    assert table.count("\n| ") == len(shown) + 2  # the header and its rule


def test_verdicts_over_machines_stay_within_five_per_cent() -> None:
    """5 % and three standard errors: 0.9 % with 5,000 campaigns. A common effect replicates or is undecided, and
    opposite effects never replicate."""
    found = simulation.results("machines")
    limit = 0.05 + 3 * (0.05 * 0.95 / found["campaigns"]) ** 0.5
    for row in found["rows"]:
        assert max(row["false_equivalent"], row["false_difference"]) <= limit, row
        if row["between_sd_percent"] == 0:
            assert row["does_not_replicate"] <= limit, row
    for row in found["opposite"]:
        assert row["replicates"] <= limit, row


def test_the_page_says_what_was_simulated_of_machines() -> None:
    text = reference.of("simulation-machines")
    assert text.startswith("5,000 campaigns of each kind; the standard error")
    assert "a run varies by 0.5 %, the speeds of machines by 5 %" in text
    assert "an effect of 2 % and the others the opposite" in text


def test_the_summary_of_machines_is_of_the_same_simulation() -> None:
    document = json.loads((machines.harness.RESULTS / "machines.json").read_text())
    made = simulation.results("machines")
    assert document["rows"] == [vars(row) for row in machines.rows(made)]
