"""More faults of operators, servers and clients, in copies of three campaigns.

As in `planted`: what a careless or a dishonest operator does, by arithmetic on real records. The copies are one model's
decoding with our own payload (h200), llama-bench (h200-llama) and a vLLM server with its client (h200-vllm).
"""

import json
from collections.abc import Callable

from sparkpub.plan.workloads import WORKLOADS
from tests.review.checks.planted import Copy, Document, Planted, shifted


def ok_runs(copy: Copy, environment: str) -> list[Document]:
    return [run for run in copy.of(environment) if run["status"] == "ok"]


def rewrite_log(copy: Copy, run: Document, old: str, new: str) -> None:
    text = copy.read(run, "log").decode()
    assert old in text, f"{old} is not in the log"
    copy.put(run, "log", text.replace(old, new).encode())


def edit_report(copy: Copy, run: Document, **fields: object) -> None:
    report = copy.document(run, "report")
    copy.put(run, "report", json.dumps(report | fields).encode())


def edit_llama(copy: Copy, run: Document, edit: Callable[[Document], None]) -> None:
    lines = copy.read(run, "log").decode().splitlines()
    edited = []
    for line in lines:
        if not line.startswith("{"):
            edited.append(line)
            continue
        test = json.loads(line)
        edit(test)
        edited.append(json.dumps(test))
    copy.put(run, "log", ("\n".join(edited) + "\n").encode())


def read_again(copy: Copy, run: Document) -> None:
    """The record of llama-bench made anew from its log, as a collector would have made it."""
    workload = WORKLOADS["llama-bench"]
    options = workload.options.model_validate(run["requested"]["workload"])
    answer = workload.parse(copy.read(run, "log"), {}, options)
    for name, value in answer.metrics.items():
        run["metrics"][name]["value"] = value.value
    run["samples"] = {name: list(values) for name, values in answer.samples.items()}
    run["observed"] |= answer.observed.model_dump(
        include={"requests", "measured_seconds"}
    )


def telemetry_column(
    copy: Copy, run: Document, name: str, change: Callable[[float, float], float]
) -> None:
    """A column of the telemetry made anew from each sample's time and value."""
    lines = copy.read(run, "telemetry").decode().splitlines()
    header = lines[0].split(",")
    column = header.index(name)
    rows = [line.split(",") for line in lines[1:] if not line.startswith("#")]
    for row in rows:
        if row[column]:
            row[column] = f"{change(float(row[0]), float(row[column])):.6g}"
    remarks = [line for line in lines[1:] if line.startswith("#")]
    samples = [",".join(row) for row in rows]
    text = "\n".join([lines[0], *samples, *remarks]) + "\n"
    copy.put(run, "telemetry", text.encode())


def measured(run: Document) -> tuple[float, float]:
    phase = next(phase for phase in run["phases"] if phase["name"] == "measure")
    return phase["start_seconds"], phase["end_seconds"]


# llama-bench ---------------------------------------------------------------------------------------------------------


def flash_attention_off_in_container(copy: Copy) -> None:
    for run in copy.of("container"):
        run["observed"]["settings"]["flash_attn"] = "0"
        argv = run["argv"]
        argv[argv.index("--flash-attn") + 1] = "0"
        edit_llama(copy, run, lambda test: test.update(flash_attn=0))


def layers_left_on_the_processor(copy: Copy) -> None:
    for run in copy.of("native"):
        run["observed"]["settings"]["n_gpu_layers"] = "20"
        argv = run["argv"]
        argv[argv.index("--n-gpu-layers") + 1] = "20"
        edit_llama(copy, run, lambda test: test.update(n_gpu_layers=20))


def another_build_in_container(copy: Copy) -> None:
    for run in copy.of("container"):
        run["observed"]["engine_version"] = "b10999"
        edit_llama(
            copy,
            run,
            lambda test: test.update(build_commit="b10999", build_number=10999),
        )


def quantized_file_under_the_name_of_f16(copy: Copy) -> None:
    for run in copy.of("native"):
        run["observed"] |= {"weight_bytes": 8532934656, "dtype": "q8_0"}
        run["observed"]["settings"]["model_type"] = "llama 8B Q8_0"
        edit_llama(
            copy,
            run,
            lambda test: test.update(model_type="llama 8B Q8_0", model_size=8532934656),
        )


def quantized_cache_in_container(copy: Copy) -> None:
    for run in copy.of("container"):
        run["observed"]["kv_cache_dtype"] = "q8_0"
        run["observed"]["settings"] |= {"type_k": "q8_0", "type_v": "q8_0"}
        edit_llama(copy, run, lambda test: test.update(type_k="q8_0", type_v="q8_0"))


def slowest_repetition_dropped_in_container(copy: Copy) -> None:
    """The slowest repetition of each test goes from the log, and what the record has of it is read from there."""
    for run in copy.of("container"):

        def drop(test: Document) -> None:
            slowest = 1 + test["samples_ts"][1:].index(min(test["samples_ts"][1:]))
            del test["samples_ts"][slowest], test["samples_ns"][slowest]

        edit_llama(copy, run, drop)
        read_again(copy, run)


def another_gpu_in_the_log(copy: Copy) -> None:
    for run in copy.of("container"):
        rewrite_log(copy, run, "NVIDIA H200", "NVIDIA H100 PCIe")


def log_of_another_day(copy: Copy) -> None:
    run = copy.of("native")[3]
    edit_llama(
        copy,
        run,
        lambda test: test.update(test_time=shifted(test["test_time"], days=-2)),
    )


def depth_not_reached(copy: Copy) -> None:
    """Asked for a context of 8,192 tokens, run at depth 0."""
    for run in copy.runs:
        run["requested"]["workload"]["depth"] = 8192
    copy.info["matrix"]["workloads"]["d0"]["depth"] = 8192


# vLLM ----------------------------------------------------------------------------------------------------------------


def server_without_graphs(copy: Copy) -> None:
    for run in ok_runs(copy, "container"):
        run["observed"]["settings"]["enforce_eager"] = "True"
        rewrite_log(copy, run, "enforce_eager=False", "enforce_eager=True")


def client_of_the_other_server(copy: Copy) -> None:
    """The container's server was never stopped, and the native client talked to it."""
    source = ok_runs(copy, "container")[0]
    for run in ok_runs(copy, "native")[:2]:
        run["observed"]["settings"]["server"] = source["observed"]["settings"]["server"]


def requests_failed(copy: Copy) -> None:
    """Half of the requests failed; the other half had the machine for itself."""
    for run in ok_runs(copy, "native"):
        edit_report(copy, run, completed=32, failed=32)
        rewrite_log(
            copy,
            run,
            "Successful requests:                     64",
            "Successful requests:                     32",
        )
        rewrite_log(
            copy,
            run,
            "Failed requests:                         0 ",
            "Failed requests:                         32",
        )


def load_at_a_rate(copy: Copy) -> None:
    for run in ok_runs(copy, "container"):
        edit_report(copy, run, request_rate=4.0)
        run["argv"] += ["--request-rate", "4"]


def fewer_in_flight(copy: Copy) -> None:
    for run in ok_runs(copy, "container"):
        edit_report(copy, run, max_concurrency=4)
        argv = run["argv"]
        argv[argv.index("--max-concurrency") + 1] = "4"
        rewrite_log(
            copy,
            run,
            "Maximum request concurrency:             8",
            "Maximum request concurrency:             4",
        )


def answers_that_may_end_early(copy: Copy) -> None:
    for run in ok_runs(copy, "container"):
        run["argv"].remove("--ignore-eos")


def another_machine_served(copy: Copy) -> None:
    for run in ok_runs(copy, "native"):
        argv = run["argv"]
        argv[argv.index("--base-url") + 1] = "http://10.0.0.5:8137"


def gpu_idle_while_it_served(copy: Copy) -> None:
    """What was measured ran elsewhere: the telemetry shows a machine at rest."""
    for run in ok_runs(copy, "container"):
        telemetry_column(copy, run, "gpu_utilization_percent", lambda _t, _v: 2)
        telemetry_column(copy, run, "gpu_power_watt", lambda _t, _v: 121)
        telemetry_column(copy, run, "gpu_energy_joule", lambda t, _v: 70000 + 121 * t)
        start, end = measured(run)
        run["metrics"]["gpu_utilization_mean_percent"]["value"] = 2.0
        run["metrics"]["gpu_power_mean_watt"]["value"] = 121.0
        run["metrics"]["gpu_energy_joule"]["value"] = 121.0 * (end - start)


def another_precision_in_container(copy: Copy) -> None:
    for run in ok_runs(copy, "container"):
        rewrite_log(copy, run, "quantization=None", "quantization=fp8")
        run["observed"]["quantization"] = "fp8"


def report_of_another_day(copy: Copy) -> None:
    run = ok_runs(copy, "native")[2]
    edit_report(copy, run, date="20261118-090112")


def one_variable_in_one_environment(copy: Copy) -> None:
    for run in copy.of("native"):
        run["reproducibility"]["variables"]["VLLM_USE_FLASHINFER_SAMPLER"] = "1"


def tokens_missing(copy: Copy) -> None:
    """Answers half as long as asked for, counted as asked."""
    for run in ok_runs(copy, "native"):
        edit_report(copy, run, total_output_tokens=4096)
        rewrite_log(
            copy,
            run,
            "Total generated tokens:                  8192",
            "Total generated tokens:                  4096",
        )


# our own payload -----------------------------------------------------------------------------------------------------


def gate_met_at_84_degrees(copy: Copy) -> None:
    for run in copy.of("container")[:5]:
        gate = next(g for g in run["gates"] if g["name"] == "max_start_temp_celsius")
        gate["readings"][-1]["value"] = 84.0


def another_gpu_halfway(copy: Copy) -> None:
    for run in copy.of("container")[5:]:
        run["machine"]["gpus"][0]["id"] = "0123456789abcdef"


def killed_and_called_good(copy: Copy) -> None:
    for run in copy.of("container")[:2]:
        run["container"]["oom_killed"] = True


def energy_of_half_the_phase(copy: Copy) -> None:
    for run in copy.of("container"):
        run["metrics"]["gpu_energy_joule"]["value"] /= 2


def cooler_in_the_record(copy: Copy) -> None:
    for run in copy.of("container"):
        run["metrics"]["gpu_temp_max_celsius"]["value"] = 45.0


def processor_busy_with_something_else(copy: Copy) -> None:
    """A backup ran beside the container's runs: the processor is full while they are measured, and only then."""
    for run in copy.of("container"):
        start, end = measured(run)
        telemetry_column(
            copy,
            run,
            "cpu_percent",
            lambda t, v, start=start, end=end: 97.0 if start <= t <= end else v,
        )
        telemetry_column(copy, run, "pressure_cpu_some_percent", lambda _t, _v: 60.0)


def swapping_in_container(copy: Copy) -> None:
    for run in copy.of("container"):
        run["memory"]["peak"]["swap_used_gib"] = 12.0
        telemetry_column(copy, run, "swap_used_gib", lambda _t, _v: 12.0)


def requests_that_make_another_report(copy: Copy) -> None:
    """The requests of the container take 5 % less than its report says."""
    for run in copy.of("container"):
        document = copy.document(run, "requests")
        for request in document["requests"]:
            request["latency_ms"] *= 0.95
        copy.put(run, "requests", json.dumps(document).encode())


def answers_cut_short(copy: Copy) -> None:
    """Half of the requests gave 16 tokens; throughput still counts 32 for each."""
    for run in copy.of("native"):
        document = copy.document(run, "requests")
        for request in document["requests"][::2]:
            request["output_tokens"] = 16
        copy.put(run, "requests", json.dumps(document).encode())


def blanket_acknowledgement(copy: Copy) -> None:
    """Checks acknowledged before anything was found, with a reason that says nothing."""
    copy.info["acknowledged"] = [
        {"check": check, "cell": "*", "reason": "known"}
        for check in ("exit-status", "metric-mismatch", "copied-evidence", "roofline")
    ]


def power_above_what_the_card_may_draw(copy: Copy) -> None:
    for run in copy.of("native"):
        telemetry_column(copy, run, "gpu_power_watt", lambda _t, v: 6 * v)
        run["metrics"]["gpu_power_mean_watt"]["value"] *= 6


def real_weights_asked_random_measured(copy: Copy) -> None:
    for run in copy.runs:
        run["requested"]["random_weights"] = False


UNREAD = [
    Planted(
        "flash attention off in one environment",
        "unequal-environments",
        flash_attention_off_in_container,
        campaign="h200-llama",
    ),
    Planted(
        "layers left on the processor",
        "unequal-environments",
        layers_left_on_the_processor,
        campaign="h200-llama",
    ),
    Planted(
        "another build of the engine in one environment",
        "unequal-environments",
        another_build_in_container,
        campaign="h200-llama",
    ),
    Planted(
        "a quantized file under the name of f16",
        "unequal-environments",
        quantized_file_under_the_name_of_f16,
        campaign="h200-llama",
    ),
    Planted(
        "a quantized KV cache in one environment",
        "unequal-environments",
        quantized_cache_in_container,
        campaign="h200-llama",
    ),
    Planted(
        "the slowest repetition dropped",
        "inconsistent-report",
        slowest_repetition_dropped_in_container,
        campaign="h200-llama",
    ),
    Planted(
        "another GPU in the log",
        "metric-mismatch",
        another_gpu_in_the_log,
        campaign="h200-llama",
    ),
    Planted(
        "a log of another day",
        "time-consistency",
        log_of_another_day,
        campaign="h200-llama",
    ),
    Planted(
        "a depth that was not reached",
        "not-as-requested",
        depth_not_reached,
        campaign="h200-llama",
    ),
    Planted(
        "a server without graphs in one environment",
        "unequal-environments",
        server_without_graphs,
        campaign="h200-vllm",
    ),
    Planted(
        "a client that talked to the other server",
        "not-as-requested",
        client_of_the_other_server,
        campaign="h200-vllm",
    ),
    Planted(
        "half of the requests failed",
        "failed-requests",
        requests_failed,
        campaign="h200-vllm",
    ),
    Planted(
        "requests at a rate in one environment",
        "unequal-environments",
        load_at_a_rate,
        campaign="h200-vllm",
    ),
    Planted(
        "fewer requests in flight than asked",
        "unequal-environments",
        fewer_in_flight,
        campaign="h200-vllm",
    ),
    Planted(
        "answers that may end early in one environment",
        "unequal-environments",
        answers_that_may_end_early,
        campaign="h200-vllm",
    ),
    Planted(
        "a server on another machine",
        "unequal-environments",
        another_machine_served,
        campaign="h200-vllm",
    ),
    Planted(
        "a GPU that idles while it serves",
        "foreign-telemetry",
        gpu_idle_while_it_served,
        campaign="h200-vllm",
    ),
    Planted(
        "another precision in one environment",
        "unequal-environments",
        another_precision_in_container,
        campaign="h200-vllm",
    ),
    Planted(
        "a report of another day",
        "time-consistency",
        report_of_another_day,
        campaign="h200-vllm",
    ),
    Planted(
        "a variable that was not what its environment sets",
        "not-as-requested",
        one_variable_in_one_environment,
        campaign="h200-vllm",
    ),
    Planted(
        "answers half as long as counted",
        "inconsistent-report",
        tokens_missing,
        campaign="h200-vllm",
    ),
    Planted("a gate met at 84 degrees", "thermal-gate", gate_met_at_84_degrees),
    Planted("another GPU halfway", "mixed-machines", another_gpu_halfway),
    Planted("killed runs called good", "kernel-warning", killed_and_called_good),
    Planted(
        "the energy of half the phase", "foreign-telemetry", energy_of_half_the_phase
    ),
    Planted(
        "a temperature that the telemetry contradicts",
        "foreign-telemetry",
        cooler_in_the_record,
    ),
    Planted(
        "a processor busy with something else",
        "unequal-environments",
        processor_busy_with_something_else,
    ),
    Planted(
        "swapping in one environment", "unequal-environments", swapping_in_container
    ),
    Planted(
        "requests that make another report",
        "metric-mismatch",
        requests_that_make_another_report,
    ),
    Planted(
        "answers cut short in the list of requests",
        "metric-mismatch",
        answers_cut_short,
    ),
    Planted(
        "everything acknowledged beforehand",
        "acknowledgement",
        blanket_acknowledgement,
    ),
    Planted(
        "more power than the card may draw", "unit", power_above_what_the_card_may_draw
    ),
    Planted(
        "real weights asked for, random ones measured",
        "identity",
        real_weights_asked_random_measured,
    ),
]
