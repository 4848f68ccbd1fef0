"""Every check by name: what it asks, what follows, and which others trip with it."""

from sparkpub.review.checks import completeness, conditions, dependence, integrity, order, proofs, spread, values
from sparkpub.review.checks.finding import Check

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
          completeness.duplicate_iteration, frozenset({"unbalanced"})),
    Check("missing-cell", "meaning", ("warning",), "Was every declared cell run?", completeness.missing_cell),
    Check("unbalanced", "meaning", ("warning",), "Has every cell the declared number of runs?",
          completeness.unbalanced),
    Check("unit", "meaning", ("error",), "Is every figure physically possible?", values.unit),
    Check("null-metric", "evidence", ("warning", "info"), "Is every metric there in at least one run?",
          values.null_metric),
    Check("identity", "meaning", ("error", "warning"), "Does the run show the model that was asked for?",
          proofs.identity),
    Check("does-not-fit", "meaning", ("error",), "Do weights and KV cache fit the machine?", proofs.does_not_fit),
    Check("roofline", "meaning", ("error", "warning"), "Can the machine's memory be that fast?", proofs.roofline),
    Check("same-numbers", "meaning", ("error", "warning"), "Do different models give different numbers?",
          proofs.same_numbers),
    Check("dependent-metrics", "meaning", ("warning",), "Is each metric a measurement of its own?",
          dependence.dependent_metrics),
    Check("drift", "meaning", ("warning",), "Are the runs of a cell alike whenever they ran?", order.drifts,
          frozenset({"small-sample"})),
    Check("order-confound", "meaning", ("error",), "Did the environments take turns?", order.order_confound),
    Check("outlier", "meaning", ("warning",), "Does any run stand apart from its cell?", spread.outlier),
    Check("too-many-outliers", "meaning", ("warning",), "Are outliers rare?", spread.too_many_outliers,
          frozenset({"outlier"})),
    Check("high-variation", "meaning", ("warning",), "Do runs repeat within 5 %?", spread.high_variation),
    Check("small-sample", "meaning", ("warning",), "Are there runs enough for what is said?", spread.small_sample),
    Check("inconsistent-report", "meaning", ("error", "info"), "Does every report agree with itself?",
          values.inconsistent_report),
    Check("thermal-gate", "evidence", ("warning",), "Did every run start cool?", conditions.thermal_gate),
    Check("throttled", "evidence", ("warning", "info"), "Did the GPU run as fast as it can?", conditions.throttled),
    Check("slow-clock", "evidence", ("warning",), "Was the clock what the GPU can do?", conditions.slow_clock),
    Check("foreign-load", "evidence", ("warning",), "Was the run alone on the machine?", conditions.foreign_load),
    Check("leak", "evidence", ("warning",), "Did memory stay level, and come back after the run?", conditions.leak),
    Check("kernel-warning", "evidence", ("warning",), "Were kernel and driver content?", conditions.kernel_warning),
    Check("telemetry-gap", "evidence", ("warning",), "Are the samples complete?", conditions.telemetry_gap),
    Check("mixed-machines", "meaning", ("error", "warning"), "Is what was pooled and compared of one machine?",
          conditions.mixed_machines),
    Check("unbound-number", "prose", ("error",), "Does every figure in the text come from data or from facts.yaml?"),
    Check("claim", "prose", ("error",), "Do the data still say what the text was written for?"),
    Check("dead-evidence", "prose", ("error",), "Does every link to evidence lead to it?"),
]  # fmt: skip

CHECKS: dict[str, Check] = {check.name: check for check in _ALL}
