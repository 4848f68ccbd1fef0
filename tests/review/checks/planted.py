"""Faults of careless and of dishonest operators, planted in copies of real records by arithmetic.

A copy is one cell of a committed campaign in both environments, with log, report, requests and telemetry: one model's
decoding with our own payload (h200), llama-bench (h200-llama), or a vLLM server and its client (h200-vllm). A careless
operator leaves the sums of files as they were recorded; a dishonest one makes them anew (`reseal`), so that only the
contents can tell.
"""

import hashlib
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sparkpub.plan.workloads import WORKLOADS

DATA = Path(__file__).parents[3] / "data" / "comprehensive"
PATTERNS = {
    "h200": "*_dense7b_decode_iter??_*Z.json",
    "h200-llama": "*_d0_iter??_*Z.json",
    "h200-vllm": "*_serve-c8_iter??_*Z.json",
}
"""Campaign to the records that a copy holds."""
GB_PER_GIB = 2**30 / 1e9
FEW = 3
"""Iterations of each side in a copy that is not whole."""
Document = dict[str, Any]


class Copy:
    """A campaign in memory: `info` is campaign.json, `runs` the records in order of time, `files` their evidence."""

    def __init__(self, campaign: str = "h200") -> None:
        self.name = campaign
        source = DATA / campaign
        self.info: Document = json.loads((source / "campaign.json").read_text())
        paths = source.glob(PATTERNS[campaign])
        self.runs: list[Document] = [json.loads(path.read_text()) for path in paths]
        self.runs.sort(key=lambda run: str(run["started"]["value"]))
        matrix = self.info["matrix"]
        for run in self.runs:  # as today's collector records it
            run["plan"]["analysis"] = {
                "primary": matrix.get("primary", []),
                "margin_percent": matrix.get("equivalence_margin_percent", 1.0),
            }
        items = [item for run in self.runs for item in run["evidence"]]
        self.others: list[Copy] = []
        """Campaigns beside it."""
        self.files = {
            item["path"]: (source / item["path"]).read_bytes() for item in items
        }

    def of(self, environment: str) -> list[Document]:
        """The runs of one environment, in order of time."""
        return [run for run in self.runs if run["environment"] == environment]

    def read(self, run: Document, role: str) -> bytes:
        return self.files[_item(run, role)["path"]]

    def put(self, run: Document, role: str, content: bytes) -> None:
        """Other contents, with sums made anew."""
        self.files[_item(run, role)["path"]] = content
        self.reseal(run)

    def document(self, run: Document, role: str) -> Document:
        found: Document = json.loads(self.read(run, role))
        return found

    def reseal(self, run: Document) -> None:
        for item in run["evidence"]:
            content = self.files[item["path"]]
            item |= {
                "sha256": hashlib.sha256(content).hexdigest(),
                "bytes": len(content),
            }

    def rename(self, run: Document, **fields: Any) -> None:
        """The run under another iteration, environment or start, its id and its files with it."""
        run |= fields
        started = run["started"]["value"].replace("-", "").replace(":", "")
        stem = f"{run['environment']}_{run['model']}_{run['workload']}_iter{run['iteration']:02d}_{started}"
        run["run_id"] = f"{self.name}-{stem}"
        for item in run["evidence"]:
            content = self.files[item["path"]]
            item["path"] = f"{stem}.{item['path'].split('.', 1)[1]}"
            self.files[item["path"]] = content

    def write(self, data: Path) -> Path:
        folder = data / self.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "campaign.json").write_text(json.dumps(self.info))
        for run in self.runs:
            (folder / f"{run['run_id']}.json").write_text(json.dumps(run))
            for item in run["evidence"]:
                (folder / item["path"]).write_bytes(self.files[item["path"]])
        for other in self.others:
            other.write(data)
        return folder


def _item(run: Document, role: str) -> Document:
    found: Document = next(item for item in run["evidence"] if item["role"] == role)
    return found


@dataclass(frozen=True)
class Planted:
    """A fault in a copy of a committed campaign. `check` finds it; None where no check can, and `why` not."""

    what: str
    check: str | None
    plant: Callable[[Copy], None]
    why: str = ""
    campaign: str = "h200"
    whole: bool = True
    """Whether the fault needs every run of the campaign: a few are enough for most faults of a client."""
    committed: bool = False
    """Whether the campaign had been committed as it was."""
    alone = False

    @property
    def of(self) -> str:
        """What is copied."""
        return f"{self.campaign} whole={self.whole} committed={self.committed}"

    @property
    def is_possible(self) -> bool:
        """Whether the campaign is there."""
        return (DATA / self.campaign).is_dir()

    def bring(self, data: Path, *, planted: bool) -> None:
        """The campaign as it is, or with the fault."""
        copy = Copy(self.campaign)
        if not self.whole:
            copy.runs = [run for run in copy.runs if run["iteration"] <= FEW]
        if self.committed:
            folder = copy.write(data)
            _commit(folder)
            for file in folder.glob("*.*"):
                if file.is_file():
                    file.unlink()
        if planted:
            self.plant(copy)
        copy.write(data)


def _commit(folder: Path) -> None:
    """The folder as the first commit of a repository."""
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "runs"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    """Of which a copy is taken."""


def times(factor: float, run: Document, *names: str) -> None:
    """Metrics of a record multiplied."""
    for name in names:
        run["metrics"][name]["value"] *= factor


def shifted(text: str, **by: float) -> str:
    moment = datetime.fromisoformat(text.removesuffix("Z")) + timedelta(**by)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def shift(run: Document, **by: float) -> None:
    for end in ("started", "ended"):
        run[end]["value"] = shifted(run[end]["value"], **by)


RATES = (
    "output_throughput_tok_s",
    "total_throughput_tok_s",
    "request_throughput_req_s",
)


# -- figures ---------------------------------------------------------------------------------------------------


def edit_the_record(copy: Copy) -> None:
    times(1.05, copy.of("container")[2], "output_throughput_tok_s")


def edit_record_and_report(copy: Copy) -> None:
    run = copy.of("container")[2]
    report = copy.document(run, "report")
    for name in RATES:
        report["metrics"][name] *= 1.004
        run["metrics"][name]["value"] *= 1.004
    report["metrics"]["measured_time_ms"] /= 1.004
    run["metrics"]["measured_time_ms"]["value"] /= 1.004
    copy.put(run, "report", json.dumps(report).encode())


def edit_everything_but_the_requests(copy: Copy) -> None:
    for run in copy.of("container"):
        report = copy.document(run, "report")
        for name in RATES:
            report["metrics"][name] *= 1.05
            run["metrics"][name]["value"] *= 1.05
        report["metrics"]["measured_time_ms"] /= 1.05
        run["metrics"]["measured_time_ms"]["value"] /= 1.05
        copy.put(run, "report", json.dumps(report).encode())
        said = f"batch 8: {run['metrics']['output_throughput_tok_s']['value']:.1f} output tokens/s"
        copy.put(run, "log", b"7.616 B parameters, " + said.encode() + b"\n")


def edit_all_evidence_of_one_run(copy: Copy) -> None:
    """Rates and times of record, report, requests and log by one factor, all sums anew."""
    run = copy.of("container")[4]
    factor = 1.004
    report = copy.document(run, "report")
    for name, value in report["metrics"].items():
        report["metrics"][name] = _scaled(name, value, factor)
    copy.put(run, "report", json.dumps(report).encode())
    requests = copy.document(run, "requests")
    for request in requests["requests"]:
        request["ttft_ms"] /= factor
        request["latency_ms"] /= factor
    requests["itl_ms"] = [
        [step / factor for step in batch] for batch in requests["itl_ms"]
    ]
    copy.put(run, "requests", json.dumps(requests).encode())
    for name, metric in run["metrics"].items():
        if metric["source"] == "report":
            metric["value"] = _scaled(name, metric["value"], factor)
    said = f"batch 8: {run['metrics']['output_throughput_tok_s']['value']:.1f} output tokens/s"
    copy.put(run, "log", b"7.616 B parameters, " + said.encode() + b"\n")


def _scaled(name: str, value: float, factor: float) -> float:
    if name.endswith("_ms"):
        return value / factor
    return value * factor if name.endswith(("_tok_s", "_req_s")) else value


def seconds_for_milliseconds(copy: Copy) -> None:
    for run in copy.of("container"):
        times(1e-3, run, *(name for name in run["metrics"] if name.startswith("ttft_")))


def gigabytes_for_peak(copy: Copy) -> None:
    for run in copy.of("container"):
        times(GB_PER_GIB, run, "gpu_memory_peak_gib")


def energy_of_the_container_down(copy: Copy) -> None:
    for run in copy.of("container"):
        times(0.95, run, "gpu_energy_joule")


def rounded_figures(copy: Copy) -> None:
    for run in copy.of("container"):
        for name in RATES:
            run["metrics"][name]["value"] = round(run["metrics"][name]["value"])


def weights_moved(copy: Copy) -> None:
    for run in copy.of("native"):
        report = copy.document(run, "report")
        report["metrics"]["allocated_peak_gib"] = run["metrics"]["allocated_peak_gib"][
            "value"
        ] = 10.0
        copy.put(run, "report", json.dumps(report).encode())


# -- runs ------------------------------------------------------------------------------------------------------


def copy_an_iteration(copy: Copy) -> None:
    """The last iteration of an environment is the one before it, under a new id, ten seconds later."""
    *_, one, last = copy.of("native")
    again: Document = json.loads(json.dumps(one))
    again["plan"] = last["plan"]
    again["started"], again["ended"] = last["started"], last["ended"]
    copy.rename(again, iteration=last["iteration"])
    copy.runs[copy.runs.index(last)] = again


def native_as_container(copy: Copy) -> None:
    """A run of the container is a native one under another label, its report rewritten with spaces."""
    native, container = copy.of("native")[3], copy.of("container")[3]
    for name in ("metrics", "observed", "phases", "duration_seconds"):
        container[name] = json.loads(json.dumps(native[name]))
    for role in ("report", "requests", "log", "telemetry"):
        content = copy.read(native, role)
        copy.put(container, role, content + b"\n" if role != "telemetry" else content)
    shift(container, seconds=0)
    container["ended"]["value"] = shifted(
        container["started"]["value"], seconds=native["duration_seconds"]
    )


def keep_the_best(copy: Copy) -> None:
    """Every run of the container was measured twice, and the slower record deleted."""
    for run in copy.of("container"):
        run["plan"]["attempt"] = 2


def delete_the_first_runs(copy: Copy) -> None:
    copy.runs = [run for run in copy.runs if run["iteration"] > 2]


def delete_and_renumber(copy: Copy) -> None:
    """The first two iterations are gone, the others count from one, and the matrix asks for eight."""
    delete_the_first_runs(copy)
    for run in copy.runs:
        copy.rename(run, iteration=run["iteration"] - 2)
    copy.info["matrix"]["iterations"] = 8


def delete_the_slowest(copy: Copy) -> None:
    """The slowest run of the container, and nothing else."""
    slowest = min(
        copy.of("container"),
        key=lambda run: float(run["metrics"]["output_throughput_tok_s"]["value"]),
    )
    copy.runs.remove(slowest)


def swap_labels(copy: Copy) -> None:
    """Half of the pairs of environments change sides, all their files with them."""
    for native, container in zip(
        copy.of("native")[::2], copy.of("container")[::2], strict=True
    ):
        for run, name in ((native, "container"), (container, "native")):
            copy.rename(run, environment=name)


def no_repeats(copy: Copy) -> None:
    """An inconvenient run is quarantined."""
    run = copy.of("container")[6]["run_id"]
    copy.info["quarantined"] = [{"run": run, "reason": "it looked wrong"}]


# -- evidence --------------------------------------------------------------------------------------------------


def swap_logs(copy: Copy) -> None:
    one, other = copy.of("native")[1:3]
    first, then = copy.read(one, "log"), copy.read(other, "log")
    copy.put(one, "log", then)
    copy.put(other, "log", first)


def swap_reports(copy: Copy) -> None:
    one, other = copy.of("native")[1], copy.of("container")[1]
    first, then = copy.read(one, "report"), copy.read(other, "report")
    copy.put(one, "report", then)
    copy.put(other, "report", first)


def edit_the_report(copy: Copy) -> None:
    """The report, and the sum with it."""
    run = copy.of("native")[4]
    report = copy.document(run, "report")
    report["metrics"]["output_throughput_tok_s"] *= 1.02
    copy.put(run, "report", json.dumps(report).encode())


def other_telemetry(copy: Copy) -> None:
    one, other = copy.of("native")[1], copy.of("native")[7]
    copy.put(one, "telemetry", copy.read(other, "telemetry"))


def telemetry_of_another_campaign(copy: Copy) -> None:
    run = copy.of("native")[1]
    other = next((DATA / "h200").glob("native_dense32b_decode_iter01_*.telemetry.csv"))
    copy.put(run, "telemetry", other.read_bytes())


def telemetry_cut(copy: Copy) -> None:
    run = copy.of("native")[1]
    rows = copy.read(run, "telemetry").splitlines(keepends=True)
    copy.put(run, "telemetry", b"".join(rows[: len(rows) // 3]))


def power_scaled(copy: Copy) -> None:
    """The power of the samples of one environment, by a tenth, and not the record's."""
    for run in copy.of("container"):
        table = copy.read(run, "telemetry").decode().splitlines()
        place = table[0].split(",").index("gpu_power_watt")
        rows = [line.split(",") for line in table[1:]]
        for row in rows:
            row[place] = f"{0.9 * float(row[place]):.3f}" if row[place] else ""
        copy.put(
            run,
            "telemetry",
            "\n".join([table[0], *(",".join(row) for row in rows), ""]).encode(),
        )


# -- time ------------------------------------------------------------------------------------------------------


def time_zone(copy: Copy) -> None:
    """The container's clock was on local time, and a Z was put behind it."""
    for run in copy.of("container"):
        shift(run, hours=1)
        copy.rename(run)


def ends_before_it_starts(copy: Copy) -> None:
    run = copy.of("native")[2]
    run["started"], run["ended"] = run["ended"], run["started"]
    copy.rename(run)


def shorter_than_measured(copy: Copy) -> None:
    copy.of("native")[2]["duration_seconds"] = 1.0


def id_of_another_time(copy: Copy) -> None:
    shift(copy.of("native")[9], days=1)


def blocks_called_interleaved(copy: Copy) -> None:
    """All native runs first. Records, names and the tools' own clocks say so; the plan says that they took turns."""
    for number, run in enumerate(copy.of("native") + copy.of("container")):
        began = shifted("2026-11-20T10:00:00Z", minutes=2 * number)
        late = datetime.fromisoformat(began) - datetime.fromisoformat(
            run["started"]["value"]
        )
        run["started"]["value"] = began
        run["ended"]["value"] = shifted(began, seconds=run["duration_seconds"])
        report = copy.document(run, "report")
        report["phases_epoch"] += late.total_seconds()
        copy.put(run, "report", json.dumps(report).encode())
        copy.rename(run)


def nearly_blocks(copy: Copy) -> None:
    """The same, but for one pair."""
    blocks_called_interleaved(copy)
    one, other = copy.of("native")[9], copy.of("container")[0]
    one["started"], other["started"] = other["started"], one["started"]
    one["ended"], other["ended"] = other["ended"], one["ended"]


# -- what was asked for ----------------------------------------------------------------------------------------


def other_image(copy: Copy) -> None:
    for run in copy.of("container")[5:]:
        run["container"]["image_id"] = "sha256:" + 64 * "0"


def image_by_another_name(copy: Copy) -> None:
    for run in copy.of("container"):
        run["container"]["image"] = "sparkpub/host:2"


def other_batch(copy: Copy) -> None:
    for run in copy.of("container"):
        run["requested"]["workload"]["batch_size"] = 16


def other_batch_observed(copy: Copy) -> None:
    copy.of("container")[0]["observed"]["batch_size"] = 16


def fewer_requests(copy: Copy) -> None:
    for run in copy.of("container"):
        run["observed"]["requests"] = 40


def shorter_prompts(copy: Copy) -> None:
    for run in copy.of("container"):
        run["observed"]["input_tokens_mean"] = 64.0


def without_warmup(copy: Copy) -> None:
    """The command line says what the request does not."""
    for run in copy.of("native"):
        run["argv"][run["argv"].index("--warmup") + 1] = "0"


def other_matrix(copy: Copy) -> None:
    """The matrix was changed after the runs."""
    copy.info["matrix"]["workloads"]["decode"]["output_tokens"] = 64


def other_model(copy: Copy) -> None:
    """One environment measured another model under the same name."""
    for run in copy.of("container"):
        run["observed"]["config_sha256"] = 64 * "a"


def other_order(copy: Copy) -> None:
    for run in copy.runs:
        run["plan"]["position"] = 100 - run["plan"]["position"]


# -- conditions ------------------------------------------------------------------------------------------------


def on_machine(**fields: Any) -> Callable[[Copy], None]:
    """Facts of the machine of all runs in the container."""

    def plant(copy: Copy) -> None:
        for run in copy.of("container"):
            run["machine"] |= fields

    return plant


def other_power_limit(copy: Copy) -> None:
    for run in copy.of("container"):
        run["machine"]["gpus"][0]["power_limit_watt"] = 500.0


def other_package(copy: Copy) -> None:
    for run in copy.of("container"):
        run["reproducibility"]["packages"]["torch"] = "2.12.0"


def other_collector(copy: Copy) -> None:
    for run in copy.of("container"):
        run["reproducibility"]["sparkpub_commit"] = "1234567"


def memory_limit(copy: Copy) -> None:
    copy.info["matrix"]["environments"]["container"]["memory"] = "8g"
    for run in copy.of("container"):
        run["requested"]["environment"]["memory"] = "8g"


def warmer_start(copy: Copy) -> None:
    """The container's runs began 15 °C warmer, by record and samples."""
    for run in copy.of("container"):
        run["metrics"]["gpu_temp_start_celsius"]["value"] += 15
        _column(
            copy,
            run,
            "gpu_temp_celsius",
            lambda time, value: value + 15 if time < 0.3 else value,
        )


def lower_clock(copy: Copy) -> None:
    for run in copy.of("container"):
        _column(copy, run, "gpu_clock_sm_mhz", lambda _, value: 0.9 * value)


def tenant(copy: Copy) -> None:
    """Another process held 4 GiB before the container's run, by record and samples."""
    run = copy.of("container")[3]
    run["memory"]["baseline"]["gpu_used_gib"] += 4
    run["metrics"]["gpu_memory_peak_gib"]["value"] += 4
    _column(copy, run, "gpu_memory_used_gib", lambda _, value: value + 4)


def _column(
    copy: Copy, run: Document, name: str, change: Callable[[float, float], float]
) -> None:
    """A column of a run's telemetry changed, by time and value, its sum made anew."""
    header, *body = copy.read(run, "telemetry").decode().splitlines()
    place = header.split(",").index(name)
    rows = [line.split(",") for line in body]
    for row in rows:
        if row[place]:
            row[place] = f"{change(float(row[0]), float(row[place])):.10g}"
    copy.put(
        run,
        "telemetry",
        "\n".join([header, *(",".join(row) for row in rows), ""]).encode(),
    )


def _slower_batches(copy: Copy, run: Document, factors: list[float]) -> None:
    """The batches of a run slowed down by a factor each, with every figure that follows from them."""
    requests = copy.document(run, "requests")
    report = copy.document(run, "report")
    before = sum(
        {
            request["batch"]: request["latency_ms"] for request in requests["requests"]
        }.values()
    )
    for request in requests["requests"]:
        request["latency_ms"] *= factors[request["batch"]]
        request["ttft_ms"] *= factors[request["batch"]]
    requests["itl_ms"] = [
        [step * factor for step in batch]
        for batch, factor in zip(requests["itl_ms"], factors, strict=True)
    ]
    copy.put(run, "requests", json.dumps(requests).encode())
    after = sum(
        {
            request["batch"]: request["latency_ms"] for request in requests["requests"]
        }.values()
    )
    for name in (*RATES, "measured_time_ms"):
        report["metrics"][name] = _scaled(name, report["metrics"][name], before / after)
    copy.put(run, "report", json.dumps(report).encode())
    said = (
        f"batch 8: {report['metrics']['output_throughput_tok_s']:.1f} output tokens/s"
    )
    copy.put(run, "log", b"7.616 B parameters, " + said.encode() + b"\n")
    _reread(copy, run)


def _reread(copy: Copy, run: Document) -> None:
    """The figures of the record taken from its evidence anew."""

    files = {role: copy.read(run, role) for role in ("report", "requests")}
    answer = WORKLOADS["generate"].parse(copy.read(run, "log"), files, None)
    for name, value in answer.metrics.items():
        if name in run["metrics"]:
            run["metrics"][name]["value"] = value.value


def cold_start(copy: Copy) -> None:
    """The first batch of one run takes twice as long."""
    _slower_batches(copy, copy.of("native")[6], [2, 1, 1, 1, 1, 1])


PLANTED = [
    Planted("a rate in the record is 5 % up", "metric-mismatch", edit_the_record),
    Planted(
        "rates and time of record and report agree, the log does not",
        "metric-mismatch",
        edit_record_and_report,
    ),
    Planted(
        "rates, time and log of all runs agree, the requests do not",
        "inconsistent-report",
        edit_everything_but_the_requests,
    ),
    Planted(
        "everything of one run, 0.4 % faster",
        None,
        edit_all_evidence_of_one_run,
        "every file was rewritten before its commit: only a signature made on the machine could tell",
    ),
    Planted(
        "times to first token in seconds", "metric-mismatch", seconds_for_milliseconds
    ),
    Planted("the sampler's peak in GB", "foreign-telemetry", gigabytes_for_peak),
    Planted(
        "5 % less energy in the container's records",
        "foreign-telemetry",
        energy_of_the_container_down,
    ),
    Planted("rates rounded to whole numbers", "metric-mismatch", rounded_figures),
    Planted(
        "less memory allocated than the weights take",
        "memory-bookkeeping",
        weights_moved,
    ),
    Planted("an iteration is a copy of another", "copied-evidence", copy_an_iteration),
    Planted(
        "a native run is called one of the container",
        "copied-evidence",
        native_as_container,
    ),
    Planted("the first attempts are gone", "time-consistency", keep_the_best),
    Planted("the first two iterations are gone", "unbalanced", delete_the_first_runs),
    Planted(
        "gone, renumbered, and the matrix changed",
        "not-as-requested",
        delete_and_renumber,
    ),
    Planted("the slowest run is gone", "unbalanced", delete_the_slowest),
    Planted("half of the pairs change their labels", "not-as-requested", swap_labels),
    Planted(
        "an inconvenient run is quarantined",
        None,
        no_repeats,
        "quarantine is the operator's right; it is shown with its reason wherever the figures are",
    ),
    Planted("two logs are swapped", "metric-mismatch", swap_logs),
    Planted("two reports are swapped", "metric-mismatch", swap_reports),
    Planted("a report and its sum are edited", "metric-mismatch", edit_the_report),
    Planted("telemetry of another run of the cell", "copied-evidence", other_telemetry),
    Planted(
        "telemetry of another model's run",
        "foreign-telemetry",
        telemetry_of_another_campaign,
    ),
    Planted("two thirds of the samples are gone", "telemetry-gap", telemetry_cut),
    Planted(
        "a tenth less power in the samples of one environment",
        "foreign-telemetry",
        power_scaled,
    ),
    Planted("local time called UTC in one environment", "time-consistency", time_zone),
    Planted("a run ends before it starts", "time-consistency", ends_before_it_starts),
    Planted(
        "a run is shorter than what it measured",
        "time-consistency",
        shorter_than_measured,
    ),
    Planted(
        "a record is of another day than its id", "time-consistency", id_of_another_time
    ),
    Planted(
        "blocks of time called interleaved", "order-confound", blocks_called_interleaved
    ),
    Planted("blocks of time but for one pair", "order-confound", nearly_blocks),
    Planted("half of a cell ran in another image", "mixed-machines", other_image),
    Planted(
        "the image has another name than the matrix says",
        "not-as-requested",
        image_by_another_name,
    ),
    Planted("another batch size was asked for", "not-as-requested", other_batch),
    Planted(
        "another batch size was observed", "not-as-requested", other_batch_observed
    ),
    Planted("fewer requests were measured", "not-as-requested", fewer_requests),
    Planted("prompts of half the length", "not-as-requested", shorter_prompts),
    Planted(
        "no warming up, by the command line", "unequal-environments", without_warmup
    ),
    Planted("the matrix was changed afterwards", "not-as-requested", other_matrix),
    Planted("another model in one environment", "identity", other_model),
    Planted("positions that the plan does not give", "not-as-requested", other_order),
    Planted(
        "another kernel in one environment",
        "unequal-environments",
        on_machine(kernel="6.19.0"),
    ),
    Planted(
        "another machine in one environment",
        "mixed-machines",
        on_machine(id="0123456789abcdef"),
    ),
    Planted(
        "another power mode in one environment",
        "unequal-environments",
        on_machine(power_mode="maxn"),
    ),
    Planted(
        "another power limit in one environment",
        "unequal-environments",
        other_power_limit,
    ),
    Planted("another torch in one environment", "unequal-environments", other_package),
    Planted(
        "another collector in one environment", "unequal-environments", other_collector
    ),
    Planted(
        "a limit of memory in one environment", "unequal-environments", memory_limit
    ),
    Planted("one environment began 15 °C warmer", "unequal-environments", warmer_start),
    Planted(
        "one environment ran at a tenth less clock", "unequal-environments", lower_clock
    ),
    Planted("somebody held 4 GiB of the GPU", "foreign-load", tenant),
    Planted("the first batch of one run takes twice as long", "warmed-up", cold_start),
]
