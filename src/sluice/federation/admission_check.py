"""Who may take part: the door a client's batch has to pass, once, before the first round."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from sluice.admission import Gate
from sluice.errors import SettingError
from sluice.federation.messages import Reply, Shown

__all__ = ["AdmissionCheck", "AdmitAll", "Decision", "PhysicsGate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Admitted, or the reasons why not."""

    admitted: bool
    reasons: tuple[str, ...] = ()


class AdmissionCheck(Protocol):
    """Decides on what a client shows."""

    def decide(self, client: str, shown: Reply | None) -> Decision:
        """Admit or refuse; silence (None) is for the door to judge too."""
        ...

    def decide_all(self, shown: Mapping[str, Reply | None]) -> Mapping[str, Decision]:
        """Decide on many clients as `decide` would on each."""
        ...


@dataclass(frozen=True, slots=True)
class AdmitAll:
    """Admits whoever comes: the federation the paper starts from."""

    def decide(self, client: str, shown: Reply | None) -> Decision:  # noqa: ARG002 - as every door
        """Admit."""
        return Decision(admitted=True)

    def decide_all(self, shown: Mapping[str, Reply | None]) -> Mapping[str, Decision]:
        """Admit them all."""
        return {client: self.decide(client, reply) for client, reply in shown.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PhysicsGate:
    """The gate in the clear, by each client's own accepted rules."""

    gates: Mapping[str, Gate]

    def decide(self, client: str, shown: Reply | None) -> Decision:
        """Judge the batch that was shown."""
        if client not in self.gates:
            raise SettingError(
                f"client {client!r} has no accepted rules; the gate knows "
                f"{', '.join(sorted(self.gates)) or 'nobody'}"
            )
        if not isinstance(shown, Shown):
            return Decision(admitted=False, reasons=("it showed no batch",))
        verdict = self.gates[client].judge(shown.batch)
        return Decision(admitted=verdict.admitted, reasons=verdict.sentences)

    def decide_all(self, shown: Mapping[str, Reply | None]) -> Mapping[str, Decision]:
        """Judge one batch after the other."""
        return {client: self.decide(client, reply) for client, reply in shown.items()}
