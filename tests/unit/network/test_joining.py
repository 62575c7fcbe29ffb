"""Joining: single-use invitations, accepted rules, secrets that stay private."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from sluice.errors import DocumentError, RefusedError, SettingError
from sluice.network.coordinator.importing import take_in
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.folder import PlantFolder
from sluice.network.terms import ExportedAttestation, FederationTerms, read_document, write_document
from sluice.network.training_rows import TrainingRows
from sluice.network.wire.questions import packed_update, read_parameters, read_update
from sluice.telemetry.reading import read_record
from tests.unit.conftest import Outcome, Run

from .conftest import START, Consortium, Founder


@pytest.fixture
def consortium(founder: Founder) -> Consortium:
    return founder()


def test_an_invitation_serves_once(consortium: Consortium) -> None:
    request = consortium.request("north", 0)
    consortium.enrol(request)
    with pytest.raises(RefusedError, match="was used on"):
        consortium.enrol(request)


def test_an_invitation_is_for_one_plant(consortium: Consortium) -> None:
    request = consortium.request("north", 0)
    with pytest.raises(RefusedError, match="no valid invitation with this secret"):
        consortium.enrol(replace(request, plant="south"))
    with pytest.raises(RefusedError, match="no valid invitation with this secret"):
        consortium.enrol(replace(request, secret="0" * 64))


def test_a_newer_invitation_ends_the_older_one(consortium: Consortium) -> None:
    request = consortium.request("north", 0)
    consortium.site.invite("north", at=consortium.clock())
    with pytest.raises(RefusedError, match="no valid invitation with this secret"):
        consortium.enrol(request)


def test_a_node_key_of_another_kind_is_refused(consortium: Consortium) -> None:
    request = consortium.request("north", 0)
    with pytest.raises(DocumentError, match="not a P-384 public key"):
        consortium.enrol(replace(request, node_key="nonsense"))


def test_secrets_are_their_owners_alone(consortium: Consortium) -> None:
    consortium.join("north", 0)
    private = [
        *(consortium.site.folder / "private").iterdir(),
        consortium.site.base,
        *(consortium.folder / "north" / "private").iterdir(),
        *(consortium.folder / "north" / "keys" / "private").iterdir(),
        consortium.folder / "north" / "invitation.json",
        consortium.folder / "north" / "request.json",
    ]
    assert len(private) >= 8
    for path in private:
        assert path.stat().st_mode & 0o777 == 0o600, path
    secret = PlantFolder(consortium.folder / "north").invitation.secret
    assert secret.encode() not in consortium.site.base.read_bytes()
    assert secret.encode() not in consortium.site.log.read_bytes()


def test_a_readable_invitation_is_refused(consortium: Consortium) -> None:
    consortium.join("north", 0)
    (consortium.folder / "north" / "invitation.json").chmod(0o644)
    with pytest.raises(SettingError, match="can be read by others"):
        _ = PlantFolder(consortium.folder / "north").invitation


def test_a_plant_shows_its_rows_only_if_it_consents_when_it_joins_and_each_time_it_runs(
    consortium: Consortium, sluice: Run, tmp_path: Path
) -> None:
    """The coordinator chooses the system; only the plant can consent to `unsafe`."""
    path, folder = tmp_path / "south.invitation", tmp_path / "south"
    write_document(consortium.site.invite("south", at=datetime.now(UTC)), path, private=True)
    record = ("--record", consortium.record, "--rules", consortium.rules)
    seen = sluice("plant", "join", path, *record, "--out", folder)
    assert seen.code == 2
    assert "reveals every row" in seen.err
    assert not folder.exists()
    consortium.join("north", 0)
    for command in (("run",), ("export", "--out", tmp_path / "north.attestation")):
        seen = sluice("plant", command[0], consortium.folder / "north", *command[1:])
        assert seen.code == 2
        assert "--reveal-rows" in seen.err
    assert not (tmp_path / "north.attestation").exists()


def test_an_attestation_comes_as_a_file_too(consortium: Consortium, tmp_path: Path) -> None:
    batch = consortium.join("north", 0).attested_documents()
    path = tmp_path / "north.attestation"
    document = ExportedAttestation(
        plant="north", commit=batch.commit.decode(), proof=batch.proof.decode()
    )
    write_document(document, path)
    assert take_in(consortium.site.folder, path, at=START).what.startswith("attested")
    forged = replace(document, proof=document.proof.replace('"schema":1', '"schema":2'))
    write_document(forged, path)
    with pytest.raises(RefusedError, match="step 5.1"):
        take_in(consortium.site.folder, path, at=START)
    # Anyone can write a file that names north, so the state of north is unchanged.
    store = CoordinatorStore(consortium.site.base)
    assert [member.state for member in store.members()] == ["attested"]
    store.close()


def test_the_terms_come_back_as_they_were(consortium: Consortium, tmp_path: Path) -> None:
    terms = consortium.site.terms
    write_document(terms, tmp_path / "terms.json")
    assert read_document(FederationTerms, tmp_path / "terms.json") == terms


@pytest.mark.parametrize("size", [0, 3, 5, 12])
def test_an_update_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(DocumentError, match="'north' has .* bytes; this model needs 4"):
        read_update(b"\0" * size, client="north", count=1, largest=10)


def test_weights_are_finite_and_as_many_as_the_model_has() -> None:
    whole = packed_update(np.array([1.0, -10.0]))
    assert read_parameters(whole, count=2).tolist() == [1.0, -10.0]
    for count in (1, 3):
        with pytest.raises(DocumentError, match=f"this model has {4 * count}"):
            read_parameters(whole, count=count)
    for number in (np.nan, np.inf):
        with pytest.raises(DocumentError, match="NaN or infinite"):
            read_parameters(whole[:4] + packed_update(np.array([number])), count=2)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 10.01, -3.4e38])
def test_an_update_that_is_no_number_or_out_of_scale_is_refused(number: float) -> None:
    whole = packed_update(np.array([1.0, -10.0]))
    assert packed_update(read_update(whole, client="north", count=2, largest=10)) == whole
    raw = whole[:4] + packed_update(np.array([number]))
    with pytest.raises(DocumentError, match="1 entries that are NaN, infinite or beyond 10"):
        read_update(raw, client="north", count=2, largest=10)


def test_a_full_disk_changes_nothing_and_says_so(consortium: Consortium) -> None:
    consortium.enrol(consortium.request("north", 0))
    store = CoordinatorStore(consortium.site.base)
    pages = store._base.execute("PRAGMA page_count").fetchone()[0]
    store._base.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(SettingError, match="free disk space"):
        store.keep_update("north", 1, bytes(1 << 20))
    assert store.updates(1) == {}
    store.close()


def test_a_plant_trains_on_an_export_that_only_its_plant_file_explains(
    sluice: Callable[..., Outcome], consortium: Consortium, tmp_path: Path
) -> None:
    export, plant_file = tmp_path / "export.csv", tmp_path / "plant.toml"
    header, *rows = consortium.record.read_text(encoding="utf-8").splitlines()
    stamp, *tags = header.split(",")
    lines = [";".join([stamp, *tags])]
    lines += [row.replace(",", ";").replace(".", ",") for row in rows]
    export.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert sluice("data", "inspect", export, "--write-plant", plant_file).code == 0
    share = TrainingRows(record=str(export), start=0, stop=600, plant=str(plant_file))
    expected = read_record(consortium.record).rows(0, 600)
    assert np.array_equal(share.read().values, expected.values, equal_nan=True)
    assert np.array_equal(share.read().times, expected.times)
