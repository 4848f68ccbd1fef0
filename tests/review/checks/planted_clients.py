"""Faults that a client tool makes before its numbers reach a record, and faults that both sides of a comparison share.

A client's fault is in its report, in the table that it prints, and in the record
that is made of both: no sum of a file and no second reading differs. The imports go through the importer.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sparkpub.collect.imports import import_results
from sparkpub.collect.imports.given import Given
from sparkpub.plan.workloads import WORKLOADS
from tests.review.checks.planted import Copy, Document, Planted
from tests.review.checks.planted_unread import edit_llama

CHAT = "aiperf/vllm-chat-stream-c2/profile_export_aiperf.json"
WHOLE = "aiperf/vllm-nostream-c4/profile_export_aiperf.json"
REPEATED = "llama-bench/warmup-r5.json"
IMPORTS = Path(__file__).parents[2] / "data" / "imports"
KINDS = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL"}
STATISTICS = {
    "mean": "Mean",
    "median": "Median",
    "p50": "P50",
    "p90": "P90",
    "p95": "P95",
    "p99": "P99",
}
PRINTED = {
    "completed": "Successful requests:",
    "failed": "Failed requests:",
    "duration": "Benchmark duration (s):",
    "total_input_tokens": "Total input tokens:",
    "total_output_tokens": "Total generated tokens:",
    "request_throughput": "Request throughput (req/s):",
    "output_throughput": "Output token throughput (tok/s):",
    "total_token_throughput": "Total token throughput (tok/s):",
} | {
    f"{statistic}_{kind}_ms": f"{said} {name} (ms):"
    for kind, name in KINDS.items()
    for statistic, said in STATISTICS.items()
}
"""What a report of vLLM holds, and the words before it in the table of the log."""
Edit = Callable[[Document], None]


def of_client(
    what: str,
    plant: Callable[[Copy], None],
    campaign: str = "h200-vllm",
    check: str = "inconsistent-report",
    *,
    whole: bool = False,
    committed: bool = False,
) -> Planted:
    """A fault in a copy of a few runs of a client."""
    return Planted(
        what, check, plant, campaign=campaign, whole=whole, committed=committed
    )


@dataclass(frozen=True)
class ImportFault:
    """A fault in a file before it is imported."""

    what: str
    kind: str
    source: str
    edit: Edit
    check: str = "inconsistent-report"

    alone = False
    is_possible = True
    why = ""

    @property
    def of(self) -> str:
        """What is imported."""
        return self.source

    def bring(self, data: Path, *, planted: bool) -> None:
        """The file as it is, or with the fault, as a campaign in `data`."""
        source = IMPORTS / self.source
        text = source.read_text()
        if planted:
            documents = [json.loads(part) for part in _documents(source, text)]
            for document in documents:
                for item in document if isinstance(document, list) else [document]:
                    self.edit(item)
            text = "\n".join(json.dumps(document) for document in documents)
        folder = data.with_name(f"{data.name}-source")
        target = folder / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        given = Given(
            "c",
            environment="native",
            machine="h200",
            model="tiny-llama" if self.kind == "sglang" else None,
            say=lambda _: None,
        )
        import_results(self.kind, folder, data, given)


def _documents(source: Path, text: str) -> list[str]:
    return text.splitlines() if source.suffix == ".jsonl" else [text]


# -- a client of vLLM -------------------------------------------------------------------------------------------


def client(copy: Copy, edit: Edit, environments: tuple[str, ...]) -> None:
    """The runs of these environments as their client would have written them."""
    workload = WORKLOADS["vllm-bench"]
    for environment in environments:
        for run in copy.of(environment):
            report = copy.document(run, "report")
            edit(report)
            log = copy.read(run, "log").decode()
            for name, words in PRINTED.items():
                shown = report[name] if name in _COUNTS else f"{report[name]:.2f}"
                log = re.sub(
                    rf"^({re.escape(words)} +)[\d.]+", rf"\g<1>{shown}", log, flags=re.M
                )
            copy.put(run, "log", log.encode())
            copy.put(run, "report", json.dumps(report).encode())
            options = workload.options.model_validate(run["requested"]["workload"])
            files = {"report": copy.read(run, "report")}
            answer = workload.parse(log.encode(), files, options)
            assert answer.metrics
            for metric, value in answer.metrics.items():
                if metric in run["metrics"]:
                    run["metrics"][metric]["value"] = value.value
            run["observed"] |= answer.observed.model_dump(
                mode="json",
                include={
                    "requests",
                    "input_tokens_mean",
                    "output_tokens_mean",
                    "measured_seconds",
                },
            )
            seconds = answer.observed.measured_seconds
            if seconds is not None and run.get("phases"):
                startup, measure = run["phases"]
                measure["start_seconds"] = max(measure["end_seconds"] - seconds, 0.0)
                startup["end_seconds"] = measure["start_seconds"]


_COUNTS = ("completed", "failed", "total_input_tokens", "total_output_tokens")


def one_side(edit: Edit) -> Callable[[Copy], None]:
    return lambda copy: client(copy, edit, ("container",))


def both_sides(edit: Edit) -> Callable[[Copy], None]:
    return lambda copy: client(copy, edit, ("native", "container"))


def scaled(factor: float, *names: str) -> Edit:
    def edit(report: Document) -> None:
        for name in names:
            report[name] *= factor

    return edit


def each(kind: str, *statistics: str) -> tuple[str, ...]:
    return tuple(f"{each}_{kind}_ms" for each in statistics or STATISTICS)


LATENCIES = tuple(name for kind in KINDS for name in each(kind))
RATES = ("request_throughput", "output_throughput", "total_token_throughput")


def rates_from_totals(report: Document) -> None:
    seconds = report["duration"]
    report["request_throughput"] = report["completed"] / seconds
    report["output_throughput"] = report["total_output_tokens"] / seconds
    tokens = report["total_input_tokens"] + report["total_output_tokens"]
    report["total_token_throughput"] = tokens / seconds


def survivors_only(report: Document) -> None:
    """Latencies of the faster half alone; everything else of all requests."""
    for name in (*each("e2el"), *each("ttft")):
        report[name] *= 0.88


def starving(report: Document) -> None:
    """The client cannot keep eight requests in flight: a third of the time it has none to send."""
    report["duration"] *= 1.5
    rates_from_totals(report)


def half_the_concurrency(report: Document) -> None:
    """Four requests at once under the label of eight: half the time each, at the same throughput."""
    for name in LATENCIES:
        report[name] *= 0.5


def ttft_of_the_server(report: Document) -> None:
    """Without the queue and the way back, which the latency has."""
    for name in each("ttft"):
        report[name] *= 0.35


def warmup_in_the_duration(report: Document) -> None:
    report["duration"] += 0.72
    rates_from_totals(report)


def without_the_first_tokens(report: Document) -> None:
    seconds = report["duration"] - 8 * report["mean_ttft_ms"] / 1e3
    report["output_throughput"] = report["total_output_tokens"] / seconds


def until_the_last_request_started(report: Document) -> None:
    report["duration"] -= report["mean_e2el_ms"] / 1e3
    rates_from_totals(report)


def rounded(report: Document) -> None:
    for name in LATENCIES:
        report[name] = round(report[name] / 10) * 10.0


def retried(report: Document) -> None:
    """Tokens of requests that were sent again count twice."""
    report["total_output_tokens"] = round(report["total_output_tokens"] * 1.019)
    rates_from_totals(report)


def first_token_in_tpot(report: Document) -> None:
    for statistic in STATISTICS:
        report[f"{statistic}_tpot_ms"] = report[f"{statistic}_e2el_ms"] / 128


def two_tokens_a_chunk(report: Document) -> None:
    for name in each("itl"):
        report[name] *= 2


def input_left_out(report: Document) -> None:
    report["total_token_throughput"] = report["output_throughput"]


def characters_for_tokens(report: Document) -> None:
    report["total_output_tokens"] *= 4
    rates_from_totals(report)
    for name in (*each("tpot"), *each("itl")):
        report[name] /= 4


def cached_input_not_counted(report: Document) -> None:
    report["total_input_tokens"] = round(report["total_input_tokens"] * 0.2)
    rates_from_totals(report)


def lost_requests(report: Document) -> None:
    """Four requests never came back and are neither completed nor failed."""
    report["completed"] = 60
    report["total_output_tokens"] = 60 * 128
    rates_from_totals(report)


def failed_counted(report: Document) -> None:
    """Sixteen refused requests are part of the rate."""
    report["request_throughput"] = 80 / report["duration"]


def a_longer_clock(report: Document) -> None:
    """A duration that does not fit in the run, and rates to match."""
    report["duration"] *= 7
    rates_from_totals(report)


def median_for_mean(report: Document) -> None:
    report["mean_itl_ms"] = report["median_itl_ms"]
    report["mean_tpot_ms"] = report["median_tpot_ms"]


def first_chunk_is_empty(report: Document) -> None:
    """The first token is taken for empty: the second one's time stands as TTFT."""
    for statistic in STATISTICS:
        report[f"{statistic}_ttft_ms"] += 20 * report[f"{statistic}_itl_ms"]


def latency_without_the_queue(report: Document) -> None:
    for statistic in STATISTICS:
        report[f"{statistic}_e2el_ms"] -= 0.5 * report[f"{statistic}_ttft_ms"]


def goodput_for_throughput(report: Document) -> None:
    scaled(0.9, *RATES)(report)


def mean_above_its_tail(report: Document) -> None:
    report["mean_ttft_ms"] = 1.2 * report["p99_ttft_ms"]


# -- what both sides share, and what nobody asks -----------------------------------------------------------------


def every_log(old: str, new: str) -> Callable[[Copy], None]:
    def plant(copy: Copy) -> None:
        for run in copy.runs:
            log = copy.read(run, "log").decode()
            if re.search(old, log):
                copy.put(run, "log", re.sub(old, new, log).encode())

    return plant


def cached_prefixes(copy: Copy) -> None:
    hits = every_log(r"Prefix cache hit rate: [\d.]+%", "Prefix cache hit rate: 97.3%")
    before = dict(copy.files)
    hits(copy)
    assert before != copy.files


def weights_in_logs(gib: float, copy: Copy) -> None:
    """Another model than the name says, on both sides."""
    every_log(r"Model loading took [\d.]+ GiB", f"Model loading took {gib} GiB")(copy)
    for run in copy.runs:
        run["observed"]["weight_bytes"] = round(gib * 2**30)
        run["metrics"]["weights_gib"]["value"] = gib


def another_of_its_kind(copy: Copy) -> None:
    """The container on the second H200 of the host."""
    for run in copy.of("container"):
        run["machine"]["gpus"][0]["id"] = "0123456789abcdef"


def slower_memory(copy: Copy) -> None:
    """The memory clock of one side is lower by a tenth."""
    for run in copy.of("container"):
        lines = copy.read(run, "telemetry").decode().splitlines()
        at = lines[0].split(",").index("gpu_clock_mem_mhz")
        for number, line in enumerate(lines[1:], 1):
            cells = line.split(",")
            if len(cells) > at and cells[at]:
                cells[at] = "2619"
                lines[number] = ",".join(cells)
        copy.put(run, "telemetry", ("\n".join(lines) + "\n").encode())


def slowest_deleted(copy: Copy) -> None:
    for environment in ("container",):
        runs = copy.of(environment)
        slow = min(
            runs, key=lambda run: run["metrics"]["output_throughput_tok_s"]["value"]
        )
        copy.runs.remove(slow)


def last_round_deleted(copy: Copy) -> None:
    """The matrix asks for one round less, so that nothing is missing."""
    last = max(run["iteration"] for run in copy.runs)
    copy.runs = [run for run in copy.runs if run["iteration"] < last]
    copy.info["matrix"]["iterations"] = last - 1


def slowest_deleted_and_renumbered(copy: Copy) -> None:
    """The slowest run of a side is gone, and those after it have moved up."""
    runs = copy.of("container")
    slow = min(
        runs[:-1], key=lambda run: run["metrics"]["output_throughput_tok_s"]["value"]
    )
    at = runs.index(slow)
    copy.runs.remove(slow)
    for run in runs[at + 1 :]:
        copy.rename(run, iteration=run["iteration"] - 1)


def wider_margin(copy: Copy) -> None:
    copy.info["matrix"]["equivalence_margin_percent"] = 5


def other_primary(copy: Copy) -> None:
    copy.info["matrix"]["primary"] = ["ttft_p50_ms"]


def wider_margin_everywhere(copy: Copy) -> None:
    """In the matrix and in every record, sums and all."""
    wider_margin(copy)
    for run in copy.runs:
        run["plan"]["analysis"]["margin_percent"] = 5


def only_exclamation_marks(copy: Copy) -> None:
    """Of trained weights, with the answer that was kept before the test."""
    for run in copy.runs:
        run["requested"]["random_weights"] = False
        run["observed"]["random_weights"] = False
        note = "the model answered before the test: " + "!" * 60
        run["events"].append({"at_seconds": None, "kind": "note", "text": note})


def left_over_variable(copy: Copy) -> None:
    """Recorded by today's collector by its name; set on one side only, and by no matrix."""
    for run in copy.of("container"):
        run["reproducibility"]["variables"]["VLLM_USE_V1"] = "0"


def first_chunk_without_a_token(report: Document) -> None:
    """The clock for TTFT stops at a chunk that opens the answer; what it lacks is in the other tokens' times."""
    for statistic in STATISTICS:
        first = report[f"{statistic}_ttft_ms"]
        soon = 2 + first % 0.0173
        report[f"{statistic}_ttft_ms"] = soon
        for kind in ("tpot", "itl"):
            report[f"{statistic}_{kind}_ms"] += (first - soon) / 127


def one_log(old: str, new: str) -> Callable[[Copy], None]:
    """Another line in the logs of the container, which the record was made without."""

    def plant(copy: Copy) -> None:
        for run in copy.of("container"):
            log = copy.read(run, "log").decode()
            assert re.search(old, log)
            copy.put(run, "log", re.sub(old, new, log).encode())

    return plant


def layers_cut_out(copy: Copy) -> None:
    """24 of 28 layers, in the model's folder and in what the engine loaded, under the model's name."""
    for run in copy.runs:
        known = run["requested"]["architecture"]
        share = 24 / 28
        known |= {"layers": 24, "kv_bytes_per_token": 24 * 2048}
        for name in ("parameters", "weight_bytes", "dense_bytes_per_step"):
            known[name] = round(share * known[name])
        for name in ("weight_bytes", "kv_bytes_per_token"):
            run["observed"][name] = round(share * run["observed"][name])


def short_answers(copy: Copy) -> None:
    """Seven tokens of ten, as where a server stops at the end of the text."""
    for run in copy.runs:
        run["observed"]["output_tokens_mean"] *= 0.7


def arrives_at_once(copy: Copy) -> None:
    """As many requests a second as there are come within one second, and each takes longer than a fifth of it."""
    for run in copy.runs:
        asked = run["requested"]["workload"]
        del asked["concurrency"]
        asked["request_rate"] = asked["requests"]


WARNED = "(EngineCore pid=61) WARNING 11-21 16:01:33"
COMPILED = rf"""{WARNED} [jit_monitor.py:106] Triton kernel JIT compilation during inference: _k. This causes a spike.
Successful requests:"""
FELL_BACK = rf"""{WARNED} [autotuner.py:88] Autotuning failed, falling back to default kernels.
Starting initial single prompt test run"""


# -- llama-bench -------------------------------------------------------------------------------------------------


def llama(edit: Edit, *environments: str) -> Callable[[Copy], None]:
    """The tests as llama-bench would have printed them, and the record made of them."""
    workload = WORKLOADS["llama-bench"]

    def plant(copy: Copy) -> None:
        for environment in environments or ("native", "container"):
            for run in copy.of(environment):
                edit_llama(copy, run, edit)
                options = workload.options.model_validate(run["requested"]["workload"])
                answer = workload.parse(copy.read(run, "log"), {}, options)
                for name, value in answer.metrics.items():
                    run["metrics"][name]["value"] = value.value
                if run.get("samples"):
                    run["samples"] = {
                        name: list(values) for name, values in answer.samples.items()
                    }
                run["observed"] |= answer.observed.model_dump(
                    mode="json", exclude_none=True
                )

    return plant


def average_beside_its_samples(test: Document) -> None:
    test["avg_ts"] *= 1.05


def rounded_times(test: Document) -> None:
    """Samples in whole tens of milliseconds."""
    tokens = test["n_prompt"] + test["n_gen"]
    test["samples_ns"] = [
        max(round(each / 1e7), 1) * 10**7 for each in test["samples_ns"]
    ]
    _averages(test, tokens)


def _tests_of_prompts(test: Document, share: Callable[[int], float]) -> None:
    """A test of prompts whose repetitions take these shares of their times."""
    if test["n_prompt"] and not test["n_gen"]:
        times = test["samples_ns"]
        test["samples_ns"] = [
            round(each * share(place)) for place, each in enumerate(times)
        ]
        _averages(test, test["n_prompt"])


def prompts_counted_three_times(test: Document) -> None:
    _tests_of_prompts(test, lambda _: 1 / 3)


def one_slow_repetition_in_two(test: Document) -> None:
    _tests_of_prompts(test, lambda place: 1 + 4 * (place % 2))


def one_repetition_told_five_times(test: Document) -> None:
    test["samples_ns"] = [test["samples_ns"][-1]] * len(test["samples_ns"])
    _averages(test, test["n_prompt"] + test["n_gen"])


def faster_than_memory(test: Document) -> None:
    tokens = test["n_prompt"] + test["n_gen"]
    test["samples_ns"] = [round(each / 1.6) for each in test["samples_ns"]]
    _averages(test, tokens)


def _averages(test: Document, tokens: int) -> None:
    times = test["samples_ns"]
    test["samples_ts"] = [round(tokens / each * 1e9, 4) for each in times]
    test["avg_ns"] = round(sum(times) / len(times))
    test["avg_ts"] = sum(test["samples_ts"]) / len(times)


def no_flash_attention(test: Document) -> None:
    test["flash_attn"] = 0


def smaller_model(test: Document) -> None:
    test["model_size"] = round(test["model_size"] * 0.53)


# -- imports -------------------------------------------------------------------------------------------------------


def drop_the_slowest(report: Document) -> None:
    """The summary is of the faster requests, the samples are of all."""
    for name in ("mean_ttft_ms", "median_ttft_ms", "p99_ttft_ms"):
        report[name] *= 0.6


def coarse_samples(report: Document) -> None:
    report["ttfts"] = [round(each, 1) for each in report["ttfts"]]
    report["itls"] = [[round(each, 1) for each in times] for times in report["itls"]]


def seconds_sglang(report: Document) -> None:
    for name in [name for name in report if name.endswith("_ttft_ms")]:
        report[name] /= 1e3


def labelled_twice(report: Document) -> None:
    report["max_concurrency"] *= 2


def too_fast(*names: str) -> Edit:
    return scaled(1.12, *names)


def aiperf_throughput(report: Document) -> None:
    report["output_token_throughput"]["avg"] *= 1.12


def aiperf_latency_in_seconds(report: Document) -> None:
    for name, value in report["request_latency"].items():
        if isinstance(value, float):
            report["request_latency"][name] = value / 1e3


def served_late(report: Document) -> None:
    """The client sent at a tenth of the rate that it was told."""
    report["duration"] *= 10
    for name in ("request", "input", "output", "total"):
        report[f"{name}_throughput"] /= 10
    report["concurrency"] /= 10


def another_mean(report: Document) -> None:
    for load in report["benchmarks"]:
        load["tg_throughput"]["mean"] *= 1.07


def ten_times_the_prompts(report: Document) -> None:
    for load in report["benchmarks"]:
        load["pp_throughput"]["mean"] *= 10
        load["pp_throughput"]["values"] = [
            10 * value for value in load["pp_throughput"]["values"]
        ]


# -- reports with requests, sums or clocks of their own ------------------------------------------------------------


def statistics(report: Document, kind: str) -> list[str]:
    return [name for name in report if name.endswith(f"_{kind}_ms")]


def first_tokens_early(report: Document) -> None:
    """TTFT of the server, of every request and in the summary."""
    for name in statistics(report, "ttft"):
        report[name] *= 0.5
    report["ttfts"] = [0.5 * time for time in report["ttfts"]]


def shorter_chunks(report: Document) -> None:
    for name in statistics(report, "itl"):
        report[name] *= 0.8
    if "itls" in report:
        report["itls"] = [[0.8 * time for time in times] for times in report["itls"]]


def p99_of_others(report: Document) -> None:
    report["p99_ttft_ms"] *= 1.08


def a_few_tokens_more(report: Document) -> None:
    """1.9 % of the tokens come from requests that were sent again."""
    report["total_output_tokens"] = round(report["total_output_tokens"] * 1.019)
    rates_from_totals(report)


def of_tokens(factor: float) -> Edit:
    """SGLang's count of output tokens, and all that is made of it."""

    def edit(report: Document) -> None:
        before = report["total_output_tokens"] / report["completed"]
        report["total_output_tokens"] = round(factor * report["total_output_tokens"])
        after = report["total_output_tokens"] / report["completed"]
        seconds = report["duration"]
        report["output_throughput"] = report["total_output_tokens"] / seconds
        tokens = report["total_output_tokens"] + report["total_input_tokens"]
        report["total_throughput"] = tokens / seconds
        for name in statistics(report, "tpot"):
            report[name] *= (before - 1) / (after - 1)

    return edit


def in_flight_of_others(report: Document) -> None:
    """Latencies in seconds, where SGLang says how many requests were in flight."""
    for kind in ("ttft", "tpot", "itl", "e2e_latency"):
        for name in statistics(report, kind):
            report[name] /= 1e3


def block(name: str, factor: float) -> Edit:
    """All statistics of a metric of AIPerf or GenAI-Perf."""

    def edit(report: Document) -> None:
        for key, value in report[name].items():
            if isinstance(value, float):
                report[name][key] = factor * value

    return edit


def mean_alone(name: str) -> Edit:
    def edit(report: Document) -> None:
        report[name]["avg"] *= 1.02

    return edit


def aiperf_prompts(report: Document) -> None:
    report["total_isl"]["avg"] *= 0.8


def aiperf_chunks(report: Document) -> None:
    """Three chunks for five tokens, and every chunk counts as one."""
    block("output_sequence_length", 0.6)(report)
    for name in ("total_osl", "total_output_tokens", "output_token_throughput"):
        report[name]["avg"] *= 0.6
    tokens = report["total_osl"]["avg"] + report["total_isl"]["avg"]
    seconds = report["request_count"]["avg"] / report["request_throughput"]["avg"]
    report["total_token_throughput"]["avg"] = tokens / seconds


def aiperf_first_token_in_tpot(report: Document) -> None:
    tokens = report["output_sequence_length"]["avg"]
    for key in ("avg", "min", "p50", "p90", "p95", "p99", "max"):
        each = report["request_latency"][key] / tokens
        report["inter_token_latency"][key] = each
    report["inter_token_latency"]["sum"] = 10 * report["inter_token_latency"]["avg"]


def guide(name: str, edit: Edit) -> Edit:
    """A metric of the requests that succeeded, of GuideLLM."""

    def edit_it(report: Document) -> None:
        edit(report["benchmarks"][0]["metrics"][name]["successful"])

    return edit_it


def guide_scaled(summary: Document) -> None:
    for key in ("mean", "median", "min", "max", "total_sum"):
        summary[key] *= 0.5
    for key in summary["percentiles"]:
        summary["percentiles"][key] *= 0.5


def guide_mean(summary: Document) -> None:
    summary["mean"] *= 1.02


def each_load(edit: Edit) -> Edit:
    def edit_all(report: Document) -> None:
        for load in report["benchmarks"]:
            edit(load)

    return edit_all


def scaled_values(factor: float, *names: str) -> Edit:
    """Repetitions of llama-benchy with their mean and deviation."""

    def edit(load: Document) -> None:
        for name in names:
            load[name]["values"] = [factor * each for each in load[name]["values"]]
            load[name]["mean"] *= factor
            load[name]["std"] *= factor

    return edit


rounds_in_seconds = each_load(scaled_values(1e-3, "e2e_ttft", "ttfr", "est_ppt"))


def mean_time_beside_its_samples(test: Document) -> None:
    test["avg_ns"] = round(1.02 * test["avg_ns"])


def batches_trimmed(report: Document) -> None:
    kept = sorted(report["latencies"])[:-1]
    report["avg_latency"] = sum(kept) / len(kept)


def batches_of_others(report: Document) -> None:
    report["percentiles"]["99"] *= 0.95


def told_twice_as_many(report: Document) -> None:
    report["max_concurrency"] *= 2


DETAILED, CLOSED = "vllm-bench/detailed.json", "sglang/vllm-c2.jsonl"
OPEN = "bench-spark/results/granite-4.1/granite-4.1-8b/bf16/11-rate-sweep-0.1.json"
STREAMED, GUIDE = "genai-perf/streaming_genai_perf.json", "guidellm/c2.json"
ROUNDS = "llama-benchy/depth-conc.json"


def import_fault(
    kind: str, source: str, what: str, edit: Edit, check: str = "inconsistent-report"
) -> ImportFault:
    return ImportFault(
        f"{what} ({source.partition('/')[2]})", kind, source, edit, check
    )


REPORTS: tuple[ImportFault, ...] = (
    import_fault("vllm-bench", DETAILED, "TTFT of the server", first_tokens_early),
    import_fault("vllm-bench", DETAILED, "shorter chunks", shorter_chunks),
    import_fault("vllm-bench", DETAILED, "P99 of other requests", p99_of_others),
    import_fault(
        "vllm-bench", DETAILED, "tokens of retried requests", a_few_tokens_more
    ),
    import_fault("vllm-bench", OPEN, "shorter chunks", shorter_chunks),
    import_fault(
        "vllm-bench",
        "vllm-bench/latency.json",
        "the slowest batch left out",
        batches_trimmed,
    ),
    import_fault(
        "vllm-bench",
        "vllm-bench/latency.json",
        "P99 of other batches",
        batches_of_others,
    ),
    import_fault(
        "sglang",
        CLOSED,
        "tokens of the prompt in the output",
        of_tokens(6),
        "not-as-requested",
    ),
    import_fault(
        "sglang",
        CLOSED,
        "tokens of retried requests",
        of_tokens(1.019),
        "not-as-requested",
    ),
    import_fault("sglang", CLOSED, "chunks for tokens", of_tokens(0.6)),
    import_fault(
        "sglang",
        "sglang/vllm-rate-details.jsonl",
        "P99 of other requests",
        p99_of_others,
    ),
    import_fault(
        "sglang",
        "sglang/vllm-rate-details.jsonl",
        "seconds for milliseconds",
        in_flight_of_others,
    ),
    import_fault(
        "aiperf", CHAT, "TTFT of the server", block("time_to_first_token", 0.5)
    ),
    import_fault(
        "aiperf", CHAT, "a mean beside its sum", mean_alone("time_to_first_token")
    ),
    import_fault("aiperf", CHAT, "prompts left out of a sum", aiperf_prompts),
    import_fault("aiperf", CHAT, "chunks for tokens", aiperf_chunks),
    import_fault("aiperf", CHAT, "the first token in TPOT", aiperf_first_token_in_tpot),
    import_fault(
        "genai-perf", STREAMED, "TTFT of the server", block("time_to_first_token", 0.5)
    ),
    import_fault(
        "guidellm",
        GUIDE,
        "TTFT of the server",
        guide("time_to_first_token_ms", guide_scaled),
    ),
    import_fault(
        "guidellm", GUIDE, "a mean beside its sum", guide("request_latency", guide_mean)
    ),
    import_fault("llama-benchy", ROUNDS, "seconds for milliseconds", rounds_in_seconds),
    import_fault(
        "llama-bench",
        REPEATED,
        "a mean time beside its samples",
        mean_time_beside_its_samples,
    ),
)

CLIENTS: tuple[Planted | ImportFault, ...] = (
    *REPORTS,
    of_client("a client that was told twice as many", both_sides(told_twice_as_many)),
    of_client("latencies of survivors only", one_side(survivors_only)),
    of_client("latencies of survivors only, on both sides", both_sides(survivors_only)),
    of_client("a client that starves the server", one_side(starving)),
    of_client("a client that starves the server, on both sides", both_sides(starving)),
    of_client("concurrency 4 labelled 8", both_sides(half_the_concurrency)),
    of_client("TTFT from the server", both_sides(ttft_of_the_server)),
    of_client(
        "seconds for milliseconds in TTFT", both_sides(scaled(1e-3, *each("ttft")))
    ),
    of_client(
        "seconds for milliseconds everywhere", both_sides(scaled(1e-3, *LATENCIES))
    ),
    of_client("the warm-up in the duration", both_sides(warmup_in_the_duration)),
    of_client(
        "throughput without the first tokens' time",
        both_sides(without_the_first_tokens),
    ),
    of_client(
        "duration until the last request started",
        both_sides(until_the_last_request_started),
    ),
    of_client("latencies rounded to 10 ms", both_sides(rounded)),
    of_client(
        "tokens of retried requests", one_side(retried), check="not-as-requested"
    ),
    of_client(
        "tokens of retried requests, on both sides",
        both_sides(retried),
        check="not-as-requested",
    ),
    of_client("the first token in TPOT", both_sides(first_token_in_tpot)),
    of_client("two tokens a chunk in ITL", both_sides(two_tokens_a_chunk)),
    of_client("total throughput without the input", both_sides(input_left_out)),
    of_client("characters for tokens", both_sides(characters_for_tokens)),
    of_client("cached input not counted", both_sides(cached_input_not_counted)),
    of_client("requests that are lost", both_sides(lost_requests)),
    of_client("failed requests in the rate", both_sides(failed_counted)),
    of_client("a duration longer than the run", both_sides(a_longer_clock)),
    of_client("medians under the name of means", both_sides(median_for_mean)),
    of_client("the twentieth token's time as TTFT", both_sides(first_chunk_is_empty)),
    of_client("latency without the queue", both_sides(latency_without_the_queue)),
    of_client("goodput for throughput", both_sides(goodput_for_throughput)),
    of_client("a mean above its p99", both_sides(mean_above_its_tail)),
    of_client("cached prefixes", cached_prefixes, check="prefix-cache"),
    of_client(
        "FP8 under a 16-bit name", partial(weights_in_logs, 7.15), check="identity"
    ),
    of_client(
        "14.99 GiB in the log of a model of 14.29",
        partial(weights_in_logs, 14.99),
        check="identity",
    ),
    of_client(
        "one side on another GPU of its kind",
        another_of_its_kind,
        check="unequal-environments",
    ),
    of_client("slower memory on one side", slower_memory, check="unequal-environments"),
    of_client(
        "the slowest run deleted", slowest_deleted, whole=True, check="time-consistency"
    ),
    of_client(
        "the slowest run deleted, the others renumbered",
        slowest_deleted_and_renumbered,
        check="not-as-requested",
    ),
    of_client(
        "the last round deleted, and declared away",
        last_round_deleted,
        "h200-llama",
        check="time-consistency",
        whole=True,
        committed=True,
    ),
    of_client("a wider margin afterwards", wider_margin, check="not-as-requested"),
    of_client(
        "a wider margin afterwards, in every record",
        wider_margin_everywhere,
        check="time-consistency",
        committed=True,
    ),
    of_client(
        "another primary metric afterwards", other_primary, check="not-as-requested"
    ),
    of_client(
        "the first chunk has no token",
        both_sides(first_chunk_without_a_token),
        check="roofline",
    ),
    of_client(
        "another attention backend on one side",
        one_log("Using FLASH_ATTN attention", "Using TRITON_ATTN attention"),
        check="unequal-environments",
    ),
    of_client(
        "fewer tokens a step on one side",
        one_log("max_num_batched_tokens=8192", "max_num_batched_tokens=2048"),
        check="unequal-environments",
    ),
    of_client(
        "speculative decoding on one side",
        one_log(
            "speculative_config=None",
            "speculative_config=SpeculativeConfig(method='ngram', num_spec_tokens=4)",
        ),
        check="unequal-environments",
    ),
    of_client(
        "kernels compiled while measuring",
        one_log("Successful requests:", COMPILED),
        check="engine-warning",
    ),
    of_client(
        "default kernels on one side",
        one_log("Starting initial single prompt test run", FELL_BACK),
        check="unequal-environments",
    ),
    of_client("answers that end early", short_answers, check="answer-length"),
    of_client("requests that all arrive", arrives_at_once, check="offered-load"),
    of_client("layers cut out of the model", layers_cut_out, check="identity"),
    of_client("a model that only says !", only_exclamation_marks, check="sanity"),
    of_client(
        "a variable left over on one side",
        left_over_variable,
        check="unequal-environments",
    ),
    of_client(
        "avg_ts is not its samples' mean",
        llama(average_beside_its_samples),
        "h200-llama",
    ),
    of_client("llama-bench's times in tens of ms", llama(rounded_times), "h200-llama"),
    of_client(
        "llama-bench faster than its memory",
        llama(faster_than_memory),
        "h200-llama",
        check="roofline",
    ),
    of_client(
        "llama-bench faster than its arithmetic",
        llama(prompts_counted_three_times),
        "h200-llama",
        check="roofline",
    ),
    of_client(
        "repetitions that say nothing",
        llama(one_slow_repetition_in_two),
        "h200-llama",
        check="repetitions",
    ),
    of_client(
        "one repetition told five times",
        llama(one_repetition_told_five_times),
        "h200-llama",
        check="repetitions",
    ),
    of_client(
        "no flash attention on one side",
        llama(no_flash_attention, "container"),
        "h200-llama",
        check="unequal-environments",
    ),
    of_client(
        "a smaller model under one name",
        llama(smaller_model),
        "h200-llama",
        check="identity",
    ),
    ImportFault(
        "summary of survivors beside all samples",
        "vllm-bench",
        "vllm-bench/detailed.json",
        drop_the_slowest,
    ),
    ImportFault(
        "samples of 100 ms", "vllm-bench", "vllm-bench/detailed.json", coarse_samples
    ),
    ImportFault(
        "concurrency 2 labelled 4 (vLLM)",
        "vllm-bench",
        "vllm-bench/detailed.json",
        labelled_twice,
    ),
    ImportFault(
        "requests sent at a tenth of the rate",
        "sglang",
        "sglang/vllm-rate-details.jsonl",
        served_late,
    ),
    ImportFault(
        "a mean beside its values (llama-benchy)",
        "llama-benchy",
        "llama-benchy/vllm.json",
        another_mean,
    ),
    ImportFault(
        "ten times the rate of prompts",
        "llama-benchy",
        "llama-benchy/vllm.json",
        ten_times_the_prompts,
    ),
    ImportFault(
        "TTFT in seconds (SGLang)", "sglang", "sglang/vllm-c2.jsonl", seconds_sglang
    ),
    ImportFault(
        "concurrency 2 labelled 4 (SGLang)",
        "sglang",
        "sglang/vllm-c2.jsonl",
        labelled_twice,
    ),
    ImportFault(
        "throughput too high (SGLang)",
        "sglang",
        "sglang/vllm-c2.jsonl",
        too_fast("output_throughput"),
    ),
    ImportFault(
        "throughput too high (AIPerf)",
        "aiperf",
        WHOLE,
        aiperf_throughput,
    ),
    ImportFault(
        "latency in seconds (AIPerf)",
        "aiperf",
        CHAT,
        aiperf_latency_in_seconds,
    ),
    ImportFault(
        "avg_ts is not its samples' mean (import)",
        "llama-bench",
        REPEATED,
        average_beside_its_samples,
    ),
)
