"""The one table of faults: what is planted into which campaign, and the check that finds it.

A new fault is a line in the list of its kind: of the clean campaign (`faults`), of copies of committed ones (`planted`,
`planted_unread`, and `planted_common` for those that hit both sides), of a client's own files (`planted_clients`) or of
what owners import (`planted_owners`).
"""

from tests.review.checks.faults import FAULTS, Fault
from tests.review.checks.planted import PLANTED, Planted
from tests.review.checks.planted_clients import CLIENTS, ImportFault
from tests.review.checks.planted_common import COMMON
from tests.review.checks.planted_owners import OWNERS, OwnerFault
from tests.review.checks.planted_unread import UNREAD

AnyFault = Fault | Planted | ImportFault | OwnerFault
TABLE: tuple[AnyFault, ...] = (
    *FAULTS,
    *PLANTED,
    *UNREAD,
    *CLIENTS,
    *COMMON,
    *OWNERS,
)
