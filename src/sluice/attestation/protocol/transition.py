"""Protects the constructors of states: a state is reached only from the one before it.

Each state of the protocol takes a `StateTransition`. Only this package has one, so a type checker
rejects a state that other code constructs, and the constructor rejects it when it runs.
"""

from typing import final

__all__ = ["TRANSITION", "StateTransition", "demand_transition"]


@final
class StateTransition:
    """Passed by the method of one state to the constructor of the next."""

    __slots__ = ()


TRANSITION = StateTransition()


def demand_transition(state: object, transition: object) -> None:
    """Raise a `TypeError` if code outside this package constructs a state."""
    if transition is not TRANSITION:
        name = type(state).__name__
        raise TypeError(f"{name} is returned by the step before it and cannot be constructed")
