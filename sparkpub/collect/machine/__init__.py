"""What Linux says of this machine's processes, control groups and memory. Light: the sampler is built from it."""
