"""The last model a plant received from the federation, and the detector that it makes of it."""

from dataclasses import dataclass
from pathlib import Path

from sluice.attestation.log import ENTRIES, Ledger, UpdatePledged, UpdateRevealed
from sluice.attestation.messages import update_digest
from sluice.detector import Autoencoder, Detector, Parameters, TrainingSummary, calibrated
from sluice.errors import VerificationError
from sluice.files import atomically
from sluice.invariants import RuleSet
from sluice.network.statistics import MemberStatistics, encoded, vote_of
from sluice.network.terms import FederationTerms
from sluice.network.wire import model_hash, read_parameters
from sluice.telemetry import Record

__all__ = [
    "SeenModel",
    "SeenStatistics",
    "demand_logged",
    "keep_model",
    "last_model",
    "last_statistics",
    "shared_detector",
    "shared_vote",
]

FILE = "model.weights"
ROUND_BYTES = 8
SHARED = (b'"kind":"pledged"', b'"kind":"revealed"')
"""Entries of the log that tie a statistic to a plant and a batch."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeenModel:
    """The weights, and the number of rounds for which they were trained."""

    round: int
    parameters: Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenStatistics:
    """The statistics of all members, and the round after which they were handed out."""

    round: int
    shared: MemberStatistics


def keep_model(folder: Path, raw: bytes, *, round_: int) -> None:
    """Save the model with which a round was opened, or that was handed out after it."""
    with atomically(folder / FILE, private=True) as draft:
        draft.write_bytes(round_.to_bytes(ROUND_BYTES, "big") + raw)


def last_model(folder: Path, *, count: int) -> SeenModel | None:
    """Return the last model received; None before the first round is done."""
    path = folder / FILE
    if not path.exists():
        return None
    raw = path.read_bytes()
    round_ = int.from_bytes(raw[:ROUND_BYTES], "big")
    if round_ == 0:
        return None  # the initial weights, equal for all plants
    return SeenModel(round=round_, parameters=read_parameters(raw[ROUND_BYTES:], count=count))


def last_statistics(folder: Path, terms: FederationTerms) -> SeenStatistics | None:
    """Return the members' statistics that were handed out last; None before the first time."""
    path = folder / FILE
    if not path.exists():
        return None
    raw = path.read_bytes()
    shared = MemberStatistics.from_canonical(raw[ROUND_BYTES:], terms.moments.settings)
    return SeenStatistics(round=int.from_bytes(raw[:ROUND_BYTES], "big"), shared=shared)


def demand_logged(shared: MemberStatistics, log: Path, ledger: Ledger) -> None:
    """Raise unless each statistic is the one that its member revealed, by this copy of the log.

    The log names the hash of every revealed statistic, and the attestation under which its member
    pledged it. So a coordinator cannot hand out another, nor one of another batch.
    """
    revealed: dict[tuple[str, int], str] = {}
    attested: dict[tuple[str, int], str] = {}
    for line in log.read_bytes().splitlines():
        if any(kind in line for kind in SHARED):
            match ENTRIES.read(line).body:
                case UpdateRevealed() as body:
                    revealed[body.client, body.round] = body.update
                case UpdatePledged(token=signed):
                    token = signed.content
                    attested[token.client, token.round] = token.attestation
                case _:
                    pass
    federation = ledger.opened.federation
    for member in shared.members:
        raw, at = encoded(member.statistic, shared.settings), (member.name, member.round)
        own = update_digest(federation, member.name, member.round, raw)
        logged = (revealed.get(at), attested.get(at))
        if logged != (own, member.attestation) or ledger.rounds.removed(member.name):
            raise VerificationError(
                "7",
                f"the model holds a statistic of {member.name!r} that the log does not have in "
                f"round {member.round} under this attestation, or of a plant that was removed",
            )


def shared_detector(
    terms: FederationTerms, received: SeenModel, ledger: Ledger, clean: Record
) -> Detector:
    """Return the federation's model as a detector with a threshold from a plant's own clean rows.

    The plant must not have trained on these rows.
    """
    training = TrainingSummary(
        records=(),  # no plant knows the others' records
        windows=0,
        seed=terms.seed,
        clients=len(ledger.rounds.members),
        rounds=received.round,
        rule=terms.rule,
        descent=terms.descent,
        federation=terms.federation,
        model=model_hash(received.parameters),
    )
    windows = terms.framing.windows(clean)
    return calibrated(Autoencoder(received.parameters), terms.framing, windows, training=training)


def shared_vote(
    terms: FederationTerms,
    received: SeenStatistics,
    clean: Record,
    *,
    rules: RuleSet,
    false_alarms_per_week: float,
) -> Detector:
    """Return the vote of all members beside a plant's own rules, with its own thresholds.

    The plant must not have summed the clean rows.
    """
    return vote_of(
        received.shared,
        terms,
        clean,
        rounds=received.round,
        rules=rules,
        false_alarms_per_week=false_alarms_per_week,
    )
