"""A Ray cluster on this machine: a head that does not measure, and nodes in processes of their own, each with notes and
a name of its own as if it were another machine. Everything listens on 127.0.0.1."""

import json
import os
import signal
import socket
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from sparkpub.collect.machine.processes import end
from sparkpub.plan.matrix import Matrix

PATIENT: dict[str, int] = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 2000,
    "health_check_failure_threshold": 8,
}
"""When Ray takes a node that does not answer for dead: in seconds and not in half a minute."""
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_worker_niceness": "0",
    "RAY_memory_monitor_refresh_ms": "0",
}
"""Ray tells nobody that it runs, and takes 127.0.0.1 for this machine's address as it does where it cannot span several
(its only switch for that)."""
STORE = 80 * 2**20


class Nodes:
    """The cluster. `add` and `kill` name a machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before = {name: os.environ.get(name) for name in QUIET}
        os.environ.update(QUIET)
        from ray.cluster_utils import Cluster

        self._nodes: dict[str, Any] = {}
        self._cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 0,
                "include_dashboard": False,
                "include_log_monitor": False,
                "object_store_memory": STORE,
                "metrics_agent_port": _free_port(),
                "_system_config": PATIENT,
            },
        )
        self.address: str = self._cluster.address

    def __enter__(self) -> "Nodes":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._cluster.shutdown()
        for name, value in self._before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value

    def add(self, name: str, **variables: str) -> None:
        """Start a machine, or start it again."""
        own = {"SPARKPUB_STATE": str(self.state(name)), "SPARKPUB_MACHINE": name}
        self._nodes[name] = self._cluster.add_node(
            num_cpus=1,
            resources={"sparkpub_gpu": 1},
            object_store_memory=STORE,
            metrics_agent_port=_free_port(),
            env_vars=own | variables,
        )

    def state(self, name: str) -> Path:
        """Where a machine keeps its notes and the runs that the head has not written yet."""
        return self._folder / name

    def kill(self, name: str) -> None:
        """End a machine at once, as a power cut does."""
        self._cluster.remove_node(self._nodes.pop(name), allow_graceful=False)

    def kill_head(self) -> None:
        """End the head of the cluster at once; nothing can be added any more."""
        for name in ("gcs_server", "raylet"):
            for entry in self._cluster.head_node.all_processes[name]:
                end([entry.process.pid], signal.SIGKILL)


def _free_port() -> int:
    """For a node's agent: where Ray chooses the port, a node ends whose agent takes more than 15 s to write it down."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def command(matrix: Matrix, nodes: Nodes, data: Path) -> list[str]:
    """The head as a process of its own."""
    data.mkdir(exist_ok=True)
    declared = data / "matrix.json"
    declared.write_text(json.dumps(matrix.document()))
    return [
        *(sys.executable, "-m", "sparkpub", "collect", str(declared)),
        *("--data", str(data), "--no-commit", "--on", nodes.address),
    ]
