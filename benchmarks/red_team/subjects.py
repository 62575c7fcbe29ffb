"""The plants of the red team, and the gates that their attackers face."""

from collections.abc import Callable, Mapping

from benchmarks.evidence.study import DESCENT, Study, batadal, treatment
from sluice.admission import Gate, HardenedPolicy, PaperPolicy
from sluice.invariants import Profile
from sluice.invariants.mining import mine, mine_hardened
from sluice.lab.plants import simulate
from sluice.lab.trials import NamedGate, Scenario, Setup

__all__ = ["FIRST_KINDS", "GATES", "HARDENED", "PLANTS", "gate_of"]

HARDENED = "hardened"
FIRST_KINDS = "first kinds"
GATES = ("paper", FIRST_KINDS, HARDENED)
"""`first kinds` has the rules that the first edition knew: couplings, balances, windows, ranges."""


def _line(seed: int) -> Study:
    """Three tanks in a line, every minute: five clients, two of them malicious."""
    return Study(
        name="line",
        clean=simulate("line", seed=seed, days=20),
        test=simulate("line", seed=seed + 1, days=6, attacks=True),
        setup=Setup(clients=5, malicious=2, descent=DESCENT),
        seeds=8,
    )


def _network(seed: int) -> Study:
    """A simulated network with four tanks, hourly: five clients, two of them malicious."""
    return Study(
        name="network:Terraces",
        clean=simulate("network:Terraces", seed=seed, days=400),
        test=simulate("network:Terraces", seed=seed + 1, days=60, attacks=True),
        setup=Setup(clients=5, malicious=2, descent=DESCENT),
        seeds=8,
    )


PLANTS: Mapping[str, Callable[[int], Study]] = {
    "BATADAL": lambda _: batadal(),
    "treatment": treatment,
    "line": _line,
    "network:Terraces": _network,
}


def gate_of(name: str, shared: Scenario) -> NamedGate:
    """Mine a gate's rules on the clean slices that no client owns."""
    fit, calibration = shared.parts.fit, shared.parts.calibration
    if name == "paper":
        rules = mine(fit, calibration, profile=Profile.PAPER_WIDE)
        return NamedGate(name=name, gate=Gate.of(rules, PaperPolicy()))
    if name == FIRST_KINDS:
        rules = mine_hardened(fit, calibration, kinds=frozenset()).rules
    else:
        rules = mine(fit, calibration, profile=Profile.HARDENED)
    return NamedGate(name=name, gate=Gate.of(rules, HardenedPolicy()))
