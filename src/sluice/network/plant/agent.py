"""A plant's agent: it attests the plant's batch once, then trains, pledges and reveals.

It saves every answer on disk before it sends it. A plant that was killed therefore repeats the same
answers: one opening for a commitment, one update for a round, and heads of one growing log.
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
from sluice.files import atomically, private_folder
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
    Payload,
    Pledge,
    Question,
    Revelation,
    model_hash,
    packed_update,
    read_parameters,
)
from sluice.telemetry import Record

__all__ = ["Agent"]

_log = logging.getLogger("sluice.plant")


@final
class Agent:
    """One plant with its batch, its keys and the folder that holds its state.

    `share` is called for each batch, because an operator can name other rows while the plant runs.
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
        private_folder(folder / "rounds")

    @property
    def name(self) -> str:
        """The plant's name in the federation."""
        return self._registered.client

    def answer(self, question: bytes) -> bytes:
        """Answer a question of the coordinator this plant has joined; decline all others."""
        answer: Payload | Declined
        try:
            answer = self._reply(self._read(question).ask)
        except SluiceError as error:
            _log.warning("declined: %s", error)
            answer = Declined(word="a bug" if error.exit_code == 1 else "refused")
        except OSError as error:  # a full disk: send nothing that could not be saved
            _log.warning("declined: %s", error)
            answer = Declined(word="not able")
        return ANSWERS.write(Answer(answer=answer))

    @property
    def batch(self) -> Record:
        """The rows that the plant attests next, or has attested."""
        return self._rows(self._share())

    def attest(self, *, unproven: bool = False) -> ArchivedBatch:
        """Commit to the batch and prove it, or return the saved commitment and proof."""
        share = self._share()
        return self._archive.attest(share, self._rows(share), unproven=unproven)

    def attested_documents(self) -> Batch:
        """Return commitment and proof as documents, for the wire or for a file."""
        documents = self.attest().documents
        if isinstance(documents, CommitOnly):
            raise ProverError(f"the batch of {self.name!r} has no proof; see 'sluice plant check'")
        return documents

    def refuse_overlap(self, share: TrainingRows) -> None:
        """Raise if these rows overlap in time with another batch this plant has committed to."""
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
        question = signed.content
        if (question.federation, question.client) != (self._terms.federation, self.name):
            raise VerificationError(
                "6",
                f"{self.name!r} of {self._terms.federation!r} received a question for "
                f"{question.client!r} of {question.federation!r}",
            )
        return question

    def _reply(self, ask: Ask) -> Payload:
        match ask:
            case AskBatch(unproven=unproven):
                return self.attest(unproven=unproven).documents
            case AskToken():
                return self._pledge(ask)
            case AskUpdate():
                return self._reveal(ask)

    def _pledge(self, ask: AskToken) -> Pledge:
        """Train and pledge; for a round that was pledged before, return the saved token."""
        token, update = self._round_files(ask.round)
        before = read_parameters(ask.parameters, count=self._terms.weights)
        if token.exists():
            saved = TOKENS.read(token.read_bytes())
            if saved.content.model != model_hash(before):
                raise SettingError(
                    f"round {ask.round} was pledged on another model; the coordinator has gone "
                    "back: ask its operator to which round, then remove the files of later rounds "
                    "in rounds/"
                )
            return Pledge(token=TOKENS.write(saved))
        archived = self._archive.named(ask.attestation)
        keep_model(self._folder, before, round_=ask.round - 1)
        request = Train(round=ask.round, parameters=before)
        reply = self._trainer(archived.share).exchange({self.name: request})[self.name]
        if not isinstance(reply, Trained):
            raise ProverError(f"training in round {ask.round} returned no update")
        raw = packed_update(reply.update)
        pledged = archived.state.pledge(ask.round, model_hash(before), raw)
        with atomically(update, private=True) as draft:
            draft.write_bytes(raw)
        with atomically(token) as draft:
            draft.write_bytes(TOKENS.write(pledged.message))
        return Pledge(token=TOKENS.write(pledged.message))

    def _reveal(self, ask: AskUpdate) -> Revelation:
        """Reveal the pledged update, and sign the log's head after checking the log."""
        token, update = self._round_files(ask.round)
        if not token.exists():
            raise SettingError(f"this plant has not pledged in round {ask.round}")
        raw, pledged = update.read_bytes(), TOKENS.read(token.read_bytes()).content
        if update_digest(pledged.federation, pledged.client, ask.round, raw) != pledged.update:
            raise SettingError(
                f"{update} is not the pledged update; the file was changed: restore it from a "
                "backup"
            )
        return Revelation(
            update=raw,
            head=HEADS.write(sign(self._check_log(ask), self._registered.key)),
            renews=self._archive.named(pledged.attestation).share != self._share(),
        )

    def _check_log(self, ask: AskUpdate) -> Head:
        """Check that the log extends the one seen last; save and return its head."""
        shown = HEADS.read(ask.head)
        shown.verify(self._terms.coordinator, step="7")
        path = self._folder / "head.json"
        last = (
            HEADS.read(path.read_bytes()).content
            if path.exists()
            else Head(federation=self._terms.federation, signer=COORDINATOR, size=0, last="0" * 64)
        )
        # The coordinator may not know the last head signed here, because an answer can get lost.
        known = last.size - (shown.content.size - len(ask.lines))
        if known < 0:
            raise VerificationError(
                "7",
                f"this plant has seen {last.size} log entries; the coordinator left out those that "
                "follow",
            )
        reached = extended(last, ask.lines[known:])
        if (reached.size, reached.last) != (shown.content.size, shown.content.last):
            raise VerificationError(
                "7",
                f"the log of {self._terms.federation!r} has been rewritten: it has "
                f"{shown.content.size} entries and does not extend the {last.size} seen before",
            )
        with atomically(path) as draft:
            draft.write_bytes(HEADS.write(shown))
        return Head(
            federation=reached.federation, signer=self.name, size=reached.size, last=reached.last
        )

    def _round_files(self, round_: int) -> tuple[Path, Path]:
        stem = self._folder / "rounds" / f"{round_:06d}"
        return stem.with_suffix(".token"), stem.with_suffix(".update")
