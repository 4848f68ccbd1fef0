"""The tables of size and power: what was simulated, before and now."""

from benchmarks import simulated
from sparkpub.site.pages import reference


def test_pages_show_what_was_simulated() -> None:
    for name, text in simulated.parts().items():
        assert reference.of(name) == text


def test_wrong_verdicts_stay_within_five_per_cent_in_every_required_scenario() -> None:
    """5 % and three standard errors: 0.65 % with 10,000 campaigns."""
    found = simulated.results()
    limit = 0.05 + 3 * (0.05 * 0.95 / found["campaigns"]) ** 0.5
    for row in found["rows"]:
        if row["required"]:
            assert (
                max(row["after"]["false_equivalent"], row["after"]["false_difference"])
                <= limit
            ), row


def test_verdicts_over_machines_stay_within_five_per_cent() -> None:
    """5 % and three standard errors: 0.9 % with 5,000 campaigns. A common effect replicates or is undecided, and
    opposite effects never replicate."""
    found = simulated.results("machines")
    limit = 0.05 + 3 * (0.05 * 0.95 / found["campaigns"]) ** 0.5
    for row in found["rows"]:
        assert max(row["false_equivalent"], row["false_difference"]) <= limit, row
        if row["between_sd_percent"] == 0:
            assert row["does_not_replicate"] <= limit, row
    for row in found["opposite"]:
        assert row["replicates"] <= limit, row
