"""The waivers, removals and sign-offs of a log, as commands print them."""

from datetime import datetime

from sluice.attestation.log import Ledger
from sluice.attestation.messages import Interval
from sluice.errors import SettingError

__all__ = ["interval_of", "removal_payloads", "sign_offs", "waiver_line", "waiver_payloads"]


def interval_of(start: str, end: str) -> Interval:
    """Parse a window on the plant's own clock, which has no time zone."""
    first, last = _plant_time(start), _plant_time(end)
    if first > last:
        raise SettingError(
            f"the window ends ({end}) before it starts ({start}); give --to a later time"
        )
    return Interval(start=first, end=last)


def _plant_time(text: str) -> str:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is not None:
        raise SettingError(
            f"{text!r} is not a time on the plant's clock, which has no time zone; write "
            "2026-04-01T08:00"
        )
    return time.isoformat(timespec="microseconds")


def waiver_payloads(ledger: Ledger) -> list[dict[str, str]]:
    """Return every waiver of a log as JSON."""
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


def waiver_line(waiver: dict[str, str]) -> str:
    """Format one of `waiver_payloads` as a line of text."""
    return (
        f"waiver: batches of {waiver['plant']} from {waiver['start'][:16]} to "
        f"{waiver['end'][:16]} need no proof until {waiver['expires'][:16]}Z: {waiver['reason']}"
    )


def removal_payloads(ledger: Ledger) -> list[dict[str, str | int]]:
    """Return every removal of a log as JSON."""
    return [
        {
            "plant": removed.client,
            "from_round": removed.since,
            "model_of_round": removed.model_of,
        }
        for removed in ledger.rounds.removals
    ]


def sign_offs(ledger: Ledger) -> list[dict[str, str]]:
    """Return who signed off which plant's statistic, as JSON."""
    commits = (
        ledger.committed(each, step="2").commit.content
        for client in ledger.clients
        for each in ledger.commitments(client)
    )
    return [
        {"plant": each.client, "operator": each.signed_off, "statistic": each.statistic or ""}
        for each in commits
        if each.signed_off is not None
    ]
