"""What `sluice plant check` says about the statistic that a plant would share."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sluice.cli.console import out
from sluice.detector import LentTail
from sluice.errors import SettingError
from sluice.network import plant_tail
from sluice.network.plant import Disclosure, PlantFolder, last_statistics
from sluice.telemetry import Record

__all__ = ["Lending", "disclosure_of", "lending_of", "show_disclosure", "show_lending"]


def disclosure_of(plant: PlantFolder, batch: Record, *, sign_off: str | None) -> Disclosure | None:
    """Return what a plant's statistic tells, after signing it off if asked; None without one."""
    sharing = plant.statistic_sharing()
    if sharing is None:
        if sign_off is not None:
            raise SettingError(
                "plants of this federation share no statistic, so there is none to sign off; omit "
                "--sign-off"
            )
        return None
    if sign_off is not None:
        sharing.sign_off(batch, sign_off, at=datetime.now(UTC))
    return sharing.disclosure(batch)


def show_disclosure(disclosure: Disclosure) -> None:
    """Print what every member of the federation learns from the statistic."""
    of = f"of {disclosure.rows:,} rows and {disclosure.channels} channels"
    if disclosure.hidden:
        out.print(f"the statistic {of} is hidden in the sum of a group; alone it would tell:")
    else:
        out.print(f"the statistic {of} goes to the coordinator and to every member; it tells them:")
    for title, sentences in (
        ("running time", disclosure.running),
        ("means", disclosure.means),
        ("strongest correlations", disclosure.correlations),
    ):
        out.print(f"  {title}: {'; '.join(sentences) or 'none'}", markup=False)
    if disclosure.signed_off is None:
        out.print(
            "it is not signed off, so it is not sent; agree with --sign-off NAME", markup=False
        )
    else:
        out.print(f"signed off by {disclosure.signed_off}", markup=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lending:
    """The tail of its scores that a plant lends, and how many members lend theirs."""

    own: LentTail | None
    why: str  # why it lends none; empty if it lends one
    once_a_week: float | None  # the score that a clean week passes once, over the median score
    rarest_rate: float | None  # false alarms a week: the batch is too short for rarer ones
    members: int  # in the last model
    lending: int  # of them


def lending_of(plant: PlantFolder, batch: Record) -> Lending | None:
    """Return what is lent; None in a federation whose members lend nothing."""
    terms = plant.invitation.terms
    if not terms.lends:
        return None
    own, why = None, ""
    try:
        own = plant_tail(batch, terms, plant.keys.circuit)
    except SettingError as error:
        why = str(error)
    seen = last_statistics(plant.folder, terms)
    members = () if seen is None else seen.shared.members
    return Lending(
        own=own,
        why=why,
        once_a_week=None if own is None else own.threshold(1.0, false_alarms_per_week=1.0),
        rarest_rate=None if own is None else own.rarest_rate,
        members=len(members),
        lending=sum(member.tail is not None for member in members),
    )


def show_lending(lending: Lending | None) -> None:
    """Print what this plant lends, and what it can borrow; nothing if members lend nothing."""
    if lending is None:
        return
    out.print(
        "the coordinator may hand the statistics and the tails of all members to invited plants "
        "that have too few rows to join ('sluice coordinator export-statistics')",
        markup=False,
    )
    if lending.own is None:
        out.print(f"this plant lends no thresholds: {lending.why}", markup=False)
    else:
        rate = max(lending.own.rarest_rate, 1.0)
        often = "one alarm a week is" if rate == 1.0 else f"{rate:.3g} alarms a week are"
        out.print(
            f"this plant lends the tail of its own score to every member: {often} at "
            f"{lending.once_a_week:.3g} times the median score"
        )
        if rate > 1.0:
            out.print(
                f"its batch is too short for a threshold of fewer than {rate:.3g} alarms a week; a "
                "longer one lends more"
            )
    if lending.members:
        out.print(
            f"{lending.lending} of {lending.members} members lend thresholds; 'sluice plant model "
            "--borrow' uses them while this plant has few clean rows",
            markup=False,
        )
