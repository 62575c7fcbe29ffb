"""Going back: on without a plant found compromised, from the model before its first round in doubt.

Rounds are never numbered twice: the log keeps those that are given up and says that they are, and
the next one is opened on the earlier model. Whoever verifies the log checks that this was a model
of the federation. Rounds given up do not count towards those agreed on.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from sluice.attestation.acts import ClientRemoved
from sluice.errors import SettingError
from sluice.network.questions import model_hash
from sluice.network.site import Site
from sluice.network.store import Store

__all__ = ["Back", "go_back"]


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
    site = Site(folder)
    with site.alone():
        return _gone_back(site, plant, before=before, at=at)


def _gone_back(site: Site, plant: str, *, before: int, at: datetime) -> Back:
    terms, desk = site.terms, site.desk()
    rounds = desk.log.ledger.rounds
    if rounds.last == 0 or not rounds.between or before > rounds.last:
        raise SettingError(
            f"the log's last round is {rounds.last}; let it finish ('sluice coordinator resume') "
            "and name a round that has been"
        )
    store = Store(site.base)
    try:
        held = store.last(federation=terms.federation, before=before)
        if held is None:
            raise SettingError(f"the store has no checkpoint before round {before}")
        body = ClientRemoved(
            client=plant, since=before, model_of=held.round, model=model_hash(held.parameters)
        )
        desk.log.check(body, at=at)
        store.remove(plant, at=at)
        back = replace(held, round=rounds.last)
        store.keep(back, body.model, federation=terms.federation, at=at)
        store.note("removed", plant=plant, round_=before, at=at)
        counted = rounds.counted
        desk.log.append(body, at=at)
    finally:
        store.close()
    return Back(model_of=held.round, given_up=counted - rounds.counted)
