from .exporting import export_statistics
from .folder import CoordinatorFolder
from .founding import REFERENCE, FederationPlan, coordinator_service, detector, found_federation
from .hosting import hosted, wait_for_plants
from .importing import take_in
from .operations import (
    TakenOut,
    WaivedInterval,
    abandon,
    go_back,
    shadow_order_for,
    take_out,
    waiver_for,
)
from .provisional import provisional_rules
from .recovery import complete_recovery, prepare_recovery
from .rotation import (
    ending_certificates,
    refused_calls,
    reissue_authority,
    reissue_plant,
    reissue_server,
    retire_authorities,
)
from .states import PlantState, PlantWord, plant_state, round_in_words, round_progress
from .store import CoordinatorStore, Member

__all__ = [
    "REFERENCE",
    "CoordinatorFolder",
    "CoordinatorStore",
    "FederationPlan",
    "Member",
    "PlantState",
    "PlantWord",
    "TakenOut",
    "WaivedInterval",
    "abandon",
    "complete_recovery",
    "coordinator_service",
    "detector",
    "ending_certificates",
    "export_statistics",
    "found_federation",
    "go_back",
    "hosted",
    "plant_state",
    "prepare_recovery",
    "provisional_rules",
    "refused_calls",
    "reissue_authority",
    "reissue_plant",
    "reissue_server",
    "retire_authorities",
    "round_in_words",
    "round_progress",
    "shadow_order_for",
    "take_in",
    "take_out",
    "wait_for_plants",
    "waiver_for",
]
