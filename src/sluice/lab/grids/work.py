"""A piece of work: exactly the settings on which one federation of a grid depends."""

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
    """What the cells of one seed share: the record, its split among clients, the training."""

    record: RecordSource
    clients: int
    liars: int
    target_share: float
    training: TrainingTable
    screened: bool  # whether plants drop windows that violate the hardened rules
    seed: int

    @property
    def setup(self) -> Setup:
        """The layout as the settings of a scenario."""
        return Setup(
            clients=self.clients,
            malicious=self.liars,
            rounds=self.training.rounds,
            detector=self.training.detector,
            descent=Descent(epochs=self.training.epochs, batch=self.training.batch),
            target_share=self.target_share,
        )

    @property
    def id(self) -> str:
        """A digest of the layout; the record's content replaces its paths and its name."""
        document = _LAYOUT.dump_python(self, mode="json")
        for key in ("name", "clean", "test"):
            del document["record"][key]
        return _digest(document)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One federation: a layout, rule and mode, and the attack and rule set that affect it."""

    layout: WorkLayout
    rule: str
    mode: str
    attack: str | None
    invariants: str | None

    @property
    def id(self) -> str:
        """A digest of everything that decides the result."""
        return _digest([self.layout.id, self.rule, self.mode, self.attack, self.invariants])


_LAYOUT = TypeAdapter(WorkLayout)
_WORK = TypeAdapter(Work)


def work_to_json(work: Work) -> str:
    """Return the work as JSON."""
    return _WORK.dump_json(work).decode()


def work_from_json(text: str) -> Work:
    """Read work from JSON."""
    return _WORK.validate_json(text)


def depends_on_rules(mode: Mode, attack: str | None) -> bool:
    """Whether the result depends on a rule set, through the gate or through adaptive poison."""
    if mode.gated:
        return True
    if attack is None or attack in UPDATE_ATTACKS or attack not in POISONS:
        return False
    return mode.adversary is Adversary.PROJECTED or POISONS[attack].shaped


def _digest(document: object) -> str:
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()
