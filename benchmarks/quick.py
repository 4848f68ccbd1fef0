"""A campaign of 60 real runs that do almost nothing: what is left is what sparkpub itself costs."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = (
    "import random, sys; random.seed(sys.argv[1] + sys.argv[2]); rate = random.gauss(float(sys.argv[3]), 1)\n"
    "print(f'throughput: {rate:.3f}'); print(f'latency: {8e5 / rate:.3f}'); print(f'peak: {20 + rate / 9:.3f}')"
)
ARGV = ["{python}", "-c", PROGRAM, "{iteration}", "{seed}"]
WORDS = {
    "throughput": "output_throughput_tok_s",
    "latency": "request_latency_mean_ms",
    "peak": "peak_memory_gib",
}
"""Word in the log to metric."""
GATES = {
    "cooldown": 0,
    "max_wait": 0,
    "max_start_temp_celsius": None,
    "max_gpu_temp_celsius": None,
    "max_cpu_percent": None,
    "min_free_memory_percent": None,
    "min_free_disk_gib": None,
    "exclusive_gpu": False,
}


def matrix(campaign: str = "quick", iterations: int = 10) -> dict[str, object]:
    """Three models, two environments; all of it on the host."""
    metrics = {metric: {"regex": rf"{word}: (\S+)"} for word, metric in WORDS.items()}
    return {
        "campaign": campaign,
        "title": "Runs that do almost nothing",
        "models": {f"m{n}": {"id": f"none/{n}"} for n in range(3)},
        "environments": {"native": {"type": "host"}, "same": {"type": "host"}},
        "workloads": {
            "quick": {"type": "command", "argv": [*ARGV, "100"], "metrics": metrics}
        },
        "iterations": iterations,
        "gates": GATES,
        "telemetry": {"interval": 0.05},
    }


def collect(folder: Path, iterations: int = 10) -> Path:
    """Run the campaign through the real `sparkpub collect`; the data folder."""
    path = folder / "quick.yaml"
    path.write_text(json.dumps(matrix(iterations=iterations)))  # JSON is YAML
    data = folder / "data"
    data.mkdir(exist_ok=True)
    argv = [
        sys.executable,
        "-m",
        "sparkpub",
        "collect",
        str(path),
        "--data",
        str(data),
        "--no-commit",
    ]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return data
