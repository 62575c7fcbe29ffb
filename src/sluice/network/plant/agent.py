"""A plant's agent: it attests the plant's batch once, then trains, pledges and reveals.

It keeps a copy of the log and verifies every entry that the coordinator shows. It trains only for a
round that the log has opened on that model, reveals only after the log has closed the pledges with
its own among them, and countersigns only a head that it has reached itself.

It saves every answer on disk before it sends it. A plant that was killed therefore repeats the same
answers: one opening for a commitment, one update for a round, and heads of one growing log.
"""

import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import final

from sluice.attestation.log import (
    ENTRIES,
    HEADS,
    ClientExcluded,
    Ledger,
    LogCopy,
    ModelAggregated,
)
from sluice.attestation.messages import COMMITS, TOKENS, Interval, sign, update_digest
from sluice.attestation.protocol import KeyFolder, Registered, step_in_words
from sluice.errors import (
    DocumentError,
    ProverError,
    SettingError,
    SluiceError,
    VerificationError,
)
from sluice.federation import InProcess, Train, Trained
from sluice.files import atomically, private_folder
from sluice.network.lending import plant_tail
from sluice.network.plant.batch_archive import ArchivedBatch, BatchArchive
from sluice.network.plant.disclosure import statistic_sharing
from sluice.network.plant.grouping import GroupMember
from sluice.network.plant.model import demand_logged, keep_model
from sluice.network.statistics import MemberStatistics, encoded, plant_statistic
from sluice.network.terms import FederationTerms
from sluice.network.training_rows import TrainingRows
from sluice.network.wire import (
    ANSWERS,
    PROTOCOLS,
    QUESTIONS,
    Answer,
    Ask,
    AskBatch,
    AskLog,
    AskModel,
    AskToken,
    AskUpdate,
    Batch,
    CommitOnly,
    Declined,
    LogPage,
    LogSeen,
    ModelTaken,
    Payload,
    Pledge,
    Question,
    Revelation,
    model_hash,
    packed_update,
    read_parameters,
    spoken_protocol,
)
from sluice.telemetry import Record

__all__ = ["Agent", "pledged_rounds"]

PLEDGED = "pledged"
ROUNDS_KEPT = 2
"""Rounds whose token and update stay on disk: the last one and the one before."""
OUTCOMES = (b'"kind":"aggregated"', b'"kind":"excluded"')
"""Entries of the log that say what became of a plant's round."""
OUTCOMES_TOLD = 1_000
"""New entries in which a plant looks for them: one that was away for long reads no old rounds."""
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
        self._keys = keys
        self._use(
            Registered(
                federation=terms.federation,
                client=name,
                key=keys.ensure_client_key(),
                system=keys.system,
                circuit=keys.circuit,
            )
        )
        self._read_last: tuple[TrainingRows, Record] | None = None
        self._trains_on: tuple[TrainingRows, InProcess] | None = None
        self._log = LogCopy(folder / "log.jsonl", self._registered.key, terms.coordinator)
        self._instance = secrets.token_hex(32)
        self.over = False  # whether the coordinator has said that the federation is over
        private_folder(folder / "rounds")

    def _use(self, registered: Registered) -> None:
        self._registered = registered
        sharing = statistic_sharing(self._folder, registered, self._terms)
        self._archive = BatchArchive(self._folder / "batches", registered, sharing=sharing)
        self._group = (
            GroupMember(self._folder, registered, self._terms) if self._terms.grouped else None
        )

    @property
    def name(self) -> str:
        """The plant's name in the federation."""
        return self._registered.client

    def answer(self, question: bytes) -> bytes:
        """Answer a question of the coordinator this plant has joined; decline all others."""
        answer: Payload | Declined
        try:
            answer = self._reply(self._read(question).ask)
        except _UnknownProtocolError as error:
            _log.warning("declined: %s", error)
            answer = Declined(word="unknown protocol")
        except _OtherLogError as error:
            _log.warning("declined: %s", error)
            answer = Declined(word="refused", head=self._followed_head())
        except SluiceError as error:
            _log.warning("declined: %s", error)
            answer = Declined(word="a bug" if error.exit_code == 1 else "refused")
        except OSError as error:  # a full disk: send nothing that could not be saved
            _log.warning("declined: %s", error)
            answer = Declined(word="not able")
        return ANSWERS.write(
            Answer(instance=self._instance, seen=self._log.ledger.size, answer=answer)
        )

    @property
    def ledger(self) -> Ledger:
        """What the log says, as far as this plant has verified it."""
        return self._log.ledger

    @property
    def batch(self) -> Record:
        """The rows that the plant attests next, or has attested."""
        return self._rows(self._share())

    def attest(self, *, unproven: bool = False) -> ArchivedBatch:
        """Commit to the batch and prove it, or return the saved commitment and proof."""
        share, bound = self._share(), self._terms.binds is not None
        return self._archive.attest(share, self._rows(share), unproven=unproven and not bound)

    def attested_documents(self) -> Batch:
        """Return commitment and proof as documents, for the wire or for a file."""
        documents = self.attest().documents
        assert isinstance(documents, Batch)  # a batch that cannot be proven raises in `attest`
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
        """Read a question of this federation's coordinator, after following the log it shows."""
        try:
            signed = QUESTIONS.read(raw)
        except DocumentError:
            version = spoken_protocol(raw)
            if version is not None and version not in PROTOCOLS:
                raise _UnknownProtocolError(version) from None
            raise
        question = signed.content
        if (question.federation, question.client) != (self._terms.federation, self.name):
            raise VerificationError(
                "6",
                f"{self.name!r} of {self._terms.federation!r} received a question for "
                f"{question.client!r} of {question.federation!r}",
            )
        self._follow(question.page)
        signed.verify(self._signer(question), step="6")
        if question.copied:
            _log.warning(
                "another process answers as %r: this folder was copied or is used on two machines; "
                "stop one of them",
                self.name,
            )
        return question

    def _signer(self, question: Question) -> str:
        """Return the coordinator's key; that of a page can be later than the entries so far."""
        if isinstance(question.ask, AskLog):
            return self._log.signer(question.page.rotations)
        return self._log.ledger.coordinator

    def _follow(self, page: LogPage) -> None:
        """Verify the entries that follow the plant's copy of the log, and write them to it."""
        try:
            self._extend(page)
            self._demand_terms()
        except VerificationError as error:
            raise _OtherLogError(error.step, error.why) from error
        self._follow_key()

    def _extend(self, page: LogPage) -> None:
        size = self._log.ledger.size
        known = size - page.start
        if known < 0:
            raise VerificationError(
                "7", f"this plant has seen {size} log entries; the page begins at {page.start}"
            )
        if len(page.lines) < known:
            raise VerificationError(
                "7",
                f"the coordinator shows a log of {page.start + len(page.lines)} entries; this "
                f"plant has seen {size}: the coordinator has gone back. Ask its operator for a "
                "recovery ('sluice plant consent')",
            )
        self._log.extend(page.lines[known:], page.head, rotations=page.rotations)
        for line in page.lines[known:][-OUTCOMES_TOLD:]:
            if any(kind in line for kind in OUTCOMES):
                self._tell(ENTRIES.read(line).body)

    def _demand_terms(self) -> None:
        """Raise if the log was opened with another statistic than the plant was invited to."""
        if self._log.ledger.opened.statistic != self._terms.statistic:
            raise VerificationError(
                "7",
                "the first entry of the log names other channels, lags or scales than this "
                "plant's invitation; ask the coordinator's operator",
            )

    def _tell(self, body: object) -> None:
        """Tell the operator what became of a round, as the log says it."""
        match body:
            case ModelAggregated(round=number, clients=clients) if self.name in clients:
                _log.info("round %d: aggregated, one of %d plants", number, len(clients))
            case ModelAggregated(round=number, clients=clients):
                _log.info(
                    "round %d: %d plants were aggregated, without %s",
                    number,
                    len(clients),
                    self.name,
                )
            case ClientExcluded(round=number, client=client, step=step) if client == self.name:
                _log.warning(
                    "round %d: this plant was left out because %s (step %s)",
                    number,
                    step_in_words(step),
                    step,
                )
            case _:
                pass

    def _round_name(self, number: int) -> str:
        """Return which of the agreed rounds this is; rounds that were given up do not count."""
        if self._terms.statistic is not None:
            return f"round {number}"
        counted = self._log.ledger.rounds.counted + 1
        logged = "" if counted == number else f" (number {number} in the log)"
        return f"round {counted} of {self._terms.rounds}{logged}"

    def _followed_head(self) -> bytes | None:
        """Return the head that the coordinator signed for this plant: it cannot deny it."""
        return HEADS.write(self._log.head) if self._log.head else None

    def _follow_key(self) -> None:
        """Sign with the plant's new key once the log names it."""
        if self.name in self._log.ledger.clients:
            named = self._log.ledger.client(self.name, step="1").key
            if named != self._registered.key.public:
                key = self._keys.adopt(named)
                if key is None:
                    raise SettingError(
                        f"the log names key {named[:12]}... for {self.name!r}, which this folder "
                        "does not hold"
                    )
                self._use(replace(self._registered, key=key))
                self._log.use(key)

    def _reply(self, ask: Ask) -> Payload:
        match ask:
            case AskBatch(unproven=unproven):
                _log.info("proving the batch of %d rows", len(self.batch))
                documents = self.attest(unproven=unproven).documents
                proof = "without a proof" if isinstance(documents, CommitOnly) else "with its proof"
                _log.info("the commitment to the batch is sent, %s", proof)
                return documents
            case AskToken():
                return self._pledge(ask)
            case AskUpdate():
                return self._reveal(ask)
            case AskLog():
                return LogSeen(renews=self._has_later_rows())
            case AskModel():
                return self._take_model(ask)

    def _pledge(self, ask: AskToken) -> Pledge:
        """Train and pledge; for a round that was pledged before, return the saved token."""
        token, update = self._round_files(ask.round)
        model = self._opened_model(ask)
        self._demand_opened(ask, model)
        if token.exists():
            saved = TOKENS.read(token.read_bytes())
            if saved.content.model != model:
                raise SettingError(
                    f"round {ask.round} was pledged on another model; the coordinator has gone "
                    "back: ask its operator to which round, then remove the files of later rounds "
                    "in rounds/"
                )
            _log.info("%s: trained before; the same pledge is sent", self._round_name(ask.round))
            return Pledge(token=TOKENS.write(saved))
        if self._group is not None:
            self._group.demand_epoch(self._log.ledger, ask.round)
        archived = self._archive.named(ask.attestation)
        summed = self._terms.statistic is not None
        raw = self._statistic(archived) if summed else self._trained(ask, archived)
        pledged = archived.state.pledge(ask.round, model, raw, tail=self._lent(archived))
        with atomically(update, private=True) as draft:
            draft.write_bytes(raw)
        with atomically(token) as draft:
            draft.write_bytes(TOKENS.write(pledged.message))
        _count_pledge(self._folder)
        what = "the statistic is summed and" if summed else "trained; the update is"
        _log.info("%s: %s pledged", self._round_name(ask.round), what)
        return Pledge(token=TOKENS.write(pledged.message))

    def _opened_model(self, ask: AskToken) -> str:
        """Return the hash of the model that a round is opened on.

        A statistic does not depend on the model, so the log alone names it.
        """
        if self._terms.statistic is None:
            return model_hash(read_parameters(ask.parameters, count=self._terms.weights))
        standing = self._log.ledger.rounds.standing
        if ask.parameters or standing is None:
            raise VerificationError(
                "6", f"round {ask.round} asks for a statistic; it needs no weights, and a round"
            )
        return standing.opened.model

    def _trained(self, ask: AskToken, archived: ArchivedBatch) -> bytes:
        """Train on the attested batch and return the update."""
        before = read_parameters(ask.parameters, count=self._terms.weights)
        keep_model(self._folder, ask.parameters, round_=ask.round - 1)
        request = Train(round=ask.round, parameters=before)
        reply = self._trainer(archived.share).exchange({self.name: request})[self.name]
        if not isinstance(reply, Trained):
            raise ProverError(f"training in round {ask.round} returned no update")
        return packed_update(reply.vector)

    def _statistic(self, archived: ArchivedBatch) -> bytes:
        """Sum the attested batch and return the statistic; of a bound one, its hash is enough.

        In a group, return the coordinator's share of it.

        The sums are of the channels that the plant's rules tie. The coordinator has a bound
        statistic with its proof, and the log names its hash.
        """
        if self._group is not None:
            return self._group.share_of(archived)
        if self._terms.binds is not None:
            named = COMMITS.read(archived.commit).content.statistic
            assert named is not None  # of every commitment under these terms
            return bytes.fromhex(named)
        batch = self._rows(archived.share)
        if len(batch.segments) > 1:
            raise SettingError(
                f"the batch has {len(batch.segments)} parts with gaps between them; a statistic "
                "sums one stretch of consecutive rows: name other rows with 'sluice plant renew'"
            )
        statistic = plant_statistic(batch, self._terms, self._keys.circuit)
        return encoded(statistic, self._terms.moments.settings)

    def _lent(self, archived: ArchivedBatch) -> bytes | None:
        """Return the tail of this plant's own scores, if members lend theirs."""
        if not self._terms.lends:
            return None
        try:
            tail = plant_tail(self._rows(archived.share), self._terms, self._keys.circuit)
        except SettingError as error:
            _log.warning("this plant lends no thresholds: %s", error)
            return None
        return tail.canonical()

    def _has_later_rows(self) -> bool:
        """Whether the plant names other rows than those of its last attested batch.

        In a federation that trains in rounds, it announces this with its updates. If the archive
        has lost the batch, the log says what time it covers.
        """
        ledger = self._log.ledger
        if self._terms.statistic is None or self.name not in ledger.clients:
            return False
        attested = ledger.attestations(self.name, step="6", at=ledger.time)
        if not attested:
            return False
        archived = self._archive.find(attested[-1])
        if archived is not None:
            return archived.share != self._share()
        commit = ledger.attested_commit(self.name, attested[-1], step="6")
        return Interval.of(self._rows(self._share())) != commit.interval

    def _demand_opened(self, ask: AskToken, model: str) -> None:
        """Raise unless the log has this round open on this model, for this attested plant."""
        standing = self._log.ledger.rounds.standing
        if standing is None or standing.ended or standing.closed:
            raise VerificationError("6", f"the log has no round {ask.round} that takes pledges")
        if (standing.opened.round, standing.opened.model) != (ask.round, model):
            raise VerificationError(
                "6",
                f"the coordinator asks for round {ask.round} on model {model[:12]}...; the log has "
                f"round {standing.opened.round} on {standing.opened.model[:12]}...",
            )
        ledger = self._log.ledger
        if ask.attestation not in ledger.attestations(self.name, step="6", at=ledger.time):
            raise VerificationError(
                "6", f"the log has no attestation {ask.attestation[:12]}... of this plant in force"
            )

    def _reveal(self, ask: AskUpdate) -> Revelation:
        """Reveal the pledged update, and sign the head of the log that this plant has verified."""
        token, update = self._round_files(ask.round)
        if not token.exists():
            raise SettingError(f"this plant has not pledged in round {ask.round}")
        raw, pledged = update.read_bytes(), TOKENS.read(token.read_bytes()).content
        rounds = self._log.ledger.rounds
        if rounds.token(ask.round, self.name) != pledged:
            raise VerificationError(
                "6", f"the log does not have this plant's pledge as the one of round {ask.round}"
            )
        assert rounds.standing is not None
        if not rounds.standing.closed:
            raise VerificationError("6", f"the log has not closed the pledges of round {ask.round}")
        # Every member gets the statistics of all others, so their number hides nothing.
        if self._terms.statistic is None and len(rounds.pledged) < self._terms.members_min:
            raise VerificationError(
                "6.6",
                f"round {ask.round} has {len(rounds.pledged)} plants; this plant's terms need "
                f"{self._terms.members_min}, so that an aggregate does not show its update",
            )
        if update_digest(pledged.federation, pledged.client, ask.round, raw) != pledged.update:
            raise SettingError(
                f"{update} is not the pledged update; the file was changed: restore it from a "
                "backup"
            )
        archived = self._archive.named(pledged.attestation)
        if self._group is not None:
            self._group.hand_in(archived, self._log.ledger, ask.round)
        head = sign(self._log.ledger.head(self.name), self._registered.key)
        self._forget_before(ask.round)
        _log.info("%s: the update is sent", self._round_name(ask.round))
        return Revelation(
            update=raw,
            head=HEADS.write(head),
            renews=archived.share != self._share(),
        )

    def _take_model(self, ask: AskModel) -> ModelTaken:
        """Save the model after a round, if it is the one that the log names."""
        shared = None
        if self._terms.statistic is not None:
            shared = MemberStatistics.from_canonical(ask.parameters, self._terms.summed)
            model = shared.digest
        else:
            model = model_hash(read_parameters(ask.parameters, count=self._terms.weights))
        rounds = self._log.ledger.rounds
        if (ask.round, model) != (rounds.last, rounds.model):
            raise VerificationError(
                "7",
                f"the coordinator hands out model {model[:12]}... after round {ask.round}; the log "
                f"has {(rounds.model or 'none')[:12]}... after round {rounds.last}",
            )
        if shared is not None:
            demand_logged(shared, self._folder / "log.jsonl", self._log.ledger)
        keep_model(self._folder, ask.parameters, round_=ask.round)
        self.over = ask.over
        return ModelTaken()

    def _forget_before(self, round_: int) -> None:
        """Delete the tokens and updates of rounds that the log has finished."""
        for path in (self._folder / "rounds").glob("*.*"):
            if path.stem.isdigit() and int(path.stem) <= round_ - ROUNDS_KEPT:
                path.unlink(missing_ok=True)

    def _round_files(self, round_: int) -> tuple[Path, Path]:
        stem = self._folder / "rounds" / f"{round_:06d}"
        return stem.with_suffix(".token"), stem.with_suffix(".update")


def pledged_rounds(folder: Path) -> int:
    """Return the number of rounds in which the plant of this folder has pledged."""
    path = folder / "rounds" / PLEDGED
    return int(path.read_text(encoding="ascii")) if path.exists() else 0


def _count_pledge(folder: Path) -> None:
    count = pledged_rounds(folder) + 1
    with atomically(folder / "rounds" / PLEDGED) as draft:
        draft.write_text(f"{count}\n", encoding="ascii")


class _OtherLogError(VerificationError):
    """A page that does not continue the log which this plant follows."""


class _UnknownProtocolError(DocumentError):
    """A question in a version of the protocol that this software does not speak."""

    def __init__(self, version: int) -> None:
        spoken = ", ".join(str(each) for each in PROTOCOLS)
        super().__init__(
            f"the coordinator speaks protocol {version}; this plant speaks {spoken}: update the "
            "older of the two"
        )
