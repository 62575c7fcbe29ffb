"""Operators remove a plant and its rounds, abandon a round, or waive proofs for maintenance."""

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from sluice.attestation.log import ClientRemoved, RoundAbandoned
from sluice.attestation.messages import Interval, ShadowOrder, Waiver, instant
from sluice.errors import CheckpointError, SettingError
from sluice.federation import Checkpoint
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.service import ABANDONED
from sluice.network.coordinator.sharing import statistics_in
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.wire import model_hash

__all__ = [
    "AbandonedRound",
    "Back",
    "TakenOut",
    "WaivedInterval",
    "abandon",
    "go_back",
    "shadow_order_for",
    "take_out",
    "waiver_for",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Back:
    """The model to which a federation has gone back."""

    model_of: int  # the round whose model is used again
    given_up: int  # number of rounds


def go_back(folder: Path, plant: str, *, before: int, at: datetime) -> Back:
    """Remove a plant and go back to the model from before a round; only between rounds.

    The log is written last. If the process is killed before that, the store is ahead of the log and
    the next run refuses to start. The same call again completes the removal.
    """
    site = CoordinatorFolder(folder)
    if site.terms.statistic is not None:
        raise SettingError(
            f"plants of {site.terms.federation!r} share statistics, so no round is given up; "
            "remove the plant without --from"
        )
    with site.alone():
        return _go_back(site, site.terms.federation, plant, before=before, at=at)


def _go_back(
    site: CoordinatorFolder, federation: str, plant: str, *, before: int, at: datetime
) -> Back:
    protocol = site.protocol()
    rounds = protocol.log.ledger.rounds
    if not rounds.between or before > rounds.last:
        raise SettingError(
            f"cannot go back to before round {before}: the log's last round is {rounds.last}; let "
            "it finish ('sluice coordinator resume') and name a finished round"
        )
    store = CoordinatorStore(site.base)
    try:
        checkpoint = store.last(federation=federation, before=before)
        if checkpoint is None:
            raise SettingError(
                f"the store has no checkpoint before round {before}; name a later round"
            )
        body = ClientRemoved(
            client=plant,
            since=before,
            model_of=checkpoint.round,
            model=model_hash(checkpoint.parameters),
        )
        protocol.log.check(body, at=at)
        store.remove(plant, at=at)
        back = replace(checkpoint, round=rounds.last, excluded={}, unchanged=None)
        store.keep(back, body.model, federation=federation, at=at)
        store.note("removed", plant=plant, round_=before, at=at)
        counted = rounds.counted
        protocol.log.append(body, at=at)
    finally:
        store.close()
    return Back(model_of=checkpoint.round, given_up=counted - rounds.counted)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOut:
    """The model of plants that share statistics, without one of them."""

    members: tuple[str, ...]  # those that are left
    checkpoint: Checkpoint


def take_out(folder: Path, plant: str, *, at: datetime) -> TakenOut:
    """Remove a plant and its statistic; all other statistics stay as they are, and no round runs.

    If plants share in groups, the sum of the plant's group is taken out as a whole.

    The log is written last. If the process is killed before that, the same call again completes
    the removal.
    """
    site = CoordinatorFolder(folder)
    if site.terms.statistic is None:
        raise SettingError(
            f"plants of {site.terms.federation!r} train in rounds; name the first round that may "
            "be compromised with --from"
        )
    with site.alone():
        return _take_out(site, plant, at=at)


def _take_out(site: CoordinatorFolder, plant: str, *, at: datetime) -> TakenOut:
    terms, protocol, store = site.terms, site.protocol(), CoordinatorStore(site.base)
    try:
        rounds = protocol.log.ledger.rounds
        checkpoint = store.last(federation=terms.federation)
        if checkpoint is None or not rounds.last or not rounds.between:
            raise SettingError(
                "no statistic was collected yet, or a round is in progress; let it finish ('sluice "
                "coordinator resume') and remove the plant then"
            )
        group = protocol.log.ledger.groups.of(plant) if terms.grouped else None
        voter = plant if group is None else group.name
        left = statistics_in(checkpoint.parameters, terms).without(voter)
        body = ClientRemoved(client=plant, since=0, model_of=rounds.last, model=left.digest)
        protocol.log.check(body, at=at)
        store.remove(plant, at=at)
        store.recall_models()
        after = replace(
            checkpoint,
            parameters=left.parameters,
            decisions={c: each for c, each in checkpoint.decisions.items() if c != plant},
        )
        store.keep(after, body.model, federation=terms.federation, at=at)
        store.note("removed", plant=plant, round_=rounds.last, at=at)
        protocol.log.append(body, at=at)
    finally:
        store.close()
    return TakenOut(members=left.names, checkpoint=after)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonedRound:
    """A round that an operator ended, and the model that the federation continues with."""

    round: int
    model: str  # the one the round was opened on


def abandon(folder: Path, *, at: datetime) -> AbandonedRound:
    """End the round in progress with the model it was opened on; no coordinator may run.

    The checkpoint is saved first and the log is written last. If the process is killed in between,
    the next run writes the log entry, and so does the same call again.
    """
    site = CoordinatorFolder(folder)
    federation = site.terms.federation
    with site.alone():
        return _abandon(site, federation, at=at)


def _abandon(site: CoordinatorFolder, federation: str, *, at: datetime) -> AbandonedRound:
    protocol = site.protocol()
    standing = protocol.log.ledger.rounds.standing
    if standing is None or standing.ended:
        last = "no round was opened" if standing is None else f"round {standing.opened.round} ended"
        raise SettingError(
            f"federation {federation!r} has no round in progress to abandon ({last}); "
            "continue with 'sluice coordinator run'"
        )
    number, model = standing.opened.round, standing.opened.model
    body = RoundAbandoned(round=number)
    store = CoordinatorStore(site.base)
    try:
        before = store.last(federation=federation, before=number)
        if before is None or model_hash(before.parameters) != model:
            raise CheckpointError(
                f"the store does not hold the model that round {number} was opened on; restore "
                "store and log from the same backup"
            )
        unchanged = replace(before, round=number, excluded={}, unchanged=ABANDONED)
        store.keep(unchanged, model, federation=federation, at=at)
        store.note("abandoned", plant="", round_=number, at=at)
        protocol.log.append(body, at=at)
    finally:
        store.close()
    return AbandonedRound(round=number, model=model)


LONGEST_REASON = 200


def demand_reason(reason: str) -> None:
    """Raise unless the reason can be read by everyone who reads the log."""
    if not (4 <= len(reason) <= LONGEST_REASON and reason.isascii() and reason.isprintable()):
        raise SettingError(
            f"a reason must have 4 to {LONGEST_REASON} printable ASCII characters, because every "
            f"reader of the log sees it; got {len(reason)}: {reason[:40]!a}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WaivedInterval:
    """A maintenance window, its reason, and the time until which its batches may take part."""

    plant: str
    interval: Interval
    expires: datetime
    reason: str

    def __post_init__(self) -> None:
        demand_reason(self.reason)


def waiver_for(folder: Path, window: WaivedInterval) -> Waiver:
    """Return a waiver for approvers to sign; it takes effect when it is imported."""
    return Waiver(
        federation=CoordinatorFolder(folder).terms.federation,
        client=window.plant,
        interval=window.interval,
        expires=instant(window.expires),
        reason=window.reason,
    )


def shadow_order_for(folder: Path, *, until: datetime, reason: str) -> ShadowOrder:
    """Return a shadow order for approvers to sign; it takes effect when it is imported."""
    demand_reason(reason)
    federation = CoordinatorFolder(folder).terms.federation
    return ShadowOrder(federation=federation, until=instant(until), reason=reason)
