"""Statistics on plain arrays: SciPy does the work, and each function names its source."""
