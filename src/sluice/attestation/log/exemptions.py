"""Exemptions recorded in the log: the gate in shadow, waivers, and batches without a proof."""

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
    """A batch that takes part without a proof, under a waiver or a gate in shadow."""

    client: str
    commitment: str
    attestation: str
    waiver: str | None  # None: the gate is in shadow


class Exemptions:
    """The batches that take part without a proof, and until when."""

    def __init__(self) -> None:
        self.shadow = False
        self._waivers: dict[str, Waiver] = {}  # by digest
        self._excused: dict[str, Excused] = {}  # by commitment

    # -- queries ------------------------------------------------------------------------------

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """Every waiver that was granted."""
        return tuple(self._waivers.values())

    @property
    def excused(self) -> tuple[Excused, ...]:
        """Every batch that was taken without a proof."""
        return tuple(self._excused.values())

    def covering(self, commit: Commit, *, at: str) -> str | None:
        """Return the digest of a waiver that covers this batch; None if there is none."""
        digests = (d for d, w in self._waivers.items() if not _objection(w, commit, at=at))
        return next(digests, None)

    def open_to(self, client: str, *, at: str) -> bool:
        """Whether a batch of this client may take part without a proof."""
        waived = (w.client == client and at <= w.expires for w in self._waivers.values())
        return self.shadow or any(waived)

    def holds(self, excused: Excused, *, at: str) -> bool:
        """Whether the batch is still excused: shadow mode ends, and waivers expire."""
        if excused.waiver is None:
            return self.shadow
        return at <= self._waivers[excused.waiver].expires

    # -- checks -------------------------------------------------------------------------------

    def check_gate(self, body: GateSet, *, between: bool) -> None:
        """The gate changes between rounds only, and to the other setting."""
        if body.enforced != self.shadow:
            raise VerificationError("7", "the gate already has this setting")
        if not between:
            raise VerificationError("7", "the gate can change between rounds only")

    def check_waiver(self, body: WaiverGranted, opened: LogOpened, *, at: str) -> None:
        """A waiver is of this federation, signed by its coordinator, and has not expired."""
        waiver = body.waiver.content
        body.waiver.verify(opened.coordinator, step=STEP)
        if waiver.federation != opened.federation:
            raise VerificationError(STEP, f"the waiver is for federation {waiver.federation!r}")
        if at > waiver.expires:
            raise VerificationError(STEP, f"the waiver expired on {waiver.expires}")

    def check_excused(self, body: BatchExcused, commit: Commit, *, at: str) -> None:
        """A batch is excused once at a time, under its own id, by shadow mode or its waiver."""
        earlier = self._excused.get(body.commitment)
        already = earlier is not None and self.holds(earlier, at=at)
        if already or body.attestation != unproven_id(commit):
            raise VerificationError(STEP, "the batch is already excused, or has another id")
        if body.waiver is None:
            if not self.shadow:
                raise VerificationError(
                    STEP, f"{body.client!r} sends no proof; the gate is enforced"
                )
            return
        if body.waiver not in self._waivers:
            raise VerificationError(STEP, "the log has no such waiver")
        objection = _objection(self._waivers[body.waiver], commit, at=at)
        if objection:
            raise VerificationError(STEP, objection)

    def note(self, body: GateSet | WaiverGranted | BatchExcused) -> None:
        """Record an entry that was checked."""
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
    """Return why a waiver does not cover a batch; empty if it does."""
    if waiver.client != commit.client:
        return f"the waiver is for {waiver.client!r}, not for {commit.client!r}"
    if at > waiver.expires:
        return f"the waiver of {waiver.client!r} expired on {waiver.expires}"
    window, batch = waiver.interval, commit.interval
    if not window.start <= batch.start <= batch.end <= window.end:
        return (
            f"the waiver of {waiver.client!r} covers {window.start} to {window.end}; the batch "
            f"covers {batch.start} to {batch.end}"
        )
    return ""
