"""Admission of clients: decided once on each client's batch, before the first round."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sluice.admission import Gate
from sluice.errors import InputError, SettingError
from sluice.federation.messages import Reply, Shown

__all__ = ["AdmissionCheck", "AdmitAll", "Decision", "PhysicsGate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Admitted, or the reasons why not.

    `rows` is the length of the batch that was judged. It weighs the client's updates, so only the
    party that judged the batch sets it, from the batch itself or from the proven commitment.
    `statistic` is set by a gate that has verified that a proof binds it to the batch.
    """

    admitted: bool
    rows: int = 0
    reasons: tuple[str, ...] = ()
    statistic: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.admitted != (self.rows > 0):
            raise SettingError(
                f"a decision with admitted={self.admitted} has {self.rows} rows; an admitted "
                "client has at least 1 row, and a refused client has none"
            )


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
    """Admits every client that shows a batch: the federation that the paper starts from."""

    def decide(self, client: str, shown: Reply | None) -> Decision:  # noqa: ARG002 - the protocol
        """Admit without judging; the batch only sets the weight of the client's updates."""
        if not isinstance(shown, Shown):
            return Decision(admitted=False, reasons=("it showed no batch",))
        return Decision(admitted=True, rows=len(shown.batch))

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
        rows = len(shown.batch) if verdict.admitted else 0
        return Decision(admitted=verdict.admitted, rows=rows, reasons=verdict.sentences)

    def decide_all(self, shown: Mapping[str, Reply | None]) -> Mapping[str, Decision]:
        """Judge the batches one after the other."""
        return {client: self.decide(client, reply) for client, reply in shown.items()}
