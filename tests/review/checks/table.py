"""The one table of faults: what is planted into which campaign, and the check that finds it.

A new fault is a line in the list of its kind: of the clean campaign (`faults`), of copies of committed ones
(`planted`), or of what owners import (`planted_owners`).
"""

from tests.review.checks.faults import FAULTS, Fault
from tests.review.checks.planted import PLANTED, Planted
from tests.review.checks.planted_owners import OWNERS, OwnerFault

AnyFault = Fault | Planted | OwnerFault
TABLE: tuple[AnyFault, ...] = (*FAULTS, *PLANTED, *OWNERS)
