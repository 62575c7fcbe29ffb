"""Export the members' statistics for a plant that has too few rows to join.

The plant has an invitation and no rules of its own yet, so it cannot be asked for a batch. It gets
the statistics and the log as files, and checks each statistic by the log as a member does.
"""

from pathlib import Path

from sluice.errors import RefusedError, SettingError
from sluice.files import atomically
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.sharing import statistics_in
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.handout import handout
from sluice.network.statistics import MemberStatistics

__all__ = ["export_statistics"]


def export_statistics(folder: Path, target: Path) -> MemberStatistics:
    """Write the members' statistics, as they are after the last round, to a private file."""
    site = CoordinatorFolder(folder)
    terms = site.terms
    if not terms.lends:
        raise SettingError(
            f"members of {terms.federation!r} lend no thresholds, so a plant with few rows could "
            "not use their statistics; found a federation with --lend-thresholds"
        )
    rounds = site.ledger().rounds
    store = CoordinatorStore(site.base, read_only=True)
    try:
        last = store.last(federation=terms.federation)
    finally:
        store.close()
    shared = None if last is None else statistics_in(last.parameters, terms)
    if last is None or shared is None or not shared.members:
        raise SettingError(
            f"no plant of {terms.federation!r} has shared a statistic yet; export it after the "
            "first round ('sluice coordinator run')"
        )
    if (last.round, shared.digest) != (rounds.last, rounds.model):
        raise RefusedError(
            "a round or a removal is in progress, so the log does not name this model; export it "
            "when 'sluice coordinator run' or 'sluice coordinator remove' has ended"
        )
    with atomically(target, private=True) as draft:
        draft.write_bytes(handout(shared.canonical(), round_=last.round))
    return shared
