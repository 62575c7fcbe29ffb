"""Every way a liar makes its poison, by name.

replay         attacks that were seen on a plant, written over its own rows
channel-roll, permutation, scaling, splicing, perturbation
               the same shard fabricated as a whole, as the paper does it
attest-clean   a clean shard shown, the replay trained on: no gate can stop it
"""

from collections.abc import Mapping
from types import MappingProxyType

from sluice.attacks.fabrications import FABRICATIONS, RollLasting
from sluice.attacks.makers import AttestClean, Fabricated, PoisonMaker, Replayed
from sluice.attacks.perturbation import OptimisedPerturbation

__all__ = ["POISONS"]

POISONS: Mapping[str, PoisonMaker] = MappingProxyType(
    {
        "replay": Replayed(),
        "channel-roll": Fabricated(attack=RollLasting()),
        "permutation": Fabricated(attack=FABRICATIONS["permutation"]),
        "scaling": Fabricated(attack=FABRICATIONS["scaling"]),
        "splicing": Fabricated(attack=FABRICATIONS["splicing"]),
        "perturbation": Fabricated(attack=OptimisedPerturbation()),
        "attest-clean": AttestClean(),
    }
)
"""The makers by the names that experiments use."""
