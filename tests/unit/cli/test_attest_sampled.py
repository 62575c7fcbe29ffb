"""`sluice attest` with drawn rows, and `sluice audit sampling`, from the outside."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile
from sluice.invariants.rulesfile import save_rules
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Paper rules, a clean batch and its plant."""
    folder = tmp_path_factory.mktemp("plant")
    plant = simulate("line", seed=0, days=8)
    rules = mine(plant.rows(0, 4_320), plant.rows(4_320, 8_640), profile=Profile.PAPER_WIDE)
    save_rules(rules, folder / "rules.json")
    write(plant.rows(8_640, 8_700), folder / "clean.parquet", FileLayout.PARQUET)
    write(plant.rows(8_640, 11_000), folder / "record.parquet", FileLayout.PARQUET)
    return folder


@pytest.mark.parametrize("command", ["challenge", "guarantee", "export"])
def test_every_command_has_an_example(sluice: Run, command: str) -> None:
    assert f"sluice attest {command}" in " ".join(sluice("attest", command, "--help").out.split())


def test_drawn_rows_are_proven_verified_and_exported(
    sluice: Run, made: Path, tmp_path: Path
) -> None:
    keys, files = (
        tmp_path / "keys",
        {n: tmp_path / f"{n}.json" for n in ("commit", "nonce", "proof")},
    )
    seen = sluice(
        "attest", "setup", "--rules", made / "rules.json", "--policy", "paper", "--out", keys,
        "--system", "sampled", "--rows", "64", "--samples", "2", "--violations", "1", "--json",
    )  # fmt: skip
    assert seen.code == 0, seen.err
    assert "made by one party" in seen.err
    assert seen.json["system"] == "sampled"
    batch = made / "clean.parquet"
    seen = sluice("attest", "commit", batch, "--keys", keys, "--out", files["commit"], "--json")
    assert seen.code == 0, seen.err
    told = ("--keys", keys, "--commit", files["commit"])
    seen = sluice("attest", "prove", batch, *told, "--out", files["proof"], "--json")
    assert (seen.code, "needs --challenge" in seen.err) == (2, True)
    draw = ("attest", "challenge", files["commit"], "--keys", keys, "--out", files["nonce"])
    seen = sluice(*draw, "--json")
    assert seen.code == 0, seen.err
    assert len(set(cast("list[int]", seen.json["rows"]))) == 2
    assert sluice(*draw).code == 2, "a commitment is challenged once"
    asked = (*told, "--challenge", files["nonce"])
    seen = sluice("attest", "prove", batch, *asked, "--out", files["proof"], "--json")
    assert (seen.code, seen.json["bytes"]) == (0, 256), seen.err
    seen = sluice("attest", "verify", files["proof"], *asked)
    assert seen.code == 0, seen.err
    assert "The proof covers 2 of 60 rows" in " ".join(seen.out.split())
    seen = sluice("attest", "export", files["proof"], *asked, "--out", tmp_path / "out", "--json")
    assert seen.code == 0, seen.err
    assert (tmp_path / "out" / "verification_key.json").exists()
    nonce = files["nonce"].read_text(encoding="utf-8")
    at = nonce.index('"nonce":"') + len('"nonce":"')
    other = nonce[:at] + ("0" if nonce[at] != "0" else "1") + nonce[at + 1 :]
    files["nonce"].write_text(other, encoding="utf-8")
    seen = sluice("attest", "verify", files["proof"], *asked, "--json")
    assert (seen.code, seen.json["verified"], seen.json["step"]) == (3, False, "5.8")


def test_the_guarantee_is_exact(sluice: Run) -> None:
    seen = sluice(
        "attest", "guarantee", "--rows", "1024", "--samples", "32", "--violations", "1", "--json"
    )
    passes = cast("list[dict[str, float]]", seen.json["pass"])
    chances = {each["share"]: each["probability"] for each in passes}
    assert chances[0.05] == pytest.approx(0.519, abs=6e-3)
    assert sluice("attest", "guarantee", "--rows", "10", "--samples", "32").code == 2


def test_the_guarantee_counts_the_tries_that_the_log_allows(sluice: Run) -> None:
    def after(*options: str) -> tuple[object, dict[float, float]]:
        seen = sluice("attest", "guarantee", "--violations", "1", "--json", *options)
        chances = cast("list[dict[str, float]]", seen.json["passes_after_tries"])
        return seen.json["tries"], {each["share"]: each["probability"] for each in chances}

    once = after("--tries", "1")[1][0.1]
    tries, by_default = after()
    assert tries == 3
    assert by_default[0.1] == pytest.approx(1 - (1 - once) ** 3)
    assert after("--tries", "12")[1][0.1] == pytest.approx(1 - (1 - once) ** 12)
    assert sluice("attest", "guarantee", "--tries", "0").code == 2
    shown = " ".join(sluice("attest", "guarantee", "--tries", "7").out.split())
    assert "at least once in 7 tries" in shown


def test_budgets_and_false_exclusions_follow_from_the_rules(sluice: Run, made: Path) -> None:
    seen = sluice("attest", "guarantee", "--rules", made / "rules.json", "--json")
    assert seen.code == 0, seen.err
    assert seen.json["violations"] == 2
    silent = cast("list[dict[str, object]]", seen.json["silent"])
    assert all(cast("int", each["budget"]) < 32 for each in silent)
    most = cast("float", seen.json["excluded_per_round_at_most"])
    assert 0 < most < 5e-3 + 1e-5 * len(silent)
    assert cast("float", seen.json["excluded_per_run_at_most"]) == pytest.approx(
        1 - (1 - most) ** 25
    )
    shown = " ".join(sluice("attest", "guarantee", "--rules", made / "rules.json").out.split())
    assert "each coupling may be silent" in shown
    assert "per run of 25 rounds" in shown


def test_hardened_rules_are_not_sampled(sluice: Run, made: Path, tmp_path: Path) -> None:
    seen = sluice(
        "attest", "setup", "--rules", made / "rules.json", "--policy", "hardened",
        "--system", "sampled", "--out", tmp_path / "keys",
    )  # fmt: skip
    assert seen.code == 2
    assert not (tmp_path / "keys").exists()


def test_draws_agree_with_the_formula(sluice: Run, made: Path) -> None:
    seen = sluice(
        "audit", "sampling", made / "record.parquet", "--rules", made / "rules.json",
        "--batches", "4", "--size", "600", "--violations", "2", "--json",
    )  # fmt: skip
    assert seen.code == 0, seen.err
    kinds = cast("list[dict[str, str]]", seen.json["table"])
    assert [row["kind"] for row in kinds] == ["honest", "channel-roll"]
    table = cast("list[dict[str, float]]", seen.json["table"])
    for row in table:
        assert row["passed"] == pytest.approx(row["exact"], abs=4 * row["error"] + 1e-9)
    honest, rolled = table
    assert honest["exact"] > 0.99
    assert rolled["exact"] < 0.9
