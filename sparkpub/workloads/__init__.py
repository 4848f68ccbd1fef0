"""The benchmark tools sparkpub knows. Adding one = a module here, a line below, a fixture in tests."""

from sparkpub.workloads.base import Workload
from sparkpub.workloads.command import AnyCommand
from sparkpub.workloads.generate import Generate
from sparkpub.workloads.llama_bench import LlamaBench
from sparkpub.workloads.matmul import Matmul
from sparkpub.workloads.trtllm_bench import TrtllmBench
from sparkpub.workloads.vllm_bench import VllmBench

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (Matmul(), Generate(), AnyCommand(), TrtllmBench(), VllmBench(), LlamaBench())
}
