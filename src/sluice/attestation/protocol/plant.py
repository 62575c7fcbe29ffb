"""The plant's side of the protocol, as types that only move forward.

    Registered --commit--> Committed --prove--> Proven --pledge--> Pledged
                           Committed --challenged--> Challenged --prove--> Proven
                           Committed --unproven--> Unproven --pledge--> Pledged

The second line is for systems that draw rows, the third for batches that the coordinator's log
excuses from proving. Each state has only the methods that lead to the next state. Code that proves
before committing, or pledges an update before a proof, does not type-check.
"""

import hashlib
import secrets
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, final

from pydantic import ConfigDict

from sluice.admission import Verdict, judge, policy_hash
from sluice.attestation.hidden import (
    SHARING_BYTES,
    CoordinatorShare,
    HelperShare,
    Shape,
    SharedSums,
    share_sums,
)
from sluice.attestation.log import unproven_id
from sluice.attestation.messages import (
    COMMITS,
    STRICT,
    Challenge,
    Commit,
    Commitment,
    Form,
    Hex32,
    Interval,
    Proof,
    Registration,
    RegistrationTerms,
    Signed,
    SigningKey,
    Token,
    attestation_id,
    context_of,
    read_private,
    sign,
    update_digest,
)
from sluice.attestation.protocol.transition import (
    TRANSITION,
    StateTransition,
    demand_transition,
)
from sluice.attestation.systems import SALT_BYTES, Circuit, System
from sluice.attestation.systems.full import (
    LARGEST_STATISTIC,
    SealedStatistic,
    StatisticName,
    batch_masks,
    batch_statistic,
    statistic_settings,
)
from sluice.detector import MomentStatistic
from sluice.errors import RecordError, RefusedError, SettingError
from sluice.files import atomically, read_bounded
from sluice.invariants import rules_hash
from sluice.telemetry import Record

__all__ = [
    "Challenged",
    "Committed",
    "Opening",
    "Pledged",
    "Proven",
    "Registered",
    "Unproven",
    "beside",
    "explanation",
    "fresh_salt",
    "load_opening",
    "refuse_unless_admitted",
    "save_opening",
    "shares_beside",
    "statistic_beside",
    "statistic_hash",
    "under_way_beside",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The salt of one commitment. With it, guesses of the batch can be tested."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    commitment: Commitment
    salt: Hex32 = field(repr=False)


_FORM: Form[Opening] = Form.of(Opening, "opening", largest=1_024)


def fresh_salt() -> bytes:
    """Draw a salt from the operating system."""
    return secrets.token_bytes(SALT_BYTES)


def beside(commit: Path) -> Path:
    """Return the path of a commitment's opening: commit.opening for commit.json."""
    return commit.with_suffix(".opening")


def statistic_beside(commit: Path) -> Path:
    """Return the path of the statistic that a commitment names: statistic.bin in its folder."""
    return commit.with_name("statistic.bin")


def under_way_beside(commit: Path) -> Path:
    """Return the path of a proof under way: commit.proving for commit.json.

    It contains the masks of the proof and is as secret as the batch. Remove it when the proof is
    saved.
    """
    return commit.with_suffix(".proving")


def shares_beside(commit: Path) -> tuple[Path, Path]:
    """Return the paths of the shares of hidden sums: the coordinator's and the helper's.

    Together they show the sums. Send each to its party only.
    """
    return commit.with_name("share-coordinator.bin"), commit.with_name("share-helper.bin")


def _load_shares(path: Path, sealed: bytes, circuit: Circuit, *, rows: int) -> SharedSums:
    settings = statistic_settings(circuit)
    assert settings is not None
    coordinator, helper = (
        read_bounded(place, "share", largest=LARGEST_STATISTIC, private=True)
        for place in shares_beside(path)
    )
    shares = SharedSums(
        sealed=SealedStatistic.from_canonical(sealed, settings, rows=rows),
        coordinator=CoordinatorShare.from_canonical(coordinator, Shape.of(settings)),
        helper=HelperShare(seed=helper),
    )
    named = (shares.sealed.coordinator, shares.sealed.helper)
    if named != (shares.coordinator.commitment, shares.helper.commitment):
        raise SettingError(f"the shares beside {path} do not open its sealed statistic")
    return shares


def statistic_hash(content: bytes) -> str:
    """Return the hash by which a commitment names a statistic."""
    return hashlib.sha256(content).hexdigest()


def save_opening(opening: Opening, path: Path) -> None:
    """Write an opening with mode 0600."""
    with atomically(path, private=True) as draft:
        draft.write_bytes(_FORM.write(opening))


def load_opening(path: Path) -> Opening:
    """Read an opening; a file that other users can read is refused."""
    return _FORM.read(read_private(path, "opening"))


def refuse_unless_admitted(
    batch: Record, circuit: Circuit, *, verdict: Verdict | None = None
) -> None:
    """Raise a `RefusedError` with the gate's reasons if the gate does not admit the batch.

    A verdict on this batch under these rules and this policy is used. With any other verdict, or
    with none, the batch is judged.
    """
    if verdict is None or not verdict.is_about(batch, circuit.rules, circuit.policy):
        verdict = judge(batch, circuit.rules, circuit.policy)
    if not verdict.admitted:
        raise RefusedError(
            f"batch {batch.name!r} breaks the rules of {circuit.rules.plant!r}, so it cannot be "
            f"proven. {explanation(verdict)} Only you see these reasons: the coordinator only sees "
            "that no proof arrives."
        )


def explanation(verdict: Verdict) -> str:
    """Return why a batch is refused: the budgets it breaks, then the findings of the rules."""
    findings = sorted(
        (finding for finding in verdict.findings if finding.sentence),
        key=lambda finding: -finding.violating_rows,
    )
    sentences = [*verdict.sentences, *(finding.sentence for finding in findings)]
    return " ".join(f"{sentence}." for sentence in sentences)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A plant with its key and the circuit that its batches are proven with."""

    federation: str
    client: str
    key: SigningKey
    system: System
    circuit: Circuit

    def registration(self, *, overlaps: bool = False) -> Signed[Registration]:
        """Return step 1's message, for approvers to approve and the coordinator to log."""
        content = Registration(
            federation=self.federation,
            client=self.client,
            key=self.key.public,
            system=self.system.name,
            circuit=self.circuit.identity,
            rules=rules_hash(self.circuit.rules),
            policy=policy_hash(self.circuit.policy),
            terms=RegistrationTerms.of(self.circuit, overlaps=overlaps),
        )
        return sign(content, self.key)

    def commit(self, batch: Record, *, signed_off: str | None = None) -> "Committed":
        """Step 2: commit to a batch under a fresh salt.

        `signed_off` is the operator who agreed to share the statistic of this batch.
        """
        rules, interval = self.circuit.rules, Interval.of(batch)
        rules.demand(batch)
        if batch.stride_s != rules.stride_s:
            raise RecordError(
                f"batch {batch.name!r} has a stride of {batch.stride_s:g} s, the rules of "
                f"{rules.plant!r} one of {rules.stride_s:g} s"
            )
        objection = RegistrationTerms.of(self.circuit).objection(len(batch), interval)
        if objection:
            raise RecordError(f"batch {batch.name!r} cannot be committed to: {objection}")
        salt = fresh_salt()
        try:
            commitment = self.system.commit(batch, self.circuit, salt=salt).hex()
            statistic, shares = self._statistic(batch, salt)
        except RefusedError:
            # The circuit cannot represent this batch: prefer the gate's reasons to the circuit's.
            refuse_unless_admitted(batch, self.circuit)
            raise
        content = Commit(
            federation=self.federation,
            client=self.client,
            key=self.key.public,
            system=self.system.name,
            circuit=self.circuit.identity,
            rules=rules_hash(rules),
            policy=policy_hash(self.circuit.policy),
            commitment=commitment,
            rows=len(batch),
            interval=interval,
            statistic=None if statistic is None else statistic_hash(statistic),
            signed_off=signed_off,
        )
        opening = Opening(commitment=commitment, salt=salt.hex())
        return Committed(
            plant=self,
            message=sign(content, self.key),
            opening=opening,
            statistic=statistic,
            shares=shares,
            transition=TRANSITION,
        )

    def _statistic(self, batch: Record, salt: bytes) -> tuple[bytes | None, SharedSums | None]:
        """Return what the commitment names, and the shares if the circuit hides the sums."""
        sums = batch_statistic(batch, self.circuit)
        if sums is None or self.circuit.statistic != StatisticName.HIDDEN:
            return sums, None
        settings = statistic_settings(self.circuit)
        assert settings is not None
        shares = share_sums(
            MomentStatistic.from_canonical(sums, settings),
            batch_masks(batch, self.circuit, salt=salt),
            rows=len(batch),
            entropy=secrets.token_bytes(SHARING_BYTES),
        )
        return shares.sealed.canonical(), shares


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A plant that has committed to a batch and has the opening."""

    plant: Registered
    message: Signed[Commit]
    opening: Opening = field(repr=False)
    statistic: bytes | None = field(default=None, repr=False)  # for a circuit that binds one
    shares: SharedSums | None = field(default=None, repr=False)  # for a circuit that hides its sums
    transition: InitVar[StateTransition]

    def __post_init__(self, transition: StateTransition) -> None:
        demand_transition(self, transition)

    def save(self, path: Path) -> None:
        """Write the message, and beside it the opening, which only the plant may read.

        An existing commitment is not overwritten: only its own opening can prove it.
        """
        if path.exists():
            raise SettingError(
                f"{path} and its opening exist and are not overwritten; choose another path"
            )
        if self.statistic is not None:
            sums = statistic_beside(path)
            if sums.exists():
                raise SettingError(
                    f"{sums} exists and is not overwritten; write the commitment to another folder"
                )
            with atomically(sums) as draft:
                draft.write_bytes(self.statistic)
        if self.shares is not None:
            for place, share in zip(
                shares_beside(path),
                (self.shares.coordinator.canonical(), self.shares.helper.seed),
                strict=True,
            ):
                with atomically(place, private=True) as draft:
                    draft.write_bytes(share)
        save_opening(self.opening, beside(path))
        with atomically(path) as draft:
            draft.write_bytes(COMMITS.write(self.message))

    @classmethod
    def load(cls, path: Path, key: SigningKey, system: System, circuit: Circuit) -> "Committed":
        """Load the state that `save` wrote."""
        message = COMMITS.read(read_bounded(path, "commitment", largest=COMMITS.largest))
        opening, commit = load_opening(beside(path)), message.content
        if opening.commitment != commit.commitment:
            raise SettingError(f"{beside(path)} is not the opening of {path}")
        if commit.circuit != circuit.identity:
            raise SettingError(f"{path} was made for another circuit")
        plant = Registered(
            federation=commit.federation,
            client=commit.client,
            key=key,
            system=system,
            circuit=circuit,
        )
        statistic = None
        if commit.statistic is not None:
            sums = statistic_beside(path)
            statistic = read_bounded(sums, "statistic", largest=LARGEST_STATISTIC)
            if statistic_hash(statistic) != commit.statistic:
                raise SettingError(f"{sums} is not the statistic that {path} names")
        shares = None
        if circuit.statistic == StatisticName.HIDDEN and statistic is not None:
            shares = _load_shares(path, statistic, circuit, rows=commit.rows)
        return cls(
            plant=plant,
            message=message,
            opening=opening,
            statistic=statistic,
            shares=shares,
            transition=TRANSITION,
        )

    def challenged(self, challenge: Challenge) -> "Challenged":
        """Step 3: accept the coordinator's nonce for this commitment."""
        if not self.plant.system.challenged or not challenge.answers(self.message.content):
            raise SettingError(
                f"the challenge is not for this commitment, or system {self.plant.system.name!r} "
                "takes none"
            )
        return Challenged(committed=self, challenge=challenge, transition=TRANSITION)

    def prove(self, batch: Record, *, verdict: Verdict | None = None) -> "Proven":
        """Step 4: prove the batch; one that breaks the rules is refused here, with reasons.

        A verdict on this batch that the plant already has saves judging it again.
        """
        if self.plant.system.challenged:
            raise SettingError(
                f"system {self.plant.system.name!r} proves rows that the coordinator draws; take "
                "its challenge first"
            )
        return self._prove(batch, None, verdict)

    def unproven(self) -> "Unproven":
        """Continue without a proof, if a waiver or a gate in shadow allows it."""
        return Unproven(plant=self.plant, message=self.message, transition=TRANSITION)

    def proven(self, message: Signed[Proof]) -> "Proven":
        """Return the state after an earlier proof of this commitment."""
        proof, commit = message.content, self.message.content
        message.verify(commit.key, step="4")
        if proof.commitment != commit.commitment:
            raise SettingError("the proof is of another commitment; prove this one again")
        return Proven(
            plant=self.plant,
            message=message,
            attestation=attestation_id(commit, proof.proof),
            transition=TRANSITION,
        )

    def _prove(
        self, batch: Record, challenge: Challenge | None, verdict: Verdict | None
    ) -> "Proven":
        plant, commit = self.plant, self.message.content
        if commit.key != plant.key.public:
            raise SettingError("the commitment was made with another key; commit to later rows")
        salt = bytes.fromhex(self.opening.salt)
        recomputed = plant.system.commit(batch, plant.circuit, salt=salt).hex()
        if (recomputed, Interval.of(batch)) != (commit.commitment, commit.interval):
            raise SettingError(
                f"batch {batch.name!r} is not the one that was committed to ({commit.rows:,} rows "
                f"from {commit.interval.start}); give the same rows, or commit to these"
            )
        refuse_unless_admitted(batch, plant.circuit, verdict=verdict)
        context = context_of(commit, plant.circuit, challenge).digest()
        proof = plant.system.prove(
            batch, plant.circuit, salt=salt, context=context, statistic=self.statistic
        )
        content = Proof(
            federation=commit.federation,
            client=commit.client,
            system=commit.system,
            circuit=commit.circuit,
            commitment=commit.commitment,
            proof=proof,
        )
        return Proven(
            plant=plant,
            message=sign(content, plant.key),
            attestation=attestation_id(commit, proof),
            transition=TRANSITION,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Challenged:
    """A plant whose commitment was challenged."""

    committed: Committed
    challenge: Challenge
    transition: InitVar[StateTransition]

    def __post_init__(self, transition: StateTransition) -> None:
        demand_transition(self, transition)

    def prove(self, batch: Record, *, verdict: Verdict | None = None) -> "Proven":
        """Step 4: prove the rows that were drawn."""
        return self.committed._prove(batch, self.challenge, verdict)  # noqa: SLF001 - its next step


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """A plant with a proof of its batch; its tokens name the attestation."""

    plant: Registered
    message: Signed[Proof] = field(repr=False)
    attestation: str
    transition: InitVar[StateTransition]

    def __post_init__(self, transition: StateTransition) -> None:
        demand_transition(self, transition)

    def pledge(
        self, round_: int, model: str, update: bytes, *, tail: bytes | None = None
    ) -> "Pledged":
        """Step 6: commit by hash to an update, before any update is revealed.

        `tail` is the encoded tail of its own scores that the plant lends.
        """
        return _pledged(self.plant, self.attestation, round_, model, update, tail=tail)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Unproven:
    """A plant whose committed batch is excused from proving; step 4 would refuse it if enforced."""

    plant: Registered
    message: Signed[Commit]
    transition: InitVar[StateTransition]

    def __post_init__(self, transition: StateTransition) -> None:
        demand_transition(self, transition)

    @property
    def attestation(self) -> str:
        """The id that its tokens use in place of an attestation."""
        return unproven_id(self.message.content)

    def pledge(
        self, round_: int, model: str, update: bytes, *, tail: bytes | None = None
    ) -> "Pledged":
        """Step 6, as for a batch that was proven."""
        return _pledged(self.plant, self.attestation, round_, model, update, tail=tail)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pledged:
    """A plant that has pledged; the update is sent after pledges are closed."""

    message: Signed[Token]
    update: bytes = field(repr=False)
    transition: InitVar[StateTransition]

    def __post_init__(self, transition: StateTransition) -> None:
        demand_transition(self, transition)


def _pledged(  # noqa: PLR0913 - a token is these parts
    plant: Registered,
    attestation: str,
    round_: int,
    model: str,
    update: bytes,
    *,
    tail: bytes | None,
) -> Pledged:
    content = Token(
        federation=plant.federation,
        client=plant.client,
        round=round_,
        model=model,
        attestation=attestation,
        update=update_digest(plant.federation, plant.client, round_, update),
        tail=None if tail is None else tail.hex(),
    )
    return Pledged(message=sign(content, plant.key), update=update, transition=TRANSITION)
