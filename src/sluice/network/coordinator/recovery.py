"""Recovery of a coordinator that was restored from an older backup.

Plants keep verified copies of the log, signed by the coordinator itself. From the longest copy the
coordinator gets back every entry that a plant has seen. Models are not in the log: rounds after the
last checkpoint in the store are lost. The recovery names them, and the federation continues when
more than half of the plants have consented.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from sluice.attestation.log import (
    COORDINATOR,
    ENTRIES,
    FederationRecovered,
    Ledger,
    LogReader,
    demand_log,
    entry_digest,
    lines_of,
)
from sluice.attestation.messages import CONSENTS, Recovery
from sluice.errors import SettingError, VerificationError
from sluice.files import atomically
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.wire import model_hash

__all__ = ["complete_recovery", "prepare_recovery"]


def prepare_recovery(folder: Path, copies: Sequence[Path]) -> Recovery:
    """Take missing entries from plants' copies of the log, and say which rounds are lost."""
    site = CoordinatorFolder(folder)
    with site.alone():
        own = LogReader(site.log).catch_up()
        longest, longest_size = site.log, own.size
        for copy in copies:
            size = _demand_extension(copy, own)
            if size > longest_size:
                longest, longest_size = copy, size
        if longest != site.log:
            _replace_log(site, longest, before=own.size)
        store = CoordinatorStore(site.base)
        try:
            return _recovery(site, store)
        finally:
            store.close()


def complete_recovery(
    folder: Path, recovery: Recovery, consents: Sequence[bytes], *, at: datetime
) -> int:
    """Log a recovery to which plants have consented; return the round whose model is used."""
    site = CoordinatorFolder(folder)
    signed = tuple(CONSENTS.read(each) for each in consents)
    with site.alone():
        store = CoordinatorStore(site.base)
        try:
            protocol = site.protocol()
            body = FederationRecovered(recovery=recovery, consents=signed)
            protocol.log.check(body, at=at)
            checkpoint = store.last(federation=recovery.federation)
            if checkpoint is None or model_hash(checkpoint.parameters) != recovery.model:
                raise SettingError(
                    "the store's last checkpoint is not the model that the recovery names; run "
                    "'sluice coordinator recover' again and collect new consents"
                )
            back = replace(checkpoint, round=protocol.log.ledger.rounds.last)
            store.keep(back, recovery.model, federation=recovery.federation, at=at)
            protocol.log.append(body, at=at)
        finally:
            store.close()
    return recovery.model_of


def _demand_extension(copy: Path, own: Ledger) -> int:
    """Return the size of a verified copy that continues our log; raise if it does not."""
    demand_log(copy)
    ledger = LogReader(copy).catch_up()
    if ledger.size < own.size:
        return ledger.size
    (at_ours,) = lines_of(copy, start=own.size - 1, stop=own.size, largest=ENTRIES.largest)
    if entry_digest(at_ours) != own.head(COORDINATOR).last:
        raise VerificationError(
            "7",
            f"{copy} is not a continuation of this coordinator's log: its entry {own.size - 1} "
            "differs. Compare them with 'sluice audit-log compare'",
        )
    return ledger.size


def _replace_log(site: CoordinatorFolder, copy: Path, *, before: int) -> None:
    """Put a longer copy in place of the log; the shorter one stays beside it."""
    shutil.copyfile(site.log, site.log.with_name(f"{site.log.name}.before-recovery-{before}"))
    with atomically(site.log) as draft:
        shutil.copyfile(copy, draft)


def _recovery(site: CoordinatorFolder, store: CoordinatorStore) -> Recovery:
    ledger = site.protocol().log.ledger
    head, rounds = ledger.head(COORDINATOR), ledger.rounds
    checkpoint = store.last(federation=head.federation)
    round_ = 0 if checkpoint is None else checkpoint.round
    if checkpoint is None or round_ > rounds.last:
        raise SettingError(
            "the store has no checkpoint that the log knows; restore both from one backup"
        )
    model = model_hash(checkpoint.parameters)
    finished = rounds.last if rounds.between else rounds.last - 1
    if round_ == finished and model == rounds.model_after(round_):
        raise SettingError("nothing is lost: log and store agree; run 'sluice coordinator resume'")
    if model != rounds.model_after(round_):
        raise SettingError(
            f"the store's model of round {round_} is not the one that the log names; restore an "
            "older store"
        )
    return Recovery(
        federation=head.federation,
        size=head.size,
        last=head.last,
        since=round_ + 1,
        model_of=round_,
        model=model,
    )
