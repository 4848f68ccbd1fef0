"""What several tests of collecting need."""

import pytest

from sparkpub.collect import gates
from sparkpub.collect.machine import nvml
from tests.collect.fake_nvml import FakeNvml


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """A driver of one GPU, which gates look at often."""
    fake = FakeNvml()
    monkeypatch.setattr(nvml, "library", lambda: fake)
    monkeypatch.setattr(gates, "PACE", 0.02)
    return fake
