"""Waivers: an operator lets a plant's batches of a maintenance window do without a proof."""

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from sluice.attestation.log import ClientRemoved, Waiver, WaiverGranted
from sluice.attestation.messages import Interval, SigningKey, content_digest, instant, sign
from sluice.errors import SettingError
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.wire import model_hash

__all__ = ["Back", "WaivedInterval", "go_back", "waive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Back:
    """Where a federation has gone back to."""

    model_of: int  # the round whose model is taken up again
    given_up: int  # rounds


def go_back(folder: Path, plant: str, *, before: int, at: datetime) -> Back:
    """Remove a plant and take up the model from before a round; only between rounds.

    The log is written last. Killed before that, the store is ahead of the log, which the next run
    refuses; the same call again ends it.
    """
    site = CoordinatorFolder(folder)
    with site.alone():
        return _gone_back(site, plant, before=before, at=at)


def _gone_back(site: CoordinatorFolder, plant: str, *, before: int, at: datetime) -> Back:
    terms, protocol = site.terms, site.protocol()
    rounds = protocol.log.ledger.rounds
    if rounds.last == 0 or not rounds.between or before > rounds.last:
        raise SettingError(
            f"the log's last round is {rounds.last}; let it finish ('sluice coordinator resume') "
            "and name a round that has been"
        )
    store = CoordinatorStore(site.base)
    try:
        held = store.last(federation=terms.federation, before=before)
        if held is None:
            raise SettingError(f"the store has no checkpoint before round {before}")
        body = ClientRemoved(
            client=plant, since=before, model_of=held.round, model=model_hash(held.parameters)
        )
        protocol.log.check(body, at=at)
        store.remove(plant, at=at)
        back = replace(held, round=rounds.last)
        store.keep(back, body.model, federation=terms.federation, at=at)
        store.note("removed", plant=plant, round_=before, at=at)
        counted = rounds.counted
        protocol.log.append(body, at=at)
    finally:
        store.close()
    return Back(model_of=held.round, given_up=counted - rounds.counted)


LONGEST_REASON = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class WaivedInterval:
    """A maintenance window, why there is one, and until when its batches may take part."""

    plant: str
    interval: Interval
    expires: datetime
    reason: str

    def __post_init__(self) -> None:
        told = self.reason
        if not (4 <= len(told) <= LONGEST_REASON and told.isascii() and told.isprintable()):
            raise SettingError(
                f"a waiver's reason has 4 to {LONGEST_REASON} printable ASCII letters: everyone "
                "who reads the log reads it"
            )


def waive(folder: Path, window: WaivedInterval, *, at: datetime) -> str:
    """Sign a waiver as the coordinator, write it to the log, and return its digest."""
    site = CoordinatorFolder(folder)
    waiver = Waiver(
        federation=site.terms.federation,
        client=window.plant,
        interval=window.interval,
        expires=instant(window.expires),
        reason=window.reason,
    )
    signed = sign(waiver, SigningKey.load(site.key))
    site.protocol().log.append(WaiverGranted(waiver=signed), at=at)
    return content_digest(waiver)
