"""What the data show: the tidy table, statistics, checks and claims."""
