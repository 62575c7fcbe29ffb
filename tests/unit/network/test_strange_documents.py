"""Documents and keys that belong to another party, and calls that break off."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from sluice.attestation.log.entries import KeyRotated
from sluice.attestation.messages.orders import ROTATIONS, rotate
from sluice.attestation.messages.signing import SigningKey
from sluice.errors import DocumentError, RefusedError, SettingError
from sluice.network.coordinator.importing import take_in
from sluice.network.plant.folder import PlantFolder
from sluice.network.terms import ExportedAttestation, write_document
from sluice.network.wire.filter import FleetFilter, _CallerGoneError, _fits
from sluice.network.wire.node import _private_key
from sluice.network.wire.questions import AskLog, Declined
from sluice.network.wire.refusals import CallRefusal, CallRefusedError

from .asking import Driven
from .conftest import Consortium


def test_a_request_with_the_registration_of_another_plant_is_refused(
    consortium: Consortium,
) -> None:
    east, other = consortium.request("east", 3), consortium.request("other", 4)
    wrong = replace(east, registration=other.registration)
    with pytest.raises(RefusedError, match="'east' holds a registration of 'other'"):
        consortium.enrol(wrong)
    consortium.enrol(east)


def test_only_a_key_on_flowers_curve_is_a_node_key(consortium: Consortium) -> None:
    request = consortium.request("east", 3)
    for key in (
        ec.generate_private_key(ec.SECP256R1()),
        rsa.generate_private_key(public_exponent=65_537, key_size=2_048),
        ed25519.Ed25519PrivateKey.generate(),
    ):
        pem = key.public_key().public_bytes(
            encoding=Encoding.PEM, format=PublicFormat.SubjectPublicKeyInfo
        )
        with pytest.raises(DocumentError, match="'east' is not a P-384 public key"):
            consortium.enrol(replace(request, node_key=pem.decode()))


def test_a_node_reads_only_a_key_on_a_curve(tmp_path: Path) -> None:
    path = tmp_path / "node.key"
    for key in (ec.generate_private_key(ec.SECP384R1()), ed25519.Ed25519PrivateKey.generate()):
        path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
        if isinstance(key, ec.EllipticCurvePrivateKey):
            assert _private_key(path).curve.name == "secp384r1"
        else:
            with pytest.raises(SettingError, match="is not a key on P-384"):
                _private_key(path)


def test_an_attestation_of_a_plant_that_has_not_joined_is_not_imported(
    consortium: Consortium, tmp_path: Path
) -> None:
    exported = ExportedAttestation(plant="east", commit="{}", proof="{}")
    path = tmp_path / "attestation.json"
    write_document(exported, path)
    with pytest.raises(SettingError, match="'east' has not joined; import its request"):
        take_in(consortium.site.folder, path, at=consortium.clock())


def test_the_coordinators_key_is_not_replaced_by_a_file(
    consortium: Consortium, tmp_path: Path
) -> None:
    own, new = consortium.site.signing_key(), SigningKey.generate()
    path = tmp_path / "rotation.json"
    path.write_bytes(ROTATIONS.write(rotate("water", own, new)))
    with pytest.raises(SettingError, match="own key is replaced with 'sluice coordinator rotate'"):
        take_in(consortium.site.folder, path, at=consortium.clock())
    assert consortium.site.ledger().coordinator == own.public


def test_a_plant_that_does_not_hold_the_key_that_the_log_names_answers_nothing(
    consortium: Consortium,
) -> None:
    north = consortium.join("east", 3)
    plant = PlantFolder(consortium.folder / "east")
    driven = Driven.of(consortium)
    new = SigningKey.generate()  # of a thief of the plant's old key
    signed = rotate("water", plant.keys.client_key(), new)
    driven.log.append(KeyRotated(signed=signed), at=driven.now())
    answer = driven.ask(north, AskLog())
    assert isinstance(answer, Declined)
    assert answer.word == "refused"


def test_a_plants_folder_of_an_earlier_version_has_no_certificate(consortium: Consortium) -> None:
    plant = PlantFolder(consortium.folder / "north")
    assert plant.certificate_ends
    plant.certificate.unlink()
    with pytest.raises(SettingError, match="has no certificate, because an earlier version"):
        _ = plant.certificate_ends


@pytest.mark.parametrize(
    "length",
    ["101", "", "-1", "+1", "1e2", "\u0661", "9" * 18, "0" * 19, " 1"],  # one is an Arabic digit
)
def test_a_length_that_is_no_number_within_the_limit_is_refused(length: str) -> None:
    assert not _fits(length, 100)
    assert _fits("0", 100)
    assert _fits("100", 100)


def body_of(*messages: dict[str, object], largest: int = 10) -> bytes:
    left = list(messages)

    async def receive() -> dict[str, object]:
        return left.pop(0)

    return asyncio.run(FleetFilter._body(None, receive, largest))  # type: ignore[arg-type]


def test_a_call_that_breaks_off_is_no_shorter_call() -> None:
    whole = {"type": "http.request", "body": b"01234", "more_body": True}
    end = {"type": "http.request", "body": b"56789", "more_body": False}
    assert body_of(whole, end) == b"0123456789"
    with pytest.raises(_CallerGoneError):
        body_of(whole, {"type": "http.disconnect"})
    with pytest.raises(CallRefusedError) as refused:
        body_of(whole, end, largest=9)
    assert refused.value.refusal is CallRefusal.TOO_LARGE
