"""The command of a server, and the prompts of its clients."""

import dataclasses

from sparkpub.plan.environments import Server
from sparkpub.plan.workloads.base import Command, RunCase

SERVER = Server(
    argv=(
        "serve",
        "{model_path}",
        "--load-format",
        "{load_format}",
        "--seed",
        "{seed}",
        "--port",
        "{port}",
    ),
    port=8200,
)
CASE = RunCase(
    "m",
    "x/m",
    "/models/m",
    None,
    random_weights=True,
    iteration=1,
    seed=7,
    workload_key="c8",
    server=SERVER,
)


def command_of(case: RunCase) -> Command:
    command = case.server_command
    assert command is not None
    return command


def test_the_command_is_filled_in() -> None:
    argv = (
        "serve",
        "/models/m",
        "--load-format",
        "dummy",
        "--seed",
        "7",
        "--port",
        "8200",
    )
    assert command_of(CASE).argv == argv
    trained = dataclasses.replace(CASE, random_weights=False)
    assert command_of(trained).argv[3] == "auto"
    assert SERVER.url == "http://127.0.0.1:8200"


def test_iterations_share_a_server_unless_its_command_names_them() -> None:
    second = dataclasses.replace(CASE, iteration=2)
    assert command_of(CASE) == command_of(second)
    restarted = Server(argv=("serve", "--name", "{iteration}"))
    first, second = (
        dataclasses.replace(case, server=restarted) for case in (CASE, second)
    )
    assert command_of(first) != command_of(second)


def test_no_two_runs_of_a_server_send_the_same_prompts() -> None:
    others = [{"workload_key": "c16"}, {"iteration": 2}, {"attempt": 2}, {"seed": 8}]
    seeds = {
        CASE.prompt_seed,
        *(dataclasses.replace(CASE, **other).prompt_seed for other in others),
    }
    assert len(seeds) == 5
    assert all(0 <= seed < 2**31 for seed in seeds)
