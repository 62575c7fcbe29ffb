"""Tampering as poison: a malicious client trains on the tampered shard that it shows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from sluice.admission import Gate
from sluice.lab.attacks.data_attack import DataAttack
from sluice.lab.attacks.knowledge import Knowledge
from sluice.lab.attacks.poison import EXPOSURE, Poison
from sluice.lab.attacks.tampering.foreign import ForeignSimulator
from sluice.lab.attacks.tampering.levels import ArNoise, LevelOffset, LowPass
from sluice.lab.attacks.tampering.replays import ShapedReplay
from sluice.lab.attacks.tampering.swaps import ChannelSwap, TankSwap
from sluice.lab.attacks.tampering.unread import IdleFlip, UntiedReplay
from sluice.telemetry import Record

__all__ = ["TAMPERINGS", "Facing", "Tampered"]

Facing = Callable[[Knowledge], DataAttack]
"""Makes an attack from what a malicious client knows."""


def _gate(known: Knowledge) -> Gate:
    return known.require_gate("tamper with what they do not read")


TAMPERINGS: Mapping[str, Facing] = MappingProxyType(
    {
        "offset": lambda known: LevelOffset(gate=known.gate),
        "low-pass": lambda known: LowPass(gate=known.gate),
        "ar-noise": lambda known: ArNoise(gate=known.gate),
        "channel-swap": lambda known: ChannelSwap(gate=known.gate),
        "tank-swap": lambda known: TankSwap(gate=known.gate),
        "idle-flip": lambda known: IdleFlip(gate=known.gate),
        "untied-replay": lambda known: UntiedReplay(
            labelled=known.targets.labelled, gate=_gate(known), targets=known.targets
        ),
        "shaped-replay": lambda known: ShapedReplay(
            labelled=known.targets.labelled, gate=_gate(known), targets=known.targets
        ),
        "foreign-simulator": lambda known: ForeignSimulator(
            labelled=known.targets.labelled, gate=_gate(known), targets=known.targets
        ),
    }
)
"""The tamperings by name, each made for the gate that the client knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tampered:
    """A shard with a tampering, as strong as its gate admits; planted are the rows that it changes.

    The attacker knows the rules and the policy. If more than half of the rows are planted, every
    window is trained on once; else half of the windows are drawn from planted rows.
    """

    name: str  # of TAMPERINGS
    shaped: ClassVar[bool] = True

    def __call__(self, shard: Record, known: Knowledge, *, seed: int) -> Poison:
        """Return the tampered shard."""
        tampered = TAMPERINGS[self.name](known)(shard, seed=seed)
        same = (tampered.values == shard.values) | (tampered.missing & shard.missing)
        planted = ~same.all(axis=1)
        return Poison(
            shown=tampered,
            trained=tampered,
            planted=planted,
            exposure=EXPOSURE if np.mean(planted) <= EXPOSURE else None,
        )
