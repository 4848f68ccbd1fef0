"""Every threshold of the review, in one place, with the reason for its value.

False alarms are budgeted per campaign: of clean campaigns at most 5 % may raise any warning. Only tests that
can err by chance draw on the budget (`DRIFT_ALPHA`, `TRANSIENT_ALPHA` and `OUTLIER_ALPHA` add up to 4.5 %), and each
of them is corrected for all the cells and metrics it looks at: Holm for drift, Bonferroni for outliers.
"""

from sparkpub.record import identity

RELATIVE_TOLERANCE = 1e-6
"""A recorded figure and the same figure read again from its evidence: floats printed and parsed, nothing else."""

# -- what a figure can be ----------------------------------------------------------------------------------

IDENTITY_TOLERANCE = identity.TOLERANCE
"""Relative difference in parameters or KV bytes per token that rounding in logs explains."""

WEIGHTS_TOLERANCE = identity.WEIGHTS_TOLERANCE
"""Relative difference in weight bytes that padding and unquantised layers explain: TensorRT-LLM loads 4 % more than
the files of gpt-oss-120b hold."""

ROOFLINE_SUSPICIOUS = 0.85
"""Share of nominal bandwidth from which a figure needs explaining: good engines reach 60 to 85 %."""

SAME_NUMBERS_MARGIN_PERCENT = 2.0
"""Two models whose throughput is equivalent within this margin have the same number."""

SAME_NUMBERS_BYTES_RATIO = 1.5
"""Bytes read per step that differ by more than this should show in a throughput that memory bounds."""

SAME_NUMBERS_BOUND_BY_MEMORY = 0.5
"""Share of the machine's bandwidth that the larger model implies, from which equal numbers are an error and not only
a warning: below it both models may wait for something else, such as kernel launches."""

REPORT_TOLERANCE = 0.01
"""Relative difference that identities within one report may show: its figures are rounded."""

# -- how figures vary --------------------------------------------------------------------------------------

DEPENDENCE_R_SQUARED = 0.99999
"""Share of one metric's variation that another explains over all runs of a workload, from which they are one."""

DEPENDENCE_R_SQUARED_WITHIN = 0.999
"""The same within cells, so that two metrics are not called one because both grow with the model."""

DEPENDENCE_ROUNDING = 1.5
"""Or: no run further from the line than this many times what the rounding of both figures explains."""

DEPENDENCE_RUNS = 8
"""Runs below which a fit says nothing about exactness."""

DRIFT_ALPHA = 0.02
"""Chance that any metric of any cell of a clean campaign is said to drift (Mann-Kendall, Holm)."""

TRANSIENT_ALPHA = 0.015
"""Chance that the first runs of a clean campaign are said to stand out (exact permutation test, Holm)."""

OUTLIER_ALPHA = 0.01
"""Chance that any run of a clean campaign is called an outlier (Grubbs or generalised ESD, Bonferroni)."""

MATERIAL_SHARE_OF_MARGIN = 0.5
"""A drift from first to last run, or an outlier's distance, matters from this share of the equivalence margin on:
three identical readings and a fourth 0.01 % away are remarkable to a test and to nobody else."""

TOO_MANY_OUTLIERS_PERCENT = 5.0
TOO_MANY_OUTLIERS_RUNS = 20
"""More than 5 % outliers, asked from 20 runs on: one of 20 is 5 %."""

HIGH_VARIATION_PERCENT = 5.0
"""Coefficient of variation that the methodology accepts as repeatable."""

EFFECTIVE_RUNS = 4.0
"""Runs, or runs' worth under autocorrelation, that carry a statement (`analysis.describe.MINIMUM_RUNS`)."""

POWER = 0.8
"""Power against a 10 % difference that the methodology asks for."""

CONFOUND_RUNS = 3
"""Runs on each side below which separate blocks of time are unavoidable."""

CONFOUND_ALPHA = 0.001
"""A seeded random order may separate environments by chance; it is reported only where that chance is below this."""

# -- under which conditions --------------------------------------------------------------------------------

START_TEMPERATURE_CELSIUS = 45.0
"""Start temperature of the methodology, for runs whose gate is not recorded."""

SLOW_CLOCK_SHARE = 0.5
"""Share of the maximum SM clock under load below which the clock is stuck. A DGX Spark with a badly negotiated power
supply runs at 500 to 850 of some 2,400 MHz."""

LOAD_PERCENT = 50.0
"""GPU utilisation from which a sample counts as under load."""

THROTTLED_SHARE = 0.01
"""Share of samples under load with a thermal or hardware slowdown: one of a hundred is no accident of sampling."""

TELEMETRY_GAP_INTERVALS = 5.0
TELEMETRY_GAP_SECONDS = 2.0
"""A gap is longer than this many sampling intervals and than this many seconds: sensors answer late under load."""

POWER_CAPPED_SHARE = 0.5
"""Share of samples under load at the power limit from which it is worth a note."""
