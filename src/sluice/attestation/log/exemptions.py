"""Exemptions, as the log tells them: the gate in shadow, waivers, and batches without a proof."""

from dataclasses import dataclass

from sluice.attestation.log.entries import (
    BatchExcused,
    GateSet,
    LogOpened,
    Waiver,
    WaiverGranted,
    unproven_id,
)
from sluice.attestation.messages import Commit, content_digest
from sluice.errors import VerificationError

__all__ = ["Excused", "Exemptions"]

STEP = "4"


@dataclass(frozen=True, slots=True, kw_only=True)
class Excused:
    """A batch that takes part without a proof, and by which waiver; none: the gate in shadow."""

    client: str
    commitment: str
    attestation: str
    waiver: str | None


class Exemptions:
    """Who takes part without a proof, and until when."""

    def __init__(self) -> None:
        self.shadow = False
        self._waivers: dict[str, Waiver] = {}  # by digest
        self._excused: dict[str, Excused] = {}  # by commitment

    # -- what they say ------------------------------------------------------------------------

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """Every waiver that was granted."""
        return tuple(self._waivers.values())

    @property
    def excused(self) -> tuple[Excused, ...]:
        """Every batch that was taken without a proof."""
        return tuple(self._excused.values())

    def covering(self, commit: Commit, *, at: str) -> str | None:
        """Return the digest of a waiver for this batch; None where there is none."""
        found = (d for d, w in self._waivers.items() if not _objection(w, commit, at=at))
        return next(found, None)

    def open_to(self, client: str, *, at: str) -> bool:
        """Whether a batch of this client could do without a proof."""
        waived = (w.client == client and at <= w.expires for w in self._waivers.values())
        return self.shadow or any(waived)

    def holds(self, excused: Excused, *, at: str) -> bool:
        """Whether a batch may take part still: shadows end, and waivers expire."""
        if excused.waiver is None:
            return self.shadow
        return at <= self._waivers[excused.waiver].expires

    # -- what they refuse ---------------------------------------------------------------------

    def check_gate(self, body: GateSet, *, between: bool) -> None:
        """The gate is set to what it was not, and never within a round."""
        if body.enforced != self.shadow:
            raise VerificationError("7", "the gate is set to what it is already")
        if not between:
            raise VerificationError("7", "the gate is set between rounds, not within one")

    def check_waiver(self, body: WaiverGranted, opened: LogOpened, *, at: str) -> None:
        """A waiver is of this federation, signed by its coordinator, and has not expired."""
        waiver = body.waiver.content
        body.waiver.verify(opened.coordinator, step=STEP)
        if waiver.federation != opened.federation:
            raise VerificationError(STEP, f"the waiver is for federation {waiver.federation!r}")
        if at > waiver.expires:
            raise VerificationError(STEP, f"the waiver expired on {waiver.expires}")

    def check_excused(self, body: BatchExcused, commit: Commit, *, at: str) -> None:
        """A batch is excused once at a time, under its own name, by shadow or a waiver for it."""
        held = self._excused.get(body.commitment)
        again = held is not None and self.holds(held, at=at)
        if again or body.attestation != unproven_id(commit):
            raise VerificationError(STEP, "the batch is excused already, or under another name")
        if body.waiver is None:
            if not self.shadow:
                raise VerificationError(STEP, f"{body.client!r} sends no proof; the gate is on")
            return
        if body.waiver not in self._waivers:
            raise VerificationError(STEP, "the log holds no such waiver")
        wrong = _objection(self._waivers[body.waiver], commit, at=at)
        if wrong:
            raise VerificationError(STEP, wrong)

    def note(self, body: GateSet | WaiverGranted | BatchExcused) -> None:
        """Remember an entry that was checked."""
        match body:
            case GateSet(enforced=enforced):
                self.shadow = not enforced
            case WaiverGranted(waiver=signed):
                self._waivers[content_digest(signed.content)] = signed.content
            case BatchExcused():
                self._excused[body.commitment] = Excused(
                    client=body.client,
                    commitment=body.commitment,
                    attestation=body.attestation,
                    waiver=body.waiver,
                )


def _objection(waiver: Waiver, commit: Commit, *, at: str) -> str:
    """Say why a waiver does not serve for a batch; nothing where it does."""
    if waiver.client != commit.client:
        return f"the waiver is for {waiver.client!r}, not for {commit.client!r}"
    if at > waiver.expires:
        return f"the waiver of {waiver.client!r} expired on {waiver.expires}"
    window, batch = waiver.interval, commit.interval
    if not window.start <= batch.start <= batch.end <= window.end:
        return (
            f"the waiver of {waiver.client!r} is for {window.start} to {window.end}, the batch "
            f"goes from {batch.start} to {batch.end}"
        )
    return ""
