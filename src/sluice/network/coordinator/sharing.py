"""What plants share in a round, and how it becomes the federation's next model.

`WeightUpdates` trains the autoencoder: every plant sends an update in every round.
`SharedStatistics` collects sums: every plant sends its statistic once for each attested batch, and
a round asks only the plants whose statistic is not in the model yet. `SharedGroups`, in
`grouping.py`, collects sums of groups.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from sluice.aggregation import RULES, Aggregate, RootUpdate, Rule, State, Update
from sluice.attestation.log import Ledger
from sluice.attestation.messages import Token
from sluice.attestation.protocol import Agreement, ProtocolCoordinator, statistic_hash
from sluice.attestation.systems.full import statistic_settings
from sluice.detector import (
    MomentSettings,
    MomentStatistic,
    Parameters,
    initial,
    statistic_bytes,
    trapezoid,
)
from sluice.errors import (
    CheckpointError,
    DocumentError,
    RefusedError,
    SettingError,
    SluiceError,
    VerificationError,
)
from sluice.federation import (
    NOT_FINITE,
    OUT_OF_SCALE,
    Checkpoint,
    Contributed,
    Reply,
    RootTrainer,
    Train,
    Trained,
    Transport,
    take_round,
)
from sluice.invariants import RuleSet, parse_rules
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.lending import OTHER_SUMS, lent_tail
from sluice.network.statistics import (
    MemberStatistic,
    MemberStatistics,
    demand_points,
    largest_settings,
    members_max,
    points_bytes,
    read_encoded,
    untied_in,
)
from sluice.network.terms import FederationTerms
from sluice.network.wire import read_update, write_parameters

__all__ = ["OTHER_SUMS", "TOO_FEW", "SharedStatistics", "Sharing", "WeightUpdates", "statistics_in"]

TOO_FEW = "6.6"
"""The step of plants in a round that fewer take part in than the terms demand."""
OTHER_ROWS = "6.8"
"""The step of a statistic that is not of the number of rows in the log."""
OTHER_STATISTIC = "6.9"
"""The step of a second statistic for one commitment, or of another one than a proof binds."""


class Sharing(Protocol):
    """What plants share in a round, and how it becomes the federation's next model."""

    def first(self) -> Parameters:
        """Return the model that the first round is opened on."""
        ...

    def asked(self, before: Checkpoint) -> tuple[str, ...]:
        """Return the admitted plants that a round asks."""
        ...

    def in_model(self, parameters: Parameters) -> Mapping[str, str]:
        """Return the plants whose statistic a model holds, each with its attestation."""
        ...

    def settled(self, parameters: Parameters) -> frozenset[str]:
        """Return the plants that need not be asked again for their part of a model."""
        ...

    def accounted(self, after: Checkpoint) -> frozenset[str]:
        """Return the plants that did their part of a finished round without revealing anything."""
        ...

    def can_begin(self, parameters: Parameters, plants: Collection[str], *, at: str) -> bool:
        """Whether a round that asks these plants has enough of them."""
        ...

    def enough(self, parameters: Parameters, plants: Collection[str], *, at: str) -> bool:
        """Whether the contributions of these plants are enough for a model."""
        ...

    def left_out(self) -> Mapping[str, str]:
        """Return the plants that pledged and cannot contribute, each with the step that says why.

        It is known when pledges are closed.
        """
        ...

    def handed(self, parameters: Parameters) -> bytes:
        """Return what a plant needs of the model in order to pledge."""
        ...

    def read(self, train: Train, token: Token, raw: bytes) -> Reply:
        """Read what a plant has pledged; raise a `VerificationError` with the step that fails."""
        ...

    def take(self, before: Checkpoint, transport: Transport) -> Checkpoint:
        """Run one round; one without a usable contribution leaves the model unchanged."""
        ...


class _AggregationError(RefusedError):
    """The rule, or the server's own training, failed on these updates or this model."""


@dataclass(frozen=True, slots=True)
class _GuardedRule:
    """A rule whose failure ends the round with unchanged weights, and not the federation."""

    rule: Rule

    @property
    def needs_root(self) -> bool:
        return self.rule.needs_root

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, State]:
        with _failures_refused():
            return self.rule(updates, state)


@dataclass(frozen=True, slots=True)
class _GuardedRoot:
    """The server's own training, whose failure ends the round with unchanged weights."""

    root: RootTrainer

    def __call__(self, parameters: Parameters, round_: int) -> Parameters:
        with _failures_refused():
            trained = self.root(parameters, round_)
            RootUpdate(vector=trained - parameters)  # it must be finite and not zero
            return trained


@contextmanager
def _failures_refused() -> Iterator[None]:
    try:
        yield
    except (SluiceError, ArithmeticError, ValueError) as error:
        raise _AggregationError(f"the updates cannot be aggregated: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightUpdates:
    """Plants train one model's weights in rounds; a rule aggregates their updates."""

    terms: FederationTerms
    root: RootTrainer | None = None

    def first(self) -> Parameters:
        """Return the initial weights."""
        return initial(self.terms.framing.width, seed=self.terms.seed)

    def asked(self, before: Checkpoint) -> tuple[str, ...]:
        """Return all admitted plants."""
        return before.admitted

    def in_model(self, parameters: Parameters) -> Mapping[str, str]:  # noqa: ARG002
        """Return no plant: the model holds no statistic."""
        return {}

    def settled(self, parameters: Parameters) -> frozenset[str]:  # noqa: ARG002 - of the interface
        """Return no plant: every plant sends an update in every round."""
        return frozenset()

    def accounted(self, after: Checkpoint) -> frozenset[str]:  # noqa: ARG002 - of the interface
        """Return no plant."""
        return frozenset()

    def can_begin(self, parameters: Parameters, plants: Collection[str], *, at: str) -> bool:
        """Whether these plants are enough for an aggregate."""
        return self.enough(parameters, plants, at=at)

    def enough(self, parameters: Parameters, plants: Collection[str], *, at: str) -> bool:  # noqa: ARG002
        """Whether these plants are enough for an aggregate."""
        return len(plants) >= self.terms.members_min

    def left_out(self) -> Mapping[str, str]:
        """Return no plant."""
        return {}

    def handed(self, parameters: Parameters) -> bytes:
        """Return the weights to train from."""
        return write_parameters(parameters)

    def read(self, train: Train, token: Token, raw: bytes) -> Reply:  # noqa: ARG002
        """Read an update of the model's size and within scale."""
        count, largest = self.terms.weights, self.terms.update_max
        try:
            vector = read_update(raw, client=token.client, count=count, largest=largest)
        except DocumentError as error:
            raise VerificationError(OUT_OF_SCALE, str(error)) from None
        return Trained(vector=vector)

    def take(self, before: Checkpoint, transport: Transport) -> Checkpoint:
        """Aggregate the updates of one round."""
        try:
            return take_round(
                before,
                transport,
                _GuardedRule(RULES[self.terms.rule]),
                _GuardedRoot(self.root) if self.root else None,
                update_max=self.terms.update_max,
            )
        except _AggregationError:
            return replace(before, round=before.round + 1, unchanged=NOT_FINITE)
        except RefusedError:
            return replace(before, round=before.round + 1)


def statistics_in(parameters: Parameters, terms: FederationTerms) -> MemberStatistics:
    """Return the statistics that a checkpoint of such a federation holds."""
    return MemberStatistics.from_canonical(parameters.tobytes(), terms.summed)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStatistics:
    """Plants share the sums of their attested rows, once for each batch."""

    terms: FederationTerms
    protocol: ProtocolCoordinator
    store: CoordinatorStore
    agreements: Mapping[str, Agreement]

    @property
    def _ledger(self) -> Ledger:
        return self.protocol.log.ledger

    def first(self) -> Parameters:
        """Return the model without members."""
        return MemberStatistics(settings=self.terms.summed).parameters

    def asked(self, before: Checkpoint) -> tuple[str, ...]:
        """Return the admitted plants whose attested batch has no statistic in the model."""
        shared = statistics_in(before.parameters, self.terms)
        present = {(member.name, member.attestation) for member in shared.members}
        attested = {member.name: member.attestation for member in self.store.members()}
        return tuple(name for name in before.admitted if (name, attested[name]) not in present)

    def in_model(self, parameters: Parameters) -> Mapping[str, str]:
        """Return the members of the model."""
        shared = statistics_in(parameters, self.terms)
        return {member.name: member.attestation for member in shared.members}

    def settled(self, parameters: Parameters) -> frozenset[str]:
        """Return the members of the model."""
        return frozenset(self.in_model(parameters))

    def accounted(self, after: Checkpoint) -> frozenset[str]:
        """Return the members of the model that have no later batch to share."""
        return self.settled(after.parameters) - set(self.asked(after))

    def can_begin(self, parameters: Parameters, plants: Collection[str], *, at: str) -> bool:
        """Whether these plants and the members that stay in the model are enough."""
        return self.enough(parameters, plants, at=at)

    def enough(self, parameters: Parameters, plants: Collection[str], *, at: str) -> bool:
        """Whether these plants and the members that stay in the model are enough.

        Members stay unless they are exempt from a proof and the exemption is over.
        """
        staying = self._still_exempt(statistics_in(parameters, self.terms), at=at).names
        return len({*staying, *plants}) >= self.terms.members_min

    def left_out(self) -> Mapping[str, str]:
        """Return no plant."""
        return {}

    def handed(self, parameters: Parameters) -> bytes:  # noqa: ARG002 - of the interface
        """Return nothing: a statistic does not depend on the model."""
        return b""

    def read(self, train: Train, token: Token, raw: bytes) -> Reply:
        """Read a statistic of the agreed channels, with the rows that the log has for its batch.

        If statistics are bound, the plant sends only the hash of the statistic, and what its proof
        was verified with is used.
        """
        settings, client = self.terms.summed, token.client
        if settings is None:
            return Contributed(member=self._bound(train, token, raw))
        summed = self._points_of(client, settings)
        named = 0 if summed == settings else points_bytes(settings)
        expected = statistic_bytes(summed) + named
        if len(raw) != expected:
            raise VerificationError(
                OUT_OF_SCALE,
                f"the statistic of {client!r} has {len(raw):,} bytes, expected {expected:,}",
            )
        try:
            statistic = read_encoded(raw, settings)
            demand_points(statistic, summed)
        except SettingError as error:
            raise VerificationError(OTHER_SUMS, f"the statistic of {client!r}: {error}") from None
        self._refuse_untied(client, statistic)
        commit = self._ledger.attested_commit(client, token.attestation, step=OTHER_ROWS)
        windows = commit.rows - settings.lags + 1
        weight = int(trapezoid(windows).sum())
        if (statistic.count, statistic.weight) != (windows, weight):
            raise VerificationError(
                OTHER_ROWS,
                f"the statistic of {client!r} is of {statistic.count:,} windows that weigh "
                f"{statistic.weight:,}; the log has {commit.rows:,} rows for its batch, which are "
                f"{windows:,} windows that weigh {weight:,}",
            )
        own = MemberStatistic(
            name=client,
            attestation=token.attestation,
            round=train.round,
            statistic=statistic,
            tail=lent_tail(token),
        )
        self._refuse_second(own, commit.commitment, statistics_in(train.parameters, self.terms))
        return Contributed(member=own)

    def _rules_of(self, client: str) -> RuleSet:
        """Return the rules that were accepted of a plant."""
        (text,) = (member.rules for member in self.store.members() if member.name == client)
        return parse_rules(text, name=f"of {client!r}")

    def _points_of(self, client: str, settings: MomentSettings) -> MomentSettings:
        """Return what a plant must sum: the points that its registered rules describe."""
        return settings.only({channel.name for channel in self._rules_of(client).channels})

    def _refuse_untied(self, client: str, statistic: MomentStatistic) -> None:
        """Raise if sums are of channels that no accepted rule of the plant ties to others."""
        free = set(untied_in(statistic.settings, self._rules_of(client))) & set(statistic.summed)
        if free:
            raise VerificationError(
                OTHER_SUMS,
                f"the statistic of {client!r} sums {', '.join(sorted(free))}, which no rule of the "
                "plant ties to other channels; expected zeros there",
            )

    def _bound(self, train: Train, token: Token, raw: bytes) -> MemberStatistic:
        """Return the statistic that a plant's proof binds; refuse a pledge of anything else."""
        client, attestation = token.client, token.attestation
        commit = self._ledger.attested_commit(client, attestation, step=OTHER_STATISTIC)
        verified = self.store.statistic(client, attestation)
        if raw.hex() != commit.statistic:
            raise VerificationError(
                OTHER_STATISTIC,
                f"{client!r} sends {raw[:8].hex()}..., and its attested commitment names statistic "
                f"{(commit.statistic or 'none')[:16]}...",
            )
        if verified is None or statistic_hash(verified) != commit.statistic:
            raise CheckpointError(
                f"the store does not hold the statistic that {client!r} has attested; restore "
                "store and log from the same backup"
            )
        settings = statistic_settings(self.agreements[client].circuit)
        assert settings is not None  # of every agreement of these terms
        return MemberStatistic(
            name=client,
            attestation=attestation,
            round=train.round,
            statistic=MomentStatistic.from_canonical(verified, settings),
            tail=lent_tail(token),
        )

    def _refuse_second(
        self, own: MemberStatistic, commitment: str, shared: MemberStatistics
    ) -> None:
        """Raise if the model holds another statistic for the same commitment."""
        earlier = shared.of(own.name)
        if earlier is None or earlier.statistic == own.statistic:
            return
        before = self._ledger.attested_commit(own.name, earlier.attestation, step=OTHER_STATISTIC)
        if before.commitment == commitment:
            raise VerificationError(
                OTHER_STATISTIC,
                f"{own.name!r} has another statistic of the same commitment in the model; a batch "
                "is summed once",
            )

    def take(self, before: Checkpoint, transport: Transport) -> Checkpoint:
        """Collect the statistics of the plants that are asked."""
        number, shared = before.round + 1, statistics_in(before.parameters, self.terms)
        asked = self.asked(before)
        self._demand_room({*shared.names, *asked})
        request = Train(round=number, parameters=before.parameters)
        replies = transport.exchange(dict.fromkeys(asked, request))
        arrived = [each.member for each in replies.values() if isinstance(each, Contributed)]
        after = self._still_exempt(shared, at=self._ledger.time).joined_by(arrived)
        if len(after.names) < self.terms.members_min:
            return replace(before, round=number, unchanged=TOO_FEW if arrived else None)
        return replace(
            before,
            round=number,
            parameters=after.parameters,
            influence=dict.fromkeys(after.names, 1 / max(1, len(after.names))),
            passed=dict.fromkeys(after.names, 1),
        )

    def _still_exempt(self, shared: MemberStatistics, *, at: str) -> MemberStatistics:
        """Return the model without statistics that had no proof and whose exemption is over."""
        exempt = self._ledger.exemptions
        over = {each.attestation for each in exempt.excused if not exempt.holds(each, at=at)}
        for member in shared.members:
            if member.attestation in over:
                shared = shared.without(member.name)
        return shared

    def _demand_room(self, names: Collection[str]) -> None:
        bound = self.terms.binds is not None
        most = members_max(largest_settings(self.terms), bound=bound)
        if len(names) > most:
            raise RefusedError(
                f"{len(names)} plants would share a statistic, and one message holds those of "
                f"{most}; remove plants, or found a federation of fewer channels"
            )
