"""A helper accepts the members that a verified log registers, and no others."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sluice.attestation.hidden import HelperLedger
from sluice.errors import SettingError, VerificationError
from sluice.network.helper import HelperFolder

from .conftest import World

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def create(world: World, path: Path) -> HelperFolder:
    made = HelperFolder.create(path, "water", host="127.0.0.1", port=8_553, at=NOW)
    made.accept_log(world.path, at=NOW)
    return made


def test_a_helper_takes_its_members_from_the_log(world: World, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="registers no client"):
        create(world, tmp_path / "early")
    plants = [world.plant(name) for name in ("south", "north")]
    for plant in plants:
        world.enrol(plant)
    folder = create(world, tmp_path / "helper")
    ledger = HelperLedger()
    lines = (folder.state / "helper.log").read_bytes().splitlines()
    ledger.read(lines, folder.card.key)
    assert ledger.opened is not None
    assert ledger.opened.coordinator == world.coordinator.public
    assert [member.client for member in ledger.opened.members] == ["north", "south"]
    assert ledger.key_of("south") == plants[0].key.public
    for name in ("helper.key", "server.key", "authority.key"):
        assert (folder.path / "private" / name).stat().st_mode & 0o077 == 0


def test_a_helper_is_not_created_for_a_forged_log(world: World, tmp_path: Path) -> None:
    world.enrol(world.plant("north"))
    content = world.path.read_bytes()
    world.path.write_bytes(content.replace(b'"client":"north"', b'"client":"sybil"'))
    with pytest.raises(VerificationError):
        create(world, tmp_path / "helper")


def test_a_helper_does_not_serve_another_federation(world: World, tmp_path: Path) -> None:
    world.enrol(world.plant("north"))
    other = HelperFolder.create(tmp_path / "fire", "fire", host="127.0.0.1", port=8_553, at=NOW)
    with pytest.raises(SettingError, match="'water', and this helper is of 'fire'"):
        other.accept_log(world.path, at=NOW)
