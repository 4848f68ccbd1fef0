"""The examples of the matrix reference."""

import pytest
import yaml
from pydantic import TypeAdapter

from sparkpub.plan.workloads import WORKLOADS, WorkloadOptions
from sparkpub.site.pages import reference

NO_LONGER_RUN = {"generate", "openai-endpoint"}


@pytest.mark.parametrize("name", sorted(WORKLOADS.keys() - NO_LONGER_RUN))
def test_every_workload_has_an_example_that_can_be_copied(name: str) -> None:
    shown = reference.example(WORKLOADS[name].options)
    options = TypeAdapter(WorkloadOptions).validate_python(yaml.safe_load(shown))
    assert options.type == name
    assert f"### `{name}`" in reference.of("workloads")
    assert f"```yaml\n{shown}\n```" in reference.of("workloads")
