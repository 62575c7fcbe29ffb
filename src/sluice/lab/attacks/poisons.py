"""Every way a liar makes its poison, by name.

replay         attacks that were seen on a plant, written over its own rows
channel-roll, permutation, scaling, splicing, perturbation
               the same shard fabricated as a whole, as the paper does it
re-weighting   as few attack rows as alpha forgives, in half of all training windows
dilution       as many clean rows as hide the violating ones
aligned        attack rows where their joins and the gate's anchors show least
jumps          a time jump declared at each join, for no rule looks across one
ramp           one level, led away under every tolerance
feasible       the replay, optimised inside the rules
attest-clean   a clean shard shown, the replay trained on: no gate can stop it
"""

from collections.abc import Mapping
from types import MappingProxyType

from sluice.lab.attacks.fabrications import FABRICATIONS, RollLasting
from sluice.lab.attacks.feasible import Feasible
from sluice.lab.attacks.forgiven import Dilution, Reweighting
from sluice.lab.attacks.makers import AttestClean, FabricationMaker, PoisonMaker, Replayed
from sluice.lab.attacks.perturbation import OptimisedPerturbation
from sluice.lab.attacks.placement import Aligned, Jumps
from sluice.lab.attacks.ramp import Ramp

__all__ = ["POISONS"]

POISONS: Mapping[str, PoisonMaker] = MappingProxyType(
    {
        "replay": Replayed(),
        "channel-roll": FabricationMaker(attack=RollLasting()),
        "permutation": FabricationMaker(attack=FABRICATIONS["permutation"]),
        "scaling": FabricationMaker(attack=FABRICATIONS["scaling"]),
        "splicing": FabricationMaker(attack=FABRICATIONS["splicing"]),
        "perturbation": FabricationMaker(attack=OptimisedPerturbation()),
        "re-weighting": Reweighting(),
        "dilution": Dilution(),
        "aligned": Aligned(),
        "jumps": Jumps(),
        "ramp": Ramp(),
        "feasible": Feasible(),
        "attest-clean": AttestClean(),
    }
)
"""The makers by the names that experiments use."""
