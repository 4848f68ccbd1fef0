"""The collector: gates, the run, its telemetry, and records that survive whatever happens to the machine."""
