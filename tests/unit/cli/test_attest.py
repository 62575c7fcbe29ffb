"""`sluice attest` and `sluice check --prove` from the outside."""

import json
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from sluice.admission.acceptance import Acceptance
from sluice.admission.policy import HardenedPolicy, write_policy
from sluice.attestation.log.chain import Log
from sluice.attestation.log.entries import LogOpened, LogTerms
from sluice.attestation.messages.messages import PROOFS, REGISTRATIONS
from sluice.attestation.messages.orders import APPROVALS, approve
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.attestation.protocol.coordinator import Agreement, ProtocolCoordinator
from sluice.attestation.protocol.key_folder import KeyFolder
from sluice.attestation.protocol.plant import Registered
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile
from sluice.invariants.rulesfile import load_rules, save_rules
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
COMMANDS = ("setup", "commit", "prove", "verify")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rules, a clean batch and a forged one."""
    folder = tmp_path_factory.mktemp("plant")
    plant = simulate("line", seed=0, days=8)
    rules = mine(plant.rows(0, 4_320), plant.rows(4_320, 8_640), profile=Profile.HARDENED)
    save_rules(rules, folder / "rules.json")
    batch = plant.rows(8_640, 9_640)
    write(batch, folder / "clean.parquet", FileLayout.PARQUET)
    values = batch.values.copy()
    pump = batch.index("S_PU1")
    values[100:300, pump] = 1 - values[100:300, pump]
    write(batch.with_values(values), folder / "forged.parquet", FileLayout.PARQUET)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, sluice: Run) -> Path:
    """The same with keys of the transparent system."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    options = ("--rules", tmp_path / "rules.json", "--out", tmp_path / "keys", "--json")
    seen = sluice("attest", "setup", "--system", "unsafe", *options)
    assert seen.code == 0, seen.err
    assert "HIDES NOTHING" in seen.err
    assert set(seen.json) == {
        "system", "circuit_id", "columns", "constraints", "proven_bits", "key_bytes",
    }  # fmt: skip
    assert (seen.json["system"], seen.json["proven_bits"]) == ("unsafe", 0)
    return tmp_path


def commit(sluice: Run, folder: Path, batch: str = "clean", *options: object) -> Outcome:
    return sluice(
        "attest", "commit", folder / f"{batch}.parquet", "--keys", folder / "keys",
        "--out", folder / "commit.json", "--json", *options,
    )  # fmt: skip


def prove(sluice: Run, folder: Path, batch: str = "clean", *options: object) -> Outcome:
    return sluice(
        "attest", "prove", folder / f"{batch}.parquet", "--keys", folder / "keys",
        "--commit", folder / "commit.json", "--out", folder / "proof.json", "--json", *options,
    )  # fmt: skip


def verify(sluice: Run, folder: Path, *options: object) -> Outcome:
    return sluice(
        "attest", "verify", folder / "proof.json", "--keys", folder / "keys",
        "--commit", folder / "commit.json", *options,
    )  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(sluice: Run, command: str) -> None:
    assert f"sluice attest {command}" in " ".join(sluice("attest", command, "--help").out.split())


def test_from_set_up_to_verification(sluice: Run, folder: Path) -> None:
    seen = commit(sluice, folder)
    assert (seen.code, seen.json["rows"]) == (0, 1_000)
    assert set(seen.json) == {"commitment", "rows", "interval"}
    assert seen.json["interval"] == {
        "start": "2024-01-07T00:00:00.000000", "end": "2024-01-07T16:39:00.000000",
    }  # fmt: skip
    for private in ("commit.opening", "keys/private/client.key"):
        assert stat.S_IMODE((folder / private).stat().st_mode) == 0o600
    seen = prove(sluice, folder)
    assert (seen.code, set(seen.json)) == (0, {"seconds", "bytes", "peak_mb"})
    shutil.rmtree(folder / "keys" / "private")  # a verifier has neither of these
    (folder / "commit.opening").unlink()
    seen = verify(sluice, folder, "--json")
    assert (seen.code, seen.json["verified"]) == (0, True)
    assert set(seen.json) == {
        "verified", "bound", "milliseconds", "steps_checked", "steps_unchecked",
    }  # fmt: skip
    assert seen.json["steps_checked"] == ["5.1", "5.5", "5.6", "5.7", "5.8"]
    assert seen.json["steps_unchecked"] == ["5.2", "5.3", "5.4"]
    seen = verify(sluice, folder)
    assert "Not checked: steps 5.2, 5.3, 5.4" in seen.out
    assert "because no --log was given" in seen.out
    assert "HIDES NOTHING" in seen.err


def test_with_a_log_every_step_is_checked(sluice: Run, folder: Path) -> None:
    shutil.rmtree(folder / "keys")
    reasons = {"S_PU4": "runs only if S_PU3 fails"}
    write_policy(HardenedPolicy(acceptance=Acceptance(reasons=reasons)), folder / "declared.toml")
    sluice(
        "attest", "setup", "--system", "unsafe", "--rules", folder / "rules.json",
        "--policy", folder / "declared.toml", "--out", folder / "keys",
    )  # fmt: skip
    commit(sluice, folder, "clean", "--federation", "water", "--client", "north")
    prove(sluice, folder)
    keys, coordinator, approver = (
        KeyFolder.open(folder / "keys"), SigningKey.generate(), SigningKey.generate(),
    )  # fmt: skip
    opened = LogOpened(
        federation="water",
        coordinator=coordinator.public,
        approvers=(approver.public,),
        terms=LogTerms(history=True),
    )
    path = folder / "log.jsonl"
    protocol = ProtocolCoordinator(log=Log.create(path, opened, coordinator, at=NOW))
    plant = Registered(
        federation="water",
        client="north",
        key=keys.client_key(),
        system=keys.system,
        circuit=keys.circuit,
    )
    registration = plant.registration()
    enrolled = protocol.register(
        REGISTRATIONS.write(registration),
        Agreement(system=keys.system, circuit=keys.circuit),
        approvals=[APPROVALS.write(approve(registration.content.rules, approver))],
        at=NOW,
    )
    seen = verify(sluice, folder, "--log", path, "--json")
    assert (seen.code, seen.json["step"]) == (3, "5.3")
    assert seen.json["steps_checked"] == ["5.1", "5.2"]
    received = enrolled.receive((folder / "commit.json").read_bytes(), at=NOW)
    seen = verify(sluice, folder, "--log", path, "--json")
    assert (seen.code, len(seen.json["steps_checked"])) == (0, 8)  # type: ignore[arg-type]
    received.attest((folder / "proof.json").read_bytes(), at=NOW)
    assert verify(sluice, folder, "--log", path).code == 0
    path.write_bytes(path.read_bytes()[:-3])
    seen = verify(sluice, folder, "--log", path, "--json")
    assert (seen.code, seen.json["step"], seen.json["steps_checked"]) == (3, "7", [])
    assert "torn" in seen.err


def test_a_batch_that_breaks_the_rules_is_not_proven(sluice: Run, folder: Path) -> None:
    assert commit(sluice, folder, "forged").code == 0
    seen = prove(sluice, folder, "forged")
    assert (seen.code, seen.json["refused"]) == (3, True)
    assert "S_PU1 reads" in str(seen.json["reason"])
    assert "S_PU1 reads" in seen.err
    assert not (folder / "proof.json").exists()
    assert b"S_PU1" not in (folder / "commit.json").read_bytes()


def test_a_tampered_proof_is_refused_with_its_step(sluice: Run, folder: Path) -> None:
    commit(sluice, folder)
    prove(sluice, folder)
    whole = (folder / "proof.json").read_bytes()
    for raw, step in (
        (whole + b"\n", "5.1"),
        (b"", "5.1"),
        (whole.replace(b'"client":"plant"', b'"client":"other"'), "5.2"),
    ):
        (folder / "proof.json").write_bytes(raw)
        seen = verify(sluice, folder, "--json")
        assert (seen.code, seen.json["verified"], seen.json["step"]) == (3, False, step)
        assert f"not verified: step {step}" in seen.err
    seen = verify(sluice, folder)
    assert (seen.code, seen.out) == (3, "")


def test_keys_that_were_touched_are_refused(sluice: Run, folder: Path) -> None:
    commit(sluice, folder)
    prove(sluice, folder)
    pinned = folder / "keys" / "circuit.json"
    whole = json.loads(pinned.read_text())
    told = json.dumps({**whole, "circuit": "0" * 64}, sort_keys=True, separators=(",", ":"))
    pinned.write_text(told)
    seen = verify(sluice, folder, "--json")
    assert (seen.code, seen.json["step"]) == (3, "5.6")
    seen = prove(sluice, folder)
    assert (seen.code, seen.out) == (2, "")
    assert "pins circuit 000000000000" in seen.err
    for part in ("rules", "policy"):
        told = json.dumps({**whole, part: "0" * 64}, sort_keys=True, separators=(",", ":"))
        pinned.write_text(told)
        seen = verify(sluice, folder)
        assert seen.code == 2
        assert "other rules or another policy" in seen.err
    pinned.write_text("{}")
    assert "not well formed" in verify(sluice, folder).err


def test_what_is_there_is_not_written_over(sluice: Run, folder: Path) -> None:
    commit(sluice, folder)
    before = (folder / "commit.json").read_bytes(), (folder / "commit.opening").read_bytes()
    seen = commit(sluice, folder)
    assert seen.code == 2
    assert "and its opening exist" in seen.err
    after = (folder / "commit.json").read_bytes(), (folder / "commit.opening").read_bytes()
    assert after == before
    arguments = ("attest", "setup", "--system", "unsafe", "--rules", folder / "rules.json")
    seen = sluice(*arguments, "--out", folder / "keys", "--rows", 1_024)
    assert seen.code == 2
    assert "holds another circuit" in seen.err
    assert sluice(*arguments, "--out", folder / "keys").code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rows", "0:100"), "100 rows; the policy takes 200 to 8,192"),
        (("--rows", "0:2000"), "has rows 0:1000"),
        (("--client", "a b"), "client: String should match"),
        (("--keys", "nowhere"), "is not a key folder"),
        (("--every", "2"), "stride of 120 s"),
    ],
)
def test_bad_input_exits_2(
    sluice: Run, folder: Path, options: tuple[str, ...], message: str
) -> None:
    seen = commit(sluice, folder, "clean", *options)
    assert (seen.code, seen.out) == (2, "")
    assert message in seen.err
    assert not (folder / "commit.json").exists()
    assert not (folder / "commit.opening").exists()


def test_other_rows_than_the_committed_ones_are_not_proven(sluice: Run, folder: Path) -> None:
    commit(sluice, folder, "clean", "--rows", "0:600")
    seen = prove(sluice, folder, "clean", "--rows", "1:601")
    assert seen.code == 2
    assert "is not the one that was committed to (600 rows" in seen.err
    assert prove(sluice, folder, "clean", "--rows", "0:600").code == 0


def test_missing_files_exit_2(sluice: Run, folder: Path) -> None:
    assert "cannot be read" in verify(sluice, folder).err
    seen = prove(sluice, folder)
    assert seen.code == 2
    assert not (folder / "keys" / "private").exists()  # only a commitment makes a key


def test_rules_that_say_nothing_are_not_set_up(sluice: Run, folder: Path) -> None:
    rules = load_rules(folder / "rules.json")
    assert rules.clean is not None
    bounds = tuple(rule for rule in rules.invariants if not rule.kind.physical)
    clean = replace(rules.clean, severe=(), envelope=(), anchors=())
    save_rules(replace(rules, invariants=bounds, clean=clean), folder / "empty.json")
    seen = sluice(
        "attest", "setup", "--system", "unsafe", "--rules", folder / "empty.json",
        "--out", folder / "none",
    )  # fmt: skip
    assert seen.code == 2
    assert not (folder / "none").exists()


def test_the_default_system_proves_in_zero_knowledge(
    sluice: Run, made: Path, tmp_path: Path
) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    options = ("--rules", tmp_path / "rules.json", "--out", tmp_path / "keys", "--rows", 1_024)
    seen = sluice("attest", "setup", *options, "--json")
    assert (seen.code, seen.json["system"], seen.err) == (0, "full", "")
    assert cast("int", seen.json["proven_bits"]) >= 100
    assert commit(sluice, tmp_path).code == 0
    assert prove(sluice, tmp_path).code == 0
    seen = verify(sluice, tmp_path, "--json")
    assert (seen.code, seen.json["verified"], seen.err) == (0, True, "")
    first = (tmp_path / "proof.json").read_bytes()
    under_way = tmp_path / "commit.proving"
    under_way.write_bytes(bytes(200))
    under_way.chmod(0o600)
    seen = prove(sluice, tmp_path, "clean", "--memory", "62MB")  # in segments
    assert seen.code == 2
    assert "was begun for another batch" in seen.err
    under_way.unlink()
    assert prove(sluice, tmp_path, "clean", "--memory", "62MB").code == 0
    assert not under_way.exists()
    assert (tmp_path / "proof.json").read_bytes() != first  # fresh masks each time
    assert verify(sluice, tmp_path).code == 0
    seen = prove(sluice, tmp_path, "forged")
    assert (seen.code, seen.out) == (2, "")
    (tmp_path / "commit.json").unlink()
    assert commit(sluice, tmp_path, "forged").code == 0
    seen = prove(sluice, tmp_path, "forged")
    assert (seen.code, seen.json["refused"]) == (3, True)
    assert "S_PU1 reads" in str(seen.json["reason"])
    assert "S_PU1 reads" in seen.err


# -- sluice check --prove -------------------------------------------------------------------------


def check(sluice: Run, folder: Path, batch: str, *options: object) -> Outcome:
    return sluice(
        "check", folder / f"{batch}.parquet", "--rules", folder / "rules.json", "--json", *options
    )


def test_check_proves_what_it_admits(sluice: Run, folder: Path) -> None:
    """The keys that lie in the folder say which system it is."""
    seen = check(sluice, folder, "clean", "--prove", folder)
    assert (seen.code, seen.json["admitted"]) == (0, True)
    assert "HIDES NOTHING" in seen.err
    assert stat.S_IMODE((folder / "commit.opening").stat().st_mode) == 0o600
    assert verify(sluice, folder).code == 0


def test_check_sets_up_what_it_needs(sluice: Run, folder: Path) -> None:
    seen = check(sluice, folder, "clean", "--prove", folder / "proven")
    assert (seen.code, seen.err) == (0, "")
    assert sorted(path.name for path in (folder / "proven").iterdir()) == [
        "commit.json", "commit.opening", "keys", "proof.json",
    ]  # fmt: skip
    assert verify(sluice, folder / "proven").code == 0


def test_check_proves_nothing_that_it_refuses(sluice: Run, folder: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())
    seen = check(sluice, folder, "forged", "--prove", folder)
    assert (seen.code, seen.json["admitted"]) == (3, False)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_check_does_not_prove_other_rules_than_the_keys_are_for(sluice: Run, folder: Path) -> None:
    policy = folder / "policy.toml"
    policy.write_text('kind = "hardened"\nrows_min = 100\n')
    seen = check(sluice, folder, "clean", "--prove", folder, "--policy", policy)
    assert (seen.code, seen.out) == (2, "")
    assert "for other rules or another policy" in seen.err
    other = replace(load_rules(folder / "rules.json"), plant="other")
    save_rules(other, folder / "rules.json")
    seen = check(sluice, folder, "clean", "--prove", folder)
    assert (seen.code, seen.out) == (2, "")
    assert "for other rules or another policy" in seen.err


def test_two_verifiers_accept_or_refuse_a_proof(sluice: Run, made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    seen = sluice(
        "attest", "setup", "--rules", tmp_path / "rules.json", "--out", tmp_path / "keys",
    )  # fmt: skip
    assert seen.code == 0, seen.err
    assert commit(sluice, tmp_path, "clean", "--rows", "0:250").code == 0
    assert prove(sluice, tmp_path, "clean", "--rows", "0:250").code == 0
    seen = verify(sluice, tmp_path, "--reference", "--json")
    assert (seen.code, seen.json["verified"], seen.json["reference"]) == (0, True, True)
    assert "reference" not in verify(sluice, tmp_path, "--json").json
    seen = verify(sluice, tmp_path, "--reference", "--quiet")
    assert "Two verifiers accept the proof" in seen.out
    whole = PROOFS.read((tmp_path / "proof.json").read_bytes(), largest=1 << 24).content
    key = KeyFolder.open(tmp_path / "keys").client_key()
    changed = sign(replace(whole, proof=whole.proof[:-1] + b"\1"), key)
    (tmp_path / "proof.json").write_bytes(PROOFS.write(changed))
    seen = verify(sluice, tmp_path, "--reference", "--json")
    assert (seen.code, seen.json["verified"], seen.json["reference"]) == (3, False, False)
    assert "the second verifier refuses it too: step 5.8" in seen.err


def test_only_full_has_a_second_verifier(sluice: Run, folder: Path) -> None:
    commit(sluice, folder)
    prove(sluice, folder)
    seen = verify(sluice, folder, "--reference")
    assert seen.code == 2
    assert "system 'unsafe' has no second verifier" in seen.err


def test_a_statistic_is_bound_from_set_up_to_verification(
    made: Path, tmp_path: Path, sluice: Run
) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    options = ("--rules", tmp_path / "rules.json", "--statistic", "moments", "--json")
    seen = sluice("attest", "setup", "--out", tmp_path / "keys", "--rows", 1_024, *options)
    assert (seen.code, seen.json["statistic"], seen.json["statistic_bits"]) == (0, "moments", 187)
    assert cast("int", seen.json["proven_bits"]) >= 100
    seen = commit(sluice, tmp_path, "clean", "--statistic", "moments")
    assert seen.code == 0, seen.err
    named = json.loads((tmp_path / "commit.json").read_bytes())["content"]["statistic"]
    assert seen.json["statistic"] == named
    assert prove(sluice, tmp_path).code == 0
    seen = verify(sluice, tmp_path, "--json")
    assert (seen.code, seen.json["verified"], seen.json["bound"]) == (0, True, "moments")
    assert seen.json["steps_checked"] == ["5.1", "5.5", "5.6", "5.6.1", "5.7", "5.8"]
    assert "bound: moments" in verify(sluice, tmp_path).out
    sums = tmp_path / "statistic.bin"
    held = bytearray(sums.read_bytes())
    held[200] ^= 1
    other = tmp_path / "other.bin"
    other.write_bytes(held)
    seen = verify(sluice, tmp_path, "--statistic-file", other, "--json")
    assert (seen.code, seen.json["bound"], seen.json["step"]) == (3, None, "5.6.1")
    assert seen.json["steps_checked"] == ["5.1", "5.5", "5.6"]
    sums.rename(tmp_path / "away.bin")
    seen = verify(sluice, tmp_path, "--json")
    assert (seen.code, seen.out) == (2, "")
    assert verify(sluice, tmp_path, "--statistic-file", tmp_path / "away.bin").code == 0


def test_keys_without_a_statistic_commit_to_none(sluice: Run, folder: Path) -> None:
    seen = commit(sluice, folder, "clean", "--statistic", "moments")
    assert seen.code == 2
    assert "binds no statistic 'moments'" in seen.err
    options = ("--rules", folder / "rules.json", "--out", folder / "other")
    for system in ("unsafe", "sampled"):
        seen = sluice("attest", "setup", "--system", system, "--statistic", "moments", *options)
        assert seen.code == 2
        assert "binds no statistic" in seen.err
