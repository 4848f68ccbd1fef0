"""The benchmark tools sparkpub knows. Adding one = a module here, a line below, a fixture in tests."""

from sparkpub.workloads.base import Workload

WORKLOADS: dict[str, Workload] = {}
