"""Five varied treatment sites over real Flower processes: bound statistics, missing points."""

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sluice.attestation.log.entries import LogTerms
from sluice.attestation.messages.orders import APPROVALS, approve
from sluice.attestation.messages.statistic_limits import StatisticLimits
from sluice.detector.modelfile import load_detector
from sluice.detector.voting import borrows_thresholds
from sluice.invariants.rulesfile import rules_hash
from sluice.lab.plants import varied_site
from sluice.lab.plants.catalogue import simulate
from sluice.network.coordinator.founding import FederationPlan, found_federation
from sluice.network.plant.folder import PlantFolder
from sluice.network.terms import JoinRequest, read_document, write_document
from sluice.network.training_rows import TrainingRows
from sluice.telemetry import FileLayout, PlantFile, write, write_plant_file
from sluice.template import derive_template, mapped_plant_file, placements
from tests.varied_plants import VariedPlant, declared_by_approver

from .sites import APPROVER, ROOT, SLUICE, SOURCE, Draft, Sites, free_port, running

pytestmark = pytest.mark.skipif(
    "SLUICE_NETWORK" not in os.environ, reason="make test-network runs it"
)

NAMES = tuple(f"site-{at}" for at in range(1, 6))
MISSING = "FIT401"
EVERY = 10
START_UP_S = 6 * 3_600.0
CUTS = (7_776, 15_552)
SHARE = (15_552, 16_552)  # the first rows after those that rules are mined from
CLEAN = "16552:19400"


def typed(sites: Sites, *words: str, code: int = 0) -> str:
    """Return what a command of `sluice` prints: on stdout, or on stderr if it is refused."""
    done = subprocess.run(
        (*SLUICE, *words),
        cwd=sites.folder,
        env={**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT}"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def drafted(folder: Path, ground: Path) -> Draft:
    """Found the federation of a template, and let the five sites join, each with its own rules."""
    reference = simulate("treatment", seed=50, days=2).without_first(START_UP_S).every(EVERY)
    write(reference, ground / "reference.parquet", FileLayout.PARQUET)
    template = derive_template(reference)
    sites = {
        name: VariedPlant.make(
            ground,
            "treatment",
            at,
            template,
            days=2.5,
            every=EVERY,
            skip_s=START_UP_S,
            cuts=CUTS,
            share=SHARE,
        )
        for at, name in enumerate(NAMES, start=1)
    }
    plan = FederationPlan(
        federation="water",
        host="127.0.0.1",
        port=free_port(),
        link_port=free_port(),
        filter_port=free_port(),
        reference=TrainingRows(record=str(ground / "reference.parquet"), start=0, stop=15_120),
        policy='kind = "hardened"\n',
        rows_max=1_024,
        detector="moments",
        rule="vote",
        malicious=2,
        members_min=5,
        rounds=1,
        bound=True,
        limits=StatisticLimits(rows_min=600, span_min_s=3_600),
        lends=True,
        template=template,
        overlap_min=0.9,
        batch_deadline_s=900.0,
        round_deadline_s=300.0,
        quorum=1.0,
        log=LogTerms(history=True),
        approvers=(APPROVER.public,),
    )
    now = datetime.now(UTC)
    site = found_federation(folder / "water", plan, at=now)
    for name, own in sites.items():
        text = own.rules_file.read_text(encoding="utf-8")
        invitation = site.invite(name, at=now)
        plant = PlantFolder.create(folder / name, invitation, own.rules, text, own.share, at=now)
        request = read_document(JoinRequest, plant.folder / "request.json", private=True)
        declared = declared_by_approver(own.rules)
        approval = APPROVALS.write(approve(rules_hash(own.rules), APPROVER, declared=declared))
        (folder / f"{name}.approval").write_bytes(approval)
        site.enrol(request, approvals=[approval], at=now)
    for name in ("unlike", "newcomer"):
        write_document(site.invite(name, at=now), folder / f"{name}.invitation", private=True)
    late = varied_site("treatment", 6, seed=3, days=0.5)
    rows = late.record.without_first(START_UP_S).every(EVERY)
    write(rows, ground / "newcomer.parquet", FileLayout.PARQUET)
    placed = placements(rows, template, late.reference)
    mapped = mapped_plant_file(PlantFile(), placed)
    write_plant_file(rows, ground / "newcomer.toml", plant=mapped)
    return Draft(folder=folder, plants=NAMES)


def borrowed_by_a_newcomer(sites: Sites, ground: Path) -> None:
    """A sixth site with six hours of rows has no rules yet; it borrows and watches."""
    typed(sites, "coordinator", "export-statistics", "water", "--out", "members.bin")
    typed(sites, "coordinator", "export-log", "water", "--out", "log.jsonl")
    record, plant = str(ground / "newcomer.parquet"), str(ground / "newcomer.toml")
    words = ("plant", "borrow", "newcomer.invitation", "--statistics", "members.bin")
    out = ("--log", "log.jsonl", "--record", record, "--plant", plant, "--out", "first.safetensors")
    payload = json.loads(typed(sites, *words, *out, "--json"))
    assert (payload["member_names"], payload["borrowed"]) == (list(NAMES), True)
    assert (payload["tails_lent"], payload["rules"]) == (len(NAMES), False)
    watched = typed(
        sites,
        *("watch", record, "--replay", "--plant", plant, "--model", "first.safetensors", "--json"),
    )
    summary = json.loads(watched.splitlines()[-1])["summary"]
    assert summary["borrowed"] == ["thresholds"]


def test_five_varied_sites_federate_and_an_unlike_plant_is_refused(
    tmp_path: Path, jax_cache: Path
) -> None:
    draft = drafted(tmp_path / "draft", tmp_path)
    other = tmp_path / "line.parquet"
    write(simulate("line", seed=0, days=1), other, FileLayout.PARQUET)
    with running(draft, tmp_path / "sites", jax_cache) as sites:
        rules = str(tmp_path / "site-1.rules.json")
        said = typed(
            sites,
            *("plant", "join", "unlike.invitation", "--record", str(other), "--rules", rules),
            *("--out", "unlike"),
            code=3,
        )
        assert "'unlike' has 0 of the federation's" in said
        assert "another kind of plant" in said
        assert not (sites.folder / "unlike").exists()
        for name in NAMES:
            approval, operator = f"{name}.approval", f"Operator of {name}"
            typed(sites, "plant", "check", name, "--approval", approval, "--sign-off", operator)
        sites.start()
        ending = sites.end()
        assert (ending.members, ending.excluded) == ((NAMES,), ({},))
        for name in ("site-1", "site-3"):  # site 3 has no such meter
            model = f"{name}.safetensors"
            words = ("plant", "model", name, "--out", model, "--clean", CLEAN, "--borrow", "--json")
            payload = json.loads(typed(sites, *words))
            assert payload["member_names"] == list(NAMES)
            assert payload["borrowed"] is True
            assert payload["tails_lent"] == len(NAMES)
            detector = load_detector(sites.folder / model)
            assert borrows_thresholds(detector)
            assert (MISSING in detector.framing.scaler.names) == (name == "site-1")
        borrowed_by_a_newcomer(sites, tmp_path)
        verified = json.loads(typed(sites, "audit-log", "verify", "water/log.jsonl", "--json"))
        assert verified["bound"] is True
        assert verified["clients"] == list(NAMES)
