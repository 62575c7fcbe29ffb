"""Waivers and removals of a log, as commands tell them."""

from datetime import datetime

from sluice.attestation.log import Ledger
from sluice.attestation.messages import Interval
from sluice.errors import SettingError

__all__ = ["interval_of", "told_removals", "told_waivers", "waiver_line"]


def interval_of(start: str, end: str) -> Interval:
    """Read a window on a plant's own clock, which knows no time zone."""
    first, last = _moment(start), _moment(end)
    if first > last:
        raise SettingError(f"the window ends ({end}) before it starts ({start})")
    return Interval(start=first, end=last)


def _moment(text: str) -> str:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is not None:
        raise SettingError(f"{text!r} is no time on a plant's clock; write 2026-04-01T08:00")
    return found.isoformat(timespec="microseconds")


def told_waivers(ledger: Ledger) -> list[dict[str, str]]:
    """Return every waiver of a log."""
    return [
        {
            "plant": waiver.client,
            "start": waiver.interval.start,
            "end": waiver.interval.end,
            "expires": waiver.expires,
            "reason": waiver.reason,
        }
        for waiver in ledger.exemptions.waivers
    ]


def waiver_line(told: dict[str, str]) -> str:
    """Say a waiver in one line."""
    return (
        f"waiver: {told['plant']} from {told['start'][:16]} to {told['end'][:16]} needs no proof "
        f"until {told['expires'][:16]}Z: {told['reason']}"
    )


def told_removals(ledger: Ledger) -> list[dict[str, str | int]]:
    """Return every removal of a log."""
    return [
        {
            "plant": removed.client,
            "from_round": removed.since,
            "model_of_round": removed.model_of,
        }
        for removed in ledger.rounds.removals
    ]
