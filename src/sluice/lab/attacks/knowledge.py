"""What a malicious client knows when it makes its poison."""

from dataclasses import dataclass

from sluice.admission import Gate, PaperPolicy, Policy
from sluice.errors import SettingError
from sluice.lab.attacks.replay import Targets

__all__ = ["Knowledge"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Knowledge:
    """The attacks it wants overlooked, and the gate it faces if it knows one."""

    targets: Targets
    gate: Gate | None = None

    @property
    def policy(self) -> Policy:
        """The gate's policy; without a gate, the paper's."""
        return self.gate.policy if self.gate else PaperPolicy()

    def require_gate(self, purpose: str) -> Gate:
        """Return the gate; raise SettingError if there is none."""
        if self.gate is None:
            raise SettingError(
                f"the attacker needs a gate's rules to {purpose}, but knows no gate; give it one"
            )
        return self.gate
