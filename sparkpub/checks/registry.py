"""Every check by name: what it asks, what follows, and which others trip with it."""

from sparkpub.checks import coverage, integrity, values
from sparkpub.checks.finding import Check

_NO_RUN = frozenset({"unbalanced", "missing-cell"})

_ALL = [
    Check("schema", "happened", ("error",), "Can every record be read?", integrity.schema, _NO_RUN),
    Check("checksum", "happened", ("error",), "Is every piece of evidence the one that was recorded?",
          integrity.checksum),
    Check("exit-status", "happened", ("warning", "info"), "Did every run end well?", integrity.exit_status, _NO_RUN),
    Check("missing-report", "happened", ("error",), "Did the engine give its result?", integrity.missing_report),
    Check("missing-log", "happened", ("error", "warning"), "Is there a log to check the figures against?",
          integrity.missing_log),
    Check("metric-mismatch", "happened", ("error",), "Do log and report say what the record says?",
          integrity.metric_mismatch),
    Check("duplicate-iteration", "meaning", ("error",), "Does each iteration stand once?",
          coverage.duplicate_iteration, frozenset({"unbalanced"})),
    Check("missing-cell", "meaning", ("warning",), "Was every declared cell run?", coverage.missing_cell),
    Check("unbalanced", "meaning", ("warning",), "Has every cell the declared number of runs?", coverage.unbalanced),
    Check("unit", "meaning", ("error",), "Is every figure physically possible?", values.unit),
    Check("null-metric", "evidence", ("warning", "info"), "Is every metric there in at least one run?",
          values.null_metric),
]  # fmt: skip

CHECKS: dict[str, Check] = {check.name: check for check in _ALL}
