"""Every way a malicious client makes its poison, by name.

replay         attacks recorded on a plant, written over the client's own rows
channel-roll, permutation, scaling, splicing, perturbation
               the same shard fabricated as a whole, as the paper does it
re-weighting   no more attack rows than alpha forgives, in half of all training windows
dilution       attack rows padded with clean ones until alpha forgives the violating rows
aligned        attack rows planted where their joins and the gate's anchors reveal least
jumps          a time jump declared at each join, because no rule reads across a jump
ramp           one level that drifts within every tolerance
feasible       the replay, optimised within the rules
attest-clean   a clean shard shown, the replay trained on: no gate can stop it
offset, low-pass, ar-noise, channel-swap, tank-swap, idle-flip, untied-replay, shaped-replay,
foreign-simulator
               a shard tampered with where the rules do not look, as strongly as the gate admits
"""

from sluice.lab.attacks.fabrications import FABRICATIONS, RollLasting
from sluice.lab.attacks.feasible import Feasible
from sluice.lab.attacks.forgiven import Dilution, Reweighting
from sluice.lab.attacks.makers import AttestClean, FabricationMaker, PoisonMaker, Replayed
from sluice.lab.attacks.perturbation import OptimisedPerturbation
from sluice.lab.attacks.placement import Aligned, Jumps
from sluice.lab.attacks.ramp import Ramp
from sluice.lab.attacks.tampering import TAMPERINGS, Tampered
from sluice.lab.attacks.updates import UPDATE_ATTACKS
from sluice.plugins import Registry

__all__ = ["POISONS"]

POISONS: Registry[PoisonMaker] = Registry(
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
        **{name: Tampered(name=name) for name in TAMPERINGS},
    },
    group="sluice.attacks",
    reserved=(*UPDATE_ATTACKS, "blend"),
    adapt=lambda attack: FabricationMaker(attack=attack),
)
"""The makers by the names that experiments use."""
