"""From a running server to a campaign: look who answers, write the matrix that measures it, and run that.

Nothing is measured here. What is looked up becomes a matrix with the workload `llama-benchy`, and `session.collect`
runs it as it runs any other.
"""

import math
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import yaml

from sparkpub.collect.books import Books, Outcome, known_records
from sparkpub.collect.gates import NONE
from sparkpub.collect.obstacles import refuse_obstacles
from sparkpub.collect.progress import duration
from sparkpub.plan import matrix as matrices
from sparkpub.plan.address import base_of
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.plan.recipes import key_of
from sparkpub.plan.workloads import server_pages
from sparkpub.plan.workloads.llama_benchy import LlamaBenchyOptions
from sparkpub.plan.workloads.payload import pages
from sparkpub.record.errors import CollectError, UsageError
from sparkpub.record.record import Record
from sparkpub.record.settings import DEFAULT_DATA
from sparkpub.record.store import Stored
from sparkpub.record.text import counted, extent, number, rounded
from sparkpub.review.statistics.estimate import MINIMUM_RUNS, mean_of

ENVIRONMENT = "running"
"""A server that runs already: nothing says how it was started."""
TEMPLATE_ROOM = 64
"""Tokens of the context that are left for the template of a chat."""
LEAST_REQUESTS = 5
"""Requests of a run, where these take no longer than `LONGEST_WAVES`: the time to one first token says little."""
LONGEST_WAVES = 10.0
"""Seconds that repeated waves of a run may take, as if each request had the server for itself."""
RUN_SECONDS = 5.0
"""What a run of llama-benchy takes besides its requests: to start, to look at the server and to cut the prompts."""
USUAL_PACE = 0.02
"""Seconds of a token, where nothing says how fast the server is."""
MATRICES = Path("matrix")
_ENDS_ITS_ANSWERS = (None, "Ollama", "LM Studio")
"""Engines that do not ignore the end-of-sequence token where they are asked to, and those that nobody knows."""


@dataclass(frozen=True)
class Wanted:
    """What to measure: every length of the prompt at every number of requests at once, in rounds."""

    input_tokens: Sequence[int] = (512, 2048)
    output_tokens: int = 128
    concurrency: Sequence[int] = (1, 10)
    rounds: int = 4
    """As many as `check` wants of a cell."""


@dataclass(frozen=True)
class FoundServer:
    """A server that answers, or whose weights are said to be random."""

    url: str
    model: str
    """The model's name on the server."""
    identity: Mapping[str, Any]
    """What its pages say, as fields of `Observed`."""
    answer: Mapping[str, Any] = field(default_factory=dict)
    random_weights: bool = False

    @property
    def engine(self) -> str:
        """Engine and version, in words."""
        name = self.identity.get("engine", "an OpenAI-compatible server")
        version = self.identity.get("engine_version")
        return f"{name} {version}" if version else str(name)

    @property
    def weights(self) -> str:
        """The format of the weights; empty where nothing says it."""
        known = self.identity.get("quantization") or self.identity.get("dtype")
        return str(known or "")

    @property
    def context(self) -> int | None:
        """Most tokens of a request."""
        said = self.identity.get("settings", {}).get("max_model_len", "")
        return int(said) if said.isdecimal() else None

    @property
    def pace(self) -> float | None:
        """Seconds of a token in the answer that was looked at; None where nothing says it."""
        tokens, seconds = self.answer.get("tokens"), self.answer.get("seconds")
        return seconds / tokens if tokens and seconds else None

    def waves(self, output_tokens: int, clients: int) -> int:
        """How often a run sends its requests, by the speed of the answer that was looked at: once where nothing says
        how fast the server is."""
        if self.pace is None:
            return 1
        fitting = LONGEST_WAVES / (output_tokens * self.pace)
        return max(1, min(math.ceil(LEAST_REQUESTS / clients), int(fitting)))

    @property
    def key(self) -> str:
        """The model's key in the matrix."""
        return key_of(self.model)

    @property
    def lines(self) -> list[str]:
        """For people."""
        said = [f"{self.url}: {self.engine}", f"model {self.model}"]
        if self.weights:
            said.append(f"weights {self.weights}")
        if self.context is not None:
            said.append(f"context {self.context:,}")
        shown = pages.told(str(self.answer.get("text", "")), 100)
        found = [", ".join(pages.told(part) for part in said)]
        if shown:
            found.append(f"answer: {shown}")
        problem = self.answer.get("problem")
        if problem is not None and not self.random_weights:
            found.append(
                f"warning: the answer makes no sense: {problem}; the figures will say so and are not ranked"
            )
        return found


def look(
    address: str, model: str | None = None, *, random: bool = False
) -> FoundServer:
    """Who answers at an address, with a short answer of the model.

    Raises UsageError where no server is, or none of the model, or one of several, and CollectError where the model
    gives no answer.
    """
    try:
        url = base_of(address)
    except ValueError as error:
        raise UsageError(str(error), remedy="give host and port") from None
    try:
        server = pages.look(
            url, model, "--model", random_weights=random, is_chosen=True
        )
    except pages.NoAnswerError as error:
        remedy = "look at the server's log; --random-weights declares weights that are random on purpose"
        raise CollectError(str(error), where=url, remedy=remedy) from None
    except pages.StopError as error:
        raise UsageError(str(error)) from None
    server["metrics_after"] = pages.counters(url)
    identity, answer = server_pages.identity(server), server["answer"]
    return FoundServer(url, server["model"], identity, answer, random)


def declare(
    found: FoundServer,
    wanted: Wanted,
    campaign: str,
    tokenizer: str | None = None,
    gpus: Sequence[int] = (),
) -> dict[str, Any]:
    """The matrix that measures a server. Raises UsageError where no prompt fits into its context."""
    lengths = fitting(found, wanted)
    title = f"{found.key} on {found.engine}"
    model: dict[str, Any] = {"id": found.model}
    path = found.identity.get("model_path")
    if isinstance(path, str) and Path(path).is_absolute() and os.access(path, os.F_OK):
        model["path"] = path
    if found.random_weights:
        model["random_weights"] = True
    host: dict[str, Any] = {"type": "host"}
    if gpus:
        host["gpus"] = list(gpus)
    text = str(found.answer.get("text", ""))
    workloads = {}
    for tokens in lengths:
        for clients in wanted.concurrency:
            workload = {
                "type": "llama-benchy",
                "url": found.url,
                "model": found.model,
                "input_tokens": tokens,
                "output_tokens": wanted.output_tokens,
                "concurrency": clients,
                "repetitions": found.waves(wanted.output_tokens, clients),
            }
            if tokenizer is not None:
                workload["tokenizer"] = tokenizer
            if found.identity.get("engine") in _ENDS_ITS_ANSWERS:
                workload["exact_output"] = False
            if "paris" not in text.lower() and not found.random_weights:
                workload["coherence"] = False
            workloads[f"in{tokens}-out{wanted.output_tokens}-c{clients}"] = workload
    return {
        "campaign": campaign,
        "title": title,
        "models": {found.key: model},
        "environments": {ENVIRONMENT: host},
        "workloads": workloads,
        "iterations": wanted.rounds,
        # The server holds memory and GPU, and minutes are no time to cool down in.
        "gates": dict(NONE),
        "telemetry": {
            "interval": 0.2
        },  # one request on a fast GPU is over within a second
        "retries": 2,
    }


def takes(found: FoundServer, matrix: Matrix) -> str:
    """When first figures are there and when all of them, as if each request had the server for itself."""
    seconds = 0.0
    for load in matrix.workloads.values():
        assert isinstance(load, LlamaBenchyOptions)
        tokens = (load.repetitions + 1) * load.output_tokens  # one wave is a warm-up
        seconds += RUN_SECONDS + tokens * (found.pace or USUAL_PACE)
    rounds = counted(matrix.iterations, "round")
    return f"first figures in about {duration(seconds)}, {rounds} in about {duration(matrix.iterations * seconds)}"


def fitting(found: FoundServer, wanted: Wanted) -> list[int]:
    """The lengths of prompts that fit into the server's context. Raises UsageError where none does."""
    if found.context is None:
        return list(wanted.input_tokens)
    room = found.context - wanted.output_tokens - TEMPLATE_ROOM
    lengths = [tokens for tokens in wanted.input_tokens if tokens <= room]
    if not lengths:
        what = f"no prompt fits: the server's context has {found.context} tokens"
        remedy = "choose shorter ones with --prompt and --output"
        raise UsageError(what, where=found.url, remedy=remedy)
    return lengths


def left_out(found: FoundServer, wanted: Wanted) -> str:
    """Which prompts of those wanted are too long for the context, in words; empty where all of them fit."""
    fit = fitting(found, wanted)
    long = [f"{tokens:,}" for tokens in wanted.input_tokens if tokens not in fit]
    return (
        f"too long for the context: prompts of {', '.join(long)} tokens" if long else ""
    )


def free_name(found: FoundServer, data: Path) -> str:
    """A name that no campaign of the folder has: `quick-MODEL-DATE`, with a number where it is taken."""
    day = datetime.now(UTC).strftime("%Y%m%d")
    name = base = f"quick-{found.key}-{day}"
    count = 1
    while (data / name).exists() or (MATRICES / f"{name}.yaml").exists():
        count += 1
        name = f"{base}-{count}"
    return name


def write_matrix(document: Mapping[str, Any]) -> tuple[Path, Matrix]:
    """The matrix file, and the matrix in it. Raises CollectError before it writes where something stands in the way: a
    client that is missing, several GPUs of which none is named."""
    path = MATRICES / f"{document['campaign']}.yaml"
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    matrix = matrices.parse(text, str(path))
    refuse_obstacles(matrix, plan(matrix))
    path.parent.mkdir(parents=True, exist_ok=True)
    comment = "# Written by `sparkpub quick`. `sparkpub collect` with this file continues or repeats it.\n"
    path.write_text(comment + text, encoding="utf-8")
    return path, matrix


class Rounds(Books):
    """Books that say what a user of the server gets: in the first round after each run, then after each round."""

    def keep(self, machine: str | None, stored: Stored) -> None:
        """See `Books.keep`."""
        super().keep(machine, stored)
        done = stored.record.iteration
        records = [stored.record] if done == 1 else self.records
        if done == 1 or all(run.iteration != done for run in self.todo):
            good = [record for record in records if record.status == "ok"]
            for line in answers(self.matrix, good, done):
                self.progress.line(line)


def answers(matrix: Matrix, records: Sequence[Record], done: int) -> Iterator[str]:
    """What a user gets after so many rounds, for each length of the prompt and number of users."""
    before = None
    for name, load in matrix.workloads.items():
        assert isinstance(load, LlamaBenchyOptions)
        lengths = (load.input_tokens, load.output_tokens)
        of_load = [record for record in records if record.workload == name]
        rates = _values(of_load, "output_throughput_tok_s")
        if not rates:
            continue
        if lengths != before:
            rounds = f"round {done} of {matrix.iterations}"
            yield "{}, {:,} tokens in and {:,} out:".format(rounds, *lengths)
        before = lengths
        rate = with_interval(rates)
        first = ""
        if waits := _values(of_load, "ttft_p50_ms"):
            first = f"first token in {number(fmean(waits) / 1000, 2)} s, then "
        if load.concurrency == 1:
            yield f"  one user: {first}{rate} tokens a second"
        else:
            each = rounded(fmean(rates) / load.concurrency)
            yield f"  {load.concurrency} users: {first}{rate} tokens a second in all, {each} for each"


def _values(records: Sequence[Record], metric: str) -> list[float]:
    values = (record.value(metric) for record in records)
    return [value for value in values if value is not None]


def with_interval(values: Sequence[float]) -> str:
    """The mean, with its 95 % interval once there are enough rounds."""
    mean = rounded(fmean(values))
    if len(values) < MINIMUM_RUNS:
        return mean
    known = mean_of(np.array([values]))
    ends = (known["ci95_low"][0], known["ci95_high"][0])
    return f"{mean} (95 % interval {extent(ends, 3)})"


def measured(matrix: Matrix, data: Path) -> list[Record]:
    """The good runs of the campaign, in the order of the plan."""
    records = known_records(data / matrix.campaign)
    good = [record for record in records if record.status == "ok"]
    return sorted(good, key=lambda record: record.plan.position)


def next_steps(matrix: Matrix, path: Path, data: Path, outcome: Outcome) -> list[str]:
    """Where everything lies, and the next command."""
    folder = data / matrix.campaign
    lines = [f"campaign {folder}"]
    if outcome.lacking:
        again = "" if outcome.left else " --retry-failed"
        return [*lines, f"next: {continuing(path, data)}{again}"]
    place = shlex.quote(str(folder))
    return [*lines, f"review: sparkpub check {place}", f"page: sparkpub serve {place}"]


def continuing(path: Path, data: Path) -> str:
    """The command that goes on with a matrix."""
    command = f"sparkpub collect {shlex.quote(str(path))}"
    if data != DEFAULT_DATA:
        command += f" --data {shlex.quote(str(data))}"
    return command


def document(
    matrix: Matrix, path: Path, records: Sequence[Record], outcome: Outcome
) -> dict[str, Any]:
    """`{"campaign", "matrix", "runs": [id], "left": N}`; `stats --json` has the figures."""
    return {
        "campaign": matrix.campaign,
        "matrix": str(path),
        "runs": [record.run_id for record in records],
        "left": outcome.left,
    }
