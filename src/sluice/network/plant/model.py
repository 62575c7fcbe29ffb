"""The last model a plant received from the federation, and the detector that it makes of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from sluice.attestation.log import (
    ENTRIES,
    FederationRecovered,
    GroupInForce,
    Ledger,
    ModelAggregated,
    UpdatePledged,
    UpdateRevealed,
)
from sluice.attestation.messages import update_digest
from sluice.attestation.protocol import statistic_hash
from sluice.detector import Autoencoder, Detector, Parameters, TrainingSummary, calibrated
from sluice.errors import VerificationError
from sluice.files import atomically
from sluice.invariants import RuleSet
from sluice.network.handout import handout, read_handout
from sluice.network.statistics import MemberStatistic, MemberStatistics, encoded, vote_of
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
SHARED = tuple(
    f'"kind":"{kind}"'.encode() for kind in ("pledged", "revealed", "aggregated", "recovered")
)
"""Entries of the log that tie a statistic to a plant, a batch and a model."""


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
        draft.write_bytes(handout(raw, round_=round_))


def last_model(folder: Path, *, count: int) -> SeenModel | None:
    """Return the last model received; None before the first round is done."""
    path = folder / FILE
    if not path.exists():
        return None
    round_, raw = read_handout(path.read_bytes())
    if round_ == 0:
        return None  # the initial weights, equal for all plants
    return SeenModel(round=round_, parameters=read_parameters(raw, count=count))


def last_statistics(folder: Path, terms: FederationTerms) -> SeenStatistics | None:
    """Return the members' statistics that were handed out last; None before the first time."""
    path = folder / FILE
    if not path.exists():
        return None
    round_, raw = read_handout(path.read_bytes())
    shared = MemberStatistics.from_canonical(raw, terms.summed)
    return SeenStatistics(round=round_, shared=shared)


def demand_logged(shared: MemberStatistics, log: Path, ledger: Ledger) -> None:
    """Raise unless each statistic is the one that its member revealed, by this copy of the log.

    The log names the hash of every revealed statistic, and the attestation under which its member
    pledged it. So a coordinator cannot hand out another, nor one of another batch.

    If statistics are bound, each must also be the one that the attested commitment names, and the
    model must hold every statistic that the log has as aggregated: none can be swapped or dropped.

    If plants share in groups, the model must hold the sums of the groups in force, and no others.
    """
    if ledger.grouped:
        _demand_groups(shared, ledger)
        return
    seen, removed = _shared_so_far(log), ledger.rounds.removed
    federation, bound = ledger.opened.federation, ledger.bound is not None
    for member in shared.members:
        raw, at = encoded(member.statistic, shared.settings), (member.name, member.round)
        pledged = bytes.fromhex(statistic_hash(raw)) if bound else raw
        own = update_digest(federation, member.name, member.round, pledged)
        logged = (seen.revealed.get(at), *seen.pledged.get(at, (None, None)))
        tail = None if member.tail is None else member.tail.canonical().hex()
        if logged != (own, member.attestation, tail) or removed(member.name):
            raise VerificationError(
                "7",
                f"the model holds a statistic of {member.name!r} that the log does not have in "
                f"round {member.round} under this attestation with this tail, or of a plant that "
                "was removed",
            )
        if bound:
            _demand_attested(member, ledger)
    expected = {name: number for name, number in seen.taken.items() if not removed(name)}
    if bound and {member.name: member.round for member in shared.members} != expected:
        raise VerificationError(
            "7",
            f"the model holds statistics of {', '.join(shared.names) or 'no plant'}; by the log it "
            f"must hold the last ones of {', '.join(sorted(expected)) or 'no plant'}",
        )


def _demand_groups(shared: MemberStatistics, ledger: Ledger) -> None:
    """Raise unless the model holds exactly the sums that the log has for the groups in force."""
    held = [
        (each.name, each.attestation, each.round, statistic_hash(each.statistic.canonical()))
        for each in shared.members
    ]
    expected = [
        (each.name, each.order, each.round, each.statistic) for each in ledger.groups.in_force
    ]
    if held != expected:
        raise VerificationError(
            "7",
            f"the model holds sums of {', '.join(shared.names) or 'no group'}; by the log it must "
            f"hold those of {', '.join(name for name, *_ in expected) or 'no group'}, as summed",
        )


def _demand_attested(member: MemberStatistic, ledger: Ledger) -> None:
    """Raise unless a proof was logged for the commitment that names this statistic."""
    commit = ledger.attested_commit(member.name, member.attestation, step="7")
    proven = ledger.attestation(commit.commitment) == member.attestation
    if not proven or commit.statistic != statistic_hash(member.statistic.canonical()):
        raise VerificationError(
            "7",
            f"the model holds a statistic of {member.name!r} that no attested commitment in the "
            "log names",
        )


@dataclass(slots=True)
class _SharedSoFar:
    """What the log says about statistics, by client and round."""

    revealed: dict[tuple[str, int], str] = field(default_factory=dict)  # hashes
    pledged: dict[tuple[str, int], tuple[str, str | None]] = field(default_factory=dict)
    """Attestations, and lent tails if there are some."""
    taken: dict[str, int] = field(default_factory=dict)  # by client: its last aggregated round


def _shared_so_far(log: Path) -> _SharedSoFar:
    """Read a verified copy of the log."""
    seen, rounds = _SharedSoFar(), list[ModelAggregated]()
    for line in log.read_bytes().splitlines():
        if any(kind in line for kind in SHARED):
            match ENTRIES.read(line).body:
                case UpdateRevealed() as body:
                    seen.revealed[body.client, body.round] = body.update
                case UpdatePledged(token=signed):
                    token = signed.content
                    seen.pledged[token.client, token.round] = token.attestation, token.tail
                case ModelAggregated() as body:
                    rounds.append(body)
                case FederationRecovered(recovery=recovery):
                    rounds = [each for each in rounds if each.round <= recovery.model_of]
                case _:
                    pass
    for each in rounds:
        seen.taken |= dict.fromkeys(each.clients, each.round)
    return seen


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


def shared_vote(  # noqa: PLR0913 - a detector is these parts
    terms: FederationTerms,
    received: SeenStatistics,
    clean: Record,
    *,
    rules: RuleSet,
    false_alarms_per_week: float,
    borrowed: bool = False,
    groups: Iterable[GroupInForce] = (),
) -> Detector:
    """Return the vote of all members beside a plant's own rules, with its own thresholds.

    The plant must not have summed the clean rows. With `borrowed`, the members' tails set the
    thresholds of the voters.
    """
    return vote_of(
        received.shared,
        terms,
        clean,
        rounds=received.round,
        rules=rules,
        false_alarms_per_week=false_alarms_per_week,
        borrowed=borrowed,
        groups=groups,
    )
