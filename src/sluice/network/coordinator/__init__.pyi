from .folder import Site
from .founding import REFERENCE, Plan, conductor, detector, found
from .hosting import hosted, wait_for_plants
from .importing import take_in
from .operations import Window, go_back, waive
from .store import Member, Store

__all__ = [
    "REFERENCE",
    "Member",
    "Plan",
    "Site",
    "Store",
    "Window",
    "conductor",
    "detector",
    "found",
    "go_back",
    "hosted",
    "take_in",
    "wait_for_plants",
    "waive",
]
