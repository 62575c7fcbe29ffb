"""Keys: file permissions, and what their signatures cover."""

import errno
import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sluice.attestation.messages.signing import SigningKey, check_signature, read_private
from sluice.attestation.protocol.approving import read_approver, save_approver
from sluice.errors import SettingError, VerificationError


def test_a_key_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "client.key"
    key = SigningKey.generate()
    key.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert SigningKey.load(path).public == key.public
    assert [found.name for found in tmp_path.iterdir()] == ["client.key"]
    with pytest.raises(SettingError, match="never overwritten"):
        SigningKey.generate().save(path)
    assert SigningKey.load(path).public == key.public


def test_a_key_is_on_disk_under_its_name_before_a_log_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    link, fsync = os.link, os.fsync

    def linked(source: Path, target: Path) -> None:
        steps.append("link")
        link(source, target)

    def synced(handle: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr(os, "fsync", synced)
    SigningKey.generate().save(tmp_path / "client.key")
    assert steps[-2:] == ["link", "folder"]
    assert "file" in steps[:-2]


def test_a_full_disk_leaves_no_key_without_its_public_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text

    def full(self: Path, data: str, encoding: str | None = None) -> int:
        if ".pub" in self.name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(self, data, encoding=encoding)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(SettingError, match=r"approver\.pub: No space left.*free some space"):
        save_approver(SigningKey.generate(), tmp_path / "approver.key")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    key = SigningKey.generate()
    save_approver(key, tmp_path / "approver.key")
    assert read_approver(str(tmp_path / "approver.pub")) == key.public
    with pytest.raises(SettingError, match="never overwritten"):
        save_approver(SigningKey.generate(), tmp_path / "approver.key")
    assert SigningKey.load(tmp_path / "approver.key").public == key.public
    assert read_approver(str(tmp_path / "approver.pub")) == key.public


def test_a_public_key_replaces_neither_the_private_key_nor_that_of_another(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"give the private key another name.*approver\.key"):
        save_approver(SigningKey.generate(), tmp_path / "approver.pub")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "approver.pub").write_text("ab" * 32)
    with pytest.raises(SettingError, match="public key of another approver"):
        save_approver(SigningKey.generate(), tmp_path / "approver.key")
    assert [path.name for path in tmp_path.iterdir()] == ["approver.pub"]
    assert read_approver(str(tmp_path / "approver.pub")) == "ab" * 32


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "client.key"
    SigningKey.generate().save(path)
    path.chmod(mode)
    with pytest.raises(SettingError, match=f"mode {mode:04o}.*chmod 600"):
        SigningKey.load(path)


def test_no_more_of_a_key_file_is_read_than_a_key_can_hold(tmp_path: Path) -> None:
    path = tmp_path / "client.key"
    path.write_bytes(b"x" * 65_536)
    path.chmod(0o600)
    assert len(read_private(path, "private key")) == 65_536
    path.write_bytes(b"x" * 65_537)
    with pytest.raises(SettingError, match="expected at most 65,536 bytes"):
        read_private(path, "private key")


def test_other_files_are_no_keys(tmp_path: Path) -> None:
    path = tmp_path / "client.key"
    with pytest.raises(SettingError, match="cannot be read"):
        SigningKey.load(path)
    path.write_bytes(b"hello")
    path.chmod(0o600)
    with pytest.raises(SettingError, match="not an unencrypted PEM"):
        SigningKey.load(path)
    other = X25519PrivateKey.generate()
    path.write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(SettingError, match="signs with Ed25519"):
        SigningKey.load(path)


def test_a_key_does_not_show_itself(tmp_path: Path) -> None:
    key = SigningKey.generate()
    key.save(tmp_path / "k")
    secret = (tmp_path / "k").read_text().splitlines()[1]
    assert repr(key) == f"SigningKey(public={key.public})"
    assert secret not in repr(key)


def test_a_signature_holds_for_one_key_kind_and_message() -> None:
    key = SigningKey.generate()
    signature = key.sign("commit", b"message")
    check_signature(key.public, signature, "commit", b"message", step="2")
    for public, claimed, tag, message in (
        (SigningKey.generate().public, signature, "commit", b"message"),
        (key.public, key.sign("commit", b"other"), "commit", b"message"),
        (key.public, signature, "proof", b"message"),
        (key.public, signature, "commit", b"massage"),
        (key.public, "00" * 64, "commit", b"message"),
        ("ff" * 32, signature, "commit", b"message"),
    ):
        with pytest.raises(VerificationError, match="step 2: the signature") as refused:
            check_signature(public, claimed, tag, message, step="2")
        assert refused.value.step == "2"
        assert refused.value.exit_code == 3
