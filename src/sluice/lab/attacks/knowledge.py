"""What a liar knows when it makes its poison."""

from dataclasses import dataclass

from sluice.admission import Gate, PaperPolicy, Policy
from sluice.errors import SettingError
from sluice.lab.attacks.replay import Targets

__all__ = ["Knowledge"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Knowledge:
    """The attacks it wants overlooked and, where there is one that it knows, the gate it faces."""

    targets: Targets
    gate: Gate | None = None

    @property
    def policy(self) -> Policy:
        """The gate's policy; the paper's where there is no gate."""
        return self.gate.policy if self.gate else PaperPolicy()

    def gate_to(self, do: str) -> Gate:
        """Return the gate, which an attacker needs to do what it does."""
        if self.gate is None:
            raise SettingError(f"it takes a gate's rules to {do}; give it some")
        return self.gate
