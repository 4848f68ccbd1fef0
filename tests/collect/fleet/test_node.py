"""What runs on a machine, without a cluster: what it keeps until the head has it, and who may measure."""

from pathlib import Path

import pytest

from sparkpub import __version__
from sparkpub.collect import journal, lock
from sparkpub.collect.bench import Order
from sparkpub.collect.environments.docker import Docker
from sparkpub.collect.fleet import accept, node
from sparkpub.collect.fleet.accept import common, refusals
from sparkpub.collect.fleet.cluster import Node
from sparkpub.collect.fleet.node import Delivery, StationOnNode
from sparkpub.collect.fleet.receiving import received, written
from sparkpub.collect.station import Station
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.record.errors import CollectError, RecordError
from sparkpub.record.record import Record
from sparkpub.record.store import read_folder
from tests.building import a_record
from tests.collect.collecting import a_matrix
from tests.collect.fleet.pretending import standing


def a_post(matrix: Matrix, monkeypatch: pytest.MonkeyPatch) -> StationOnNode:
    """A post in this process, whose surroundings stay as they are."""
    monkeypatch.setattr(node, "as_started", lambda: None)
    return StationOnNode(matrix.document())


def delivered(post: StationOnNode, matrix: Matrix) -> Delivery:
    (delivery,) = post.measure(Order(plan(matrix)[0])).deliveries
    return delivery


def test_a_run_stays_on_the_machine_until_the_head_has_it(
    own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = a_matrix()
    post = a_post(matrix, monkeypatch)
    assert post.open().deliveries == ()
    delivery = delivered(post, matrix)
    post.close()
    again = a_post(matrix, monkeypatch)
    assert again.open().deliveries == (delivery,)
    record = Record.model_validate_json(delivery.record)
    again.forget(record.stem)
    again.forget(record.stem)
    again.close()
    assert list((own_state / "fleet" / "small").iterdir()) == []


def test_a_run_that_was_on_when_its_machine_died_is_handed_over_as_interrupted(
    own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = a_matrix()
    folder = own_state / "fleet" / "small"
    folder.mkdir(parents=True)
    draft = a_record(
        run_id="small-native_m_w_iter01_20261120T100000Z",
        campaign="small",
        status="interrupted",
        status_reason=journal.KILLED,
        metrics={"output_throughput_tok_s": 1.0},
    )
    place = journal.begin(folder, draft)
    (place / "log").write_text("half a\n")
    post = a_post(matrix, monkeypatch)
    answer = post.open()
    post.close()
    (delivery,) = answer.deliveries
    record = received(delivery, "small")
    assert (record.run_id, record.status) == (draft.run_id, "interrupted")
    assert delivery.files == {f"{draft.stem}.log": b"half a\n"}
    assert any("as interrupted" in line for line in answer.said)


def test_a_machine_that_collects_already_is_not_taken(
    own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = a_post(a_matrix(), monkeypatch)
    with lock.locked("other", own_state):
        (problem,) = post.open().problem
    assert problem.startswith("another collector runs on this machine")
    assert post.open().problem == ()
    post.close()


def test_a_machine_where_nothing_can_start_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stopped(*_: object) -> None:
        raise CollectError("the gates are not met", where="gates", remedy="wait")

    matrix = a_matrix()
    post = a_post(matrix, monkeypatch)
    post.open()
    monkeypatch.setattr(Station, "measure", stopped)
    answer = post.measure(Order(plan(matrix)[0]))
    post.close()
    assert answer.deliveries == ()
    assert answer.problem == ("the gates are not met, gates; wait",)


def test_a_machine_that_is_told_to_finish_starts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matrix = a_matrix(gates={"cooldown": 60})
    post = a_post(matrix, monkeypatch)
    post.open()
    post.stop("Ctrl-C", now=False)
    answer = post.measure(Order(plan(matrix)[0]))
    post.close()
    assert (answer.why, answer.deliveries) == ("interrupted", ())


# -- what arrives at the head ----------------------------------------------------------------------------------


def test_what_arrives_is_written_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = a_matrix()
    post = a_post(matrix, monkeypatch)
    post.open()
    delivery = delivered(post, matrix)
    post.close()
    folder = tmp_path / "small"
    folder.mkdir()
    stored = written(folder, received(delivery, "small"), delivery)
    assert stored.path.read_text() == delivery.record
    for name, content in delivery.files.items():
        assert (folder / name).read_bytes() == content
    assert [found.record for found in read_folder(folder)] == [stored.record]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("damaged", "arrived damaged"),
        ("lost", "did not arrive"),
        ("stray", "is the name of another run's file"),
        ("campaign", "it is of campaign small"),
        ("torn", "a record that cannot be read"),
    ],
)
def test_what_did_not_arrive_whole_is_refused(
    change: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = a_matrix()
    post = a_post(matrix, monkeypatch)
    post.open()
    whole = delivered(post, matrix)
    post.close()
    name = next(name for name in whole.files if name.endswith(".log"))
    changed = {
        "damaged": Delivery(whole.record, {**whole.files, name: b"rate 6\n"}),
        "lost": Delivery(whole.record, {}),
        "stray": Delivery(whole.record.replace(name, f"x{name}"), whole.files),
        "campaign": whole,
        "torn": Delivery(whole.record[:-10], whole.files),
    }[change]
    with pytest.raises(RecordError, match=words):
        received(changed, "other" if change == "campaign" else "small")


def test_records_of_several_machines_have_several_addresses(
    own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each machine repeats the same iteration, perhaps within the same second."""
    matrix = a_matrix(machines="replicate")
    post = a_post(matrix, monkeypatch)
    post.open()
    run = plan(matrix, ["0123456789abcdef"])[0]
    (delivery,) = post.measure(Order(run)).deliveries
    post.close()
    record = received(delivery, "small")
    assert record.stem.endswith("_01234567")
    assert record.run_id == f"small-{record.stem}"


# -- who may measure -------------------------------------------------------------------------------------------

IMAGE = f"sha256:{'1' * 64}"
ALIKE = standing("m", driver="580.1", models={"a": "1"}, images={"box": IMAGE})


def refused(found: object, *others: object) -> list[str]:
    return list(refusals(found, common([ALIKE, ALIKE, *others])))  # type: ignore[arg-type,list-item]


def test_machines_that_are_alike_may_measure() -> None:
    assert refused(ALIKE) == []
    assert (
        refused(standing("n", driver="580.1")) == []
    )  # which has no such model: its obstacles say so


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"version": "0.0.1"}, "has sparkpub 0.0.1 (source "),
        ({"source": "f" * 12}, "(source ffffffffffff) and not"),
        ({"driver": "570.0"}, "has GPU driver 570.0, most machines 580.1"),
        ({"driver": None}, "has GPU driver none, most machines 580.1"),
        ({"models": {"a": "2"}}, "has other files of model a than most machines"),
        (
            {"images": {"box": f"sha256:{'2' * 64}"}},
            "has another image for environment box (sha256:222222222222) than most machines (sha256:111111111111)",
        ),
        ({"niceness": 15}, "15 steps nicer"),
        ({"niceness": 1}, "1 steps nicer"),
        ({"obstacles": ("no model at /x",)}, "no model at /x"),
    ],
)
def test_a_machine_that_differs_is_refused_in_one_line(
    fields: dict[str, object], words: str
) -> None:
    alike = {"driver": "580.1", "models": {"a": "1"}, "images": {"box": IMAGE}}
    odd = standing("n", **(alike | fields))
    (line,) = refused(odd, odd)
    assert words in line


@pytest.mark.parametrize("niceness", [0, -5])
def test_a_machine_that_puts_its_work_first_may_measure(niceness: int) -> None:
    assert refused(standing("n", driver="580.1", niceness=niceness)) == []


def test_a_machine_without_a_name_is_refused() -> None:
    (line,) = refused(standing(None, driver="580.1"))
    assert "set SPARKPUB_MACHINE" in line


def test_the_source_decides_and_not_the_version_alone() -> None:
    found = node.source_digest()
    assert len(found) == 12
    assert common([]) == accept.RequiredState(__version__, found, None, {}, {})


def test_a_machine_says_what_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(node, "as_started", lambda: None)
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 2}')
    models = {"m": {"id": "x/m", "path": str(tmp_path)}}
    before = node.standing(a_matrix(models=models).document())
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 3}')
    after = node.standing(a_matrix(models=models).document())
    assert before.obstacles == ()
    assert before.models.keys() == {"m"}
    assert before.models != after.models
    gone = node.standing(
        a_matrix(models={"m": {"id": "x/m", "path": "/nowhere"}}).document()
    )
    assert any("no model at /nowhere" in line for line in gone.obstacles)


def test_the_name_of_a_machine_is_in_its_id_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sparkpub.collect.machine.inventory import NAME_VARIABLE, facts

    without = facts(None)
    monkeypatch.setenv(NAME_VARIABLE, "kitchen")
    named = facts(None)
    monkeypatch.setenv(NAME_VARIABLE, "cellar")
    assert len({without.id, named.id, facts(None).id}) == 3
    assert "kitchen" not in named.model_dump_json()


@pytest.mark.parametrize(
    ("axes", "machines", "told"),
    [
        ({"models": 2, "environments": 1, "there": 2}, "split", 1),
        ({"models": 2, "environments": 1, "there": 2}, "replicate", 0),
        ({"models": 2, "environments": 2, "there": 2}, "split", 0),
        ({"models": 1, "environments": 1, "there": 2}, "split", 0),
        ({"models": 2, "environments": 1, "there": 1}, "split", 0),
    ],
)
def test_a_ranking_over_machines_is_told_before_it_is_measured(
    axes: dict[str, int], machines: str, told: int
) -> None:
    matrix = a_matrix(
        models={f"m{number}": {"id": "x/m"} for number in range(axes["models"])},
        environments={
            f"e{number}": {"type": "host"} for number in range(axes["environments"])
        },
        baseline="e0",
        machines=machines,
    )
    accepted = accept.Accepted(common([ALIKE]))
    for number in range(axes["there"]):
        there = Node(f"node{number}", "127.0.0.1", 1, 0)
        accept.admit(accepted, there, standing(f"m{number}", driver="580.1"))
    lines = accept.apart(matrix, accepted)
    assert len(lines) == told
    assert all("machines: replicate" in line for line in lines)


def test_a_machine_says_which_images_it_would_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node, "as_started", lambda: None)
    monkeypatch.setattr(Docker, "image_id", lambda _, options: f"of {options.image}")
    environments = {
        "native": {"type": "host"},
        "box": {"type": "docker", "image": "e:1"},
    }
    matrix = a_matrix(environments=environments, baseline="native")
    assert node.standing(matrix.document()).images == {"box": "of e:1"}
    assert node.standing(None).images == {}


def test_machines_are_held_to_what_most_have() -> None:
    odd = standing("n", driver="570", models={"a": "2"}, images={"box": "sha256:x"})
    wanted = common([odd, ALIKE, ALIKE])
    assert (wanted.driver, wanted.models) == ("580.1", {"a": "1"})
    assert wanted.images == {"box": IMAGE}
