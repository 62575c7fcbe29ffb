"""A plant's own check asks what the coordinator asks when it imports the request and the batch."""

from dataclasses import replace
from pathlib import Path

import pytest

from sluice.attestation.log.entries import LogTerms
from sluice.attestation.messages.orders import APPROVALS, approve
from sluice.attestation.messages.signing import SigningKey
from sluice.errors import RefusedError
from sluice.invariants.rulesfile import load_rules, save_rules
from sluice.network.plant.folder import PlantFolder
from sluice.network.plant.import_preview import ImportPreview, preview_import
from sluice.network.terms import JoinRequest

from .conftest import Consortium, Founder


def previewed(consortium: Consortium, name: str, *approvals: bytes) -> ImportPreview:
    plant = PlantFolder(consortium.folder / name)
    return preview_import(plant, plant.share.read(), approvals=approvals, at=consortium.clock())


def imported(consortium: Consortium, request: JoinRequest, *approvals: bytes) -> str:
    """Hand the request and the batch to the coordinator; return why it refuses, if it does."""
    try:
        consortium.site.enrol(request, approvals=approvals, at=consortium.clock())
    except RefusedError as error:
        return str(error)
    return ""


def test_a_request_that_passes_the_preview_is_imported(founder: Founder) -> None:
    consortium = founder()
    request = consortium.request("north", 0)
    approval = consortium.approval(request)
    before = previewed(consortium, "north")
    assert (before.passes, before.approvals_missing, before.registered) == (True, 1, False)
    after = previewed(consortium, "north", approval)
    assert (after.passes, after.approvals_missing) == (True, 0)
    assert imported(consortium, request, approval) == ""


def test_an_approval_by_a_stranger_is_missing_in_the_preview_too(founder: Founder) -> None:
    consortium = founder()
    request = consortium.request("north", 0)
    forged = consortium.approval(request, SigningKey.generate())
    assert previewed(consortium, "north", forged).approvals_missing == 1
    assert "approvals" in imported(consortium, request, forged)


def test_an_approval_of_other_rules_is_refused_in_the_preview_too(founder: Founder) -> None:
    consortium = founder()
    request = consortium.request("north", 0)
    other = APPROVALS.write(approve("ab" * 32, consortium.approver))
    refused = previewed(consortium, "north", other).refused
    assert refused
    assert refused == imported(consortium, request, other)


def test_rules_that_the_policy_refuses_are_refused_with_every_objection(
    founder: Founder, tmp_path: Path
) -> None:
    consortium = founder()
    rules = load_rules(consortium.rules)
    kept = tuple(rule for rule in rules.invariants if "S_PU1" not in rule.name)
    assert rules.clean is not None
    clean = replace(
        rules.clean,
        envelope=tuple(fact for fact in rules.clean.envelope if "S_PU1" not in fact.rule),
        severe=tuple(fact for fact in rules.clean.severe if "S_PU1" not in fact.rule),
        switches=tuple(fact for fact in rules.clean.switches if "S_PU1" not in fact.rule),
        refused_share=0.5,
    )
    consortium.rules = tmp_path / "weak.json"
    weak = replace(rules, invariants=kept, clean=clean, untied=None)
    save_rules(weak, consortium.rules)
    request = consortium.request("north", 0)
    approval = consortium.approval(request)
    found = previewed(consortium, "north", approval)
    assert not found.passes
    assert len(found.objections) >= 2
    refused = imported(consortium, request, approval)
    assert all(objection.sentence in refused for objection in found.objections)


def test_a_batch_that_is_too_old_for_the_log_is_refused_before_it_is_sent(
    founder: Founder,
) -> None:
    consortium = founder(log=LogTerms())
    request = consortium.request("north", 0)
    found = previewed(consortium, "north", consortium.approval(request))
    assert "more than 30 days before" in found.refused
    assert not found.passes


def test_a_plant_that_takes_part_is_checked_against_its_copy_of_the_log(
    consortium: Consortium,
) -> None:
    consortium.run(rounds=1)
    found = previewed(consortium, "north")
    assert (found.registered, found.passes) == (True, True)
    north = PlantFolder(consortium.folder / "north")
    earlier = replace(north.share, start=north.share.start - 600, stop=north.share.stop - 600)
    refused = preview_import(north, earlier.read(), at=consortium.clock()).refused
    assert "already committed" in refused


@pytest.mark.parametrize("needed", [1, 2])
def test_the_preview_counts_approvals_as_the_log_does(founder: Founder, needed: int) -> None:
    consortium = founder(log=LogTerms(history=True, approvals=needed), approvers=2)
    request = consortium.request("north", 0)
    twice = [consortium.approval(request)] * 2
    assert previewed(consortium, "north", *twice).approvals_missing == needed - 1
    assert (imported(consortium, request, *twice) == "") == (needed == 1)
