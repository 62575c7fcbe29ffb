"""What is secret in the folders of a federation is for its owner alone, whatever the umask is."""

import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from sluice.attestation.messages.signing import SigningKey
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.wire.superlink import Link, start_superlink
from sluice.telemetry.reading import read_record
from tests.contract import bombs

from .conftest import Consortium, Founder

PRIVATE_FOLDERS = (
    "coordinator/private",
    "north/private",
    "north/keys/private",
    "north/batches",
    "north/batches/*",
    "north/rounds",
)
PRIVATE_FILES = (
    "coordinator/private/*",
    "coordinator/store.sqlite*",
    "north/private/*",
    "north/keys/private/*",
    "north/invitation.json",
    "north/request.json",
    "north/batches/*/commit.opening",
    "north/rounds/*.update",
    "north/model.weights",
)
PUBLIC_FILES = (
    "coordinator/terms.json",
    "coordinator/log.jsonl",
    "coordinator/tls/*.pem",
    "north/authority.pem",
    "north/keys/*.json",
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_every_secret_of_a_federation_is_for_its_owner_alone(umask: int, founder: Founder) -> None:
    consortium = founder()
    consortium.join("north", 0)
    store = CoordinatorStore(consortium.site.base)  # keeps -wal and -shm while it is open
    consortium.run(rounds=1)
    found: dict[str, int] = {
        str(path.relative_to(consortium.folder)): mode(path)
        for path in consortium.folder.rglob("*")
        if path.is_relative_to(consortium.site.folder)
        or path.is_relative_to(consortium.folder / "north")
    }
    store.close()
    for pattern in (*PRIVATE_FILES, *PUBLIC_FILES, *PRIVATE_FOLDERS):
        assert any(fnmatch(name, pattern) for name in found), pattern
    assert {"coordinator/store.sqlite-wal", "coordinator/store.sqlite-shm"} <= set(found)
    for name, granted in found.items():
        is_folder = (consortium.folder / name).is_dir()
        if is_folder and any(fnmatch(name, pattern) for pattern in PRIVATE_FOLDERS):
            assert granted == 0o700, name
        elif not is_folder and any(fnmatch(name, pattern) for pattern in PRIVATE_FILES):
            assert granted == 0o600, name
        elif not is_folder and any(fnmatch(name, pattern) for pattern in PUBLIC_FILES):
            assert granted == (0o666 & ~umask) | 0o600, name
        assert granted & 0o400, name  # nothing is unreadable for its owner


def test_an_open_store_of_an_earlier_version_is_closed_to_others(
    consortium: Consortium,
) -> None:
    consortium.site.base.chmod(0o644)
    CoordinatorStore(consortium.site.base).close()
    assert mode(consortium.site.base) == 0o600


def test_cached_telemetry_is_for_its_owner_alone(umask: int, tmp_path: Path) -> None:
    record = tmp_path / "swat.xlsx"
    record.write_bytes(bombs.workbook())
    read_record(record)
    (cached,) = (tmp_path / "cache").iterdir()
    assert (mode(cached.parent), mode(cached)) == (0o700, 0o600)
    cached.parent.chmod(0o755)
    cached.unlink()
    read_record(record)
    assert mode(cached.parent) == 0o700


def test_flowers_folders_are_for_their_owner_alone(
    umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: None)
    link = Link(
        folder=tmp_path / "flower",
        port=1,
        certificate=tmp_path,
        key=tmp_path,
        authority=tmp_path,
    )
    start_superlink(link)
    assert (mode(link.folder), mode(link.secret)) == (0o700, 0o600)


def test_a_private_key_is_never_readable_by_others_while_it_is_written(
    umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    write = Path.write_bytes

    def watched(path: Path, content: bytes) -> int:
        seen.append(mode(path))
        count = write(path, content)
        seen.append(mode(path))
        return count

    monkeypatch.setattr(Path, "write_bytes", watched)
    SigningKey.generate().save(tmp_path / "client.key")
    assert seen == [0o600, 0o600]
