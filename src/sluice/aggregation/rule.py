"""What every aggregation rule takes and returns.

*Influence* is the coefficient with which the vector a client sent enters the aggregate, as a share
of all clients' coefficients and, in rules that work coordinate by coordinate, averaged over
coordinates. It is measured by the code that aggregates and sums to one; where a rule lets nobody
in, the aggregate is zero and no client has influence.

*Admitted* is how the paper counts a client as having got past a rule. Its definition differs from
rule to rule and says little in some of them, which is why influence stands beside it:

    fedavg, median, norm-clipping   always
    krum, multi-krum                selected
    trimmed-mean                    norm outside the k largest and the k smallest
    fltrust                         cosine to the root update above 0.05
    foolsgold                       weight above 0.5/n
    centred-clipping,               always: like norm clipping and median, they turn nobody away
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
    """What a round does to the weights, and who had how much part in it."""

    update: Floats
    influence: Mapping[str, float]
    admitted: frozenset[str]


@dataclass(frozen=True, slots=True)
class Fresh:
    """Nothing remembered: every rule before its first round, and a rule without memory always."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuleMemory:
    """The sum of all updates each client ever sent, by client (FoolsGold)."""

    sums: Mapping[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Centre:
    """Where the last round's aggregate lay (centred clipping)."""

    vector: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RootUpdate:
    """The server's own update of this round, trained on its clean root slice (FLTrust).

    It serves one round: the rule returns `Fresh`, so that a stale one cannot slip into the next.
    """

    vector: Vector

    def __post_init__(self) -> None:
        checked = checked_vector(self.vector, "the server's root update")
        if not checked.any():
            raise SettingError(
                "the server's root update is zero and points nowhere; train it on its root slice"
            )
        object.__setattr__(self, "vector", checked)


State = Fresh | RuleMemory | Centre | RootUpdate


class Rule(Protocol):
    """Many updates in, one out. State goes in and comes back, so any round can be replayed."""

    @property
    def needs_root(self) -> bool:
        """Whether the server must train a root update and hand it in as the state."""
        ...

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, State]:
        """Aggregate one round; `Fresh()` is the state before the first."""
        ...


def aggregated(
    stack: Stack, update: Floats, coefficients: Floats, admitted: Bools | None = None
) -> Aggregate:
    """Put an aggregate together from what the rule measured, one row per client of the stack."""
    total = float(coefficients.sum())
    shares = coefficients / total if total > 0 else coefficients
    passed = np.ones(len(stack), dtype=np.bool_) if admitted is None else admitted
    return Aggregate(
        update=frozen(update),
        influence=dict(zip(stack.clients, shares.tolist(), strict=True)) if total > 0 else {},
        admitted=frozenset(
            client for client, through in zip(stack.clients, passed, strict=True) if through
        ),
    )


def expect_fresh(state: State, rule: str) -> Fresh:
    """Return the state of a rule without memory; another rule's state is a mix-up."""
    if not isinstance(state, Fresh):
        raise SettingError(
            f"{rule} keeps nothing between rounds but was handed a {type(state).__name__}; "
            "pass Fresh()"
        )
    return state
