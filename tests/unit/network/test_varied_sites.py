"""Five varied sites of one kind in a federation, and a sixth plant of another kind."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from sluice.attestation.log.chain import read_log
from sluice.attestation.log.entries import LogTerms
from sluice.attestation.messages.orders import APPROVALS, approve
from sluice.attestation.messages.signing import SigningKey
from sluice.errors import RefusedError, RulesFileError
from sluice.evaluation import certify
from sluice.federation.vote import ballots_of, supported
from sluice.invariants.relations import Bound, Invariant, Rate
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.invariants.rulesfile import load_rules, parse_rules, rules_hash, save_rules
from sluice.lab.plants import simulate
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.founding import (
    FederationPlan,
    coordinator_service,
    found_federation,
)
from sluice.network.coordinator.provisional import provisional_rules
from sluice.network.coordinator.sharing import statistics_in
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.folder import PlantFolder
from sluice.network.statistics import vote_of
from sluice.network.terms import JoinRequest, read_document
from sluice.network.training_rows import TrainingRows
from sluice.network.wire.wire import Direct
from sluice.telemetry import (
    FileLayout,
    Label,
    read_plant_file,
    read_record,
    write,
    write_plant_file,
)
from sluice.template import derive_template, mapped_plant_file
from tests.unit.conftest import Outcome
from tests.varied_plants import VariedPlant, declared_by_approver

from .conftest import START

Run = Callable[..., Outcome]
MISSING = "F_PU2"


def test_five_varied_sites_take_part_and_an_unlike_plant_is_refused(
    tmp_path: Path, sluice: Run
) -> None:
    reference = simulate("line", seed=50, days=4)
    write(reference, tmp_path / "reference.parquet", FileLayout.PARQUET)
    template = derive_template(reference)
    sites = {
        f"site-{at}": VariedPlant.make(
            tmp_path,
            "line",
            at,
            template,
            days=5,
            every=1,
            cuts=(2_880, 5_760),
            share=(5_760, 6_760),
        )
        for at in range(1, 6)
    }
    key = SigningKey.generate()
    plan = FederationPlan(
        federation="water",
        host="127.0.0.1",
        port=18_443,
        link_port=18_000,
        reference=TrainingRows(record=str(tmp_path / "reference.parquet"), start=0, stop=5_760),
        policy='kind = "hardened"\n',
        system="unsafe",
        rows_max=1_024,
        detector="moments",
        rule="vote",
        malicious=2,
        members_min=5,
        lends=True,
        template=template,
        overlap_min=0.85,
        log=LogTerms(history=True),
        approvers=(key.public,),
    )
    site = found_federation(tmp_path / "coordinator", plan, at=START)
    agents = {}
    for name, own in sites.items():
        plant = PlantFolder.create(
            tmp_path / name,
            site.invite(name, at=START),
            own.rules,
            own.rules_file.read_text(encoding="utf-8"),
            own.share,
            at=START,
            reveal_rows=True,
        )
        request = read_document(JoinRequest, plant.folder / "request.json", private=True)
        declared = declared_by_approver(own.rules)
        approval = APPROVALS.write(approve(rules_hash(own.rules), key, declared=declared))
        site.enrol(request, approvals=[approval], at=START)
        sharing = plant.statistic_sharing()
        assert sharing is not None
        sharing.sign_off(plant.share.read(), "A. Reader", at=START)
        agents[name] = plant.agent(reveal_rows=True)
    unlike = site.invite("unlike", at=START).terms
    other = simulate("treatment", seed=1, days=0.01)
    with pytest.raises(RefusedError, match=r"'unlike' has 0 of the federation's 11 points"):
        unlike.demand_points(other.channels, plant="unlike")
    store = CoordinatorStore(site.base)
    now = iter(START + timedelta(seconds=at) for at in range(10_000))
    service = coordinator_service(site, store, Direct(agents), clock=lambda: next(now))
    done = service.run(rounds=2, on_round=lambda _: None)
    store.close()
    assert read_log(site.log).rounds.members == tuple(sites)
    kept = statistics_in(done.parameters, site.terms)
    assert kept.names == tuple(sites)
    assert [member.tail is not None for member in kept.members] == [True] * 5
    lacking = PlantFolder(tmp_path / "site-3").share
    assert MISSING not in lacking.whole().names
    for name, supports in (("site-1", 4), ("site-3", None)):
        share = PlantFolder(tmp_path / name).share
        clean = share.whole().rows(6_760, 7_200)
        vote = vote_of(
            kept, site.terms, clean, rounds=1, rules=None, false_alarms_per_week=1.0, borrowed=True
        )
        labels = np.where(np.arange(len(clean)) < 20, Label.ATTACK, Label.NORMAL)
        labelled = replace(clean, labels=labels.astype(np.int8))
        certificate = supported(certify(ballots_of(vote, labelled), malicious=2), vote)
        counted = {each.point: len(each.members) for each in certificate.points}
        assert counted.get(MISSING) == supports
        assert {each.member: MISSING in each.points for each in certificate.by_support} == {
            each: supports is not None and each != "site-3" for each in sites
        }
        assert certificate.borrowed
        assert any("borrowed" in each for each in certificate.sentences)
        assert certificate.actual.time_in_alarm is not None
        assert certificate.actual.time_in_alarm < 0.05
    _watch_by_provisional_rules(tmp_path, sluice)


def _watch_by_provisional_rules(folder: Path, sluice: Run) -> None:
    """A plant that joins later watches by the members' limits; gate and proofs refuse them."""
    site, rules = folder / "coordinator", folder / "provisional.json"
    made = json.loads(
        sluice("coordinator", "provisional", str(site), "--out", str(rules), "--json").out
    )
    assert made["members"] == 5
    limits = load_rules(rules, provisional=True)
    assert limits.provisional
    newcomer = VariedPlant.make(
        folder,
        "line",
        6,
        CoordinatorFolder(site).terms.template,  # type: ignore[arg-type]
        days=1,
        every=1,
        cuts=(500, 1_000),
        share=(1_000, 1_400),
    )
    record, plant = newcomer.share.record, str(newcomer.share.plant)
    for words in (
        ("check", record, "--rules", str(rules), "--plant", plant),
        ("attest", "setup", "--rules", str(rules), "--out", str(folder / "keys")),
    ):
        refused = sluice(*words)
        assert refused.code == 2
        assert "is provisional" in refused.err
    text = rules.read_text(encoding="utf-8")
    with pytest.raises(RulesFileError, match="serves 'sluice watch' only"):
        parse_rules(text, name="of 'late'")
    words = ("watch", record, "--replay", "--rules", str(rules), "--plant")
    summary = json.loads(sluice(*words, plant, "--json").out.splitlines()[-1])["summary"]
    assert summary["borrowed"] == ["rules"]
    assert "lacking" not in summary
    assert summary["alarms"] <= 3  # of a clean day
    limited = [rule.relation.channels for rule in limits.invariants]
    lacked = min(name for names in limited for name in names)
    declared = read_plant_file(plant)
    fewer = {tag: each for tag, each in declared.points.items() if each.name != lacked}
    lacking = folder / "lacking.toml"
    write_plant_file(read_record(record), lacking, plant=mapped_plant_file(declared, fewer))
    watched = sluice(*words, str(lacking), "--json").out
    assert json.loads(watched.splitlines()[-1])["summary"]["lacking"] == [lacked]
    told = f"this plant has no {lacked}: the provisional limits of these points are left out"
    assert told in sluice(*words, str(lacking)).err
    alone = tuple(rule for rule in limits.invariants if lacked in rule.relation.channels)
    save_rules(replace(limits, invariants=alone), rules)
    refused = sluice(*words, str(lacking))
    assert refused.code == 2
    assert "maps no tag to a point that the provisional rules limit" in refused.err


def test_provisional_limits_lie_between_those_of_honest_members() -> None:
    template = derive_template(simulate("line", seed=50, days=2))
    point = next(each for each in template.points if each.span is not None)
    assert point.span is not None
    low, high = point.usual[0], point.usual[2]

    def member(widening: float) -> RuleSet:
        bound = Bound(name="in range", channel=point.name, low=low - widening, high=high + widening)
        return RuleSet(
            plant="p",
            profile=Profile.HARDENED,
            stride_s=60.0,
            channels=(),
            invariants=(
                Invariant(relation=bound, tolerance=widening),
                Invariant(relation=Rate(name="rate", channel=point.name), tolerance=widening),
            ),
        )

    for lies in ((1e9, 1e9), (0.0, 0.0), (1e9, 0.0)):
        members = {str(at): member(each) for at, each in enumerate((0.01, 0.02, 0.03, *lies))}
        made = provisional_rules(members, template, malicious=2)
        assert [type(rule.relation) for rule in made.invariants] == [Bound, Rate]
        for rule in made.invariants:
            assert 0.01 <= rule.tolerance <= 0.03
            if isinstance(rule.relation, Bound):
                assert low - 0.03 <= rule.relation.low <= low
                assert high <= rule.relation.high <= high + 0.03
    with pytest.raises(RefusedError, match="need at least 5 members"):
        provisional_rules(dict.fromkeys("abcd", member(0.01)), template, malicious=2)
    for left in (0, 1):  # four members have the other limit, and five are needed
        short = replace(member(0.01), invariants=member(0.01).invariants[left : left + 1])
        some = {**dict.fromkeys("abcd", member(0.01)), "e": short}
        made = provisional_rules(some, template, malicious=2)
        assert [type(rule.relation) for rule in made.invariants] == [(Bound, Rate)[left]]
    empty = replace(member(0.01), invariants=())
    with pytest.raises(RefusedError, match="would be empty"):
        provisional_rules(dict.fromkeys("abcde", empty), template, malicious=2)
    bare = replace(
        template,
        points=tuple(replace(p, span=None) if p == point else p for p in template.points),
    )
    with pytest.raises(RefusedError, match="would be empty"):  # no span, no register
        provisional_rules(dict.fromkeys("abcde", member(0.01)), bare, malicious=2)
