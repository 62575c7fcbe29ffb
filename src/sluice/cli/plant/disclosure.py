"""What `sluice plant check` says about the statistic that a plant would share."""

from datetime import UTC, datetime

from sluice.cli.console import out
from sluice.errors import SettingError
from sluice.network.plant import Disclosure, PlantFolder
from sluice.telemetry import Record

__all__ = ["disclosure_of", "show_disclosure"]


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
