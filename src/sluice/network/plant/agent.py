"""A plant that answers its coordinator: it attests its batch once, then trains, pledges, reveals.

Whatever it has said it keeps on disk before it says it, so that a plant that was killed says the
same again: one opening for a commitment, one update for a round, one head after the other.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import final

from sluice.attestation.log import COORDINATOR, HEADS, Head, extended
from sluice.attestation.messages import TOKENS, sign, update_digest
from sluice.attestation.protocol import KeyFolder, Registered
from sluice.errors import ProverError, SettingError, SluiceError, VerificationError
from sluice.federation import InProcess, Train, Trained
from sluice.files import atomically
from sluice.network.plant.batch_archive import ArchivedBatch, BatchArchive
from sluice.network.plant.model import keep_model
from sluice.network.terms import FederationTerms
from sluice.network.training_rows import TrainingRows
from sluice.network.wire import (
    ANSWERS,
    QUESTIONS,
    Answer,
    Ask,
    AskBatch,
    AskToken,
    AskUpdate,
    Batch,
    CommitOnly,
    Declined,
    Pledge,
    Question,
    Revelation,
    Said,
    model_hash,
    packed_update,
    read_parameters,
)
from sluice.telemetry import Record

__all__ = ["Agent"]

_log = logging.getLogger("sluice.plant")


@final
class Agent:
    """One plant with its batch, its keys and the folder in which it remembers.

    `share` is asked for each batch: an operator can name other rows while the plant runs.
    """

    def __init__(
        self,
        *,
        folder: Path,
        name: str,
        terms: FederationTerms,
        keys: KeyFolder,
        share: Callable[[], TrainingRows],
    ) -> None:
        self._folder = folder
        self._terms = terms
        self._share = share
        self._registered = Registered(
            federation=terms.federation,
            client=name,
            key=keys.ensure_client_key(),
            system=keys.system,
            circuit=keys.circuit,
        )
        self._archive = BatchArchive(folder / "batches", self._registered)
        self._read_last: tuple[TrainingRows, Record] | None = None
        self._trains_on: tuple[TrainingRows, InProcess] | None = None
        (folder / "rounds").mkdir(parents=True, exist_ok=True)

    @property
    def name(self) -> str:
        """The plant's name in the federation."""
        return self._registered.client

    def answer(self, question: bytes) -> bytes:
        """Answer a question of the coordinator this plant has joined, and nobody else's."""
        answer: Said | Declined
        try:
            answer = self._answered(self._read(question).ask)
        except SluiceError as error:
            _log.warning("declined: %s", error)
            answer = Declined(word="a bug" if error.exit_code == 1 else "refused")
        except OSError as error:  # a full disk: nothing is said that could not be kept
            _log.warning("declined: %s", error)
            answer = Declined(word="not able")
        return ANSWERS.write(Answer(answer=answer))

    @property
    def batch(self) -> Record:
        """The rows that the plant attests next, or has attested."""
        return self._rows(self._share())

    def attest(self, *, unproven: bool = False) -> ArchivedBatch:
        """Commit to the batch and prove it, or find what was committed and proven before."""
        share = self._share()
        return self._archive.attest(share, self._rows(share), unproven=unproven)

    def attested_documents(self) -> Batch:
        """Return commitment and proof as they travel, over the wire or as a file."""
        told = self.attest().documents
        if isinstance(told, CommitOnly):
            raise ProverError("the batch has no proof")
        return told

    def refuse_overlap(self, share: TrainingRows) -> None:
        """Raise where these rows cover time that this plant has committed to before."""
        self._archive.refuse_overlap(share.read())

    def _rows(self, share: TrainingRows) -> Record:
        if self._read_last is None or self._read_last[0] != share:
            self._read_last = share, share.read()
        return self._read_last[1]

    def _trainer(self, share: TrainingRows) -> InProcess:
        if self._trains_on is None or self._trains_on[0] != share:
            batch = self._rows(share)
            trainer = InProcess(
                batches={self.name: batch},
                windows={self.name: self._terms.framing.windows(batch)},
                descent=self._terms.descent,
                seed=self._terms.seed,
            )
            self._trains_on = share, trainer
        return self._trains_on[1]

    def _read(self, raw: bytes) -> Question:
        signed = QUESTIONS.read(raw)
        signed.verify(self._terms.coordinator, step="6")
        asked = signed.content
        if (asked.federation, asked.client) != (self._terms.federation, self.name):
            raise VerificationError(
                "6",
                f"a question for {asked.client!r} of {asked.federation!r} came to {self.name!r}",
            )
        return asked

    def _answered(self, ask: Ask) -> Said:
        match ask:
            case AskBatch(unproven=unproven):
                return self.attest(unproven=unproven).documents
            case AskToken():
                return self._pledged(ask)
            case AskUpdate():
                return self._revealed(ask)

    def _pledged(self, ask: AskToken) -> Pledge:
        """Train and pledge; a round that was pledged before is pledged in the same words."""
        token, update = self._kept(ask.round)
        before = read_parameters(ask.parameters, count=self._terms.weights)
        if token.exists():
            said = TOKENS.read(token.read_bytes())
            if said.content.model != model_hash(before):
                raise SettingError(
                    f"round {ask.round} was pledged on another model; the coordinator has gone "
                    "back: ask its operator, then remove the rounds after the one it went back to"
                )
            return Pledge(token=TOKENS.write(said))
        held = self._archive.named(ask.attestation)
        keep_model(self._folder, before, round_=ask.round - 1)
        request = Train(round=ask.round, parameters=before)
        reply = self._trainer(held.share).exchange({self.name: request})[self.name]
        if not isinstance(reply, Trained):
            raise ProverError("training gave no update")
        raw = packed_update(reply.update)
        pledged = held.state.pledge(ask.round, model_hash(before), raw)
        with atomically(update) as draft:
            draft.write_bytes(raw)
        with atomically(token) as draft:
            draft.write_bytes(TOKENS.write(pledged.message))
        return Pledge(token=TOKENS.write(pledged.message))

    def _revealed(self, ask: AskUpdate) -> Revelation:
        """Reveal what was pledged, once the log shows that pledges are what they were."""
        token, update = self._kept(ask.round)
        if not token.exists():
            raise SettingError(f"round {ask.round} was not pledged here")
        raw, held = update.read_bytes(), TOKENS.read(token.read_bytes()).content
        if update_digest(held.federation, held.client, ask.round, raw) != held.update:
            raise SettingError(f"{update} is not what was pledged; it was changed since")
        return Revelation(
            update=raw,
            head=HEADS.write(sign(self._seen(ask), self._registered.key)),
            renews=self._archive.named(held.attestation).share != self._share(),
        )

    def _seen(self, ask: AskUpdate) -> Head:
        """Check that the log is the one seen last with entries added, and remember its head."""
        shown = HEADS.read(ask.head)
        shown.verify(self._terms.coordinator, step="7")
        path = self._folder / "head.json"
        last = (
            HEADS.read(path.read_bytes()).content
            if path.exists()
            else Head(federation=self._terms.federation, signer=COORDINATOR, size=0, last="0" * 64)
        )
        # The coordinator may not know of the last head signed here: its answer can get lost.
        known = last.size - (shown.content.size - len(ask.lines))
        if known < 0:
            raise VerificationError(
                "7",
                f"this plant has seen {last.size} entries of the log; what follows was left out",
            )
        reached = extended(last, ask.lines[known:])
        if (reached.size, reached.last) != (shown.content.size, shown.content.last):
            raise VerificationError(
                "7",
                f"the log of {self._terms.federation!r} has been rewritten: it has "
                f"{shown.content.size} entries and does not go on from the {last.size} seen before",
            )
        with atomically(path) as draft:
            draft.write_bytes(HEADS.write(shown))
        return Head(
            federation=reached.federation, signer=self.name, size=reached.size, last=reached.last
        )

    def _kept(self, round_: int) -> tuple[Path, Path]:
        stem = self._folder / "rounds" / f"{round_:06d}"
        return stem.with_suffix(".token"), stem.with_suffix(".update")
