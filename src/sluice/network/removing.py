"""Going back: on without a plant found compromised, from the model before its first round in doubt.

Rounds are never numbered twice: the log keeps those that are given up, and the next one is opened
on the earlier model, for everyone to see. As many rounds as were given up are added to the terms.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from sluice.attestation import read_log
from sluice.errors import SettingError
from sluice.network.questions import model_hash
from sluice.network.site import Site
from sluice.network.store import Store
from sluice.network.terms import write_document

__all__ = ["Back", "go_back"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Back:
    """Where a federation has gone back to."""

    model_of: int  # the round whose model is taken up again
    given_up: int  # rounds


def go_back(folder: Path, plant: str, *, before: int, at: datetime) -> Back:
    """Remove a plant and take up the model from before a round; only between rounds."""
    site = Site(folder)
    terms, rounds = site.terms, read_log(site.log).rounds
    standing = rounds.standing
    if standing is None or not standing.aggregated or before > rounds.last:
        raise SettingError(
            f"the log's last round is {rounds.last}; let it finish ('sluice coordinator resume') "
            "and name a round that has been"
        )
    store = Store(site.base)
    try:
        held = store.last(federation=terms.federation, before=before)
        if held is None:
            raise SettingError(f"the store has no checkpoint before round {before}")
        store.remove(plant, at=at)
        back = replace(held, round=rounds.last)
        store.keep(back, model_hash(back.parameters), federation=terms.federation, at=at)
        store.note("removed", plant=plant, round_=before, at=at)
    finally:
        store.close()
    given_up = rounds.last - held.round
    write_document(replace(terms, rounds=terms.rounds + given_up), folder / "terms.json")
    return Back(model_of=held.round, given_up=given_up)
