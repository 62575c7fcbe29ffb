from .artifact_cache import KEPT, Shelf
from .cell import CellResult, Score, result_of, run_cell, score_of
from .contributions import BLEND, Contributions, NamedGate
from .gain import simulated_gain
from .modes import MODES, Adversary, Mode, Roster
from .scenario import Scenario, Setup, client_names, liars_of, scenario
from .trial import Finished, Plan, Trial

__all__ = [
    "BLEND",
    "KEPT",
    "MODES",
    "Adversary",
    "CellResult",
    "Contributions",
    "Finished",
    "Mode",
    "NamedGate",
    "Plan",
    "Roster",
    "Scenario",
    "Score",
    "Setup",
    "Shelf",
    "Trial",
    "client_names",
    "liars_of",
    "result_of",
    "run_cell",
    "scenario",
    "score_of",
    "simulated_gain",
]
