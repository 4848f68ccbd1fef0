"""Honest mistakes of owners, planted in real results before they are imported, each with where it was seen.

Nobody fakes anything here: a file lies in the wrong folder, a server ran with another setting than its owner thought,
a unit was taken for another. What is imported are real files of a DGX Spark (`bench-spark`) and of llama-bench.
"""

import csv
import io
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkpub.collect.imports import import_results
from sparkpub.collect.imports.given import Given

IMPORTS = Path(__file__).parents[2] / "data" / "imports"
GRANITE = "granite-4.1/granite-4.1-8b/bf16"
MUSE = "muse-glimmer/muse-glimmer-30b"
SWEEP = tuple(
    f"{GRANITE}/11-rate-sweep-{rate}.json" for rate in (0.1, 0.2, 0.3, 0.5, 0.7, "1.0")
)
PEAK = f"{GRANITE}/10-monday-peak.json"
CHAT = f"{GRANITE}/01-chat.md"
STRESS = f"{GRANITE}/06-telemetry.csv"
Document = dict[str, Any]
Edit = Callable[[Path], None]


@dataclass(frozen=True)
class OwnerFault:
    """A mistake in a folder of results, and the check that finds it."""

    what: str
    check: str
    seen: str
    """The thread, the data set or the file in which somebody made it."""
    edit: Edit
    folder: str = "bench-spark/results"

    alone = False
    is_possible = True

    @property
    def of(self) -> str:
        """What is imported."""
        return self.folder

    def bring(self, data: Path, *, planted: bool) -> None:
        """The folder as it is, or with the mistake, imported as its owner would."""
        source = data.with_name(f"{data.name}-source")
        shutil.copytree(IMPORTS / self.folder, source)
        if planted:
            self.edit(source)
        given = Given("c", environment="container", machine="dgx-spark", model="m")
        import_results(source, data, given)


# -- how files are changed ---------------------------------------------------------------------------------------


def report(change: Callable[[Document], None], *paths: str) -> Edit:
    """A change to reports of `vllm bench serve`."""

    def edit(folder: Path) -> None:
        for path in paths:
            document = json.loads((folder / path).read_text())
            change(document)
            (folder / path).write_text(json.dumps(document))

    return edit


def meta(change: Callable[[Document], None], *builds: str) -> Edit:
    """A change to what the owner notes of a build."""
    return report(change, *(f"{build}/meta.json" for build in builds))


def words(path: str, *pairs: tuple[str, str]) -> Edit:
    """Other words in a file; each pair is a pattern and what takes its place."""

    def edit(folder: Path) -> None:
        text = (folder / path).read_text()
        for old, new in pairs:
            text, found = re.subn(old, new, text)
            assert found, f"{old} is not in {path}"
        (folder / path).write_text(text)

    return edit


def column(path: str, name: str, value: Callable[[float], float]) -> Edit:
    """Other values in a column of telemetry."""

    def edit(folder: Path) -> None:
        rows = list(csv.DictReader(io.StringIO((folder / path).read_text())))
        for row in rows:
            row[name] = f"{value(float(row[name])):g}"
        table = io.StringIO()
        writer = csv.DictWriter(table, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        (folder / path).write_text(table.getvalue())

    return edit


def together(*edits: Edit) -> Edit:
    def edit(folder: Path) -> None:
        for each in edits:
            each(folder)

    return edit


def copied(source: str, target: str) -> Edit:
    def edit(folder: Path) -> None:
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / source, folder / target)

    return edit


def without_log(folder: Path) -> None:
    """The log of the sweep says what its reports say: it would be of the same mistake."""
    (folder / GRANITE / "11-rate-sweep.log.gz").unlink()


def sweep(change: Callable[[Document], None], *paths: str) -> Edit:
    return together(report(change, *paths), without_log)


def tests_of(path: str, change: Callable[[Document], None]) -> Edit:
    """A change to each test that llama-bench wrote as JSON."""

    def edit(folder: Path) -> None:
        tests = json.loads((folder / path).read_text())
        for test in tests:
            change(test)
        for other in folder.iterdir():
            if other.name != path:
                other.unlink()
        (folder / path).write_text(json.dumps(tests))

    return edit


def times(document: Document, kind: str, factor: float) -> None:
    for name in document:
        if name.endswith(f"_{kind}_ms"):
            document[name] *= factor


def rates(document: Document) -> None:
    """Rates as the client makes them of its counts."""
    seconds = document["duration"]
    tokens = document["total_input_tokens"] + document["total_output_tokens"]
    document["request_throughput"] = document["completed"] / seconds
    document["output_throughput"] = document["total_output_tokens"] / seconds
    document["total_token_throughput"] = tokens / seconds


# -- the server was not what its owner thought -------------------------------------------------------------------


def short_answers(document: Document) -> None:
    """43 tokens where 500 were asked for: the model ended its answers, and nobody told it not to."""
    document["total_output_tokens"] = 43 * document["completed"]
    first, per_token = document["mean_ttft_ms"], document["mean_tpot_ms"]
    for name in document:
        if name.endswith("_e2el_ms"):
            statistic = name.removesuffix("_e2el_ms")
            document[name] = (
                document[f"{statistic}_ttft_ms"] + 42 * document[f"{statistic}_tpot_ms"]
            )
    document["mean_e2el_ms"] = first + 42 * per_token
    rates(document)


def buffered(document: Document) -> None:
    """A proxy holds the stream back: the first token comes with the last one."""
    for name in document:
        if name.endswith("_ttft_ms"):
            statistic = name.removesuffix("_ttft_ms")
            if statistic != "std":
                document[name] = document[f"{statistic}_e2el_ms"] - 5.0


def chunks_for_tokens(document: Document) -> None:
    """Chunks are counted as tokens while each holds three of them."""
    document["total_output_tokens"] = round(document["total_output_tokens"] / 3)
    rates(document)


def half_died(document: Document) -> None:
    """The server stopped on the way."""
    document["failed"] = document["completed"] - 40
    document["completed"] = 40
    for name in ("total_input_tokens", "total_output_tokens"):
        document[name] = round(document[name] * 40 / document["num_prompts"])
    rates(document)


def nothing_came(document: Document) -> None:
    """Every request got an empty answer."""
    document["total_output_tokens"] = 0
    for kind in ("ttft", "tpot", "itl"):
        times(document, kind, 0.0)
    rates(document)


def first_token_in_itl(document: Document) -> None:
    """The wait for the first token stands in the list of gaps between tokens."""
    tokens = document["total_output_tokens"] / document["completed"]
    document["mean_itl_ms"] += document["mean_ttft_ms"] / tokens
    document["p99_itl_ms"] = document["p99_ttft_ms"]


def prompts_from_cache(document: Document) -> None:
    """The same prompts as in the run before, from a warm cache: the first token comes 49 times sooner."""
    times(document, "ttft", 1 / 49)
    for name in document:
        if name.endswith("_e2el_ms"):
            statistic = name.removesuffix("_e2el_ms")
            if statistic != "std":
                document[name] -= 48 * document[f"{statistic}_ttft_ms"]


def another_rate(document: Document) -> None:
    document["request_rate"] = 2 * document["request_rate"]


def another_tokenizer(document: Document) -> None:
    document["tokenizer_id"] = "gpt2"


def without_whole_seconds(document: Document) -> None:
    """A latency of 19.2 s is written as 200 ms: only what is behind the full second."""
    for name in document:
        if name.endswith("_e2el_ms"):
            document[name] %= 1000


# -- llama-bench ---------------------------------------------------------------------------------------------------


def on_the_processor(test: Document) -> None:
    test["n_gpu_layers"] = 0
    test["backends"] = "CUDA"
    test["gpu_info"] = "NVIDIA GB10"


def of_two_gpus(test: Document) -> None:
    """Prompts on a Spark, and answers on another machine."""
    gpus = "NVIDIA GB10", "NVIDIA GeForce RTX 4090"
    test["gpu_info"], test["backends"] = gpus[test["n_gen"] > 0], "CUDA"


def larger_than_its_name(test: Document) -> None:
    """A file of 8.5 bits a weight that its folder and its type call Q4_K."""
    test["model_size"] = round(test["model_n_params"] * 8.5 / 8)


def faster_than_memory(test: Document) -> None:
    """More than 273 GB/s: a smaller file lay under that name."""
    test["model_size"] *= 200
    test["model_n_params"] *= 200
    test["gpu_info"], test["backends"] = "NVIDIA GB10", "CUDA"


def halves_of_a_report(test: Document) -> None:
    """A mean that was copied from another test."""
    test["avg_ts"] *= 1.5


OWNERS: tuple[OwnerFault, ...] = (
    OwnerFault(
        "a GPU at 92 °C with 850 MHz",
        "throttled",
        "github.com/hasso5703/dgx-spark-qwen38/issues/8: 858 MHz at 96 % on a DGX Spark, half of the speed",
        together(
            column(STRESS, "temp_c", lambda _: 92),
            column(STRESS, "sm_mhz", lambda _: 850),
        ),
    ),
    OwnerFault(
        "a GPU that stays at 700 MHz without heat",
        "slow-clock",
        "github.com/Blackwellboy/model-serving-minefield/pull/55: GB10 in a low-power state that outlives a reboot",
        together(
            column(STRESS, "sm_mhz", lambda _: 700),
            column(STRESS, "power_w", lambda watt: 0.3 * watt),
            column(STRESS, "temp_c", lambda _: 52),
        ),
    ),
    OwnerFault(
        "power read at the plug",
        "unit",
        "landauer-gap 0.8.0 on the package index: a plug meter's CSV beside the sensors; a GB10 is specified for 140 W",
        column(STRESS, "power_w", lambda watt: 2.3 * watt),
    ),
    OwnerFault(
        "memory in MB of 1,000,000 called MiB",
        "unit",
        "a public JSONL of RTX 3090: vram_peak_mib",
        column(STRESS, "mem_used_mb", lambda mb: mb * 2**20 / 1e6),
    ),
    OwnerFault(
        "memory in KiB called MB",
        "unit",
        "a public JSONL of RTX 3090: 96,448 GiB, silent",
        column(STRESS, "mem_used_mb", lambda mb: mb * 1024),
    ),
    OwnerFault(
        "ten users get eleven times one user",
        "users-scaling",
        "github.com/djangodevreng/dgx-spark-benchmarks: LFM2.5, 11.5 times with ten; the single user was held back",
        words(CHAT, (r"60\.09 ± 7\.00", "141.2 ± 2.00")),
    ),
    OwnerFault(
        "answers of 43 tokens where 500 were asked for",
        "answer-length",
        "github.com/vllm-project/vllm/issues/13333: 43 tokens of 512 with random prompts",
        report(short_answers, PEAK),
    ),
    OwnerFault(
        "an open loop whose mean request takes half of the time of arrivals",
        "offered-load",
        "github.com/djangodevreng/dgx-spark-benchmarks: KAT-Coder at 1.0 a second, 268 s a request",
        report(lambda document: times(document, "e2el", 6.0), SWEEP[0]),
    ),
    OwnerFault(
        "prompts from a warm cache",
        "inconsistent-report",
        "github.com/vllm-project/vllm/issues/54227: TTFT 49 times lower on a GB10",
        sweep(lambda document: times(document, "ttft", 1 / 49), SWEEP[0]),
    ),
    OwnerFault(
        "prompts from a warm cache, latencies with them",
        "roofline",
        "github.com/vllm-project/vllm/issues/52884: up to 86 % more throughput",
        sweep(prompts_from_cache, SWEEP[0]),
    ),
    OwnerFault(
        "a stream that a proxy holds back",
        "inconsistent-report",
        "github.com/sgl-project/sglang/pull/36272: 32 chunks for 6,400 tokens",
        report(buffered, PEAK),
    ),
    OwnerFault(
        "chunks for tokens, with speculation",
        "inconsistent-report",
        "github.com/sgl-project/sglang/pull/12064: ITL per chunk; github.com/GregHilston/toolbox/pull/77: 7 for 22 t/s",
        report(chunks_for_tokens, PEAK),
    ),
    OwnerFault(
        "the wait for the first token among the gaps",
        "inconsistent-report",
        "github.com/vllm-project/vllm/issues/7242: TTFT in the list of ITL",
        report(first_token_in_itl, PEAK),
    ),
    OwnerFault(
        "a server that died on the way",
        "failed-requests",
        "github.com/djangodevreng/dgx-spark-benchmarks: three runs with failed requests",
        report(half_died, PEAK),
    ),
    OwnerFault(
        "empty answers",
        "unit",
        "github.com/jvr0x/dgx-spark-bench: points without one sample are 0.00 tok/s",
        sweep(nothing_came, SWEEP[1]),
    ),
    OwnerFault(
        "a sweep that was filed under twice its rate",
        "inconsistent-report",
        "github.com/lvyufeng/PocketLLM/pull/84: figures of 32,768 tokens relabelled as 65,536",
        sweep(another_rate, SWEEP[0]),
    ),
    OwnerFault(
        "a prompt of twice its length by name",
        "inconsistent-report",
        "github.com/lvyufeng/PocketLLM/pull/84: the same figures under another length",
        words(CHAT, (r"--pp 1024", "--pp 4096"), (r"pp1024 ", "pp4096 ")),
    ),
    OwnerFault(
        "one repetition far from the others",
        "repetitions",
        "github.com/djangodevreng/dgx-spark-benchmarks: 20.72 ± 12.54 tok/s",
        words(CHAT, (r"12\.26 ± 0\.10", "12.26 ± 7.42")),
    ),
    OwnerFault(
        "a report that was copied into another build's folder",
        "copied-evidence",
        "github.com/hogeheer499-commits/strix-halo-guide: one table under five toolboxes",
        copied(f"{MUSE}/bf16/01-chat.md", f"{MUSE}/bf16-spec/01-chat.md"),
    ),
    OwnerFault(
        "weights of 8 bits under a 16-bit name, by the server's options",
        "identity",
        "vLLM's --quantization fp8 quantises on loading, whatever the folder is called",
        meta(
            lambda document: document.update(
                model="ibm-granite/granite-4.1-8b-BF16",
                server_config=document["server_config"]
                | {"extra_vllm_args": "--quantization fp8"},
            ),
            GRANITE,
        ),
    ),
    OwnerFault(
        "an NVFP4 model filed as FP8",
        "identity",
        "the profile of a copied meta.json",
        together(
            meta(
                lambda document: document.update(
                    profile="fp8", model="nvidia/granite-4.1-8b-NVFP4"
                ),
                GRANITE,
            ),
            words(CHAT, (r"Profile:\*\* bf16", "Profile:** fp8")),
        ),
    ),
    OwnerFault(
        "one test on another GPU",
        "metric-mismatch",
        "github.com/tonyd2wild/DeepSeek-V4.1-Flash-vLLM-DGX-Spark/issues/1: nodes that differ, in one table",
        tests_of("warmup-r5.json", of_two_gpus),
        folder="llama-bench",
    ),
    OwnerFault(
        "a model that says the same word again",
        "sanity",
        "the owner's own sanity file: its model must talk sense before anything is timed",
        words(
            f"{MUSE}/bf16-spec/_sanity.txt",
            (r"(?s).+", "! ! ! ! ! ! ! ! ! ! ! ! ! ! !"),
        ),
    ),
    OwnerFault(
        "prompts cut by another model's tokenizer",
        "not-as-requested",
        "github.com/djangodevreng/dgx-spark-benchmarks: all 228 logs of llama-benchy name gpt2",
        sweep(another_tokenizer, *SWEEP),
    ),
    OwnerFault(
        "layers left on the processor",
        "not-as-requested",
        "github.com/ggml-org/llama.cpp/issues/12624: -ngl forgotten, the processor did the work",
        tests_of("kv-q8.json", on_the_processor),
        folder="llama-bench",
    ),
    OwnerFault(
        "a file of twice the bits of its name",
        "identity",
        "weights in the log held to the tag: 14.99 against 14.29 GiB",
        tests_of("warmup-r5.json", larger_than_its_name),
        folder="llama-bench",
    ),
    OwnerFault(
        "faster than the memory of a Spark",
        "roofline",
        "github.com/hogeheer499-commits/strix-halo-guide: 89.6 tok/s at 646 % of the bandwidth",
        tests_of("warmup-r5.json", faster_than_memory),
        folder="llama-bench",
    ),
    OwnerFault(
        "a mean of another test",
        "inconsistent-report",
        "tables that are edited by hand after a second run of one test",
        tests_of("warmup-r5.json", halves_of_a_report),
        folder="llama-bench",
    ),
    OwnerFault(
        "first tokens in seconds, among milliseconds",
        "roofline",
        "github.com/tenstorrent/tt-inference-server/issues/4726: seconds held against milliseconds",
        sweep(lambda document: times(document, "ttft", 1e-3), SWEEP[0]),
    ),
    OwnerFault(
        "latencies without their whole seconds",
        "inconsistent-report",
        "github.com/Layr-Labs/d-inference/issues/770: 2.168 s printed as 168 ms",
        report(without_whole_seconds, PEAK),
    ),
)
