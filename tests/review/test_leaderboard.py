"""What is ranked against what, in which place, with which caveats."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sparkpub.record.record import Machine, Origin, Phase, Record
from sparkpub.review.checks import Finding
from sparkpub.review.leaderboard import (
    EFFICIENCY,
    Row,
    Standings,
    billions,
    places,
    standings,
)
from sparkpub.review.results import Results
from sparkpub.review.statistics.describe import describe
from tests.leaderboards import (
    LOAD,
    PROMPT,
    TPUT,
    a_finding,
    dataset_of,
    reviewed,
    runs_of,
)
from tests.review.machines import a_fleet, drawn
from tests.review.statistics.campaigns import a_dataset


def ranked(
    *records: Record,
    out: Mapping[str, str] | None = None,
    findings: Sequence[Finding] = (),
    **info: Any,
) -> Standings:
    """The standings of campaigns made of these records; `out` are runs that do not count."""
    review = reviewed(dataset_of(*records, **info), out=out, findings=findings)
    return standings(Results(review))


def models(rows: Sequence[Row]) -> list[str]:
    return [row.setup.model for row in rows]


def the_row(found: Standings) -> Row:
    (row,) = found.rows
    return row


# -- what is ranked together -------------------------------------------------------------------------------


def test_a_row_has_the_figures_of_its_cell() -> None:
    row = the_row(ranked(*runs_of("m", [100.0, 102.0, 107.0])))
    # (100 + 102 + 107) / 3
    assert row.figures[TPUT].mean == pytest.approx(103.0)
    assert row.figures[TPUT].n == 3
    assert row.runs == ("c-m-native-1", "c-m-native-2", "c-m-native-3")
    assert row.load.label == "512 tokens in, 128 tokens out, 8 at once"


@pytest.mark.parametrize(
    "change",
    [
        {"input_tokens": 256},
        {"output_tokens": 256},
        {"concurrency": 16},
        {"depth": 4096},
        {"concurrency": None, "request_rate": 4.0},
        {"concurrency": None, "requests": 8},
    ],
)
def test_another_load_is_another_group(change: dict[str, Any]) -> None:
    found = ranked(
        *runs_of("m", [100.0]), *runs_of("n", [200.0], load={**LOAD, **change})
    )
    (section,) = found.sections
    assert sorted(models(group.rows) for group in section.groups) == [["m"], ["n"]]


def test_groups_of_a_tool_stand_in_the_order_of_their_loads() -> None:
    records = []
    for at_once in (16, 1, 8):
        load = {**LOAD, "concurrency": at_once}
        records += runs_of(f"m{at_once}", [100.0], load=load)
    (section,) = ranked(*records).sections
    assert [group.load.at_once for group in section.groups] == [1, 8, 16]


def test_another_tool_is_another_section_and_the_one_with_the_most_rows_is_first() -> (
    None
):
    other = {**LOAD, "type": "openai-endpoint", "mode": None}
    found = ranked(
        *runs_of("a", [1.0], load=other), *runs_of("b", [1.0]), *runs_of("c", [1.0])
    )
    assert [section.tool for section in found.sections] == [
        "vllm-bench serve",
        "openai-endpoint",
    ]


def test_settings_of_the_engine_are_ranked_against_each_other() -> None:
    (section,) = ranked(
        *runs_of("m", [100.0]),
        *runs_of("n", [90.0], load={**LOAD, "extra_args": ["--enforce-eager"]}),
    ).sections
    assert [models(group.rows) for group in section.groups] == [["m", "n"]]


def test_campaigns_are_ranked_together_where_the_load_is_the_same_and_known() -> None:
    both = [*runs_of("m", [100.0]), *runs_of("n", [90.0], campaign="d")]
    (section,) = ranked(*both).sections
    assert [models(group.rows) for group in section.groups] == [["m", "n"]]
    unknown = {**LOAD, "input_tokens": None}
    (section,) = ranked(
        *runs_of("m", [100.0], load=unknown),
        *runs_of("n", [90.0], campaign="d", load=unknown),
    ).sections
    assert [models(group.rows) for group in section.groups] == [["m"], ["n"]]
    assert [group.apart for group in section.groups] == [
        "The records do not contain the full load, so these rows of campaign c are not compared with others.",
        "The records do not contain the full load, so these rows of campaign d are not compared with others.",
    ]


def test_one_name_of_two_models_makes_two_groups_that_say_why() -> None:
    (section,) = ranked(
        *runs_of("a", [3.0], model_id="x/L", observed={"parameters": 8_000_000_000}),
        *runs_of("b", [2.0], model_id="y/L", observed={"parameters": 8_079_000_000}),
        *runs_of("c", [1.0], model_id="z/L", observed={"parameters": 1_100_000_000}),
        *runs_of("d", [4.0]),
    ).sections
    groups = {
        tuple(row.cell[0] for row in group.rows): group for group in section.groups
    }
    # 8.079 is within 1 % of 8.0, so it is the same model with its output matrix counted twice.
    assert set(groups) == {("a", "b"), ("c",), ("d",)}
    assert groups["d",].apart == ""
    assert groups["c",].apart == (
        "L is the name of different models here (1.10 B and 8.00 B parameters); this is the one with 1.10 B."
    )


@pytest.mark.parametrize(
    ("parameters", "words"),
    [(999_999_999, "1,000.0 M"), (10**9, "1.00 B"), (4_100_000, "4.1 M")],
)
def test_numbers_of_parameters_in_words(parameters: int, words: str) -> None:
    assert billions(parameters) == words


# -- what is left out --------------------------------------------------------------------------------------


def test_what_cannot_be_ranked_is_left_out_with_the_reason() -> None:
    matmul = runs_of("g", [5.0], metric="matmul_gflop_s")
    failed = runs_of("f", [5.0])
    zero = runs_of("z", [0.0])
    found = ranked(
        *matmul, *failed, *zero, out={record.run_id: "failed" for record in failed}
    )
    assert found.sections == ()
    assert found.left_out == {
        ("c", ("g", "native", "w")): "no token rate was measured",
        ("c", ("f", "native", "w")): "none of its runs counts",
        ("c", ("z", "native", "w")): "no token rate was measured",
    }


def test_a_cell_that_was_declared_and_not_run_is_left_out() -> None:
    matrix = {
        "campaign": "c",
        "title": "C",
        "models": {"m": {"id": "x/m"}, "n": {"id": "x/n"}},
        "environments": {"native": {"type": "host"}},
        "workloads": {"w": {"type": "matmul"}},
        "iterations": 1,
    }
    found = ranked(*runs_of("m", [1.0]), matrix=matrix)
    assert found.left_out == {("c", ("n", "native", "w")): "declared, but not run yet"}


# -- places ------------------------------------------------------------------------------------------------


def test_places_leave_open_what_the_intervals_leave_open() -> None:
    steady = [99.9, 100.0, 100.1, 100.0]
    figures = [
        describe([value + shift for value in steady]) for shift in (0, 0.05, -50, -90)
    ]
    scattered = describe([5.0, 60.0, 20.0, 70.0])
    every = [*figures, scattered]
    # The first two overlap; the scattered one overlaps with those of about 50 and 10 and lies below the first two.
    assert [places(figure, every) for figure in every] == [
        (1, 2),
        (1, 2),
        (3, 4),
        (4, 5),
        (3, 5),
    ]


def test_rows_are_ordered_by_their_means_and_measured_by_the_largest() -> None:
    (section,) = ranked(*runs_of("m", [50.0]), *runs_of("n", [200.0])).sections
    first, second = section.groups[0].rows
    assert (first.setup.model, first.places, first.share) == ("n", (1, 1), 1.0)
    assert (second.setup.model, second.places, second.share) == ("m", (2, 2), 0.25)


def test_the_place_of_a_single_run_is_approximate() -> None:
    (section,) = ranked(*runs_of("m", [50.0]), *runs_of("n", [99.0, 100.0])).sections
    by_model = {row.setup.model: row.is_approximate for row in section.rows}
    assert by_model == {"m": True, "n": False}


def test_a_row_in_doubt_has_no_place_and_takes_none() -> None:
    (section,) = ranked(
        *runs_of("m", [300.0]),
        *runs_of("n", [200.0]),
        findings=[a_finding("roofline", "error"), a_finding("roofline", "error")],
    ).sections
    ranks = [(row.setup.model, row.places, row.share) for row in section.rows]
    assert ranks == [("n", (1, 1), pytest.approx(2 / 3)), ("m", None, None)]
    assert section.rows[1].doubts == ("roofline",)


@pytest.mark.parametrize(
    ("check", "severity"),
    [("roofline", "warning"), ("checksum", "error"), ("roofline", "info")],
)
def test_only_errors_of_meaning_take_the_place(check: str, severity: str) -> None:
    row = the_row(ranked(*runs_of("m", [1.0]), findings=[a_finding(check, severity)]))
    assert row.places == (1, 1)


def test_prompts_alone_are_ranked_by_their_rate() -> None:
    load = {**LOAD, "output_tokens": 0}
    (section,) = ranked(
        *runs_of("m", [10.0], metric=PROMPT, load=load),
        *runs_of("n", [20.0], metric=PROMPT, load=load),
    ).sections
    assert models(section.rows) == ["n", "m"]
    assert section.groups[0].lead.name == PROMPT
    assert [column.name for column in section.columns] == ["prompt"]


# -- columns -----------------------------------------------------------------------------------------------


def test_columns_are_those_with_figures_in_their_order() -> None:
    measured = {
        PROMPT: 1.0,
        "ttft_p50_ms": 5.0,
        "ttft_mean_ms": 6.0,
        "gpu_memory_peak_gib": 7.0,
    }
    (section,) = ranked(*runs_of("m", [1.0], metrics=measured)).sections
    columns = [(column.name, column.metric.name) for column in section.columns]
    assert columns == [
        ("generation", TPUT),
        ("prompt", PROMPT),
        ("ttft", "ttft_p50_ms"),
        ("memory", "gpu_memory_peak_gib"),
    ]


def test_a_section_shows_the_definition_of_memory_that_most_rows_have() -> None:
    host, gpu = {"system_peak_gib": 1.0}, {"gpu_memory_peak_gib": 2.0}
    most = ranked(
        *runs_of("a", [1.0], metrics=host),
        *runs_of("b", [1.0], metrics=host),
        *runs_of("c", [1.0], metrics=gpu),
    )
    assert most.sections[0].columns[-1].metric.name == "system_peak_gib"
    tie = ranked(*runs_of("a", [1.0], metrics=host | gpu))
    assert tie.sections[0].columns[-1].metric.name == "gpu_memory_peak_gib"
    ours = {"peak_memory_gib": 3.0, "weights_gib": 1.0}
    leading = ranked(*runs_of("a", [1.0], metrics=ours | gpu))
    assert leading.sections[0].columns[-1].metric.name == "peak_memory_gib"


def test_tokens_per_joule_are_those_of_the_measured_phase() -> None:
    energy = {"gpu_energy_joule": 2048.0, "startup_seconds": 20.0}
    seen = {"requests": 64, "output_tokens_mean": 128.0, "measured_seconds": 10.0}
    phases = (Phase(name="measure", start_seconds=20.0, end_seconds=30.2),)
    whole = runs_of("m", [1.0, 1.0], metrics=energy, observed=seen, phases=phases)
    row = the_row(ranked(*whole))
    # 64 requests of 128 tokens are 8,192 tokens; 8,192 / 2,048 J = 4 tok/J.
    assert row.figures[EFFICIENCY.name].mean == 4.0
    assert EFFICIENCY.name not in the_row(ranked(*runs_of("m", [1.0]))).figures


def test_several_versions_in_a_cell_are_all_named() -> None:
    records = [
        *runs_of("m", [1.0], observed={"engine_version": "0.24"}),
        *runs_of("m", [1.0, 1.0], observed={"engine_version": "0.23"})[1:],
    ]
    assert the_row(ranked(*records)).setup.engine_version == "0.23 / 0.24"
    same = runs_of("m", [1.0, 1.0], observed={"engine_version": "0.24"})
    assert the_row(ranked(*same)).setup.engine_version == "0.24"


# -- caveats -----------------------------------------------------------------------------------------------


def test_a_row_without_anything_against_it_has_no_caveat() -> None:
    found = ranked(
        *runs_of("m", [1.0, 1.1, 1.2, 1.3]), findings=[a_finding("throttled", "info")]
    )
    assert the_row(found).caveats == ()


def test_a_row_carries_everything_against_it_the_gravest_first() -> None:
    records = runs_of(
        "m",
        [1.0, 1.1],
        observed={"random_weights": True},
        machine=Machine(),
        origin=Origin(title="elsewhere"),
    )
    found = ranked(
        *records,
        out={records[1].run_id: "timeout"},
        findings=[
            a_finding("drift", "warning"),
            a_finding("drift", "warning"),
            a_finding("identity", "warning", cell=None),
            a_finding("checksum", "error"),
            a_finding("drift", "warning", cell="other/native/w"),
        ],
    )
    caveats = [(caveat.kind, caveat.text) for caveat in the_row(found).caveats]
    assert caveats == [
        ("error", "1 error"),
        ("warning", "2 warnings"),
        ("excluded", "1 of 2 runs excluded"),
        ("random", "random weights"),
        ("imported", "imported"),
        ("few", "only 1 run"),
    ]
    assert the_row(found).caveats[1].why == "drift and identity"


def test_a_campaign_with_an_origin_is_imported() -> None:
    found = ranked(*runs_of("m", [1.0] * 4), origin=Origin(title="elsewhere"))
    assert [caveat.kind for caveat in the_row(found).caveats] == ["imported"]


@pytest.mark.parametrize(("runs", "few"), [(3, ["only 3 runs"]), (4, [])])
def test_fewer_runs_than_a_statement_needs_are_few(runs: int, few: list[str]) -> None:
    values = [1.0 + number / 10 for number in range(runs)]
    row = the_row(ranked(*runs_of("m", values)))
    assert [caveat.text for caveat in row.caveats] == few


def test_a_cell_of_several_machines_says_so() -> None:
    """Its figure is the mean over machines, and its interval that between them."""
    fleet = a_fleet({"a": drawn(100, 5, 1), "b": drawn(140, 5, 2)})
    found = reviewed(a_dataset(fleet))
    board = standings(Results(found))
    assert len(board.rows) == 2
    for row in board.rows:
        (caveat,) = [item for item in row.caveats if item.kind == "machines"]
        assert caveat.text == "2 machines"
        assert "8 on a and 8 on b" in caveat.why
        figure = row.figures[TPUT]
        assert figure.ci95 is not None
        assert figure.ci95[0] < 0 < figure.ci95[1]


def on(machine: str | None, kind: str = "dgx-spark") -> dict[str, Any]:
    """Fields of runs of that machine."""
    return {"machine": Machine(id=machine, kind=kind)}


def flagged(found: Standings) -> dict[str, list[str]]:
    """Model to what its row says of machines."""
    return {
        row.setup.model: [item.text for item in row.caveats if item.kind == "machines"]
        for row in found.rows
    }


def test_rows_of_different_machines_of_one_kind_say_so() -> None:
    rates = [100.0, 101.0, 102.0, 103.0]
    found = ranked(*runs_of("m", rates, **on("a")), *runs_of("n", rates, **on("b")))
    assert flagged(found) == {"m": ["1 of 2 machines"], "n": ["1 of 2 machines"]}
    (group,) = found.sections[0].groups
    (caveat,) = group.rows[0].caveats
    assert "does not include the difference between machines" in caveat.why


@pytest.mark.parametrize(
    ("one", "other", "load"),
    [
        (on("a"), on("a"), LOAD),
        (on("a"), on("b", "gb200"), LOAD),
        (on("a"), on("b"), {**LOAD, "concurrency": 16}),
        (on("a"), on(None), LOAD),
    ],
    ids=["one machine", "another kind", "another group", "a machine without a name"],
)
def test_rows_that_the_table_tells_apart_say_nothing_of_machines(
    one: dict[str, Any], other: dict[str, Any], load: dict[str, Any]
) -> None:
    rates = [100.0, 101.0, 102.0, 103.0]
    found = ranked(
        *runs_of("m", rates, **one), *runs_of("n", rates, load=load, **other)
    )
    assert flagged(found) == {"m": [], "n": []}


def test_a_row_of_one_machine_says_so_beside_one_of_several() -> None:
    """Three machines of one kind: the model `m` ran on two of them, `n` on the third."""
    rates = [100.0, 101.0, 102.0, 103.0]
    moved = [
        record.model_copy(update={"machine": Machine(id="b", kind="dgx-spark")})
        if record.iteration > 2
        else record
        for record in runs_of("m", rates, **on("a"))
    ]
    found = ranked(*moved, *runs_of("n", rates, **on("c")))
    assert flagged(found) == {"m": ["2 machines"], "n": ["1 of 3 machines"]}
