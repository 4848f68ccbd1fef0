"""What is to be measured: matrices, the runs they plan, and the workloads."""
