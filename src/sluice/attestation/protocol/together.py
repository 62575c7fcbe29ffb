"""Many attestations at once: the proofs of one circuit are verified in one call.

Each client gets the same step and reason as when its proof is verified alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import final

from sluice.attestation.protocol.coordinator import Attested, ReceivedBatch
from sluice.attestation.protocol.transition import TRANSITION
from sluice.attestation.protocol.verifier import Examined, Verification, Verifier
from sluice.errors import VerificationError

__all__ = ["Brought", "attest_together", "verify_together"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """A proof received for a logged commitment."""

    received: ReceivedBatch
    proof: bytes = field(repr=False)
    statistic: bytes | None = field(default=None, repr=False)  # for a circuit that binds one

    @property
    def commitment(self) -> str:
        """The commitment that the proof must answer."""
        return self.received.commit.content.commitment


def verify_together(examined: Sequence[Examined]) -> tuple[Verification | VerificationError, ...]:
    """Run steps 5.7 and 5.8 of examined attestations; the results are those of `verify`."""
    answers: dict[int, Verification | VerificationError] = {}
    waiting = list(range(len(examined)))
    while waiting:
        first = examined[waiting[0]].verifier
        group = [at for at in waiting if _same_circuit(examined[at].verifier, first)]
        claims = [examined[at].claim for at in group]
        # 5.7 Each proof has the shape the circuit demands. 5.8 Each proof itself.
        refusals = first.system.verify_many(first.circuit, claims)
        for at, refused in zip(group, refusals, strict=True):
            answers[at] = refused or examined[at].proven(TRANSITION)
        waiting = [at for at in waiting if at not in answers]
    return tuple(answers[at] for at in range(len(examined)))


def attest_together(
    brought: Sequence[Brought], *, at: datetime
) -> tuple[Attested | VerificationError, ...]:
    """Step 5 for many: log each valid attestation; return the error for each other one."""
    answers: dict[int, Attested | VerificationError] = {}
    while len(answers) < len(brought):
        # A second proof of one commitment waits for the result of the first (5.4).
        firsts = {
            each.commitment: index
            for index, each in reversed(list(enumerate(brought)))
            if index not in answers
        }
        turn = {index: brought[index] for index in sorted(firsts.values())}
        answers |= _attested(turn, at=at)
    return tuple(answers[index] for index in range(len(brought)))


def _attested(
    brought: dict[int, Brought], *, at: datetime
) -> dict[int, Attested | VerificationError]:
    answers: dict[int, Attested | VerificationError] = {}
    examined: dict[int, Examined] = {}
    for index, each in brought.items():
        try:
            examined[index] = each.received.examine(each.proof, statistic=each.statistic)
        except VerificationError as refused:
            answers[index] = refused
    outcomes = verify_together(tuple(examined.values()))
    for index, outcome in zip(examined, outcomes, strict=True):
        if isinstance(outcome, VerificationError):
            answers[index] = outcome
        else:
            answers[index] = brought[index].received.conclude(outcome, at=at)
    return answers


def _same_circuit(one: Verifier, other: Verifier) -> bool:
    """Whether both verify proofs of the same circuit."""
    return one.circuit.identity == other.circuit.identity and one.system == other.system
