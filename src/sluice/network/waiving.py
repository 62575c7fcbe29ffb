"""Waivers: an operator lets a plant's batches of a maintenance window do without a proof."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sluice.attestation import SigningKey
from sluice.attestation.acts import Waiver, WaiverGranted
from sluice.attestation.context import Interval
from sluice.attestation.documents import instant
from sluice.attestation.signed import content_digest, sign
from sluice.errors import SettingError
from sluice.network.site import Site

__all__ = ["Window", "waive"]

LONGEST_REASON = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
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


def waive(folder: Path, window: Window, *, at: datetime) -> str:
    """Sign a waiver as the coordinator, write it to the log, and return its digest."""
    site = Site(folder)
    waiver = Waiver(
        federation=site.terms.federation,
        client=window.plant,
        interval=window.interval,
        expires=instant(window.expires),
        reason=window.reason,
    )
    signed = sign(waiver, SigningKey.load(site.key))
    site.desk().log.append(WaiverGranted(waiver=signed), at=at)
    return content_digest(waiver)
