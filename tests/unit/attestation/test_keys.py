"""Keys: file permissions, and what their signatures cover."""

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sluice.attestation.messages.signing import SigningKey, check_signature, read_private
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
