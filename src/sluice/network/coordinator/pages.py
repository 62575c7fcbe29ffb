"""Pages of the log for plants: the entries that a plant has not seen, with a signed head."""

from dataclasses import dataclass, field
from pathlib import Path

from sluice.attestation.log import (
    COORDINATOR,
    HEADS,
    Head,
    Log,
    demand_head,
    entry_digest,
    lines_of,
)
from sluice.attestation.messages import SigningKey, sign
from sluice.errors import CheckpointError, DocumentError, VerificationError
from sluice.network.wire import LogPage

__all__ = ["LogPages"]

PAGE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPages:
    """The coordinator's log, in pages."""

    log: Log
    path: Path
    key: SigningKey = field(repr=False)

    def page(self, start: int) -> LogPage:
        """Return the entries from `start` on, as many as one page takes."""
        ledger = self.log.ledger
        start = min(start, ledger.size)
        lines = lines_of(self.path, start=start, stop=ledger.size, largest=PAGE_BYTES)
        end = start + len(lines)
        if lines and end < ledger.size:
            federation, last = ledger.opened.federation, entry_digest(lines[-1])
            head = Head(federation=federation, signer=COORDINATOR, size=end, last=last)
        else:
            head = ledger.head(COORDINATOR)
        return LogPage(
            start=start,
            lines=lines,
            head=HEADS.write(sign(head, self.key)),
            rotations=ledger.rotations,
        )

    def refuse_other(self, plant: str, head: bytes) -> None:
        """Raise a `CheckpointError` if a head that this coordinator signed is not of its log.

        Only the coordinator's own signature is evidence: no plant can stop it with a claim.
        """
        try:
            signed = HEADS.read(head)
            signed.verify(self.log.ledger.coordinator, step="7")
        except (DocumentError, VerificationError):
            return
        try:
            demand_head(self.path, self.log.ledger, signed)
        except VerificationError as error:
            raise CheckpointError(
                f"{plant!r} follows another log of this coordinator: {error.why}. The "
                "coordinator's folder is an older copy; get the missing entries from plants with "
                "'sluice coordinator recover'"
            ) from None

    def whole(self, page: LogPage) -> bool:
        """Whether a page ends with the last entry."""
        return page.start + len(page.lines) == self.log.ledger.size
