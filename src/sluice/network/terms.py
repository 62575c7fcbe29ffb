"""A federation's terms, agreed before its first round, and the documents by which plants join.

The terms are public. An invitation adds a single-use secret, by which the coordinator recognises
the plant that answers it.
"""

import json
import math
import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from sluice.attestation.log import LogTerms, StatisticChannel, StatisticTerms
from sluice.attestation.messages import (
    STRICT,
    Blob,
    Count,
    HelperCard,
    Hex32,
    Instant,
    Name,
    StatisticLimits,
    members_needed,
)
from sluice.attestation.systems.full import StatisticName
from sluice.detector import (
    Descent,
    Framing,
    MomentSettings,
    ReceiverMoments,
    parameter_count,
)
from sluice.errors import DocumentError, SettingError
from sluice.federation import UPDATE_MAX
from sluice.files import atomically, read_bounded
from sluice.invariants import Register
from sluice.telemetry import Channel, Scaler
from sluice.template import Overlap, Template, demand_kinds, overlap_of

__all__ = [
    "GRACE_S",
    "KEEP_ROUNDS",
    "MEMBERS_MIN",
    "QUORUM",
    "ExportedAttestation",
    "FederationTerms",
    "Invitation",
    "JoinRequest",
    "PlantCertificate",
    "demand_group_terms",
    "demand_overlap",
    "demand_phase_terms",
    "read_document",
    "statistic_terms",
    "write_document",
]

QUORUM = 0.5
GRACE_S = 60.0
KEEP_ROUNDS = 200
MEMBERS_MIN = 3

Document = TypeVar("Document")
LARGEST_DOCUMENT = 16 * 1024 * 1024


def demand_phase_terms(*, quorum: float, grace_s: float, update_max: float) -> None:
    """Raise unless these terms of a round's phases are in range."""
    if not 0 < quorum <= 1:
        raise SettingError(
            f"the quorum must be a share of the asked plants, above 0 and at most 1; got {quorum}"
        )
    if not 0 <= grace_s < math.inf:
        raise SettingError(f"the grace must be 0 or more seconds; got {grace_s}")
    if not 0 < update_max < math.inf:
        raise SettingError(
            f"the largest entry of an update must be a finite number above 0; got {update_max}"
        )


def demand_overlap(least: float, *, statistic: bool) -> None:
    """Raise unless plants may lack so many of the points."""
    if not 0 < least <= 1:
        raise SettingError(
            f"a plant needs a share of the points, above 0 and at most 1; got {least}"
        )
    if least < 1 and not statistic:
        raise SettingError(
            f"a model that is trained in rounds reads every point, so a plant cannot join with "
            f"{least:.0%} of them; found the federation with --detector moments"
        )


def demand_group_terms(*, malicious: int, members_min: int, bound: bool) -> None:
    """Raise unless statistics can be summed in groups under these terms."""
    if not bound:
        raise SettingError(
            "only bound statistics are summed in groups: hidden sums need a proof; add --bound"
        )
    needed = members_needed(malicious)
    if members_min < needed:
        raise SettingError(
            f"members_min is {members_min}; with {malicious} malicious, a group has at least "
            f"{malicious + 2} members and there are at least {2 * malicious + 1} groups, so "
            f"{needed} members are needed"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FederationTerms:
    """One federation: its coordinator and address, its model, and its requirements on plants."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    federation: Name
    coordinator: Hex32  # its public key
    host: str
    port: Count
    system: Name
    rows_max: Count
    policy: str  # the policy file's text
    channels: tuple[str, ...]
    mean: tuple[float, ...]
    spread: tuple[float, ...]
    stride_s: float
    window_rows: Count
    epochs: Count
    batch: Count
    learning_rate: float
    seed: Count
    rule: str
    rounds: Count
    batch_deadline_s: float
    round_deadline_s: float
    suspend_after: Count  # absent in so many of the last 4 * suspend_after rounds
    quorum: float = QUORUM  # share of the asked plants; once it has answered, the grace begins
    grace_s: float = GRACE_S  # seconds for the other plants after the quorum has answered
    update_max: float = UPDATE_MAX  # largest absolute value of an update's entry
    members_min: Count = MEMBERS_MIN  # plants with which a round is aggregated, at least
    keep_rounds: Count = KEEP_ROUNDS  # rounds whose checkpoints and events the coordinator keeps
    statistic: StatisticTerms | None = None  # None: plants train in rounds
    template: Template | None = None  # None: all plants use the same tags
    overlap_min: float = 1.0  # share of the points (`channels`) that a plant needs to join

    def __post_init__(self) -> None:
        demand_phase_terms(quorum=self.quorum, grace_s=self.grace_s, update_max=self.update_max)
        demand_overlap(self.overlap_min, statistic=self.statistic is not None)
        self._demand_logged_scales()
        if self.statistic is not None and self.statistic.helper is not None:
            demand_group_terms(
                malicious=self.statistic.malicious,
                members_min=self.members_min,
                bound=self.statistic.bound,
            )

    def _demand_logged_scales(self) -> None:
        """Raise unless readings are scaled as the statistic says, which the log names too.

        Otherwise an invitation could give one plant other scales than all plants can see.
        """
        if self.statistic is None:
            return
        logged = [(each.channel, each.mean, each.spread) for each in self.statistic.channels]
        scales = zip(self.channels, self.mean, self.spread, strict=False)
        complete = len(self.channels) == len(self.mean) == len(self.spread)
        if [*scales] != logged or not complete or self.stride_s != self.statistic.stride_s:
            raise SettingError(
                f"the terms of {self.federation!r} scale readings otherwise than their statistic "
                "does; ask the coordinator's operator for a new invitation"
            )

    def demand_points(self, channels: Collection[Channel], *, plant: str) -> Overlap:
        """Raise, with a table, unless a plant with these channels has enough of the points.

        If there is a template, its points also say in which unit, and with which codes.
        """
        overlap = overlap_of({channel.name for channel in channels}, self.channels)
        overlap.demand(self.overlap_min, plant=plant)
        if self.template is not None:
            demand_kinds(channels, self.template, plant=plant)
        return overlap

    @property
    def framing(self) -> Framing:
        """How a record becomes the windows of the shared model."""
        channels = self.statistic.channels if self.statistic else ()
        scaler = Scaler(
            names=self.channels,
            mean=np.array(self.mean),
            spread=np.array(self.spread),
            resolution=np.array([each.resolution for each in channels]),
        )
        return Framing(scaler=scaler, stride_s=self.stride_s, window_rows=self.window_rows)

    def framing_on(self, names: Collection[str]) -> Framing:
        """Return how records of a plant with these channels are read: the points that it has."""
        whole = self.framing
        at = [place for place, name in enumerate(whole.scaler.names) if name in names]
        if self.statistic is None or len(at) == len(whole.scaler.names):
            return whole
        scaler = Scaler(
            names=tuple(whole.scaler.names[place] for place in at),
            mean=whole.scaler.mean[at],
            spread=whole.scaler.spread[at],
            resolution=whole.scaler.resolution[at],
        )
        return replace(whole, scaler=scaler)

    @property
    def moments(self) -> ReceiverMoments:
        """How plants sum their rows, and how sums become detectors; for a federation that does."""
        if self.statistic is None:
            raise SettingError(
                f"plants of {self.federation!r} train in rounds and share no statistic; found a "
                "federation with --detector moments"
            )
        if self.statistic.bound:
            raise SettingError(
                f"statistics of {self.federation!r} are bound: the rules of each plant decide what "
                "it sums"
            )
        registers = tuple(
            Register(channel=each.channel, low=each.low, step=each.step)
            for each in self.statistic.channels
            if each.low is not None and each.step is not None
        )
        settings = MomentSettings(registers=registers, lags=self.statistic.lags)
        return ReceiverMoments(settings=settings, scaler=self.framing.scaler)

    @property
    def summed(self) -> MomentSettings | None:
        """What every plant sums; None if statistics are bound, and each plant's rules decide it."""
        bound = self.statistic is not None and self.statistic.bound
        return None if bound else self.moments.settings

    @property
    def binds(self) -> str | None:
        """The statistic that proofs are bound to; None if they bind none."""
        if self.statistic is None or not self.statistic.bound:
            return None
        named = StatisticName.HIDDEN if self.grouped else StatisticName.MOMENTS
        return named.value

    @property
    def grouped(self) -> bool:
        """Whether plants share in groups, of which only the sum is learnt."""
        return self.statistic is not None and self.statistic.helper is not None

    @property
    def groups_in_words(self) -> str:
        """How large and how many the groups are, at least."""
        assert self.statistic is not None
        malicious = self.statistic.malicious
        return f"at least {2 * malicious + 1} groups of at least {malicious + 2} plants"

    @property
    def lends(self) -> bool:
        """Whether members lend the tails of their scores; a plant in a group lends nothing."""
        return self.statistic is not None and self.statistic.lends and not self.grouped

    @property
    def descent(self) -> Descent:
        """How plants train in a round."""
        return Descent(epochs=self.epochs, batch=self.batch, learning_rate=self.learning_rate)

    @property
    def weights(self) -> int:
        """How many weights the shared model has."""
        return parameter_count(self.framing.width)


def statistic_terms(  # noqa: PLR0913 - the terms are these parts
    framing: Framing,
    settings: MomentSettings,
    *,
    rule: str,
    malicious: int,
    bound: bool = False,
    limits: StatisticLimits | None = None,
    lends: bool = False,
    helper: HelperCard | None = None,
) -> StatisticTerms:
    """Return the terms of a statistic, as the first entry of the log names them."""
    scaler = framing.scaler
    registers = {each.channel: each for each in settings.registers if not bound}
    channels = tuple(
        StatisticChannel(
            channel=name,
            mean=mean,
            spread=spread,
            resolution=resolution,
            low=registers[name].low if name in registers else None,
            step=registers[name].step if name in registers else None,
        )
        for name, mean, spread, resolution in zip(
            scaler.names,
            scaler.mean.tolist(),
            scaler.spread.tolist(),
            scaler.resolution.tolist(),
            strict=True,
        )
    )
    described = {
        "lags": settings.lags,
        "stride_s": framing.stride_s,
        "channels": channels,
        "rule": rule,
        "malicious": malicious,
        "bound": bound,
        "limits": limits,
        "lends": lends,
        "helper": helper,
    }
    terms: StatisticTerms = TypeAdapter(StatisticTerms).validate_python(described)
    return terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """What a plant needs to join: the terms, its certificate and a single-use secret."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[3] = 3
    plant: Name
    expires: Instant
    protocols: tuple[Count, ...]  # versions of the exchange that the coordinator speaks
    secret: Hex32 = field(repr=False)
    authority: str  # the authorities that plants trust, PEM
    certificate: str  # by which the proxy recognises the plant, PEM
    certificate_key: str = field(repr=False)
    terms: FederationTerms
    log: LogTerms  # what the log demands of time and approvals
    approvers: tuple[Hex32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantCertificate:
    """A new certificate for a plant that has joined, and the authorities that it trusts now."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    plant: Name
    authority: str
    certificate: str
    certificate_key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """A plant's answer to an invitation: its keys, its rules, and the secret."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[2] = 2
    plant: Name
    protocols: tuple[Count, ...]  # versions of the exchange that the plant speaks
    secret: Hex32 = field(repr=False)
    node_key: str  # public key of its Flower node, PEM
    registration: str  # the signed document of step 1
    rules: str  # the rules file's text


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedAttestation:
    """A batch attestation as a file, for transfer through a one-way gateway."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    plant: Name
    commit: str  # the documents of steps 2 and 4
    proof: str = field(repr=False)
    statistic: Annotated[Blob | None, Field(exclude_if=lambda sums: sums is None)] = field(
        default=None, repr=False
    )  # if the proof binds one


def write_document(document: object, path: Path, *, private: bool = False) -> None:
    """Write one of these documents as JSON; `private` sets mode 0600."""
    content = TypeAdapter(type(document)).dump_python(document, mode="json")
    with atomically(path, private=private) as draft:
        draft.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def read_document(kind: type[Document], path: Path, *, private: bool = False) -> Document:
    """Read one of these documents; only the owner may have access to a `private` file."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    raw = read_bounded(path, _title(kind), largest=LARGEST_DOCUMENT, private=private)
    try:
        document: Document = adapter.validate_json(raw, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DocumentError(
            f"{path} is not a valid {_title(kind)}: {where}: {first['msg']}"
        ) from None
    return document


def _title(kind: type[object]) -> str:
    """Return a document's name in words: "join request" for `JoinRequest`."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", kind.__name__).lower()
