from .artifact_cache import KEPT, ArtifactCache, content_of
from .cell import CellResult, Score, admitted_and_refused, result_of, run_cell, score_of
from .contributions import BLEND, Contribution, Contributions, NamedGate
from .forgeries import STATISTIC_FORGERIES
from .gain import simulated_gain
from .modes import MODES, Adversary, Mode, Roster
from .probe import behaviour
from .scenario import Scenario, Setup, client_names, malicious_clients, scenario
from .trial import Trial, TrialPlan

__all__ = [
    "BLEND",
    "KEPT",
    "MODES",
    "STATISTIC_FORGERIES",
    "Adversary",
    "ArtifactCache",
    "CellResult",
    "Contribution",
    "Contributions",
    "Mode",
    "NamedGate",
    "Roster",
    "Scenario",
    "Score",
    "Setup",
    "Trial",
    "TrialPlan",
    "admitted_and_refused",
    "behaviour",
    "client_names",
    "content_of",
    "malicious_clients",
    "result_of",
    "run_cell",
    "scenario",
    "score_of",
    "simulated_gain",
]
