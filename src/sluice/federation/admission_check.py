"""Admission of clients: decided once on each client's batch, before the first round."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from sluice.admission import Gate
from sluice.errors import InputError, SettingError
from sluice.federation.messages import Reply, Shown

__all__ = ["AdmissionCheck", "AdmitAll", "Decision", "PhysicsGate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Admitted, or the reasons why not."""

    admitted: bool
    reasons: tuple[str, ...] = ()


class AdmissionCheck(Protocol):
    """Decides whether a client takes part, from what it shows."""

    def decide(self, client: str, shown: Reply | None) -> Decision:
        """Admit or refuse a client; `shown` is None if the client did not reply."""
        ...

    def decide_all(self, shown: Mapping[str, Reply | None]) -> Mapping[str, Decision]:
        """Decide on many clients; the results are those of `decide`."""
        ...


@dataclass(frozen=True, slots=True)
class AdmitAll:
    """Admits every client: the federation that the paper starts from."""

    def decide(self, client: str, shown: Reply | None) -> Decision:  # noqa: ARG002 - the protocol
        """Admit."""
        return Decision(admitted=True)

    def decide_all(self, shown: Mapping[str, Reply | None]) -> Mapping[str, Decision]:
        """Admit all clients."""
        return {client: self.decide(client, reply) for client, reply in shown.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PhysicsGate:
    """Judges batches in the clear, by each client's own accepted rules."""

    gates: Mapping[str, Gate]

    def decide(self, client: str, shown: Reply | None) -> Decision:
        """Judge the batch that the client shows."""
        if client not in self.gates:
            raise SettingError(
                f"client {client!r} has no accepted rules; the gate knows "
                f"{', '.join(sorted(self.gates)) or 'no client'}"
            )
        if not isinstance(shown, Shown):
            return Decision(admitted=False, reasons=("it showed no batch",))
        try:
            verdict = self.gates[client].judge(shown.batch)
        except InputError as error:  # a batch that cannot be judged must not stop the others
            return Decision(admitted=False, reasons=(str(error),))
        return Decision(admitted=verdict.admitted, reasons=verdict.sentences)

    def decide_all(self, shown: Mapping[str, Reply | None]) -> Mapping[str, Decision]:
        """Judge the batches one after the other."""
        return {client: self.decide(client, reply) for client, reply in shown.items()}
