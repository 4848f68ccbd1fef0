"""What the documents of the study say of its method."""

SHAPES = {
    "t1": (1, 128, 32),
    "t2": (1, 512, 128),
    "t3": (1, 2048, 512),
    "t4": (4, 512, 128),
    "t5": (16, 512, 128),
    "t6": (32, 512, 128),
}
"""The workloads of the methodology: sequences in a batch, tokens of their prompts, tokens of their answers."""
