"""The coordinator's store: invitations serve one plant once, and states change only for members."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sluice.errors import RefusedError, SettingError
from sluice.network.coordinator.store import CoordinatorStore, Member

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=14)
TICK = timedelta(microseconds=1)
SECRET, OTHER = "ab" * 32, "cd" * 32


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CoordinatorStore]:
    with closing(CoordinatorStore(tmp_path / "store.sqlite")) as store:
        yield store


def join(store: CoordinatorStore, plant: str, secret: str = SECRET) -> None:
    store.invite(plant, secret, at=NOW, expires=LATER)
    store.join(plant, secret, node_key=b"key", rules="{}", at=NOW)


def member(store: CoordinatorStore, name: str = "north") -> Member:
    return next(each for each in store.members() if each.name == name)


def test_an_invitation_holds_for_its_plant_and_secret_until_it_expires(
    store: CoordinatorStore,
) -> None:
    store.invite("north", SECRET, at=NOW, expires=LATER)
    store.invited("north", SECRET, at=LATER)
    with pytest.raises(RefusedError, match="expired on 2026-05-15T12:00:00"):
        store.invited("north", SECRET, at=LATER + TICK)
    for plant, secret in (("south", SECRET), ("north", OTHER)):
        with pytest.raises(RefusedError, match=f"'{plant}' has no valid invitation"):
            store.invited(plant, secret, at=NOW)


def test_an_invitation_is_used_once_and_a_newer_one_replaces_it(store: CoordinatorStore) -> None:
    join(store, "north")
    with pytest.raises(RefusedError, match="was used on 2026-05-01T12:00:00"):
        store.invited("north", SECRET, at=NOW)
    store.invite("south", SECRET[::-1], at=NOW, expires=LATER)
    store.invite("south", OTHER, at=NOW, expires=LATER)
    with pytest.raises(RefusedError, match="'south' has no valid invitation"):
        store.invited("south", SECRET[::-1], at=NOW)
    store.invited("south", OTHER, at=NOW)


def test_a_plant_is_active_until_it_is_suspended_or_removed(store: CoordinatorStore) -> None:
    join(store, "north")
    join(store, "south", OTHER)
    assert member(store).active
    store.absent("north", 1)
    store.suspend(1, after=2, at=NOW)
    assert member(store).active
    store.absent("north", 2)
    store.suspend(2, after=2, at=NOW)
    assert not member(store).active
    store.remove("south", at=NOW)
    assert not member(store, "south").active


def test_only_a_suspension_can_be_ended(store: CoordinatorStore) -> None:
    join(store, "north")
    with pytest.raises(SettingError, match="'north' is not suspended"):
        store.reinstate("north")
    store.absent("north", 1)
    store.suspend(1, after=1, at=NOW)
    store.reinstate("north")
    assert (member(store).active, member(store).absences) == (True, 0)
    with pytest.raises(SettingError, match="'south' has not joined"):
        store.reinstate("south")


def test_the_state_of_a_plant_that_has_not_joined_is_not_set(store: CoordinatorStore) -> None:
    join(store, "north")
    with pytest.raises(SettingError, match="'south' has not joined"):
        store.refused("south", "4")
    with pytest.raises(SettingError, match="'south' has not joined"):
        store.admitted("south", "a" * 64)
    with pytest.raises(SettingError, match="'south' has not joined"):
        store.seen("south", 3)
    with pytest.raises(SettingError, match="'south' has not joined"):
        store.remove("south", at=NOW)
    store.seen("north", 3)
    assert member(store).seen == 3


def test_two_processes_that_take_turns_are_noticed_and_a_restart_is_not(
    store: CoordinatorStore,
) -> None:
    join(store, "north")
    assert not store.answered_by("north", "1" * 64)
    assert not store.answered_by("north", "1" * 64)
    assert not store.answered_by("north", "2" * 64)  # started again
    assert not store.answered_by("north", "2" * 64)
    assert store.answered_by("north", "1" * 64)  # the first one is still there
    assert store.answered_by("north", "1" * 64)
    assert store.answered_by("north", "2" * 64)
    assert not store.answered_by("north", "3" * 64)
    assert not store.answered_by("nobody", "1" * 64)
