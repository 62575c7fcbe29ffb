"""The first detector of a plant that has too few rows to join: the members' vote, borrowed.

The plant has mined no rules yet, so it has no batch to attest and is no member. It has an
invitation, which names the coordinator and the terms, and two files of the coordinator: the
members' statistics and the log. It verifies the whole log, and that each statistic is one that the
log names. Nothing is sent, and the invitation stays unused.
"""

from datetime import datetime
from pathlib import Path

from sluice.attestation.log import LogReader
from sluice.detector import Detector
from sluice.errors import SettingError, VerificationError
from sluice.files import read_bounded
from sluice.network.handout import ROUND_BYTES, read_handout
from sluice.network.plant.folder import demand_usable
from sluice.network.plant.model import demand_logged
from sluice.network.statistics import LARGEST_MODEL, MemberStatistics, vote_of
from sluice.network.terms import Invitation
from sluice.telemetry import Record

__all__ = ["borrowed_vote"]


def borrowed_vote(  # noqa: PLR0913 - two files, the plant's rows and its wishes
    invitation: Invitation,
    clean: Record,
    *,
    statistics: Path,
    log: Path,
    false_alarms_per_week: float,
    at: datetime,
) -> Detector:
    """Return the vote of all members, with thresholds from their tails and these few clean rows."""
    demand_usable(invitation, at=at)
    terms = invitation.terms
    if not terms.lends:
        raise SettingError(
            f"members of {terms.federation!r} lend no thresholds (its invitation does not say so); "
            "join with rules and rows of your own"
        )
    terms.demand_points(clean.channels, plant=invitation.plant)
    ledger = LogReader(log).catch_up()
    opened = ledger.opened
    if (opened.federation, opened.coordinator) != (terms.federation, terms.coordinator):
        raise VerificationError(
            "7",
            f"{log} is the log of {opened.federation!r} under key {opened.coordinator[:12]}...; "
            f"the invitation is to {terms.federation!r} under key {terms.coordinator[:12]}...",
        )
    if opened.statistic != terms.statistic:
        raise VerificationError(
            "7",
            "the first entry of the log names other channels, lags or scales than the invitation; "
            "ask the coordinator's operator",
        )
    largest = LARGEST_MODEL + ROUND_BYTES
    round_, raw = read_handout(read_bounded(statistics, "statistics", largest=largest))
    shared, rounds = MemberStatistics.from_canonical(raw, terms.summed), ledger.rounds
    if (round_, shared.digest) != (rounds.last, rounds.model):
        raise VerificationError(
            "7",
            f"{statistics} is model {shared.digest[:12]}... after round {round_}; the log has "
            f"{(rounds.model or 'none')[:12]}... after round {rounds.last}: let the coordinator "
            "export both files again",
        )
    demand_logged(shared, log, ledger)
    return vote_of(
        shared,
        terms,
        clean,
        rounds=round_,
        rules=None,
        false_alarms_per_week=false_alarms_per_week,
        borrowed=True,
    )
