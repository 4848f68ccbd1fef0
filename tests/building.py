"""Small valid things to damage in tests."""

from collections.abc import Mapping
from typing import Any

from sparkpub.record.metrics import METRICS
from sparkpub.record.record import MetricValue, Moment, Plan, Record, Requested


def a_record(metrics: Mapping[str, float] | None = None, **fields: Any) -> Record:
    """A valid record; `metrics` maps known names to values, `fields` replaces record fields."""
    values = {
        name: MetricValue(value=float(value), unit=METRICS[name].unit, source="log")
        for name, value in (metrics or {"output_throughput_tok_s": 100.0}).items()
    }
    chosen: dict[str, Any] = {
        "run_id": "c-native_m_w_iter01_20261120T100000Z",
        "campaign": "c",
        "model": "m",
        "environment": "native",
        "workload": "w",
        "iteration": 1,
        "status": "ok",
        "plan": Plan(position=0, order="interleaved"),
        "started": Moment(value="2026-11-20T10:00:00Z", zone="utc"),
        "requested": Requested(
            model_id=f"x/{fields.get('model', 'm')}",
            workload={"type": "command"},
            environment={"type": "host"},
        ),
        "metrics": values,
    }
    return Record(**(chosen | fields))
