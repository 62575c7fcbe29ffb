"""A plant takes a model of statistics only if its own copy of the log has each of them."""

from collections.abc import Callable, Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sluice.attestation.messages import update_digest
from sluice.attestation.protocol import statistic_hash
from sluice.errors import VerificationError
from sluice.network.plant import model
from sluice.network.plant.model import demand_logged

NAMES = ("north", "south")
ATTESTATION, OTHER = "ab" * 32, "cd" * 32
Hand = Callable[..., None]


def member(name: str, *, content: bytes = b"sums", **changes: object) -> Any:
    statistic = SimpleNamespace(canonical=lambda: content)
    own = {"name": name, "round": 1, "attestation": ATTESTATION, "tail": None}
    return SimpleNamespace(statistic=statistic, **(own | changes))


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Hand:
    """Hand a plant these members; its log has the statistics of north and south in round 1."""

    def check(
        *members: Any,
        bound: bool = False,
        removed: Collection[str] = (),
        attestation: str = ATTESTATION,
        committed: bytes = b"sums",
    ) -> None:
        seen = model._SharedSoFar()
        for name in NAMES:
            pledged = bytes.fromhex(statistic_hash(b"sums")) if bound else b"sums"
            seen.revealed[name, 1] = update_digest("water", name, 1, pledged)
            seen.pledged[name, 1] = ATTESTATION, None
            seen.taken[name] = 1
        monkeypatch.setattr(model, "_shared_so_far", lambda _: seen)
        commit = SimpleNamespace(commitment="c", statistic=statistic_hash(committed))
        ledger: Any = SimpleNamespace(
            grouped=False,
            bound=object() if bound else None,
            opened=SimpleNamespace(federation="water"),
            rounds=SimpleNamespace(removed=lambda name: name in removed),
            attested_commit=lambda *_, **__: commit,
            attestation=lambda _: attestation,
        )
        names = tuple(each.name for each in members)
        shared: Any = SimpleNamespace(settings=None, members=members, names=names)
        demand_logged(shared, Path("log.jsonl"), ledger)

    return check


def both() -> tuple[Any, ...]:
    return tuple(member(name) for name in NAMES)


@pytest.mark.parametrize("bound", [False, True])
def test_the_statistics_that_the_log_has_are_taken(hand: Hand, *, bound: bool) -> None:
    hand(*both(), bound=bound)
    hand(member("north"), bound=bound, removed=("south",))


@pytest.mark.parametrize(
    "changes",
    [
        {"content": b"other sums"},
        {"round": 2},
        {"attestation": OTHER},
        {"tail": SimpleNamespace(canonical=lambda: b"tail")},
    ],
    ids=["sums", "round", "attestation", "tail"],
)
def test_a_statistic_that_the_log_does_not_have_is_refused(
    hand: Hand, changes: dict[str, Any]
) -> None:
    with pytest.raises(VerificationError, match="a statistic of 'south' that the log does not"):
        hand(member("north"), member("south", **changes))


def test_a_statistic_of_a_removed_plant_is_refused(hand: Hand) -> None:
    with pytest.raises(VerificationError, match="of a plant that was removed"):
        hand(*both(), removed=("south",))


def test_only_a_model_of_bound_statistics_must_hold_all_of_them(hand: Hand) -> None:
    hand(member("north"))
    with pytest.raises(VerificationError, match="must hold the last ones of north, south"):
        hand(member("north"), bound=True)


@pytest.mark.parametrize("changes", [{"attestation": OTHER}, {"committed": b"other sums"}])
def test_a_bound_statistic_is_the_one_of_an_attested_commitment(
    hand: Hand, changes: dict[str, Any]
) -> None:
    with pytest.raises(VerificationError, match="'north' that no attested commitment"):
        hand(*both(), bound=True, **changes)
