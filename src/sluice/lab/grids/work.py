"""A piece of work: everything one federation of a grid depends on, and nothing else."""

import hashlib
import json
from dataclasses import dataclass

from pydantic import TypeAdapter

from sluice.detector import Descent
from sluice.lab.attacks import POISONS, UPDATE_ATTACKS
from sluice.lab.grids.gridfile import TrainingTable
from sluice.lab.grids.sources import RecordSource
from sluice.lab.trials import Adversary, Mode, Setup

__all__ = ["Work", "WorkLayout", "work_from_json", "work_to_json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkLayout:
    """What cells of one seed share: the record, how it is shared out, how it is learnt from."""

    record: RecordSource
    clients: int
    liars: int
    target_share: float
    training: TrainingTable
    screened: bool  # whether plants drop windows that the hardened rules find violating
    seed: int

    @property
    def setup(self) -> Setup:
        """The layout in the scenario's own words."""
        return Setup(
            clients=self.clients,
            liars=self.liars,
            rounds=self.training.rounds,
            detector=self.training.detector,
            descent=Descent(epochs=self.training.epochs, batch=self.training.batch),
            target_share=self.target_share,
        )

    @property
    def id(self) -> str:
        """A name that only equal layouts share: content in place of paths and record names."""
        told = _LAYOUT.dump_python(self, mode="json")
        for place in ("name", "clean", "test"):
            del told["record"][place]
        return _digest(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One federation: a layout with its rule, mode, and the attack and rules that matter there."""

    layout: WorkLayout
    rule: str
    mode: str
    attack: str | None
    invariants: str | None

    @property
    def id(self) -> str:
        """A name that only equal work shares."""
        return _digest([self.layout.id, self.rule, self.mode, self.attack, self.invariants])


_LAYOUT = TypeAdapter(WorkLayout)
_WORK = TypeAdapter(Work)


def work_to_json(work: Work) -> str:
    """Write work down, in full."""
    return _WORK.dump_json(work).decode()


def work_from_json(text: str) -> Work:
    """Read work that was written down."""
    return _WORK.validate_json(text)


def minds_rules(mode: Mode, attack: str | None) -> bool:
    """Whether a mode's outcome depends on a rule set: at its door, or in what its liars bring."""
    if mode.gated:
        return True
    if attack is None or attack in UPDATE_ATTACKS or attack not in POISONS:
        return False
    return mode.adversary is Adversary.PROJECTED or POISONS[attack].shaped


def _digest(told: object) -> str:
    canonical = json.dumps(told, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()
