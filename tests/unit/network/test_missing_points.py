"""Plants with other tags, units and sensors in one federation, on the in-process wire."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sluice.attestation.log.chain import read_log
from sluice.attestation.messages.signing import SigningKey
from sluice.attestation.messages.statistic_limits import StatisticLimits
from sluice.cli.plant.gain import gain_of
from sluice.detector.moments.statistic import moment_statistic
from sluice.errors import DocumentError, RefusedError, SettingError
from sluice.federation.vote import point_support
from sluice.invariants import Profile, load_rules, mine, save_rules
from sluice.network.coordinator.founding import FederationPlan, found_federation
from sluice.network.coordinator.sharing import statistics_in
from sluice.network.plant.folder import PlantFolder
from sluice.network.plant.vote_gain import VoteGain
from sluice.network.statistics import (
    POINTS_MAGIC,
    MemberStatistics,
    demand_points,
    encoded,
    read_encoded,
    vote_of,
)
from sluice.network.terms import demand_overlap, write_document
from sluice.network.training_rows import TrainingRows
from sluice.telemetry import FileLayout, write
from sluice.telemetry.reading import read_record
from sluice.template import derive_template
from tests.unit.conftest import Outcome

from .conftest import POLICY, START, Consortium, Founder, sign_off
from .malicious_plant import Falsified

Run = Callable[..., Outcome]
NAMES = ("north", "south", "west")
LACKING = "S_PU1"
DIFFERS = "flow in l/s; the point is flow in no unit"


@pytest.fixture(scope="module")
def lacking(line_files: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plant without one tag: its record and its own rules."""
    folder = tmp_path_factory.mktemp("lacking")
    record = read_record(line_files[0]).without(LACKING)
    write(record, folder / "line.csv", FileLayout.CSV)
    rules = mine(record.rows(0, 4_320), record.rows(4_320, 8_640), profile=Profile.HARDENED)
    save_rules(rules, folder / "rules.json")
    return folder


def joined(made: Consortium, lacking: Path) -> Consortium:
    for index, name in enumerate(NAMES):
        own = made
        if name == "south":
            own = replace(made, record=lacking / "line.csv", rules=lacking / "rules.json")
        own.join(name, index)
    return made


def test_a_plant_without_a_point_takes_part(founder: Founder, lacking: Path) -> None:
    made = joined(founder("vote", detector="moments", members_min=3, overlap_min=0.8), lacking)
    done = made.run()
    settings = made.site.terms.moments.settings
    kept = statistics_in(done.parameters, made.site.terms)
    assert kept.names == NAMES
    south = kept.of("south")
    assert south is not None
    assert LACKING not in south.statistic.settings.channels
    assert MemberStatistics.from_canonical(kept.canonical(), settings) == kept
    for rows in (read_record(made.record), read_record(lacking / "line.csv")):
        vote = vote_of(
            kept,
            made.site.terms,
            rows.rows(4_320, 8_640),
            rounds=1,
            rules=None,
            false_alarms_per_week=1.0,
        )
        support = {each.point: each.members for each in point_support(vote)}
        assert support.get(LACKING, ()) == (("north", "west") if LACKING in rows.names else ())
        assert support["L_T1"] == NAMES


def test_a_bound_statistic_without_a_point_is_voted_on(founder: Founder, lacking: Path) -> None:
    limits = StatisticLimits(rows_min=300, span_min_s=3_600)
    made = joined(
        founder(
            "vote",
            detector="moments",
            members_min=3,
            overlap_min=0.8,
            bound=True,
            system="full",
            limits=limits,
        ),
        lacking,
    )
    for name in NAMES:
        sign_off(made, name)
    kept = statistics_in(made.run().parameters, made.site.terms)
    assert kept.names == NAMES
    assert MemberStatistics.from_canonical(kept.canonical(), None) == kept
    for rows in (read_record(made.record), read_record(lacking / "line.csv")):
        vote = vote_of(
            kept,
            made.site.terms,
            rows.rows(4_320, 8_640),
            rounds=1,
            rules=None,
            false_alarms_per_week=1.0,
        )
        support = {each.point: each.members for each in point_support(vote)}
        assert support.get(LACKING, ()) == (("north", "west") if LACKING in rows.names else ())
        assert support["L_T1"] == NAMES
    for name in ("north", "south"):
        gain = gain_of(PlantFolder(made.folder / name), clean=None, attacks=None, quiet=True)
        assert isinstance(gain, VoteGain)
        assert gain.members == 3


def test_a_reference_of_another_kind_founds_no_federation_and_invitations_hold_templates(
    line_files: tuple[Path, Path], tmp_path: Path, sluice: Run
) -> None:
    record = read_record(line_files[0])
    plan = FederationPlan(
        federation="water",
        host="127.0.0.1",
        port=18_443,
        link_port=18_000,
        reference=TrainingRows(record=str(line_files[0]), start=4_320, stop=8_640),
        policy=POLICY,
        rows_max=4_096,
        detector="moments",
        rule="vote",
        approvers=(SigningKey.generate().public,),
        template=derive_template(record.without(LACKING)),
    )
    with pytest.raises(SettingError, match=f"not a record of template .*{LACKING!r}"):
        found_federation(tmp_path / "other", plan, at=START)
    assert not (tmp_path / "other").exists()
    slower = replace(plan, template=derive_template(record.every(2)))
    with pytest.raises(SettingError, match="it has a row every 60 s, not 120 s"):
        found_federation(tmp_path / "other", slower, at=START)
    litres = derive_template(record)
    points = tuple(
        replace(each, unit="l/s") if each.name == "F_PU1" else each for each in litres.points
    )
    with pytest.raises(RefusedError, match=r"F_PU1: flow in no unit; the point is flow in l/s$"):
        found_federation(
            tmp_path / "other", replace(plan, template=replace(litres, points=points)), at=START
        )
    assert not (tmp_path / "other").exists()
    fits = replace(plan, template=derive_template(record))
    site = found_federation(tmp_path / "same", fits, at=START)
    assert site.terms.template == fits.template
    invitation = tmp_path / "north.invitation"
    write_document(site.invite("north", at=START), invitation, private=True)
    words = ("plant", "map", str(line_files[0]), "--invitation", str(invitation), "--json")
    proposed = json.loads(sluice(*words).out)
    assert proposed["template"] == record.name
    assert {each["tag"] for each in proposed["tags"]} == set(record.names)
    plain = found_federation(tmp_path / "plain", replace(plan, template=None), at=START)
    write_document(plain.invite("north", at=START), invitation, private=True)
    refused = sluice(*words)
    assert refused.code == 2
    assert "has no template: its plants use the same tags" in refused.err
    limits = tmp_path / "provisional.json"
    refused = sluice("coordinator", "provisional", str(tmp_path / "plain"), "--out", str(limits))
    assert refused.code == 2
    assert "no points to give limits for" in refused.err
    assert not limits.exists()


def test_a_plant_that_hides_a_point_is_excluded(founder: Founder) -> None:
    made = founder("vote", detector="moments", members_min=2, malicious=0, overlap_min=0.8)
    for index, name in enumerate(NAMES):
        made.join(name, index)
    settings = made.site.terms.moments.settings

    def hidden(raw: bytes) -> bytes:
        names = set(settings.channels) - {LACKING}
        return encoded(read_encoded(raw, settings).only(names), settings)

    made.plants["west"] = Falsified(PlantFolder(made.folder / "west"), hidden)
    kept = statistics_in(made.run().parameters, made.site.terms)
    assert kept.names == ("north", "south")


def test_a_plant_that_sums_another_point_than_its_rules_describe_is_excluded(
    founder: Founder, lacking: Path
) -> None:
    made = founder("vote", detector="moments", members_min=2, malicious=0, overlap_min=0.8)
    settings = joined(made, lacking).site.terms.moments.settings
    whole = moment_statistic(read_record(made.record).rows(8_640, 9_240), settings)
    zeros = whole.without([LACKING])
    other = encoded(zeros.only(set(settings.channels) - {"S_PU2"}), settings)

    def swapped(raw: bytes) -> bytes:
        assert len(raw) == len(other)  # each of them lacks one point
        return other

    made.plants["south"] = Falsified(PlantFolder(made.folder / "south"), swapped)
    assert statistics_in(made.run().parameters, made.site.terms).names == ("north", "west")
    assert dict(read_log(made.site.log).rounds.excluded)["south"] == "6.7"


def test_too_few_points_are_refused_when_a_plant_joins_and_is_imported(
    founder: Founder, lacking: Path
) -> None:
    made = founder("vote", detector="moments", members_min=3)
    own = replace(made, record=lacking / "line.csv", rules=lacking / "rules.json")
    with pytest.raises(RefusedError, match=rf"10 of the federation's 11 points .*\n  {LACKING}"):
        own.request("south", 1)
    request = made.request("north", 0)
    changed = replace(request, rules=own.rules.read_text(encoding="utf-8"))
    with pytest.raises(RefusedError, match=rf"the federation needs 100%.*\n  {LACKING}"):
        made.site.enrol(changed, at=made.clock())


def test_a_record_with_too_few_points_is_refused_whatever_its_rules_name(
    founder: Founder, lacking: Path, tmp_path: Path, sluice: Run
) -> None:
    made = founder("vote", detector="moments", members_min=3)
    invitation, out = tmp_path / "south.invitation", tmp_path / "south"
    write_document(made.site.invite("south", at=made.clock()), invitation, private=True)
    named = ("--record", str(lacking / "line.csv"), "--rules", str(made.rules))
    refused = sluice("plant", "join", str(invitation), *named, "--out", str(out))
    assert refused.code == 3
    assert "10 of the federation's 11 points" in " ".join(refused.err.split())
    assert not out.exists()


def test_rules_that_cannot_be_measured_on_the_record_are_refused_when_a_plant_joins(
    founder: Founder, lacking: Path, tmp_path: Path, sluice: Run
) -> None:
    """The plant joined, and found out when it checked its batch."""
    made = founder("vote", detector="moments", members_min=3, overlap_min=0.8)
    invitation, out = tmp_path / "south.invitation", tmp_path / "south"
    write_document(made.site.invite("south", at=made.clock()), invitation, private=True)
    words = ("plant", "join", str(invitation), "--rules", str(made.rules), "--out", str(out))
    refused = sluice(*words, "--record", str(lacking / "line.csv"))
    assert refused.code == 2
    assert f"has no channel {LACKING!r}, which rule" in " ".join(refused.err.split())
    thinned = sluice(*words, "--record", str(made.record), "--every", "2")
    assert thinned.code == 2
    assert "has a stride of 120 s, the rules of" in " ".join(thinned.err.split())
    assert not out.exists()


def test_points_that_measure_something_else_are_refused_at_join_and_import(
    line_files: tuple[Path, Path], founder: Founder, tmp_path: Path, sluice: Run
) -> None:
    """A plant whose tags have the points' names, in another unit, was not mapped."""
    template = derive_template(read_record(line_files[0]))
    made = founder("vote", detector="moments", members_min=3, template=template)
    rules = load_rules(made.rules)
    channels = tuple(
        replace(each, unit="l/s") if each.name == "F_PU1" else each for each in rules.channels
    )
    told = rf"1 channels .*\n  F_PU1: {DIFFERS}$"
    other = replace(rules, channels=channels)
    request = made.request("north", 0)
    save_rules(other, tmp_path / "other.json")
    with pytest.raises(RefusedError, match=told):
        replace(made, rules=tmp_path / "other.json").request("south", 1)
    text = (tmp_path / "other.json").read_text(encoding="utf-8")
    with pytest.raises(RefusedError, match=told):
        made.site.enrol(replace(request, rules=text), at=made.clock())
    plant_file = tmp_path / "litres.toml"
    plant_file.write_text('[channels.F_PU1]\nunit = "l/s"\n', encoding="utf-8")
    invitation, out = tmp_path / "west.invitation", tmp_path / "west"
    write_document(made.site.invite("west", at=made.clock()), invitation, private=True)
    named = ("--record", str(made.record), "--rules", str(made.rules), "--plant")
    refused = sluice(
        "plant", "join", str(invitation), *named, str(plant_file), "--out", str(out), "--json"
    )
    assert refused.code == 3
    assert f"F_PU1: {DIFFERS}" in refused.err
    assert not out.exists()


def test_a_model_of_rounds_needs_every_point() -> None:
    with pytest.raises(SettingError, match="reads every point"):
        demand_overlap(0.9, statistic=False)
    demand_overlap(1.0, statistic=False)
    for least in (0.0, 1.5):
        with pytest.raises(SettingError, match="above 0 and at most 1"):
            demand_overlap(least, statistic=True)
    for least in (0.01, 1.0):
        demand_overlap(least, statistic=True)


def test_other_points_than_the_rules_describe_are_refused(founder: Founder) -> None:
    made = founder("vote", detector="moments", members_min=3)
    settings = made.site.terms.moments.settings
    sums = moment_statistic(read_record(made.record).rows(0, 600), settings)
    partial = sums.only(set(settings.channels) - {LACKING})
    with pytest.raises(SettingError, match=f"{LACKING!r} differs"):
        demand_points(partial, settings)
    demand_points(partial, partial.settings)


def test_damaged_names_of_points_are_refused(founder: Founder) -> None:
    made = founder("vote", detector="moments", members_min=3)
    settings = made.site.terms.moments.settings
    sums = moment_statistic(read_record(made.record).rows(0, 600), settings)
    raw = encoded(sums.only(set(settings.channels) - {LACKING}), settings)
    assert raw.startswith(POINTS_MAGIC)
    assert read_encoded(raw, settings).settings.channels != settings.channels
    size = -(-len(settings.registers) // 8)
    start = len(POINTS_MAGIC)
    none, every = (np.packbits([bit] * len(settings.registers)).tobytes() for bit in (0, 1))
    beyond = raw[start : start + size - 1] + bytes([raw[start + size - 1] | 1])
    for bits in (none, every, b"\xff" * size, beyond):
        with pytest.raises(SettingError, match="one bit each"):
            read_encoded(raw[:start] + bits + raw[start + size :], settings)
    with pytest.raises(SettingError, match="one bit each"):
        read_encoded(raw[: start + 1], settings)  # cut after the bits of the first eight points
    eight = settings.only(settings.channels[:8])
    for kept in (1, 7):
        few = sums.only(settings.channels[:kept])
        assert read_encoded(encoded(few, eight), eight) == few
    whole = MemberStatistics(settings=settings).canonical()
    with pytest.raises(DocumentError, match="cut|cannot be read"):
        MemberStatistics.from_canonical(whole + b"\0" * 200, settings)
