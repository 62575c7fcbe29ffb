from .folder import CoordinatorFolder
from .founding import REFERENCE, FederationPlan, coordinator_service, detector, found_federation
from .hosting import hosted, wait_for_plants
from .importing import take_in
from .operations import WaivedInterval, abandon, go_back, waive
from .store import CoordinatorStore, Member

__all__ = [
    "REFERENCE",
    "CoordinatorFolder",
    "CoordinatorStore",
    "FederationPlan",
    "Member",
    "WaivedInterval",
    "abandon",
    "coordinator_service",
    "detector",
    "found_federation",
    "go_back",
    "hosted",
    "take_in",
    "wait_for_plants",
    "waive",
]
