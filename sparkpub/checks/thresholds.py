"""Every threshold of the review, in one place, with the reason for its value.

False alarms are budgeted per campaign: of clean campaigns at most 5 % may raise any warning. Only tests that
can err by chance draw on the budget; each family below corrects for all the cells and metrics it looks at.
"""

RELATIVE_TOLERANCE = 1e-6
"""A recorded figure and the same figure read again from its evidence: floats printed and parsed, nothing else."""
