"""Exemptions recorded in the log: the gate in shadow, waivers, and batches without a proof."""

from dataclasses import dataclass, field

from sluice.attestation.log.entries import BatchExcused, GateSet, WaiverGranted, unproven_id
from sluice.attestation.messages import Commit, ShadowOrder, Waiver, content_digest
from sluice.errors import VerificationError

__all__ = ["Excused", "Exemptions", "ExemptionsState"]

STEP = "4"


@dataclass(frozen=True, slots=True, kw_only=True)
class Excused:
    """A batch that takes part without a proof, under a waiver or a gate in shadow."""

    client: str
    commitment: str
    attestation: str
    waiver: str | None  # None: the gate is in shadow


@dataclass(slots=True, kw_only=True)
class ExemptionsState:
    """What the log exempts from proving."""

    order: ShadowOrder | None = None  # None: the gate is enforced
    waivers: dict[str, Waiver] = field(default_factory=dict)  # by digest
    excused: dict[str, Excused] = field(default_factory=dict)  # by commitment


class Exemptions:
    """The batches that take part without a proof, and until when."""

    def __init__(self, state: ExemptionsState) -> None:
        self._state = state

    # -- queries ------------------------------------------------------------------------------

    def shadow(self, *, at: str) -> bool:
        """Whether the gate is in shadow at this time."""
        return self._state.order is not None and at <= self._state.order.until

    @property
    def order(self) -> ShadowOrder | None:
        """The order under which the gate is in shadow; None if it is enforced."""
        return self._state.order

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """Every waiver that was granted."""
        return tuple(self._state.waivers.values())

    @property
    def excused(self) -> tuple[Excused, ...]:
        """Every batch that was taken without a proof."""
        return tuple(self._state.excused.values())

    def excuse_of(self, commitment: str) -> Excused | None:
        """Return the excuse of a batch, if there was one."""
        return self._state.excused.get(commitment)

    def covering(self, commit: Commit, *, at: str) -> str | None:
        """Return the digest of a waiver that covers this batch; None if there is none."""
        digests = (d for d, w in self._state.waivers.items() if not _objection(w, commit, at=at))
        return next(digests, None)

    def open_to(self, client: str, *, at: str) -> bool:
        """Whether a batch of this client may take part without a proof."""
        waived = (w.client == client and at <= w.expires for w in self._state.waivers.values())
        return self.shadow(at=at) or any(waived)

    def holds(self, excused: Excused, *, at: str) -> bool:
        """Whether the batch is still excused: shadow mode ends, and waivers expire."""
        if excused.waiver is None:
            return self.shadow(at=at)
        return at <= self._state.waivers[excused.waiver].expires

    # -- checks -------------------------------------------------------------------------------

    def check_gate(self, body: GateSet, federation: str, *, at: str, between: bool) -> None:
        """The gate changes between rounds only; shadow needs an order that has not ended."""
        if body.enforced != self.shadow(at=at):
            raise VerificationError("7", "the gate already has this setting")
        if not between:
            raise VerificationError("7", "the gate can change between rounds only")
        if body.enforced != (body.order is None):
            raise VerificationError("7", "shadow needs an order, and enforcing takes none")
        if body.order is None:
            return
        if body.order.federation != federation:
            raise VerificationError(
                "7", f"the shadow order is for federation {body.order.federation!r}"
            )
        if at > body.order.until:
            raise VerificationError("7", f"the shadow order ended on {body.order.until}")

    def check_waiver(self, body: WaiverGranted, federation: str, *, at: str) -> None:
        """A waiver is of this federation, new, and has not expired."""
        waiver = body.waiver
        if waiver.federation != federation:
            raise VerificationError(STEP, f"the waiver is for federation {waiver.federation!r}")
        if at > waiver.expires:
            raise VerificationError(STEP, f"the waiver expired on {waiver.expires}")
        if content_digest(waiver) in self._state.waivers:
            raise VerificationError(STEP, "this waiver is already in the log")

    def check_excused(self, body: BatchExcused, commit: Commit, *, at: str) -> None:
        """A batch is excused once at a time, under its own id, by shadow mode or its waiver."""
        earlier = self._state.excused.get(body.commitment)
        already = earlier is not None and self.holds(earlier, at=at)
        if already or body.attestation != unproven_id(commit):
            raise VerificationError(STEP, "the batch is already excused, or has another id")
        if body.waiver is None:
            if not self.shadow(at=at):
                raise VerificationError(
                    STEP, f"{body.client!r} sends no proof; the gate is enforced"
                )
            return
        if body.waiver not in self._state.waivers:
            raise VerificationError(STEP, "the log has no such waiver")
        objection = _objection(self._state.waivers[body.waiver], commit, at=at)
        if objection:
            raise VerificationError(STEP, objection)

    def note(self, body: GateSet | WaiverGranted | BatchExcused) -> None:
        """Record an entry that was checked."""
        match body:
            case GateSet(order=order):
                self._state.order = order
            case WaiverGranted(waiver=waiver):
                self._state.waivers[content_digest(waiver)] = waiver
            case BatchExcused():
                self._state.excused[body.commitment] = Excused(
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
    if batch.start < window.start or batch.end > window.end:
        return (
            f"the waiver of {waiver.client!r} covers {window.start} to {window.end}; the batch "
            f"covers {batch.start} to {batch.end}"
        )
    return ""
