"""The interface of every aggregation rule.

*Influence* is the coefficient with which the vector a client sent enters the aggregate, as a share
of all clients' coefficients and, in rules that work coordinate by coordinate, averaged over
coordinates. The code that aggregates also measures it. It sums to one; if a rule admits no client,
the aggregate is zero and no client has influence.

*Admitted* is the paper's term for a client that passes a rule. Its definition differs from rule to
rule and means little for some of them, so influence is reported as well:

    fedavg, median, norm-clipping   always
    krum, multi-krum                selected
    trimmed-mean                    norm outside the k largest and the k smallest
    fltrust                         cosine to the root update above 0.05
    foolsgold                       weight above 0.5/n
    centred-clipping,               always: like norm clipping and median, they reject no client
    geometric-median                (the paper does not run these two)
    nnm                             as the rule it wraps judges the client's mixed update
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from sluice.aggregation.update import Stack, Update, Vector, checked_vector
from sluice.arrays import Bools, Floats, frozen
from sluice.errors import SettingError

__all__ = [
    "Aggregate",
    "Centre",
    "Fresh",
    "RootUpdate",
    "Rule",
    "RuleMemory",
    "State",
    "aggregated",
    "expect_fresh",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aggregate:
    """The update of a round, each client's influence on it, and the admitted clients."""

    update: Floats
    influence: Mapping[str, float]
    admitted: frozenset[str]


@dataclass(frozen=True, slots=True)
class Fresh:
    """Empty state: of every rule before its first round, and always of a rule without memory."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuleMemory:
    """The sum of all updates that each client has sent, by client (FoolsGold)."""

    sums: Mapping[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Centre:
    """The last round's aggregate (centred clipping)."""

    vector: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RootUpdate:
    """The server's own update of this round, trained on its clean root slice (FLTrust).

    It is for one round: the rule returns `Fresh`, so that the next round cannot use a stale one.
    """

    vector: Vector

    def __post_init__(self) -> None:
        checked = checked_vector(self.vector, "the server's root update")
        if not checked.any():
            raise SettingError(
                "the server's root update is zero and has no direction; train it on the root slice"
            )
        object.__setattr__(self, "vector", checked)


State = Fresh | RuleMemory | Centre | RootUpdate


class Rule(Protocol):
    """Combine many updates into one. State is passed in and returned: any round can be replayed."""

    @property
    def needs_root(self) -> bool:
        """Whether the server must train a root update and pass it as the state."""
        ...

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, State]:
        """Aggregate one round; `Fresh()` is the state before the first."""
        ...


def aggregated(
    stack: Stack, update: Floats, coefficients: Floats, admitted: Bools | None = None
) -> Aggregate:
    """Build an aggregate from a rule's measurements, one row per client of the stack."""
    total = float(coefficients.sum())
    shares = coefficients / total if total > 0 else coefficients
    passes = np.ones(len(stack), dtype=np.bool_) if admitted is None else admitted
    return Aggregate(
        update=frozen(update),
        influence=dict(zip(stack.clients, shares.tolist(), strict=True)) if total > 0 else {},
        admitted=frozenset(
            client for client, passed in zip(stack.clients, passes, strict=True) if passed
        ),
    )


def expect_fresh(state: State, rule: str) -> Fresh:
    """Return the state of a rule without memory; refuse the state of another rule."""
    if not isinstance(state, Fresh):
        raise SettingError(
            f"{rule} has no memory between rounds but got a {type(state).__name__}; pass Fresh()"
        )
    return state
