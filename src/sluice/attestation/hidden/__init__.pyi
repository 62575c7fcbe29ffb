from .coordinator import GroupSums, HiddenContribution, proof_totals
from .elements import ORDER, Draw, Shape, added, element_bytes, expand, negated, vector_of
from .helper import Helper, share_taken
from .ledger import HelperLedger, helper_entry_digest
from .plant import demand_group
from .shares import SHARING_BYTES, CoordinatorShare, HelperShare, SharedSums, share_sums

__all__ = [
    "ORDER",
    "SHARING_BYTES",
    "CoordinatorShare",
    "Draw",
    "GroupSums",
    "Helper",
    "HelperLedger",
    "HelperShare",
    "HiddenContribution",
    "Shape",
    "SharedSums",
    "added",
    "demand_group",
    "element_bytes",
    "expand",
    "helper_entry_digest",
    "negated",
    "proof_totals",
    "share_sums",
    "share_taken",
    "vector_of",
]
