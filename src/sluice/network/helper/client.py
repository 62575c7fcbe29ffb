"""How plants and the coordinator talk to a helper: every answer is checked against its log."""

import hashlib
import http.client
import os
import ssl
from http import HTTPStatus
from pathlib import Path

from sluice.attestation.hidden import HelperLedger, demand_group
from sluice.attestation.messages import (
    EPOCHS,
    RELEASES,
    RETIREMENTS,
    SUBMISSIONS,
    EpochOrder,
    GroupReleased,
    HelperCard,
    ReleaseOrder,
    RetireOrder,
    ShareTaken,
    Signed,
    Submission,
)
from sluice.errors import SettingError, VerificationError
from sluice.files import public_file

__all__ = ["HelperClient"]

PATIENCE_S = 30.0
LARGEST_ANSWER = 1 << 27


class HelperClient:
    """A connection to one helper, and its log as far as it was read and verified.

    With `copy`, every verified line is kept in this file. So a helper that changes its log is found
    after a restart too, and both versions carry its signature.
    """

    def __init__(
        self,
        card: HelperCard,
        *,
        coordinator: str,
        copy: Path | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._card, self._patience_s, self._copy = card, patience_s, copy
        self._coordinator = coordinator  # the coordinator's key in force
        self._trust = ssl.create_default_context(cadata=card.authority)
        self._trust.minimum_version = ssl.TLSVersion.TLSv1_3
        self.ledger = HelperLedger()
        if copy is not None and copy.exists():
            content = copy.read_bytes()
            whole = content[: content.rfind(b"\n") + 1]
            if whole != content:  # a crash tore the last line; it is read again
                os.truncate(copy, len(whole))
            self._follow(whole)

    def catch_up(self) -> HelperLedger:
        """Read and verify the entries since the last call.

        A helper that takes back or changes an entry fails here: the next one does not follow.
        """
        raw = self._ask("GET", f"/log?from={self.ledger.size}", b"")
        self._follow(raw)
        if raw and self._copy is not None:
            with public_file(self._copy).open("ab") as handle:
                handle.write(raw)
        opened = self.ledger.opened
        if opened is None or (opened.federation, self.ledger.coordinator) != (
            self._card.federation,
            self._coordinator,
        ):
            raise VerificationError(
                "hidden",
                "the helper serves another federation or coordinator; after a new key, its "
                "operator must accept the log again ('sluice helper accept')",
            )
        return self.ledger

    def _follow(self, raw: bytes) -> None:
        if raw and not raw.endswith(b"\n"):
            raise VerificationError("hidden", "the helper's log ends in a torn line")
        self.ledger.read(raw.split(b"\n")[:-1], self._card.key)

    def open_epoch(self, order: Signed[EpochOrder]) -> None:
        """Open an epoch, as the coordinator."""
        self._ask("POST", "/epochs", EPOCHS.write(order))
        if self.catch_up().epoch != order.content:
            raise VerificationError("hidden", "the helper's log has another epoch")

    def share(self, submission: Signed[Submission], *, malicious: int) -> ShareTaken:
        """Hand in a share, as a plant, if the helper's log shows a group that is large enough."""
        content = submission.content
        demand_group(self.catch_up(), content, malicious=malicious)
        self._ask("POST", "/shares", SUBMISSIONS.write(submission))
        taken = self.catch_up().shares.get(content.client)
        if taken is None:
            raise VerificationError("hidden", "the helper took the share and did not log it")
        return taken

    def release(self, order: Signed[ReleaseOrder]) -> tuple[GroupReleased, bytes]:
        """Ask for the sum of R of a whole group, as the coordinator."""
        content = self._ask("POST", "/releases", RELEASES.write(order))
        released = self.catch_up().released.get(order.content.group)
        if released is None or released.order != order:
            raise VerificationError("hidden", "the helper released a sum and did not log it")
        if hashlib.sha256(content).hexdigest() != released.sum:
            raise VerificationError("hidden", "the helper's log names another sum")
        return released, content

    def retire(self, order: Signed[RetireOrder]) -> None:
        """Give up a group, as the coordinator."""
        self._ask("POST", "/retirements", RETIREMENTS.write(order))

    def _ask(self, method: str, path: str, body: bytes) -> bytes:
        address = (self._card.host, self._card.port)
        connection = http.client.HTTPSConnection(
            *address, timeout=self._patience_s, context=self._trust
        )
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            content = answer.read(LARGEST_ANSWER + 1)
        except (OSError, http.client.HTTPException) as error:
            raise SettingError(
                f"the helper at {address[0]}:{address[1]} does not answer: {error}"
            ) from None
        finally:
            connection.close()
        if len(content) > LARGEST_ANSWER:
            raise SettingError("the helper's answer is too large")
        if answer.status != HTTPStatus.OK:
            why = content[:500].decode(errors="replace").strip()
            raise VerificationError("hidden", f"the helper refuses: {why}")
        return content
